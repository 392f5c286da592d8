#include "fabricd/host/host_post.h"

#include <stdlib.h>

#include "fabricd/base/timer.h"

static struct event_base *host_base;

struct host_letter {
    struct timer *timer;
    void (*fn)(void *arg);
    void *arg;
};

void host_post_to(struct event_base *base)
{
    host_base = base;
}

struct event_base *host_loop(void)
{
    return host_base;
}

static void host_on_letter(void *arg)
{
    struct host_letter letter = *(struct host_letter *)arg;
    timer_free(letter.timer);
    free(arg);
    letter.fn(letter.arg);
}

bool host_post(void (*fn)(void *arg), void *arg)
{
    struct host_letter *letter = malloc(sizeof(*letter));
    if (letter == NULL)
        return false;
    *letter =
        (struct host_letter){.timer = timer_new(host_base, host_on_letter, letter), .fn = fn, .arg = arg};
    if (letter->timer == NULL) {
        free(letter);
        return false;
    }
    timer_fire(letter->timer);
    return true;
}
