/*
 * peers.c - PMIX_SWITCH_PEERS: for each device of a rank's host, the ranks of the job below the same switch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/answers/value.h"
#include "pmix/launch/places.h"
#include "topo/model/model.h"

/* A device of a host of the job, with its switch. In the order of the switches. */
struct below {
    const struct pmixfab *fab;
    uint32_t sw, host;
};

struct peers_switch {
    const struct pmixfab *fab;
    uint32_t sw;
    uint32_t first, n; /* of its devices */
    size_t length;     /* of the text */
    char *text;        /* its ranks; NULL: not needed yet */
};

struct peers {
    const struct launch_places *places;
    struct below *below;
    struct peers_switch *switches;
    uint32_t n_below, n_switches;
};

static int below_cmp(const void *left, const void *right)
{
    const struct below *a = left, *b = right;
    if (a->fab != b->fab)
        return a->fab < b->fab ? -1 : 1;
    if (a->sw != b->sw)
        return a->sw < b->sw ? -1 : 1;
    return a->host < b->host ? -1 : a->host > b->host;
}

static bool peers_collect(struct peers *peers)
{
    const struct launch_places *places = peers->places;
    struct pmixfab_device device;
    uint32_t n = 0;
    for (uint32_t h = 0; h < places->job->n_hosts; h++)
        n += launch_device_count(places, h);
    peers->below = calloc((size_t)n + 1, sizeof(*peers->below));
    if (peers->below == NULL)
        return false;
    for (uint32_t h = 0; h < places->job->n_hosts; h++) {
        struct launch_device at = {.host = h};
        while (launch_device_next(places, &at))
            if (pmixfab_device(at.fab, at.index, &device) == PMIXFAB_OK && device.switch_index != FAB_NONE)
                peers->below[peers->n_below++] = (struct below){at.fab, device.switch_index, h};
    }
    qsort(peers->below, peers->n_below, sizeof(*peers->below), below_cmp);
    return true;
}

static size_t peers_digits(pmix_rank_t rank)
{
    size_t n = 1;
    while (rank >= 10)
        n++, rank /= 10;
    return n;
}

/* Return the length of the list of a host's ranks. */
static size_t peers_length(const struct launch_places *places, uint32_t host)
{
    size_t length = 0;
    for (uint32_t r = places->first[host]; r < places->first[host + 1]; r++)
        length += peers_digits(places->ranks[r]) + 1;
    return length;
}

static bool peers_group(struct peers *peers)
{
    peers->switches = calloc((size_t)peers->n_below + 1, sizeof(*peers->switches));
    if (peers->switches == NULL)
        return false;
    for (uint32_t i = 0; i < peers->n_below; i++) {
        const struct below *one = &peers->below[i];
        bool same = i > 0 && one[-1].fab == one->fab && one[-1].sw == one->sw;
        if (!same)
            peers->switches[peers->n_switches++] =
                (struct peers_switch){.fab = one->fab, .sw = one->sw, .first = i};
        struct peers_switch *sw = &peers->switches[peers->n_switches - 1];
        sw->n++;
        if (!same || one[-1].host != one->host) /* a second device of the host adds no ranks */
            sw->length += peers_length(peers->places, one->host);
    }
    return true;
}

static int switch_cmp(const void *left, const void *right)
{
    const struct peers_switch *a = left, *b = right;
    if (a->fab != b->fab)
        return a->fab < b->fab ? -1 : 1;
    return a->sw < b->sw ? -1 : a->sw > b->sw;
}

static struct peers_switch *peers_find_switch(const struct peers *peers, const struct pmixfab *fab,
                                              uint32_t sw)
{
    const struct peers_switch key = {.fab = fab, .sw = sw};
    return bsearch(&key, peers->switches, peers->n_switches, sizeof(key), switch_cmp);
}

static int rank_cmp(const void *left, const void *right)
{
    const pmix_rank_t a = *(const pmix_rank_t *)left, b = *(const pmix_rank_t *)right;
    return a < b ? -1 : a > b;
}

/* Write "0,3,17", in the order of the ranks. */
static bool peers_write(const struct peers *peers, struct peers_switch *sw)
{
    const struct launch_places *places = peers->places;
    pmix_rank_t *ranks = malloc(sw->length * sizeof(*ranks) + 1);
    char *to = sw->text = malloc(sw->length + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; ranks != NULL && to != NULL && i < sw->n; i++) {
        const struct below *one = &peers->below[sw->first + i];
        for (uint32_t r = places->first[one->host];
             (i == 0 || one[-1].host != one->host) && r < places->first[one->host + 1]; r++)
            ranks[n++] = places->ranks[r];
    }
    if (n > 0)
        qsort(ranks, n, sizeof(*ranks), rank_cmp);
    for (uint32_t i = 0; i < n; i++)
        to += sprintf(to, i == 0 ? "%u" : ",%u", ranks[i]);
    if (to != NULL)
        *to = '\0';
    free(ranks);
    return sw->text != NULL;
}

/* ---- of one host ------------------------------------------------------------------------------------ */

/* Make the device, its switch, and the ranks. */
static pmix_status_t peers_triple(const struct pmixfab_device *device, const struct pmixfab_switch *sw,
                                  const char *ranks, pmix_value_t *value)
{
    pmix_status_t rc = fab_value_array(value, PMIX_INFO, 3);
    if (rc != PMIX_SUCCESS)
        return rc;
    pmix_info_t *infos = value->data.darray->array;
    PMIX_LOAD_KEY(infos[0].key, PMIX_DEVICE_ID);
    PMIX_LOAD_KEY(infos[1].key, PMIX_FABRIC_SWITCH);
    PMIX_LOAD_KEY(infos[2].key, PMIX_SWITCH_PEERS);
    rc = fab_value_string(&infos[0].value, device->id);
    if (rc == PMIX_SUCCESS)
        rc = fab_value_string(&infos[1].value, sw->id);
    return rc == PMIX_SUCCESS ? fab_value_string(&infos[2].value, ranks) : rc;
}

static pmix_status_t peers_value(const struct peers *peers, uint32_t host, pmix_value_t *value)
{
    struct launch_device at = {.host = host};
    struct pmixfab_device device;
    struct pmixfab_switch one;
    size_t n = 0;
    pmix_status_t rc = fab_value_array(value, PMIX_INFO, launch_device_count(peers->places, host));
    while (rc == PMIX_SUCCESS && launch_device_next(peers->places, &at)) {
        pmix_info_t *info = (pmix_info_t *)value->data.darray->array + n;
        if (pmixfab_device(at.fab, at.index, &device) != PMIXFAB_OK ||
            pmixfab_switch(at.fab, device.switch_index, &one) != PMIXFAB_OK)
            continue; /* below no switch */
        struct peers_switch *sw = peers_find_switch(peers, at.fab, device.switch_index);
        if (sw == NULL || (sw->text == NULL && !peers_write(peers, sw)))
            return PMIX_ERR_NOMEM;
        PMIX_LOAD_KEY(info->key, PMIX_SWITCH_PEERS);
        rc = peers_triple(&device, &one, sw->text, &info->value);
        n++;
    }
    if (rc != PMIX_SUCCESS)
        return rc;
    value->data.darray->size = n;
    return n > 0 ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND;
}

/* Put it for each of the host's ranks. */
static pmix_status_t peers_put(const struct peers *peers, uint32_t host, fab_launch_put_fn put, void *to)
{
    const struct launch_places *places = peers->places;
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    pmix_status_t rc = peers_value(peers, host, &value);
    for (uint32_t r = places->first[host]; rc == PMIX_SUCCESS && r < places->first[host + 1]; r++)
        rc = put(to, places->ranks[r], PMIX_SWITCH_PEERS, &value);
    fab_value_free(&value);
    return rc == PMIX_ERR_NOT_FOUND ? PMIX_SUCCESS : rc;
}

/* ---- size --------------------------------------------------------------------------------------------- */

/* Return the approximate memory for a host's ranks. */
static uint64_t peers_size(const struct peers *peers, uint32_t host)
{
    const struct launch_places *places = peers->places;
    struct launch_device at = {.host = host};
    struct pmixfab_device device;
    uint64_t size = 0;
    while (launch_device_next(places, &at)) {
        const struct peers_switch *sw = NULL;
        if (pmixfab_device(at.fab, at.index, &device) == PMIXFAB_OK)
            sw = peers_find_switch(peers, at.fab, device.switch_index);
        if (sw != NULL)
            size += 4 * sizeof(pmix_info_t) + sizeof(device.id) + sw->length;
    }
    return size * (places->first[host + 1] - places->first[host]);
}

static bool peers_fit_elsewhere(const struct peers *peers)
{
    const struct fab_launch_job *job = peers->places->job;
    uint64_t size = 0;
    for (uint32_t h = 0; h < job->n_hosts; h++)
        if (h != job->here)
            size += peers_size(peers, h);
    return size <= FAB_LAUNCH_PEERS_ELSEWHERE;
}

static void peers_free(struct peers *peers)
{
    for (uint32_t i = 0; i < peers->n_switches; i++)
        free(peers->switches[i].text);
    free(peers->switches);
    free(peers->below);
}

pmix_status_t launch_put_peers(const struct launch_places *places, fab_launch_put_fn put, void *to,
                               bool *elsewhere)
{
    const struct fab_launch_job *job = places->job;
    struct peers peers = {.places = places};
    pmix_status_t rc = PMIX_SUCCESS;
    *elsewhere = false;
    if (!peers_collect(&peers) || !peers_group(&peers)) {
        peers_free(&peers);
        return PMIX_ERR_NOMEM;
    }
    *elsewhere = peers_fit_elsewhere(&peers);
    for (uint32_t h = 0; rc == PMIX_SUCCESS && h < job->n_hosts; h++)
        if (h == job->here ? peers_size(&peers, h) <= FAB_LAUNCH_PEERS_HERE : *elsewhere)
            rc = peers_put(&peers, h, put, to);
    peers_free(&peers);
    return rc;
}
