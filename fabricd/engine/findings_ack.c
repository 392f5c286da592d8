/* findings_ack.c - what the operator knows of. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/engine/memory.h"

/* Is this name in the text, as a word of its own? */
static bool ack_mentions(const char *text, const char *name)
{
    const size_t len = strlen(name);
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
        const bool begins = at == text || (!isalnum((unsigned char)at[-1]) && strchr("._-", at[-1]) == NULL);
        const char end = at[len];
        if (begins && (end == '\0' || (!isalnum((unsigned char)end) && strchr("._-", end) == NULL)))
            return true;
    }
    return false;
}

static bool ack_is_about(const struct finding *finding, const char *which)
{
    char id[FAB_FINDING_ID_TEXT];
    fab_finding_id_text(finding->row.id, id);
    return fab_finding_id_matches(id, which) || strcmp(fab_check_name(finding->kind), which) == 0 ||
           ack_mentions(finding->row.place, which);
}

static void ack_put(struct finding *finding, const struct findings_ack *ack, int64_t now)
{
    struct store_finding *row = &finding->row;
    row->acked = ack->cancel ? 0 : now;
    row->acked_until = ack->cancel || ack->seconds == 0 ? 0 : now + ack->seconds * 1000000;
    row->acked_by = ack->cancel ? 0 : ack->uid;
    finding->unsaved = true;
}

/* Those of one call, and how they were. */
struct ack_page {
    uint32_t n;
    struct finding *chosen[FINDINGS_ACKS];
    struct store_finding before[FINDINGS_ACKS];
};

static struct ack_page *ack_put_page(const struct findings *findings, const struct findings_ack *ack,
                                     int64_t now, uint32_t *at)
{
    struct ack_page *page = calloc(1, sizeof(*page));
    for (; page != NULL && *at < findings->n_there && page->n < FINDINGS_ACKS; ++*at) {
        struct finding *finding = findings->there[*at];
        if (!ack_is_about(finding, ack->which))
            continue;
        page->chosen[page->n] = finding;
        page->before[page->n++] = finding->row;
        ack_put(finding, ack, now);
    }
    return page;
}

int findings_ack(struct findings *findings, const struct findings_ack *ack, int64_t now, uint32_t *at,
                 json_t *list, struct fab_err *err)
{
    const bool first = *at == 0;
    if (ack->seconds < 0 || ack->seconds > FINDINGS_MAX_ACK)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "ack: give a time from 1 second to %d days",
                        FINDINGS_MAX_ACK / 86400);
    if (ack->which[0] == '\0')
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "ack: say which finding");
    struct ack_page *page = ack_put_page(findings, ack, now, at);
    if (page == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ack: out of memory");
    int rc = page->n == 0 && first
                 ? fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                            "ack: no finding %s: `fabricctl check` shows those that there are", ack->which)
                 : findings_save(findings, err);
    for (uint32_t i = 0; i < page->n; i++) {
        if (rc == PMIXFAB_OK)
            json_array_append_new(list, findings_json(page->chosen[i]));
        else
            page->chosen[i]->row = page->before[i];
    }
    free(page);
    return rc;
}
