/* side_credentials.c - credentials of new connections go to fabricd, which has them opened, and come back. */
#include <stdlib.h>

#include "fabricd/front/side/side.h"
#include "mca/door/opened.h"
#include "pmix/relay/thread.h"

/* On the library's thread. */
static void side_check(uint32_t number, const char *credential)
{
    side_say(&(struct front_message){.kind = FRONT_CHECK, .a = number, .text = credential});
}

static void side_give_checked(pmix_status_t status, void *arg)
{
    (void)status;
    door_opened(arg);
    free(arg);
}

void side_checked(const struct front_message *message)
{
    struct door_opened *opened = malloc(sizeof(*opened));
    if (opened == NULL) /* the connection waits for a while, and is refused */
        return;
    *opened = (struct door_opened){.number = (uint32_t)message->a,
                                   .good = message->b != 0,
                                   .uid = (uid_t)(message->c & UINT32_MAX),
                                   .gid = (gid_t)(message->c >> 32)};
    fab_on_pmix_thread(side_give_checked, opened);
}

void side_open_credentials(void)
{
    door_on_credential(side_check);
}
