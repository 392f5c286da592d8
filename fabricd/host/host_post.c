#include "fabricd/host/host_post.h"

#include <stdlib.h>

static struct event_base *host_base;

struct host_letter {
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

static void host_on_letter(evutil_socket_t fd, short what, void *arg)
{
    struct host_letter letter = *(struct host_letter *)arg;
    (void)fd, (void)what;
    free(arg);
    letter.fn(letter.arg);
}

bool host_post(void (*fn)(void *arg), void *arg)
{
    struct host_letter *letter = malloc(sizeof(*letter));
    if (letter == NULL)
        return false;
    *letter = (struct host_letter){fn, arg};
    if (event_base_once(host_base, -1, EV_TIMEOUT, host_on_letter, letter, NULL) == 0)
        return true;
    free(letter);
    return false;
}
