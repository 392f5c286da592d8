/*
 * guard_origins.c - connections by origin: their number, and the bytes of their unfinished messages.
 */
#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "guard/guard_priv.h"

#define MOST_PLACES   65536
#define BYTES_OF_ONE  ((size_t)32 << 20)  /* of an origin */
#define BYTES_OF_ALL  ((size_t)512 << 20) /* of all origins that are not preferred */
#define UNREAD_OF_ONE ((size_t)64 << 20)
#define UNREAD_OF_ALL ((size_t)256 << 20)
#define PLACES_OF_ONE 1024 /* the library needs 58 KB for each tool with a name of its own */

/* ---- origin of a connection ----------------------------------------------------------------------- */

union origin_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage room;
};

static void origin_put(const union origin_address *from, uint32_t to[4], uint16_t *port)
{
    if (from->any.sa_family == AF_INET6) {
        memcpy(to, &from->v6.sin6_addr, sizeof(from->v6.sin6_addr));
        *port = from->v6.sin6_port;
    } else {
        to[0] = from->v4.sin_addr.s_addr;
        *port = from->v4.sin_port;
    }
}

/* Find the user of the socket at the other end, if that is on this host. */
static bool origin_ask(const union origin_address *theirs, const union origin_address *ours, uint32_t *uid)
{
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 ask;
    } question = {
        .header = {.nlmsg_len = sizeof(question),
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST},
        .ask = {.sdiag_family = (uint8_t)theirs->any.sa_family,
                .sdiag_protocol = IPPROTO_TCP,
                .idiag_states = UINT32_MAX,
                .id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}},
    };
    struct {
        struct nlmsghdr header;
        struct inet_diag_msg told;
        char rest[1024];
    } answer;
    const struct timeval patience = {.tv_usec = 100000};
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return false;
    origin_put(theirs, question.ask.id.idiag_src, &question.ask.id.idiag_sport);
    origin_put(ours, question.ask.id.idiag_dst, &question.ask.id.idiag_dport);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    bool found =
        send(fd, &question, sizeof(question), 0) == (ssize_t)sizeof(question) &&
        recv(fd, &answer, sizeof(answer), 0) >= (ssize_t)(sizeof(answer.header) + sizeof(answer.told)) &&
        answer.header.nlmsg_type == SOCK_DIAG_BY_FAMILY;
    close(fd);
    /* For a closed socket the kernel reports root, and no inode. */
    found = found && answer.told.idiag_inode != 0;
    if (found)
        *uid = answer.told.idiag_uid;
    return found;
}

void origin_of(int fd, struct guard_origin *out)
{
    union origin_address theirs, ours;
    socklen_t theirs_size = sizeof(theirs), ours_size = sizeof(ours);
    uint16_t port;
    uint32_t words[4] = {0};
    memset(out, 0, sizeof(*out));
    memset(&theirs, 0, sizeof(theirs));
    memset(&ours, 0, sizeof(ours));
    if (getpeername(fd, &theirs.any, &theirs_size) != 0 || getsockname(fd, &ours.any, &ours_size) != 0)
        return;
    out->local = origin_ask(&theirs, &ours, &out->uid);
    if (out->local)
        return;
    origin_put(&theirs, words, &port);
    if (theirs.any.sa_family == AF_INET) {
        out->address.s6_addr[10] = out->address.s6_addr[11] = 0xff;
        memcpy(&out->address.s6_addr[12], words, 4);
    } else {
        memcpy(&out->address, words, sizeof(out->address));
    }
}

/* ---- bounds -------------------------------------------------------------------------------------- */

struct origin_use {
    UT_hash_handle hh;
    struct guard_origin origin;
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
static uid_t preferred_uid; /* root, unless another one is set */
static atomic_uint n_not_admitted;
static atomic_int owner; /* the process that accepts connections */

void connections_prefer(uid_t uid)
{
    pthread_mutex_lock(&lock);
    preferred_uid = uid;
    pthread_mutex_unlock(&lock);
}

/* ---- with the lock held -------------------------------------------------------------------------- */

static bool (*_Atomic admits_user)(uid_t uid);

void connections_admit_only(bool (*fn)(uid_t uid))
{
    atomic_store(&admits_user, fn);
}

bool connections_admits(uid_t uid)
{
    bool (*fn)(uid_t) = atomic_load(&admits_user);
    return fn == NULL || fn(uid);
}

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

static struct origin_use *connections_use(const struct guard_origin *origin)
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
    HASH_DEL(uses, use); /* NOLINT(clang-analyzer-unix.Malloc): no link to the freed entry is left */
    free(use);
}

static bool connections_has_place(const struct origin_use *use)
{
    struct rlimit limit = {.rlim_cur = 1024};
    getrlimit(RLIMIT_NOFILE, &limit);
    const unsigned long all = limit.rlim_cur > MOST_PLACES ? MOST_PLACES : limit.rlim_cur;
    return use->preferred || (use->places < all / 8 && use->places < PLACES_OF_ONE && n_others < all / 2);
}

static void connections_set_unread(struct connection *c, size_t bytes)
{
    c->use->unread += bytes - c->unread;
    if (!c->use->preferred)
        unread_of_others += bytes - c->unread;
    c->unread = bytes;
}

/* Release its place and its bytes, but not the descriptor. */
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

/* ---- from any thread ----------------------------------------------------------------------------- */

bool connections_admit(int fd, bool own_only)
{
    struct guard_origin origin;
    atomic_fetch_add(&n_not_admitted, 1); /* until it is admitted */
    if (fd < 0 || fd >= MOST_PLACES)
        return false;
    origin_of(fd, &origin);
    if ((own_only && (origin.local == 0 || origin.uid != geteuid())) ||
        (origin.local != 0 && !connections_admits(origin.uid)))
        return false;
    pthread_mutex_lock(&lock);
    atomic_store(&owner, getpid());
    struct connection *c = &connections[fd];
    connections_leave(c); /* closed by a call that was not seen */
    c->closing = false;
    c->events = 0;
    struct origin_use *use = connections_use(&origin);
    bool admitted = use != NULL && connections_has_place(use);
    if (admitted) {
        atomic_fetch_sub(&n_not_admitted, 1);
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

unsigned connections_count_refused(void)
{
    return atomic_load(&n_not_admitted);
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

void guard_end_connection(int sd)
{
    /* After shutdown() the kernel would still accept data from the other side. */
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    if (connect(sd, &nobody, sizeof(nobody)) != 0)
        shutdown(sd, SHUT_RDWR);
}
