/*
 * plane_numbers.c - a plane keeps its number as long as most of it is still there.
 *
 * Every port GUID and switch GUID of the known planes' last snapshots votes for its plane; pairs are then
 * matched by votes, most first. So after a split the larger part keeps the number, and a part that was cut
 * off before finds its old number again, because retired planes vote as well (once the active ones had their
 * choice).
 *
 * That is for InfiniBand. A plane that has its name from the configuration, or is that of the unattached
 * ports, is known again by its name, and its members have no vote: a port that is cabled today and was not
 * yesterday takes no plane with it.
 *
 * Names count from 0, as those of interfaces do, and numbers from 1: number 1 of an InfiniBand fabric is
 * "ib0".
 */
#include "fabricd/engine/plane_numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/radix.h"
#include "topo/base/search.h"
#include "topo/snapshot/reader.h"

/* A plane of today and one of yesterday that share something. */
struct match {
    uint32_t plane, known, votes;
    bool retired;
};

static int plane_compare_majority(const void *a, const void *b)
{
    const struct match *x = a, *y = b;
    if (x->retired != y->retired)
        return x->retired - y->retired;
    if (x->votes != y->votes)
        return x->votes > y->votes ? -1 : 1;
    if (x->plane != y->plane)
        return x->plane < y->plane ? -1 : 1;
    return (x->known > y->known) - (x->known < y->known);
}

static bool is_fixed(const struct built_plane *out)
{
    return out->name[0] != '\0';
}

/* Is this known plane one that goes by its name? Its last snapshot says so where it can be read. */
static bool goes_by_name(const char *identifier)
{
    return strncmp(identifier, "Ethernet-", strlen("Ethernet-")) == 0 ||
           strcmp(identifier, UNATTACHED_PLANE) == 0;
}

/* GUIDs, each with the known plane that it belonged to. */
struct members {
    struct fab_key *keys;
    size_t n;
};

/* Append the GUIDs of one known plane. A snapshot that this version cannot read has no say. */
static int add_members(const struct pmixfab *fab, uint32_t which, struct members *members)
{
    struct pmixfab_plane info;
    if (fab == NULL)
        return PMIXFAB_OK;
    pmixfab_plane(fab, &info);
    if (goes_by_name(info.identifier))
        return PMIXFAB_OK;
    struct fab_key *grown =
        reallocarray(members->keys, 2 * (members->n + info.n_devices + info.n_switches + 1), sizeof(*grown));
    if (grown == NULL)
        return PMIXFAB_ERR_NOMEM;
    members->keys = grown;                        /* the second half is for sorting */
    for (uint32_t i = 0; i < info.n_devices; i++) /* in the order of GUIDs, so that sorting is quick */
        grown[members->n++] = (struct fab_key){fab->devices[fab->by_port[i]].port_guid, which};
    for (uint32_t i = 0; i < info.n_switches; i++)
        grown[members->n++] = (struct fab_key){fab->switches[i].guid, which};
    return PMIXFAB_OK;
}

static void plane_add_majority(const struct members *members, uint64_t guid, uint32_t *votes)
{
    uint32_t at = FAB_LOWER_BOUND(0, (uint32_t)members->n, i, members->keys[i].value < guid);
    for (; at < members->n && members->keys[at].value == guid; at++)
        votes[members->keys[at].index]++;
}

/* Votes of one plane of today for each known one. */
static void plane_count_majority(const struct fab_plane *plane, const struct members *members,
                                 uint32_t *votes)
{
    const struct fab_inventory *inv = plane->inv;
    for (uint32_t i = 0; i < plane->n_devices; i++)
        plane_add_majority(members, inv->ports[plane->devices[i].port].guid, votes);
    for (uint32_t i = 0; i < plane->n_switches; i++)
        plane_add_majority(members, inv->nodes[plane->switches[i].node].guid, votes);
}

static void plane_assign_number(struct built_plane *out, const struct store_plane *known)
{
    out->index = known->index;
    out->is_new = false;
    snprintf(out->name, sizeof(out->name), "%s", known->name);
}

/* Planes that go by their names, an active one before a retired one. */
static void number_by_name(struct built_plane *out, uint32_t n, bool *done, const struct store_plane *known,
                           uint32_t n_known, bool *taken)
{
    for (uint32_t i = 0; i < n; i++) {
        for (unsigned retired = 0; is_fixed(&out[i]) && retired < 2; retired++) {
            for (uint32_t k = 0; !done[i] && k < n_known; k++) {
                if (taken[k] || known[k].retired != (retired == 1) || strcmp(known[k].name, out[i].name) != 0)
                    continue;
                done[i] = taken[k] = true;
                plane_assign_number(&out[i], &known[k]);
            }
        }
    }
}

/* By its number; where a file calls another plane so, with more behind it. */
static void plane_name(struct built_plane *out, uint32_t n, uint32_t i)
{
    const uint32_t number = out[i].index - STORE_FIRST_PLANE;
    char name[sizeof(out[i].name)];
    snprintf(name, sizeof(name), "ib%u", number);
    for (uint32_t k = 0; k < n; k++)
        if (k != i && strcmp(out[k].name, name) == 0)
            snprintf(name, sizeof(name), "ib%u.%u", number, out[i].index);
    snprintf(out[i].name, sizeof(out[i].name), "%s", name);
}

/*
 * Those that matched nothing. A plane that was served until now but whose snapshot cannot be read (it is of
 * another version of fabricd) could not vote: planes come largest first, and so did its numbers, so they are
 * given in that order. After that come numbers that nobody had before.
 */
static void plane_number_remaining(struct built_plane *out, uint32_t n, bool *done,
                                   const struct store_plane *known, uint32_t n_known, const bool *taken)
{
    uint32_t next = STORE_FIRST_PLANE;
    for (uint32_t k = 0, i = 0; k < n_known; k++) {
        if (known[k].retired || known[k].snapshot != NULL || taken[k])
            continue;
        while (i < n && (done[i] || is_fixed(&out[i])))
            i++;
        if (i == n)
            break;
        done[i] = true;
        plane_assign_number(&out[i], &known[k]);
    }
    for (uint32_t k = 0; k < n_known; k++)
        if (known[k].index >= next)
            next = known[k].index + 1;
    for (unsigned fixed = 0; fixed < 2; fixed++) { /* so that "ib0" is there beside larger ones with names */
        for (uint32_t i = 0; i < n; i++) {
            if (done[i] || is_fixed(&out[i]) != (fixed == 1))
                continue;
            done[i] = true;
            out[i].index = next++;
            out[i].is_new = true;
            if (fixed == 0)
                plane_name(out, n, i);
        }
    }
}

int number_planes(const struct fab_planes *planes, const struct store_plane *known,
                  struct pmixfab *const *fabs, uint32_t n_known, struct built_plane *out, struct fab_err *err)
{
    struct members members = {NULL, 0};
    size_t n_matches = 0;
    struct match *matches = calloc((size_t)planes->n * n_known + 1, sizeof(*matches));
    uint32_t *votes = calloc(n_known + 1, sizeof(*votes));
    bool *done = calloc(planes->n + 1, sizeof(*done)), *taken = calloc(n_known + 1, sizeof(*taken));
    int rc =
        matches == NULL || votes == NULL || done == NULL || taken == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    for (uint32_t k = 0; rc == PMIXFAB_OK && k < n_known; k++)
        rc = add_members(fabs[k], k, &members);
    if (rc != PMIXFAB_OK) {
        fab_fail(err, rc, "out of memory");
        goto cleanup;
    }
    if (members.n > 0)
        fab_radix_sort(members.keys, members.keys + members.n, (uint32_t)members.n);
    number_by_name(out, planes->n, done, known, n_known, taken);
    for (uint32_t i = 0; i < planes->n; i++) {
        if (is_fixed(&out[i]))
            continue;
        memset(votes, 0, n_known * sizeof(*votes));
        plane_count_majority(&planes->planes[i], &members, votes);
        for (uint32_t k = 0; k < n_known; k++)
            if (votes[k] > 0)
                matches[n_matches++] = (struct match){i, k, votes[k], known[k].retired};
    }
    qsort(matches, n_matches, sizeof(*matches), plane_compare_majority);
    for (size_t m = 0; m < n_matches; m++) {
        if (done[matches[m].plane] || taken[matches[m].known])
            continue;
        done[matches[m].plane] = taken[matches[m].known] = true;
        plane_assign_number(&out[matches[m].plane], &known[matches[m].known]);
    }
    plane_number_remaining(out, planes->n, done, known, n_known, taken);
cleanup:
    free(members.keys);
    free(matches);
    free(votes);
    free(done);
    free(taken);
    return rc;
}
