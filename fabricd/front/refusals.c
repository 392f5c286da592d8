#include "fabricd/front/refusals.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "fabricd/front/front.h"

/* Its entry, or the one that it takes. */
static struct refusal *refusal_of(struct refusals *refusals, const struct guard_origin *origin, int64_t now)
{
    struct refusal *first = &refusals->all[0];
    for (unsigned i = 0; i < REFUSALS_MAX; i++) {
        struct refusal *one = &refusals->all[i];
        if (now - one->until > REFUSED_AGAIN * INT64_C(1000))
            one->seconds = 0;
        if (one->seconds > 0 && memcmp(&one->origin, origin, sizeof(*origin)) == 0)
            return one;
        if (first->seconds > 0 && (one->seconds == 0 || one->until < first->until))
            first = one;
    }
    *first = (struct refusal){.origin = *origin, .again = {.first = REFUSED_FIRST, .most = REFUSED_MOST}};
    return first;
}

unsigned refusals_add(struct refusals *refusals, const struct guard_origin *origin, const uid_t *spared,
                      unsigned n_spared, int64_t now)
{
    for (unsigned i = 0; origin->local && i < n_spared; i++)
        if (origin->uid == spared[i])
            return 0;
    struct refusal *one = refusal_of(refusals, origin, now);
    one->seconds = (unsigned)backoff_next(&one->again);
    one->until = now + one->seconds * INT64_C(1000);
    return one->seconds;
}

const struct refusal *refusals_next(const struct refusals *refusals, unsigned *at, int64_t now)
{
    while (*at < REFUSALS_MAX) {
        const struct refusal *one = &refusals->all[(*at)++];
        if (one->seconds > 0 && one->until > now)
            return one;
    }
    return NULL;
}

void origin_text(const struct guard_origin *origin, char *text)
{
    text[0] = '\0';
    if (origin->local)
        snprintf(text, ORIGIN_TEXT, "uid %u", origin->uid);
    else if (IN6_IS_ADDR_V4MAPPED(&origin->address))
        inet_ntop(AF_INET, &origin->address.s6_addr[12], text, ORIGIN_TEXT);
    else if (!IN6_IS_ADDR_UNSPECIFIED(&origin->address))
        inet_ntop(AF_INET6, &origin->address, text, ORIGIN_TEXT);
}
