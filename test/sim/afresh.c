/* afresh.c - what a daemon without any past serves of the site as it is now. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fabricd/config/config.h"
#include "fabricd/engine/publish.h"
#include "test/sim/played.h"

static void configure_newcomer(const char *folder, struct config *config)
{
    char conf[160], *argv[] = {"fabricd", "--config", conf, "--foreground", NULL};
    snprintf(conf, sizeof(conf), "%s/fabricd.conf", folder);
    FILE *file = fopen(conf, "w");
    if (file == NULL)
        sim_fail("%s: %s", conf, strerror(errno));
    fprintf(file, "[fabricd]\nprobe = site\nrundir = %s\nstore = %s/fabricd.db\nhost = manager\n", folder,
            folder);
    fclose(file);
    config_init(config);
    if (options_parse(4, argv, config) != PMIXFAB_OK)
        sim_fail("the configuration of a newcomer is refused");
}

const char *sim_afresh(struct sim *s)
{
    static char folder[112];
    struct fab_err err = {""};
    struct config config;
    struct publisher *publisher = NULL;
    struct counts *counts = counts_new();
    struct publication *publication = NULL;
    struct fab_inventory inv;
    struct sweep_findings findings = {0};
    struct publish_request request = {.inv = &inv};
    snprintf(folder, sizeof(folder), "%s/afresh", sim_folder(s));
    sim_remove(folder);
    if (mkdir(folder, 0755) != 0)
        sim_fail("%s: %s", folder, strerror(errno));
    sim_note(s, "a newcomer looks at the site");
    configure_newcomer(folder, &config);
    site_inventory(sim_site(s), NULL, &inv);
    int rc = publisher_new(&config, counts, &publisher, &err);
    if (rc == PMIXFAB_OK)
        rc = publish_prepare(publisher, &request, &publication, &findings, &err);
    if (rc != PMIXFAB_OK || publication == NULL)
        sim_fail("a newcomer publishes nothing: %s", err.text);
    publish_finish(publisher, publication);
    publication_free(publication);
    publisher_free(publisher);
    counts_free(counts);
    fab_inventory_destroy(&inv);
    config_destroy(&config);
    return folder;
}
