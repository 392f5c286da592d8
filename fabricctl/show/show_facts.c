/*
 * show_facts.c - what is known of a device, for programs and for people.
 */
#include "fabricctl/show/show_facts.h"

#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl_text.h"
#include "fabricctl/core/source.h"
#include "fabricctl/core/table.h"
#include "fabricctl/show/wanted.h"

#define LINE 1024

/* ---- for programs ---- */

static json_t *fact_sources_json(const struct pmixfab_fact *fact)
{
    json_t *sources = json_array();
    const char *name;

    for (uint32_t i = 0; (name = pmixfab_source_name(i)) != NULL; i++)
        if ((fact->sources >> i & 1) != 0)
            json_array_append_new(sources, json_string(name));
    return sources;
}

json_t *ctl_facts_json(const struct pmixfab *fab, uint32_t device)
{
    json_t *facts = json_array();
    struct pmixfab_fact fact;

    for (uint32_t i = 0; facts != NULL && pmixfab_fact(fab, device, i, &fact) == PMIXFAB_OK; i++) {
        json_t *one = json_pack(
            "{s:s, s:o, s:o, s:b, s:b, s:b, s:b, s:b}", "kind", fact.kind, "text", ctl_json_text(fact.text),
            "sources", fact_sources_json(&fact), "chosen", (int)fact.chosen, "conflict", (int)fact.conflict,
            "estimate", (int)fact.estimate, "software", (int)fact.software, "yielded", (int)fact.yielded);
        if (json_array_append_new(facts, one) != 0) {
            json_decref(facts);
            facts = NULL;
        }
    }
    return facts;
}

/* ---- for people ---- */

/* Append to a line of LINE bytes; what does not fit is cut. */
static void fact_line_append(char *line, const char *text)
{
    size_t used = strlen(line);

    snprintf(line + used, LINE - used, "%s", text);
}

static void add_sources(char *line, uint32_t sources)
{
    const char *between = "", *name;

    for (uint32_t i = 0; (name = pmixfab_source_name(i)) != NULL; i++)
        if ((sources >> i & 1) != 0) {
            fact_line_append(line, between);
            fact_line_append(line, name);
            between = ", ";
        }
}

/* "(estimate; ucx: 2048)": what is to be said of a believed fact, and of the others of its kind, which follow
 * the first believed one. */
static void fact_remark(const struct pmixfab *fab, uint32_t device, uint32_t at,
                        const struct pmixfab_fact *fact, bool first, char line[static LINE])
{
    const char *const said[] = {fact->estimate ? "estimate" : NULL, fact->software ? "software" : NULL,
                                fact->yielded ? "another host's" : NULL};
    const char *between = "";
    struct pmixfab_fact other;

    line[0] = '\0';
    for (size_t i = 0; i < CTL_COUNT(said); i++)
        if (said[i] != NULL) {
            fact_line_append(line, between);
            fact_line_append(line, said[i]);
            between = "; ";
        }
    for (uint32_t i = at + 1; first && pmixfab_fact(fab, device, i, &other) == PMIXFAB_OK; i++) {
        if (strcmp(other.kind, fact->kind) != 0)
            break;
        if (other.chosen)
            continue;
        fact_line_append(line, between);
        add_sources(line, other.sources);
        fact_line_append(line, ": ");
        fact_line_append(line, other.text);
        between = "; ";
    }
    if (fact->conflict && first && line[0] == '\0')
        fact_line_append(line, "contradicted");
}

/* Bytes of the widest text that does not make the lines too long. */
static int fact_max_width(const struct pmixfab *fab, uint32_t device)
{
    struct pmixfab_fact fact;
    size_t width = 0;

    for (uint32_t i = 0; pmixfab_fact(fab, device, i, &fact) == PMIXFAB_OK; i++) {
        size_t len = strlen(fact.text);
        if (fact.chosen && len > width && len <= 40)
            width = len;
    }
    return (int)width;
}

static void print_fact(const struct pmixfab *fab, uint32_t device, uint32_t at,
                       const struct pmixfab_fact *fact, bool first, int width)
{
    char sources[LINE] = "", said[LINE], text[LINE];

    snprintf(text, sizeof text, "%s", fact->text);
    ctl_clean(text);
    add_sources(sources, fact->sources);
    fact_remark(fab, device, at, fact, first, said);
    ctl_clean(said);
    printf("  %-12s %-*s  ", first ? fact->kind : "", width, text);
    if (said[0] != '\0')
        printf("%-17s (%s)\n", sources, said);
    else
        printf("%s\n", sources);
}

void ctl_facts_print(const struct pmixfab *fab, const char *plane, uint32_t device)
{
    struct pmixfab_device about;
    struct pmixfab_fact fact;
    char line[LINE], label[CTL_LABEL_SIZE];
    const char *kind = "";
    int width = fact_max_width(fab, device);

    if (pmixfab_device(fab, device, &about) != PMIXFAB_OK ||
        pmixfab_fact(fab, device, 0, &fact) != PMIXFAB_OK)
        return;
    ctl_device_label(&about, true, label, sizeof label);
    snprintf(line, sizeof line, "%s, plane %s, %s", label, plane, about.id);
    ctl_clean(line);
    printf("\n%s\n", line);
    for (uint32_t i = 0; pmixfab_fact(fab, device, i, &fact) == PMIXFAB_OK; i++) {
        if (!fact.chosen)
            continue;
        print_fact(fab, device, i, &fact, strcmp(kind, fact.kind) != 0, width);
        kind = fact.kind;
    }
}
