/*
 * monitor_tool PROBE[:ARG]: a probe's light sweep in this process, for commands on standard input:
 *   run     discover everything, begin to monitor that: "nodes N"
 *   poll    a light sweep: "poll MILLISECONDS REQUESTS all|GUID..."
 *   again   read anew what was found dirty since the run: "again MILLISECONDS" or "full REASON"
 *   same    discover everything: is the last result the same? "same MILLISECONDS" or "differs" and both
 *   watch   begin to monitor the last result
 */
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probes/registry.h"
#include "test/fabrics/dump.h"
#include "topo/model/inventory_wire.h"

extern char **environ;

static struct probe_config config;
static const struct probe *probe;
static const char *spec;
static struct fab_inventory last;
static struct probe_monitor *watch;
static struct dirty_switches dirty;
static struct fab_err err;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void say_note(enum pmixfab_level level, const char *line, void *cbdata)
{
    (void)cbdata;
    fprintf(stderr, "<%d>%s\n", (int)level, line);
}
static const struct probe_sink sink = {.note = say_note};

/* In a process of its own, as fabricd does: the simulator's library has room for few discoveries in one. */
static int discover(struct fab_inventory *inv)
{
    static char bytes[1 << 24];
    char *argv[] = {"monitor_tool", (char *)spec, "--wire", NULL};
    posix_spawn_file_actions_t actions;
    int fds[2], status = 1;
    size_t n = 0;
    pid_t pid;
    fab_inventory_init(inv);
    if (pipe(fds) != 0)
        return PMIXFAB_ERR_IO;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, fds[0]);
    posix_spawn_file_actions_addclose(&actions, fds[1]);
    const int failed = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    for (ssize_t got = 1; failed == 0 && got > 0 && n<sizeof(bytes); n += got> 0 ? (size_t)got : 0)
        got = read(fds[0], bytes + n, sizeof(bytes) - n);
    close(fds[0]);
    if (failed != 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return fab_fail(&err, PMIXFAB_ERR_IO, "the discovery failed");
    return fab_wire_decode(bytes, n, inv, &err);
}

static int hand_over(void)
{
    struct fab_inventory inv;
    void *bytes = NULL;
    size_t size = 0;
    fab_inventory_init(&inv);
    int rc = probe->run(&config, &sink, &inv, &err);
    if (rc == PMIXFAB_OK)
        rc = fab_wire_encode(&inv, &bytes, &size);
    if (rc != PMIXFAB_OK)
        fprintf(stderr, "%s\n", err.text);
    else if (fwrite(bytes, 1, size, stdout) != size)
        rc = PMIXFAB_ERR_IO;
    free(bytes);
    fab_inventory_destroy(&inv);
    return rc == PMIXFAB_OK ? 0 : 1;
}

static void replace(struct fab_inventory *inv)
{
    probe->monitor_close(watch); /* which looks at the old one */
    watch = NULL;
    fab_inventory_destroy(&last);
    last = *inv;
}

static int begin(void)
{
    probe->monitor_close(watch);
    watch = NULL;
    dirty_switches_free(&dirty);
    return probe->monitor_open(&config, &last, &watch, &err);
}

static void do_run(void)
{
    struct fab_inventory inv;
    if (discover(&inv) != PMIXFAB_OK) {
        printf("failed %s\n", err.text);
        fab_inventory_destroy(&inv);
        return;
    }
    replace(&inv);
    if (begin() != PMIXFAB_OK)
        printf("failed %s\n", err.text);
    else
        printf("nodes %u\n", last.n_nodes);
}

static void do_look(void)
{
    const double start = now();
    const uint64_t before = dirty.requests;
    int rc = watch == NULL ? begin() : PMIXFAB_OK;
    if (rc == PMIXFAB_OK)
        rc = probe->monitor_poll(watch, &dirty, &err);
    if (rc != PMIXFAB_OK) {
        printf("failed %s\n", err.text);
        probe->monitor_close(watch);
        watch = NULL;
        return;
    }
    printf("poll %.3f %" PRIu64, now() - start, dirty.requests - before);
    if (dirty.all)
        printf(" all");
    for (uint32_t i = 0; i < dirty.n; i++)
        printf(" 0x%016" PRIx64, dirty.guids[i]);
    printf("\n");
}

static void do_again(void)
{
    struct fab_inventory inv;
    const double start = now();
    fab_inventory_init(&inv);
    int rc = probe->sweep_switches(&config, &sink, &last, &dirty, &inv, &err);
    if (rc == PMIXFAB_OK) {
        replace(&inv);
        printf("again %.3f\n", now() - start);
        return;
    }
    fab_inventory_destroy(&inv);
    printf("%s %s\n", rc == PMIXFAB_ERR_UNSUPPORTED ? "full" : "failed", err.text);
}

static void do_same(void)
{
    struct fab_inventory inv;
    const double start = now();
    int rc = discover(&inv);
    const double took = now() - start;
    if (rc != PMIXFAB_OK) {
        printf("failed %s\n", err.text);
    } else if (fab_inventory_equal(&last, &inv)) {
        printf("same %.3f\n", took);
    } else {
        printf("differs\n");
        printf("---- as read anew\n");
        fabric_dump(&last, stdout);
        printf("---- as discovered\n");
        fabric_dump(&inv, stdout);
    }
    fab_inventory_destroy(&inv);
}

int main(int argc, char **argv)
{
    char line[80];
    spec = argc > 1 ? argv[1] : NULL;
    if (argc < 2 || (probe = probe_find(spec, &config.arg)) == NULL || probe->monitor_open == NULL) {
        fprintf(stderr, "usage: monitor_tool PROBE[:ARG]\n");
        return 2;
    }
    if (argc > 2)
        return hand_over();
    fab_inventory_init(&last);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "run") == 0)
            do_run();
        else if (strcmp(line, "poll") == 0)
            do_look();
        else if (strcmp(line, "again") == 0)
            do_again();
        else if (strcmp(line, "same") == 0)
            do_same();
        else if (strcmp(line, "watch") == 0)
            printf("%s\n", begin() == PMIXFAB_OK ? "watching" : "failed");
        printf(".\n");
        fflush(stdout);
    }
    probe->monitor_close(watch);
    dirty_switches_free(&dirty);
    fab_inventory_destroy(&last);
    return 0;
}
