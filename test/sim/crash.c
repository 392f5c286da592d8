/* crash.c - a story is played as often as there are places where its daemon can end, and ends at each. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/serving/served.h"
#include "pmixfab.h"
#include "test/sim/played.h"

#define IMAGES 64 /* that stand beside each other */

/* Where a device stood when the machine stopped. */
struct stood {
    uint64_t guid;
    uint32_t plane, index;
};

struct image {
    char folder[112];
    struct site *site;
    uint64_t updated, pending;
    struct stood *devices;
    uint32_t n;
};

struct crashes {
    struct sim *sim;
    const struct sim_story *story;
    bool power;
    unsigned points;      /* met in this play */
    unsigned first, last; /* whose images are taken; last 0: none */
    struct image images[IMAGES];
    unsigned n;
    bool inside; /* an image is being taken */
};

static struct stood *places(uint32_t *n)
{
    struct served_set *set = front_served() == NULL ? NULL : served_get(front_served());
    struct stood *list = NULL;
    struct pmixfab_device device;
    *n = 0;
    for (uint32_t i = 0; set != NULL && i < set->n; i++)
        for (uint32_t k = 0; pmixfab_device(set->planes[i]->fab, k, &device) == PMIXFAB_OK; k++) {
            list = realloc(list, (*n + 1) * sizeof(*list));
            if (list == NULL)
                sim_fail("out of memory");
            list[(*n)++] = (struct stood){device.port_guid, set->planes[i]->info.index, k};
        }
    served_set_put(set);
    return list;
}

static void crash_on_point(void *arg)
{
    struct crashes *c = arg;
    if (c->inside || ++c->points < c->first || c->points > c->last)
        return;
    c->inside = true;
    struct image *image = &c->images[c->n++];
    snprintf(image->folder, sizeof(image->folder), "%s.%u", sim_folder(c->sim), c->points);
    sim_image(c->sim, c->power, image->folder);
    image->site = site_copy(sim_site(c->sim));
    image->updated = sim_updated(c->sim);
    image->pending = sim_pending(c->sim);
    image->devices = places(&image->n);
    c->inside = false;
}

static void play(struct crashes *c, uint64_t seed)
{
    c->sim = sim_new(seed, c->story->fabric);
    c->points = c->n = 0;
    if (c->story->configure != NULL)
        c->story->configure(c->sim);
    if (sim_start(c->sim) != PMIXFAB_OK)
        sim_fail("it does not start");
    seam_on_point(crash_on_point, c);
    sim_on_disk_call(c->sim, crash_on_point, c);
    c->story->play(c->sim);
    seam_on_point(NULL, NULL);
    sim_on_disk_call(c->sim, NULL, NULL);
    sim_free(c->sim);
}

static bool same_members(const struct image *image, const struct stood *now, uint32_t n)
{
    bool same = image->n == n;
    for (uint32_t i = 0; same && i < n; i++) {
        bool found = false;
        for (uint32_t k = 0; !found && k < n; k++)
            found = image->devices[i].guid == now[k].guid;
        same = found;
    }
    return same;
}

static void check_places(unsigned point, const struct image *image)
{
    uint32_t n;
    struct stood *now = places(&n);
    for (uint32_t i = 0; same_members(image, now, n) && i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            if (image->devices[i].guid == now[k].guid &&
                (image->devices[i].plane != now[k].plane || image->devices[i].index != now[k].index))
                sim_fail("after a stop at point %u device 0x%016" PRIx64 " moves from %u to %u", point,
                         now[k].guid, image->devices[i].index, now[k].index);
    free(now);
}

/* Each generation up to the one that is served has its changes in the history. */
static void check_history(struct sim *s, unsigned point)
{
    json_t *answer = json_loads(sim_request(s, "{\"op\":\"history\",\"limit\":0}"), 0, NULL), *row;
    uint64_t next = 1;
    size_t i;
    json_array_foreach(json_object_get(answer, "changes"), i, row)
    {
        const uint64_t generation = (uint64_t)json_integer_value(json_object_get(row, "generation"));
        if (generation > next || generation + 1 < next)
            sim_fail("after a stop at point %u the history goes on with generation %" PRIu64 " where %" PRIu64
                     " is to be",
                     point, generation, next);
        next = generation + 1;
    }
    if (next != sim_generation(s) + 1 || !json_is_false(json_object_get(answer, "more")))
        sim_fail("after a stop at point %u the history ends before generation %" PRIu64, point,
                 sim_generation(s));
    json_decref(answer);
}

/* The machine comes back. */
static void boot(const struct crashes *c, unsigned point, struct image *image, uint64_t seed)
{
    struct sim *s = sim_resume(seed, image->folder, image->site);
    if (c->story->configure != NULL)
        c->story->configure(s);
    if (sim_start(s) != PMIXFAB_OK)
        sim_fail("after a stop at point %u it does not start", point);
    if (sim_generation(s) < image->pending)
        sim_fail("after a stop at point %u generation %" PRIu64 " is lost: %" PRIu64 " is served", point,
                 image->pending, sim_generation(s));
    if (sim_updated(s) != 0 && sim_updated(s) <= image->pending)
        sim_fail("after a stop at point %u number %" PRIu64 " is used again", point, sim_updated(s));
    check_places(point, image);
    check_history(s, point);
    if (!sim_sweep(s))
        sim_fail("after a stop at point %u no sweep is good", point);
    if (strstr(sim_request(s, "{\"op\":\"check\",\"store\":true}"), "\"ok\":true") == NULL)
        sim_fail("after a stop at point %u the store is damaged", point);
    sim_free(s);
    free(image->devices);
}

unsigned sim_crash_everywhere(uint64_t seed, const struct sim_story *story, bool power)
{
    struct crashes *c = calloc(1, sizeof(*c));
    if (c == NULL)
        sim_fail("out of memory");
    c->story = story;
    c->power = power;
    play(c, seed);
    const unsigned all = c->points;
    for (c->first = 1; c->first <= all; c->first += IMAGES) {
        c->last = c->first + IMAGES - 1;
        play(c, seed);
        if (c->points != all)
            sim_fail("the story is not the same twice: %u points, then %u", all, c->points);
        for (unsigned i = 0; i < c->n; i++)
            boot(c, c->first + i, &c->images[i], seed + c->first + i);
    }
    free(c);
    return all;
}
