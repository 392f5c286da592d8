/* findings_ack.c - what the operator knows of. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/findings/memory.h"

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

/* A copy of the rows, to be taken back. */
static struct store_finding *ack_rows(const struct findings *findings)
{
    struct store_finding *rows = calloc(findings->n + 1, sizeof(*rows));
    for (uint32_t i = 0; rows != NULL && i < findings->n; i++)
        rows[i] = findings->all[i]->row;
    return rows;
}

int findings_ack(struct findings *findings, const struct findings_ack *ack, int64_t now, json_t *list,
                 struct fab_err *err)
{
    struct store_finding *before;
    uint32_t n = 0;
    if (ack->seconds < 0 || ack->seconds > FINDINGS_MAX_ACK)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "ack: give a time from 1 second to %d days",
                        FINDINGS_MAX_ACK / 86400);
    if (ack->which[0] == '\0' || (before = ack_rows(findings)) == NULL)
        return fab_fail(err, ack->which[0] == '\0' ? PMIXFAB_ERR_SYNTAX : PMIXFAB_ERR_NOMEM,
                        ack->which[0] == '\0' ? "ack: say which finding" : "ack: out of memory");
    for (uint32_t i = 0; i < findings->n; i++)
        if (findings->all[i]->row.gone == 0 && ack_is_about(findings->all[i], ack->which)) {
            ack_put(findings->all[i], ack, now);
            n++;
        }
    int rc = n == 0 ? fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                               "ack: no finding %s: `fabricctl check` shows those that there are", ack->which)
                    : findings_save(findings, err);
    for (uint32_t i = 0; rc != PMIXFAB_OK && n > 0 && i < findings->n; i++)
        findings->all[i]->row = before[i];
    free(before);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < findings->n_there; i++)
        if (ack_is_about(findings->there[i], ack->which))
            json_array_append_new(list, findings_json(findings->there[i]));
    return rc;
}
