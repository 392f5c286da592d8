/* side_main.c - the front's process: its start, what fabricd tells it, its end. */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/thread.h>
#include <grp.h>
#include <limits.h>
#include <pmix.h>
#include <pmix_server.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/notify.h"
#include "fabricd/base/timer.h"
#include "fabricd/front/front.h"
#include "fabricd/front/side/sandbox.h"
#include "fabricd/front/side/side.h"
#include "fabricd/process/child.h"
#include "fabricd/process/process.h"
#include "fabricd/server/relayed_requests.h"
#include "fabricd/server/server.h"
#include "fabricd/server/server_answers.h"
#include "fabricd/server/server_events.h"
#include "fabricd/server/subscribers.h"
#include "fabricd/serving/served.h"
#include "guard/guard.h"
#include "pmix/answers/plane_memory.h"
#include "pmix/relay/relay.h"
#include "pmix/relay/thread.h"

#define SOON_TRIES 500 /* to connect, each after SOON_NS; then LATER_NS */
#define SOON_NS    20000000
#define LATER_NS   500000000
#define SILENCE_S  30  /* so long fabricd is believed to be busy */
#define NAMES_SAID 256 /* fabricd hears of every so many names that tools were given */

static struct {
    struct event_base *base;
    struct config config;
    struct served *served;
    bool configured;
    const char *own; /* a folder that is not fabricd's; NULL: the library's files go into the run directory */
    unsigned holds;  /* FRONT_FILTERED and so on */
    bool serving;
    bool stale;             /* fabricd says that what is served is */
    bool silent;            /* it says nothing any more */
    int64_t heard;          /* when it last did, microseconds of the monotonic clock */
    struct timer *alive;    /* says so to the service manager; NULL: it does not ask */
    struct timer *patience; /* looks at that */
} side;

static pmix_server_module_t side_module = {
    .lookup = answer_relayed,
    .query = answer_query,
    .fabric = answer_fabric,
};

/* ---- what it tells of itself ---------------------------------------------------------------------- */

static void side_on_named(uint32_t name)
{
    if (name % NAMES_SAID == 0)
        side_say(&(struct front_message){.kind = FRONT_NAMED, .c = (uint64_t)name + NAMES_SAID});
}

static void side_on_meant(const pmix_proc_t *who, uint32_t index)
{
    char nspace[PMIX_MAX_NSLEN + 1];
    snprintf(nspace, sizeof(nspace), "%.*s", PMIX_MAX_NSLEN, who->nspace);
    side_say(&(struct front_message){.kind = FRONT_MEANT, .a = who->rank, .b = index, .text = nspace});
}

/* kB of memory that is its own; 0: not known. */
static uint64_t side_memory(void)
{
    unsigned long resident = 0, shared = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%*u %lu %lu", &resident, &shared) != 2)
        resident = shared = 0;
    fclose(file);
    return (resident - shared) * ((uint64_t)sysconf(_SC_PAGESIZE) / 1024);
}

/* On the library's thread: it goes on, and so does the loop that was asked. */
static void side_lives(pmix_status_t status, void *arg)
{
    const struct pmix_guard *guard = guard_find();
    const uint64_t *question = arg;
    (void)status;
    side_say(&(struct front_message){.kind = FRONT_LIVES,
                                     .a = *question,
                                     .b = subscribers_count(),
                                     .c = guard != NULL ? guard->connected() : 0});
    free(arg);
}

static void side_alive(uint64_t question)
{
    side_say(&(struct front_message){.kind = FRONT_MEMORY, .a = side_memory()});
    uint64_t *copy = malloc(sizeof(*copy));
    if (copy == NULL)
        return;
    *copy = question;
    fab_on_pmix_thread(side_lives, copy);
}

static void side_announced(void *cbdata)
{
    uint64_t *number = cbdata;
    side_say(&(struct front_message){.kind = FRONT_ANNOUNCED, .c = *number});
    free(number);
}

static void side_announce(const struct front_message *message)
{
    uint64_t *number = side.serving ? malloc(sizeof(*number)) : NULL;
    struct order_change *changes = calloc((size_t)message->n + 1, sizeof(*changes));
    for (uint32_t i = 0; changes != NULL && i < message->n; i++) {
        changes[i] = (struct order_change){.index = message->planes[i].index, .generation = message->b};
        snprintf(changes[i].name, sizeof(changes[i].name), "%s", message->planes[i].name);
    }
    if (number != NULL && changes != NULL) { /* else the next one says it */
        *number = message->c;
        events_announce(side.base, message->a != 0, changes, message->n, side_announced, number);
    } else {
        free(number);
    }
    free(changes);
}

/* ---- the start ------------------------------------------------------------------------------------ */

/* Before the library starts its threads, and listens. What it writes goes into a folder that is its own. */
static void side_forbid(void)
{
    char own[PATH_MAX];
    snprintf(own, sizeof(own), "%s%s", side.own != NULL ? side.own : side.config.rundir,
             side.own != NULL ? "" : "/pmix");
    if (side.own == NULL)
        mkdir(own, 0755); /* where it cannot be made, the server's start says so */
    side.holds = sandbox_enter(side.config.rundir, own);
}

static bool side_configure(const struct front_message *message)
{
    const struct pmix_guard *guard = guard_find();
    side.configured = true;
    side.config.role = (enum config_role)message->a;
    side.config.remote = (message->b & FRONT_REMOTE) != 0;
    if (config_text(&side.config.rundir, message->text) != PMIXFAB_OK ||
        config_text(&side.config.host, message->more) != PMIXFAB_OK)
        return false;
    side.config.pmix_port = (unsigned)(message->b & ~FRONT_REMOTE);
    if (message->c != 0 && guard != NULL)
        guard->prefer((uid_t)(message->c - 1));
    side_forbid();
    return true;
}

/* Nodes deliver to the scheduler, not to each other. */
static pmix_status_t side_is_no_scheduler(const pmix_proc_t *requestor, const pmix_info_t info[], size_t n,
                                          pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    (void)requestor, (void)info, (void)n, (void)cbfunc, (void)cbdata;
    return PMIX_ERR_NOT_SUPPORTED;
}

static bool side_lacks_guard(char why[GUARD_WHY])
{
    return guard_why_not(GUARD_CONNECTIONS, why) || guard_why_not(GUARD_REQUESTS, why);
}

/* Without the repairs one refused connection ends a front. On this host that costs those who are connected;
 * from other hosts anybody could do it. Tests switch the repairs off, and may. */
static int side_guard(const struct config *config, struct fab_err *err)
{
    char why[GUARD_WHY];
    if (!side_lacks_guard(why)) {
        side.holds |= FRONT_GUARDED;
        return PMIXFAB_OK;
    }
    if (config->remote)
        return fab_fail(
            err, PMIXFAB_ERR_UNSUPPORTED,
            "remote = yes needs a PMIx library that fabricd has repairs for, and %s: any host could end "
            "the server; install another one (docs/versions.md), or set remote = no",
            why);
    log_warning(
        "not all repairs for the PMIx library, and %s: see docs/versions.md for what tools do not get", why);
    return PMIXFAB_OK;
}

static void side_begin(uint64_t first_name)
{
    struct fab_err err = {""};
    const bool is_node = side.config.role == ROLE_NODE;
    struct config config = side.config; /* for the server: where it has its files */
    if (side.own != NULL)
        config.rundir = (char *)side.own;
    relayed_handle(RELAY_DELIVER, is_node ? side_is_no_scheduler : side_deliver);
    relayed_handle(RELAY_SCAN_REQUESTS, is_node ? side_is_no_scheduler : side_scan_requests);
    server_name_tools(first_name, side_on_named);
    plane_memory_on_note(side_on_meant);
    int rc = side_guard(&config, &err);
    if (rc == PMIXFAB_OK)
        rc = server_start(&config, side.served, &side_module, &err);
    side.serving = rc == PMIXFAB_OK;
    if (rc == PMIXFAB_OK) {
        if (!sandbox_close())
            side.holds &= ~FRONT_FILTERED;
        side_say(&(struct front_message){.kind = FRONT_READY, .a = side.holds, .text = server_uri()});
        return;
    }
    side_say(&(struct front_message){.kind = FRONT_FAILED, .a = (uint64_t)-rc, .text = err.text});
}

/* ---- what it is told ------------------------------------------------------------------------------ */

static void side_remember(const struct front_message *message)
{
    pmix_proc_t who;
    PMIX_LOAD_PROCID(&who, message->text, (pmix_rank_t)message->a);
    plane_memory_set(&who, (uint32_t)message->b);
}

static void side_refuse(const struct front_message *message)
{
    const struct pmix_guard *guard = guard_find();
    struct guard_origin origin = {.local = message->b != 0};
    if (origin.local)
        origin.uid = (uint32_t)(message->b - 1);
    else if (inet_pton(AF_INET6, message->text, &origin.address) != 1)
        return;
    if (guard != NULL)
        guard->refuse(&origin, (unsigned)message->a);
}

static void side_set_stale(bool stale)
{
    if (served_is_stale(side.served) == stale)
        return;
    served_set_stale(side.served, stale);
    subscribers_notify();
}

/* fabricd hangs, or was stopped: nobody watches over the fabric, and callers are told so. */
static void side_on_patience(void *arg)
{
    (void)arg;
    timer_after(side.patience, 1000);
    if (side.silent || clock_now(CLOCK_MONOTONIC) - side.heard < SILENCE_S * INT64_C(1000000))
        return;
    log_warning("fabricd has said nothing for %d s: what is served is marked as stale", SILENCE_S);
    side.silent = true;
    side_set_stale(true);
}

static bool side_received(const struct front_message *message, void *cbdata)
{
    (void)cbdata;
    side.heard = clock_now(CLOCK_MONOTONIC);
    if (side.silent) {
        side.silent = false;
        side_set_stale(side.stale);
    }
    if ((message->kind == FRONT_SETTINGS) == side.configured) /* they are the first, and come once */
        return false;
    switch (message->kind) {
    case FRONT_SETTINGS:
        return side_configure(message);
    case FRONT_LISTEN:
        return config_text(&side.config.pmix_listen, message->text) == PMIXFAB_OK;
    case FRONT_BEGIN:
        side_begin(message->c);
        break;
    case FRONT_SERVE:
        side_serve(side.config.rundir, side.served, message);
        break;
    case FRONT_STALE:
        side.stale = message->a != 0;
        side_set_stale(side.stale);
        break;
    case FRONT_ANNOUNCE:
        side_announce(message);
        break;
    case FRONT_ANSWER:
    case FRONT_NOBODY:
        side_answer(message);
        break;
    case FRONT_HELD:
        side_held(message->text, message->a);
        break;
    case FRONT_SCAN:
        side_request_scan(message->text[0] == '\0' ? NULL : message->text);
        break;
    case FRONT_ALIVE:
        side_alive(message->a);
        break;
    case FRONT_LOG:
        log_set_level((enum pmixfab_level)message->a);
        break;
    case FRONT_MEANT:
        side_remember(message);
        break;
    case FRONT_REFUSE:
        side_refuse(message);
        break;
    default:
        return false;
    }
    return true;
}

/* fabricd is gone, or wants it to end. */
static void side_on_closed(const char *why, void *cbdata)
{
    (void)why, (void)cbdata;
    event_base_loopbreak(side.base);
}

/* ---- the process ---------------------------------------------------------------------------------- */

/* A user of its own, for good. */
static int side_become(const char *uid, const char *gid)
{
    const unsigned long user = strtoul(uid, NULL, 10), group = strtoul(gid, NULL, 10);
    if (strcmp(uid, "-") == 0)
        return 0;
    if (setgroups(0, NULL) != 0 || setresgid((gid_t)group, (gid_t)group, (gid_t)group) != 0 ||
        setresuid((uid_t)user, (uid_t)user, (uid_t)user) != 0)
        return -1;
    /* The change of the user has undone it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return 0;
}

static void side_stop(void)
{
    scan_requests_stop_all();
    subscribers_stop();
    if (side.serving) {
        side_refuse_all();
        server_stop();
    }
}

static int side_prepare(void)
{
    static const struct channel_fns fns = {.received = side_received, .closed = side_on_closed};
    evthread_use_pthreads();
    side.base = event_base_new();
    side.served = served_new();
    if (side.base == NULL || side.served == NULL || subscribers_start(side.base, side.served) != PMIXFAB_OK ||
        scan_requests_start_all(side.base) != PMIXFAB_OK ||
        (side.patience = timer_new(side.base, side_on_patience, NULL)) == NULL ||
        side_listen(side.base, &fns) != PMIXFAB_OK) {
        log_error("out of memory");
        return PMIXFAB_ERR_NOMEM;
    }
    side.heard = clock_now(CLOCK_MONOTONIC);
    timer_after(side.patience, 1000);
    return PMIXFAB_OK;
}

/* argv: fabricd --front-child PID UID GID; the channel is descriptor 0 */
int front_child(int argc, char **argv)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
    if (argc != 5 || !child_begin(argv[2]))
        return 1;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        signal(signals[i], SIG_IGN); /* it ends when fabricd closes the channel */
    log_to_daemon();
    log_open(PMIXFAB_LOG_INFO, 0);
    config_init(&side.config);
    if (side_become(argv[3], argv[4]) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        log_error("it cannot become the user %s: %s", argv[3], strerror(errno));
        return 1;
    }
    side_take_note();
    if (side_prepare() != PMIXFAB_OK)
        return 1;
    event_base_dispatch(side.base);
    side_stop();
    _exit(side.serving ? 0 : 1); /* what the library's threads still hold is the system's to take back */
}

/* ---- as a unit of its own ------------------------------------------------------------------------- */

/* From the loop: one that hangs falls silent, and the service manager ends it, which fabricd may not. */
static void side_on_alive(void *arg)
{
    (void)arg;
    notify_send(NOTIFY_ALIVE);
    timer_after_us(side.alive, notify_watchdog() / 3);
}

/* It becomes descriptor 0, as a child's is. The manager starts both at once, and fabricd opens its store
 * first. */
static int side_connect(const struct sockaddr_un *address)
{
    for (int64_t tries = 0;; tries++) {
        const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            return -1;
        if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0) {
            const int rc = dup2(fd, STDIN_FILENO);
            close(fd);
            return rc;
        }
        close(fd);
        notify_send(NOTIFY_ALIVE);
        clock_sleep((tries < SOON_TRIES ? SOON_NS : LATER_NS) / 1000);
    }
}

/* Until fabricd answers, which it puts off when those before were bad. */
static void side_wait(void)
{
    struct pollfd channel = {.fd = STDIN_FILENO, .events = POLLIN};
    while (poll(&channel, 1, LATER_NS / 1000000) == 0)
        notify_send(NOTIFY_ALIVE);
}

int front_of(const char *rundir, const char *own)
{
    const struct rlimit no_core = {0, 0};
    struct sockaddr_un address;
    struct fab_err err = {""};
    signal(SIGPIPE, SIG_IGN);
    setrlimit(RLIMIT_CORE, &no_core);
    process_descriptors();
    if (front_socket_path(rundir, &address, &err) != PMIXFAB_OK ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || side_connect(&address) < 0) {
        log_error("%s", err.text[0] != '\0' ? err.text : strerror(errno));
        return 1;
    }
    config_init(&side.config);
    side.own = own;
    side_wait();
    side_take_note();
    if (side_prepare() != PMIXFAB_OK)
        return 1;
    side.alive = notify_watchdog() == 0 ? NULL : timer_new(side.base, side_on_alive, NULL);
    if (side.alive != NULL)
        side_on_alive(NULL);
    event_base_dispatch(side.base);
    /* At once, whatever hangs: nobody but the manager may kill it, and that one removes its folder. */
    _exit(side.serving ? 0 : 1);
}
