/* sim.c - the life of a site: its daemon, its time, its journal. */
#include "test/sim/sim.h"

#include <errno.h>
#include <event2/event.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/config/config.h"
#include "fabricd/engine/scheduler.h"
#include "fabricd/engine/scheduler_state.h"
#include "fabricd/main/fabricd_main.h"
#include "fabricd/serving/served.h"
#include "test/sim/disk.h"
#include "test/sim/oracle.h"
#include "test/sim/played.h"
#include "topo/base/text.h"

#define MOST_STEPS 10000000 /* of one call: more is a circle of timers */

struct sim {
    uint64_t seed;
    struct site *site;
    char folder[96], rundir[112], store[112], conf[112];
    char *argv[5]; /* of the daemon, which reads them again at a SIGHUP */
    struct settings settings;
    struct config config;
    struct role *role; /* NULL: the daemon does not run */
    enum sim_sweeps sweeps, light_sweeps;
    struct disk *disk;
    enum sim_disk disk_is;
    void (*on_disk_call)(void *arg);
    void *on_disk_call_arg;
    int64_t sweeps_take;
    char missed[64], manager[64];
    FILE *journal;
    char *journal_text;
    size_t journal_size;
    int64_t began;
    struct fab_inventory swept;       /* by the last good sweep */
    unsigned rows;                    /* of the oracle */
    uint64_t announced, last_updated; /* generations; announced 0: no pair is open */
    char *answer;
};

static struct sim *sim_of_process;

struct sim *the_sim(void)
{
    return sim_of_process;
}

void sim_fail(const char *fmt, ...)
{
    const struct sim *s = sim_of_process;
    va_list args;
    if (s != NULL) {
        fflush(s->journal);
        fprintf(stderr, "journal of seed %" PRIu64 ":\n%s", s->seed, s->journal_text);
    }
    fputs("simulation: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

/* ---- the journal
 * ---------------------------------------------------------------------------------------------------------
 */

static void journal_line(struct sim *s, const char *text)
{
    const int64_t at = seam_monotonic() - s->began;
    fprintf(s->journal, "%3" PRId64 "d %02d:%02d:%02d.%03d %s\n", at / SIM_DAY, (int)(at / SIM_HOUR % 24),
            (int)(at / (60 * SIM_SECOND) % 60), (int)(at / SIM_SECOND % 60), (int)(at / SIM_MS % 1000), text);
}

void sim_note(struct sim *s, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    journal_line(s, text);
}

const char *sim_journal(const struct sim *s)
{
    fflush(s->journal);
    return s->journal_text;
}

/* What the daemon logs stands in the journal, with the site's folder left out of it. */
void log_line(enum pmixfab_level level, const char *fmt, ...)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    struct sim *s = sim_of_process;
    char text[1024], *at;
    va_list args;
    if (level == PMIXFAB_LOG_DEBUG && getenv("SIM_DEBUG") == NULL)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    while ((at = strstr(text, s->folder)) != NULL)
        memmove(at, at + strlen(s->folder) + 1, strlen(at + strlen(s->folder)));
    if (node_running() != NULL)
        sim_note(s, "%s: %s: %s", node_host(node_running()), names[level], text);
    else
        sim_note(s, "%s: %s", names[level], text);
}

void log_open(enum pmixfab_level level, int to_syslog)
{
    (void)level, (void)to_syslog;
}

void log_set_level(enum pmixfab_level level)
{
    (void)level;
}

void log_as(const char *name)
{
    (void)name;
}

void log_to_daemon(void)
{
}

/* ---- settings
 * --------------------------------------------------------------------------------------------------------------
 */

void sim_configure(struct sim *s, const char *section, const char *key, const char *value)
{
    settings_set(&s->settings, section, key, value);
}

/* ---- time
 * -------------------------------------------------------------------------------------------------------------------
 */

struct event_base *sim_base(struct sim *s)
{
    return s->role == NULL ? NULL : scheduler_loop(s->role)->base;
}

struct ingest *sim_ingest(struct sim *s)
{
    return s->role == NULL ? NULL : scheduler_ingest(s->role);
}

/* A daemon that leaves its loop by itself begins anew, as the program does. */
static void begin_anew(struct sim *s)
{
    bool again;
    scheduler_end(s->role, &again);
    s->role = NULL;
    config_destroy(&s->config);
    if (again)
        sim_start(s);
}

/* As after each turn of the daemon's own loop. */
static void turn_ends(struct sim *s)
{
    if (s->role != NULL)
        scheduler_loop(s->role)->on_turn(scheduler_loop(s->role)->cbdata);
}

/* What the sockets of callers have brought. */
static void look_at_sockets(struct sim *s)
{
    if (s->role != NULL)
        event_base_loop(scheduler_loop(s->role)->base, EVLOOP_NONBLOCK);
    nodes_look();
    turn_ends(s);
}

static void run_queue(struct sim *s)
{
    for (unsigned steps = 0; seam_is_due(); steps++) {
        if (steps == MOST_STEPS)
            sim_fail("the run queue does not become empty");
        seam_run_one();
        turn_ends(s);
        if (s->role != NULL && scheduler_is_leaving(s->role))
            begin_anew(s);
    }
}

void sim_run_until_idle(struct sim *s)
{
    run_queue(s);
    while (children_under_way() > 0 && seam_next() >= 0) {
        seam_set(seam_next());
        run_queue(s);
    }
}

void sim_advance(struct sim *s, int64_t microseconds)
{
    const int64_t until = seam_monotonic() + microseconds;
    run_queue(s);
    for (unsigned steps = 0; seam_next() >= 0 && seam_next() <= until; steps++) {
        if (steps == MOST_STEPS)
            sim_fail("there is no end of timers");
        seam_set(seam_next());
        run_queue(s);
    }
    seam_set(until);
    sim_run_until_idle(s);
}

int64_t sim_now(const struct sim *s)
{
    (void)s;
    return clock_now(CLOCK_REALTIME);
}

void sim_jump(struct sim *s, int64_t microseconds)
{
    sim_note(s, "hand: the clock jumps by %" PRId64 " s", microseconds / SIM_SECOND);
    seam_jump(microseconds);
}

void sim_look(struct sim *s)
{
    look_at_sockets(s);
    run_queue(s);
    look_at_sockets(s);
}

bool sim_readable(struct sim *s, int fd, int64_t microseconds)
{
    return sim_run_until_readable(s, fd, microseconds);
}

static bool run_until_ready(struct sim *s, int fd, short events, int64_t microseconds)
{
    const int64_t until = seam_monotonic() + microseconds;
    for (;;) {
        struct pollfd one = {.fd = fd, .events = events};
        look_at_sockets(s);
        run_queue(s);
        look_at_sockets(s);
        if (poll(&one, 1, 0) > 0)
            return true;
        if (seam_is_due())
            continue;
        if (seam_next() < 0 || seam_next() > until)
            return false;
        seam_set(seam_next());
    }
}

bool sim_run_until_readable(struct sim *s, int fd, int64_t microseconds)
{
    return run_until_ready(s, fd, POLLIN, microseconds);
}

/* ---- life
 * ----------------------------------------------------------------------------------------------------------------------
 */

/* A test that failed has left its site: that is its story. */
static void tell_what_is_left(void)
{
    static bool registered;
    struct sim *s = sim_of_process;
    if (!registered)
        atexit(tell_what_is_left);
    registered = true;
    if (s == NULL)
        return;
    fprintf(stderr, "journal of seed %" PRIu64 ":\n%s", s->seed, sim_journal(s));
    sim_free(s);
}

/* The daemon's disk; the time and the random numbers of SQLite are the site's. */
static int sim_on_call(void *arg, const struct disk_call *call)
{
    const struct sim *s = arg;
    if (s->on_disk_call != NULL)
        s->on_disk_call(s->on_disk_call_arg);
    if (s->disk_is == SIM_DISK_FULL && call->grows)
        return SQLITE_FULL;
    if (s->disk_is == SIM_DISK_FAILS && call->op != DISK_READ && call->op != DISK_OPEN)
        return call->op == DISK_SYNC ? SQLITE_IOERR_FSYNC : SQLITE_IOERR_WRITE;
    return 0;
}

static int64_t disk_clock(void *arg)
{
    (void)arg;
    return clock_now(CLOCK_REALTIME);
}

static void disk_begin(struct sim *s)
{
    s->disk = disk_new(s->folder);
    if (s->disk == NULL)
        sim_fail("%s: no disk", s->folder);
    disk_set_clock(s->disk, disk_clock, NULL);
    disk_set_seed(s->disk, s->seed);
    disk_on_call(s->disk, sim_on_call, s);
}

struct sim *sim_resume(uint64_t seed, const char *folder, struct site *site)
{
    struct sim *s = calloc(1, sizeof(*s));
    if (s == NULL)
        sim_fail("out of memory");
    tell_what_is_left();
    sim_of_process = s;
    s->seed = seed;
    s->site = site;
    s->rows = 4;
    s->journal = open_memstream(&s->journal_text, &s->journal_size);
    if (s->journal == NULL)
        sim_fail("out of memory");
    fab_inventory_init(&s->swept);
    snprintf(s->folder, sizeof(s->folder), "%s", folder);
    snprintf(s->rundir, sizeof(s->rundir), "%s/run", s->folder);
    snprintf(s->store, sizeof(s->store), "%s/fabricd.db", s->folder);
    snprintf(s->conf, sizeof(s->conf), "%s/fabricd.conf", s->folder);
    memcpy(s->argv, (char *[]){"fabricd", "--config", s->conf, "--foreground", NULL}, sizeof(s->argv));
    seam_begin(seed, seed != 0);
    s->began = seam_monotonic();
    children_begin(s);
    front_begin(s);
    tcp_begin();
    nodes_begin(s);
    disk_begin(s);
    sim_on_wait(s, NULL);
    s->sweeps_take = 20 * SIM_MS;
    sim_configure(s, "fabricd", "probe", "site");
    sim_configure(s, "fabricd", "interval", "0");
    sim_configure(s, "fabricd", "rundir", s->rundir);
    sim_configure(s, "fabricd", "store", s->store);
    sim_configure(s, "fabricd", "host", "manager");
    sim_configure(s, "changes", "light_sweep", "0");
    sim_configure(s, "nodes", "listen", "*");
    return s;
}

struct sim *sim_new(uint64_t seed, const char *fabric)
{
    const char *tmp = getenv("TMPDIR");
    char folder[96]; /* the path of the control socket is at most 107 bytes long */
    snprintf(folder, sizeof(folder), "%s/sim.XXXXXX", tmp != NULL && strlen(tmp) < 80 ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL)
        sim_fail("%s: %s", folder, strerror(errno));
    return sim_resume(seed, folder, site_new(fabric));
}

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at)
{
    (void)st, (void)what, (void)at;
    return remove(path);
}

void sim_remove(const char *folder)
{
    if (nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        sim_fail("%s: cannot be removed: %s", folder, strerror(errno));
}

void sim_free(struct sim *s)
{
    if (s == NULL)
        return;
    nodes_end();
    sim_stop(s);
    disk_free(s->disk);
    sim_remove(s->folder);
    settings_free(&s->settings);
    site_free(s->site);
    fab_inventory_destroy(&s->swept);
    front_begin(NULL);
    fclose(s->journal);
    free(s->journal_text);
    free(s->answer);
    free(s);
    sim_of_process = NULL;
}

int sim_start(struct sim *s)
{
    settings_write(&s->settings, s->conf);
    config_init(&s->config);
    int rc = options_parse(4, s->argv, &s->config);
    if (rc == PMIXFAB_OK)
        rc = scheduler_begin(&s->config, &s->role);
    if (rc != PMIXFAB_OK) {
        s->role = NULL;
        config_destroy(&s->config);
        return rc;
    }
    s->announced = 0;
    sim_run_until_idle(s);
    return PMIXFAB_OK;
}

void sim_stop(struct sim *s)
{
    bool again;
    if (s->role == NULL)
        return;
    scheduler_loop(s->role)->ended = true;
    scheduler_end(s->role, &again);
    s->role = NULL;
    config_destroy(&s->config);
}

void sim_image(struct sim *s, bool power, const char *to)
{
    char rundir[PATH_MAX];
    if (mkdir(to, 0755) != 0 || disk_image(s->disk, power ? DISK_LOSES : DISK_KEEPS, s->seed, to) != 0)
        sim_fail("%s: no image of the machine: %s", to, strerror(errno));
    snprintf(rundir, sizeof(rundir), "%s/run", to);
    if (power)
        sim_remove(rundir);
}

/* What is on the disk now is what the next start finds; the end in order leaves its traces elsewhere. */
void sim_kill(struct sim *s, bool power)
{
    char image[sizeof(s->folder) + 8];
    sim_note(s, power ? "hand: the power fails" : "hand: SIGKILL");
    snprintf(image, sizeof(image), "%s.image", s->folder);
    sim_image(s, power, image);
    sim_stop(s);
    disk_free(s->disk);
    sim_remove(s->folder);
    if (rename(image, s->folder) != 0)
        sim_fail("%s: %s", image, strerror(errno));
    disk_begin(s);
}

void sim_disk(struct sim *s, enum sim_disk how)
{
    static const char *const names[] = {"works", "is full", "fails"};
    sim_note(s, "hand: the disk %s", names[how]);
    s->disk_is = how;
}

void sim_on_disk_call(struct sim *s, void (*fn)(void *arg), void *arg)
{
    s->on_disk_call = fn;
    s->on_disk_call_arg = arg;
}

void sim_lose_everything(struct sim *s)
{
    sim_note(s, "hand: the store and the run directory are gone");
    sim_stop(s);
    disk_free(s->disk);
    sim_remove(s->folder);
    if (mkdir(s->folder, 0755) != 0)
        sim_fail("%s: %s", s->folder, strerror(errno));
    disk_begin(s);
    s->last_updated = 0;
}

bool sim_runs(const struct sim *s)
{
    return s->role != NULL;
}

void sim_reload(struct sim *s)
{
    settings_write(&s->settings, s->conf);
    scheduler_loop(s->role)->on_hangup(scheduler_loop(s->role)->cbdata);
    sim_run_until_idle(s);
}

const char *sim_folder(const struct sim *s)
{
    return s->folder;
}

const char *sim_rundir(const struct sim *s)
{
    return s->rundir;
}

const char *sim_store(const struct sim *s)
{
    return s->store;
}

const char *sim_settings(struct sim *s)
{
    settings_write(&s->settings, s->conf);
    return s->conf;
}

struct site *sim_site(struct sim *s)
{
    return s->site;
}

void sim_sweeps(struct sim *s, enum sim_sweeps how, const char *missed)
{
    static const char *const names[] = {"end well", "fail", "crash", "hang", "miss "};
    s->sweeps = how;
    snprintf(s->missed, sizeof(s->missed), "%s", missed == NULL ? "" : missed);
    sim_note(s, "hand: sweeps %s%s", names[how], s->missed);
}

enum sim_sweeps sim_sweeps_end(const struct sim *s, const char **missed)
{
    *missed = s->missed;
    return s->sweeps;
}

void sim_light_sweeps(struct sim *s, enum sim_sweeps how)
{
    static const char *const names[] = {"end well", "fail", "crash", "hang", "miss"};
    s->light_sweeps = how;
    sim_note(s, "hand: light sweeps %s", names[how]);
}

enum sim_sweeps sim_light_sweeps_end(const struct sim *s)
{
    return s->light_sweeps;
}

void sim_sweeps_take(struct sim *s, int64_t microseconds)
{
    s->sweeps_take = microseconds;
}

int64_t sim_sweep_takes(const struct sim *s)
{
    return s->sweeps_take;
}

void sim_manager(struct sim *s, const char *node)
{
    snprintf(s->manager, sizeof(s->manager), "%s", node == NULL ? "" : node);
    sim_note(s, "hand: the subnet manager is %s", node == NULL ? "nowhere" : node);
}

uint64_t sim_manager_guid(const struct sim *s)
{
    uint64_t port = 0;
    if (s->manager[0] != '\0')
        site_hca(s->site, s->manager, 0, &port);
    return port;
}

/* ---- asking
 * ------------------------------------------------------------------------------------------------------------------------
 */

static int control_connect(const char *rundir)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", rundir) >=
        (int)sizeof(address.sun_path))
        sim_fail("%s: the path is too long for a socket", rundir);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        sim_fail("%s: %s", address.sun_path, strerror(errno));
    return fd;
}

/* A long request needs a daemon that reads while it is sent. */
static void control_send(struct sim *s, int fd, const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(fd, text, size);
        if (n < 0 && (errno != EAGAIN || !run_until_ready(s, fd, POLLOUT, SIM_DAY)))
            sim_fail("the request cannot be sent: %s", strerror(errno));
        if (n > 0) {
            text += n;
            size -= (size_t)n;
        }
    }
}

/* The line that says how it went is the last one. */
static bool is_last(const char *line)
{
    return strstr(line, "\"ok\"") != NULL;
}

const char *sim_request(struct sim *s, const char *json)
{
    return sim_request_of(s, s->rundir, json);
}

const char *sim_request_of(struct sim *s, const char *rundir, const char *json)
{
    char *text = NULL;
    size_t size = 0;
    const int fd = control_connect(rundir);
    FILE *got = open_memstream(&text, &size);
    char buffer[65536];
    if (got == NULL)
        sim_fail("no memory for an answer");
    control_send(s, fd, json, strlen(json));
    control_send(s, fd, "\n", 1);
    for (;;) {
        if (!sim_run_until_readable(s, fd, SIM_DAY))
            sim_fail("no answer to %s", json);
        const ssize_t n = read(fd, buffer, sizeof(buffer));
        if (n <= 0)
            sim_fail("the connection ends before the answer to %s", json);
        fwrite(buffer, 1, (size_t)n, got);
        fflush(got);
        if (text[size - 1] != '\n')
            continue;
        text[size - 1] = '\0';
        const char *last = strrchr(text, '\n');
        const bool whole = is_last(last == NULL ? text : last + 1);
        text[size - 1] = '\n';
        if (whole)
            break;
    }
    close(fd);
    fclose(got);
    text[size - 1] = '\0';
    const char *last = strrchr(text, '\n');
    free(s->answer);
    s->answer = strdup(last == NULL ? text : last + 1);
    free(text);
    run_queue(s);
    look_at_sockets(s);
    return s->answer;
}

bool sim_sweep(struct sim *s)
{
    const bool good = strstr(sim_request(s, "{\"op\":\"refresh\"}"), "\"ok\":true") != NULL;
    sim_run_until_idle(s);
    return good;
}

/* ---- what is served
 * ----------------------------------------------------------------------------------------------------------------
 */

void sim_on_swept(struct sim *s, const struct fab_inventory *inv)
{
    fab_inventory_destroy(&s->swept);
    if (fab_inventory_copy(&s->swept, inv) != PMIXFAB_OK)
        sim_fail("out of memory");
}

void sim_oracle(struct sim *s, unsigned rows)
{
    s->rows = rows;
}

static void check_served(struct sim *s)
{
    char why[256];
    struct scheduler_status status;
    if (s->role != NULL)
        scheduler_status(scheduler_of(s->role), &status);
    if (s->role == NULL || status.waits.suppressed + status.waits.suppressed_switches > 0)
        return; /* a suppressed cable is served as if it were pulled */
    if (!oracle_order(why, sizeof(why)) || !oracle_costs(&s->swept, s->rows, why, sizeof(why)))
        sim_fail("generation %" PRIu64 ": %s", s->last_updated, why);
}

void sim_on_announced(struct sim *s, bool pending, const struct event_plane *planes, uint32_t n,
                      uint64_t generation)
{
    for (uint32_t i = 0; i < n; i++)
        sim_note(s, "event: %s of plane %u %s, generation %" PRIu64, pending ? "PENDING" : "UPDATED",
                 planes[i].index, planes[i].name, generation);
    if (pending && (s->announced != 0 || generation <= s->last_updated))
        sim_fail("PENDING of generation %" PRIu64 " after %" PRIu64, generation, s->last_updated);
    if (!pending && s->announced != generation)
        sim_fail("UPDATED of generation %" PRIu64 " without its PENDING", generation);
    s->announced = pending ? generation : 0;
    if (pending)
        return;
    s->last_updated = generation;
    check_served(s);
}

struct served *sim_served(const struct sim *s)
{
    return s->role == NULL ? NULL : publisher_served(scheduler_of(s->role)->publisher);
}

uint64_t sim_updated(const struct sim *s)
{
    return s->last_updated;
}

uint64_t sim_pending(const struct sim *s)
{
    return s->announced > s->last_updated ? s->announced : s->last_updated;
}

uint64_t sim_generation(const struct sim *s)
{
    struct served *served = front_served();
    if (s->role == NULL || served == NULL)
        return 0;
    struct served_set *set = served_get(served);
    const uint64_t generation = set->generation;
    served_set_put(set);
    return generation;
}
