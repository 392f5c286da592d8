#include "mca/door/connections.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#define MOST_PLACES   65536
#define BYTES_OF_ONE  ((size_t)32 << 20)  /* of an origin */
#define BYTES_OF_ALL  ((size_t)512 << 20) /* of all origins that are not preferred */
#define UNREAD_OF_ONE ((size_t)64 << 20)
#define UNREAD_OF_ALL ((size_t)256 << 20)
#define PLACES_OF_ONE 1024 /* the library holds 58 KB for each that has a name of its own */

struct origin_use {
    UT_hash_handle hh;
    struct origin origin;
    unsigned places;
    size_t bytes, unread;
    bool preferred;
};

struct connection {
    atomic_bool there; /* read without the lock */
    bool closing;
    struct origin_use *use; /* NULL: closed */
    size_t bytes, unread;
    unsigned events;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct connection connections[MOST_PLACES]; /* by descriptor */
static struct origin_use *uses;
static unsigned n_all, n_others;
static size_t bytes_of_others, unread_of_others;
static struct {
    struct origin origin;
    time_t until; /* monotonic seconds */
} refused[CONNECTIONS_REFUSED];
static unsigned n_refused;
static uid_t preferred_uid; /* root, unless there is another one */
static atomic_bool only_own;
static atomic_int owner; /* the process that takes connections */

void connections_prefer(uid_t uid)
{
    pthread_mutex_lock(&lock);
    preferred_uid = uid;
    pthread_mutex_unlock(&lock);
}

void connections_only_own(void)
{
    atomic_store(&only_own, true);
}

bool connections_is_only_own(void)
{
    return atomic_load(&only_own);
}

/* ---- the lock is held ---------------------------------------------------------------------------- */

static bool connections_prefers(uid_t uid)
{
    return uid == 0 || uid == geteuid() || uid == preferred_uid;
}

static struct connection *connections_find(int fd)
{
    if (fd < 0 || fd >= MOST_PLACES || !atomic_load(&connections[fd].there) ||
        atomic_load(&owner) != getpid())
        return NULL;
    return &connections[fd];
}

static struct origin_use *connections_use(const struct origin *origin)
{
    struct origin_use *use;
    HASH_FIND(hh, uses, origin, sizeof(*origin), use);
    if (use != NULL || (use = calloc(1, sizeof(*use))) == NULL)
        return use;
    use->origin = *origin;
    use->preferred = origin->local != 0 && connections_prefers(origin->uid);
    HASH_ADD(hh, uses, origin, sizeof(use->origin), use);
    return use;
}

static void connections_drop_use(struct origin_use *use)
{
    if (use->places > 0)
        return;
    HASH_DEL(uses, use); /* NOLINT(clang-analyzer-unix.Malloc): nothing links to a freed one */
    free(use);
}

static bool connections_has_place(const struct origin_use *use)
{
    struct rlimit limit = {.rlim_cur = 1024};
    getrlimit(RLIMIT_NOFILE, &limit);
    const unsigned long all = limit.rlim_cur > MOST_PLACES ? MOST_PLACES : limit.rlim_cur;
    return use->preferred || (use->places < all / 8 && use->places < PLACES_OF_ONE && n_others < all / 2);
}

static bool connections_refuses(const struct origin_use *use)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (unsigned i = 0; !use->preferred && i < CONNECTIONS_REFUSED; i++)
        if (refused[i].until > now.tv_sec &&
            memcmp(&refused[i].origin, &use->origin, sizeof(use->origin)) == 0)
            return true;
    return false;
}

static void connections_set_unread(struct connection *c, size_t bytes)
{
    c->use->unread += bytes - c->unread;
    if (!c->use->preferred)
        unread_of_others += bytes - c->unread;
    c->unread = bytes;
}

/* Its place and its bytes are free; the descriptor is not. */
static void connections_leave(struct connection *c)
{
    struct origin_use *use = c->use;
    if (use == NULL)
        return;
    connections_set_unread(c, 0);
    c->use = NULL;
    n_all--;
    n_others -= !use->preferred;
    if (!use->preferred)
        bytes_of_others -= c->bytes;
    use->bytes -= c->bytes;
    c->bytes = 0;
    use->places--;
    connections_drop_use(use);
}

/* ---- any thread ---------------------------------------------------------------------------------- */

void connections_refuse(const struct origin *origin, unsigned seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&lock);
    refused[n_refused % CONNECTIONS_REFUSED].origin = *origin;
    refused[n_refused++ % CONNECTIONS_REFUSED].until = now.tv_sec + 1 + (time_t)seconds;
    pthread_mutex_unlock(&lock);
}

bool connections_admit(int fd)
{
    struct origin origin;
    if (fd < 0 || fd >= MOST_PLACES)
        return false;
    origin_of(fd, &origin);
    if (connections_is_only_own() && (origin.local == 0 || origin.uid != geteuid()))
        return false;
    pthread_mutex_lock(&lock);
    atomic_store(&owner, getpid());
    struct connection *c = &connections[fd];
    connections_leave(c); /* closed in a way that was not seen */
    c->closing = false;
    c->events = 0;
    struct origin_use *use = connections_use(&origin);
    bool admitted = use != NULL && connections_has_place(use) && !connections_refuses(use);
    if (admitted) {
        use->places++;
        n_all++;
        n_others += !use->preferred;
        c->use = use;
    } else if (use != NULL) {
        connections_drop_use(use);
    }
    atomic_store(&c->there, admitted);
    pthread_mutex_unlock(&lock);
    return admitted;
}

bool connections_take(int fd, size_t bytes)
{
    struct connection *c = connections_find(fd);
    if (c == NULL)
        return true;
    pthread_mutex_lock(&lock);
    struct origin_use *use = c->use;
    bool room =
        use != NULL &&
        (use->preferred || (use->bytes + bytes <= BYTES_OF_ONE && bytes_of_others + bytes <= BYTES_OF_ALL));
    if (room) {
        use->bytes += bytes;
        c->bytes += bytes;
        if (!use->preferred)
            bytes_of_others += bytes;
    }
    pthread_mutex_unlock(&lock);
    return room;
}

void connections_give(int fd, size_t bytes)
{
    struct connection *c = connections_find(fd);
    if (c == NULL)
        return;
    pthread_mutex_lock(&lock);
    if (c->use != NULL && c->bytes >= bytes) {
        c->bytes -= bytes;
        c->use->bytes -= bytes;
        if (!c->use->preferred)
            bytes_of_others -= bytes;
    }
    pthread_mutex_unlock(&lock);
}

bool connections_is_preferred(uid_t uid)
{
    pthread_mutex_lock(&lock);
    bool preferred = connections_prefers(uid);
    pthread_mutex_unlock(&lock);
    return preferred;
}

bool connections_unread(int fd, size_t bytes)
{
    struct connection *c = connections_find(fd);
    bool room = true;
    if (c == NULL)
        return true;
    pthread_mutex_lock(&lock);
    if (c->use != NULL) {
        connections_set_unread(c, bytes);
        room = bytes == 0 || c->use->preferred ||
               (c->use->unread <= UNREAD_OF_ONE && unread_of_others <= UNREAD_OF_ALL);
    }
    pthread_mutex_unlock(&lock);
    return room;
}

unsigned connections_count(void)
{
    pthread_mutex_lock(&lock);
    unsigned n = n_all;
    pthread_mutex_unlock(&lock);
    return n;
}

bool connections_origin(int fd, struct origin *out)
{
    const struct connection *c = connections_find(fd);
    if (c == NULL)
        return false;
    pthread_mutex_lock(&lock);
    const struct origin_use *use = c->use;
    if (use != NULL)
        *out = use->origin;
    pthread_mutex_unlock(&lock);
    return use != NULL;
}

unsigned connections_set_events(int fd, unsigned events, bool on)
{
    struct connection *c = connections_find(fd);
    if (c == NULL)
        return events;
    pthread_mutex_lock(&lock);
    const unsigned changed = events & (on ? ~c->events : c->events);
    c->events ^= changed;
    pthread_mutex_unlock(&lock);
    return changed;
}

enum connections_end connections_close(int fd)
{
    struct connection *c = connections_find(fd);
    if (c == NULL)
        return CONNECTIONS_OTHER;
    pthread_mutex_lock(&lock);
    enum connections_end end = c->closing ? CONNECTIONS_AGAIN : CONNECTIONS_FIRST;
    c->closing = true;
    connections_leave(c);
    pthread_mutex_unlock(&lock);
    return end;
}

void connections_forget(int fd)
{
    struct connection *c = connections_find(fd);
    if (c == NULL)
        return;
    pthread_mutex_lock(&lock);
    connections_leave(c);
    c->closing = false;
    atomic_store(&c->there, false);
    pthread_mutex_unlock(&lock);
}
