/* The site's program: what it is given, and that nothing it does is in anybody's way. */
#include "test/unit/store_fixture.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <time.h>

#include "fabricd/jobs/hook.h"
#include "fabricd/metrics/counters.h"
#include "fabricd/process/child.h"
#include "fabricd/util/log.h"
#include "topo/diff/diff.h"

OWNER(event_free, struct event)

#define PATIENCE 60 /* seconds until a test has failed that waits */

/* ---- hooks without a daemon ------------------------------------------------------------------------ */

struct world {
    struct folder *folder;
    struct event_base *base;
    struct config config;
    struct store *store;
    struct hooks *hooks;
    uint64_t newest;
    struct counts *counts;
    int said; /* standard error, as it was */
};

static char *path_of(const struct world *world, const char *name)
{
    static char paths[4][PATH_SIZE];
    static unsigned at;
    char *path = paths[at++ % 4];
    snprintf(path, PATH_SIZE, "%s/%s", world->folder->dir, name);
    return path;
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    void *folder;
    if (world == NULL || folder_setup(&folder) != 0)
        return -1;
    world->folder = folder;
    signal(SIGPIPE, SIG_IGN); /* as the daemon has it */
    config_init(&world->config);
    free(world->config.rundir);
    world->config.rundir = strdup("/run/of/the test");
    world->config.hook_deadline = PATIENCE;
    world->base = event_base_new();
    world->store = open_store(world->folder->db);
    world->counts = counts_new();
    int log = open(path_of(world, "log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    world->said = dup(STDERR_FILENO);
    if (log < 0 || world->said < 0 || dup2(log, STDERR_FILENO) < 0)
        return -1;
    close(log);
    log_open(PMIXFAB_LOG_INFO, 0);
    *state = world;
    return hooks_new(world->base, &world->config, world->counts, world->store, &world->hooks, fresh_err());
}

static int teardown(void **state)
{
    OWNED(free) struct world *world = *state;
    void *folder = world->folder;
    hooks_free(world->hooks);
    counts_free(world->counts);
    dup2(world->said, STDERR_FILENO);
    close(world->said);
    store_close(world->store);
    event_base_free(world->base);
    config_destroy(&world->config);
    return folder_teardown(&folder);
}

/* A shell script in the folder, which is its first argument; the hook from now on. */
static void set_hook(struct world *world, const char *body)
{
    char *path = path_of(world, "hook");
    const char *script = printed("#!/bin/sh\n%s\n", body);
    write_file(path, script, strlen(script));
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(config_append(&world->config.hook, path), PMIXFAB_OK);
    assert_int_equal(config_append(&world->config.hook, world->folder->dir), PMIXFAB_OK);
}

/* One more generation with so many changes, of which the hooks are told. */
static void publish(struct world *world, uint32_t n)
{
    struct fab_change *changes = calloc(n + 1, sizeof(*changes));
    char(*what)[40] = calloc(n + 1, sizeof(*what));
    struct event_plane plane = {.index = 3, .name = "ib3"};
    const uint64_t generation = ++world->newest;
    assert_true(changes != NULL && what != NULL);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(what[i], sizeof(what[i]), "thing %llu.%u", (unsigned long long)generation, i);
        changes[i] = (struct fab_change){.kind = FAB_CHANGE_OTHER,
                                         .what = what[i],
                                         .before = (char *)"as it was",
                                         .after = (char *)"as it is",
                                         .why = "",
                                         .subjects = ""};
    }
    SCOPED(fab_inventory) none = empty_inventory();
    const struct fab_diff diff = {.changes = changes, .n = n};
    const int64_t published = 1700000000000000 + (int64_t)generation * 1000000;
    const struct store_publication publication = {
        .generation = generation, .published = published, .before = &none, .after = &none, .diff = &diff};
    must_do(store_publish(world->store, &publication, fresh_err()));
    free(changes);
    free(what);
    hooks_tell(
        world->hooks,
        &(struct hook_news){
            .generation = generation, .published = published, .changed = true, .planes = &plane, .n = 1});
    memset(&plane, 0xff, sizeof(plane)); /* what was told is copied */
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    event_base_loopbreak(arg);
}

/* One turn of the loop, a hundredth of a second at most. */
static void turn(struct world *world)
{
    const struct timeval soon = {.tv_usec = 10000};
    OWNED(event_free) struct event *tick = evtimer_new(world->base, on_tick, world->base);
    assert_non_null(tick);
    event_add(tick, &soon);
    event_base_loop(world->base, EVLOOP_ONCE);
}

static uint64_t ended(const struct world *world)
{
    return counted(world->counts, COUNT_HOOKS) + counted(world->counts, COUNT_HOOKS_FAILED);
}

#define wait_until(world, condition)                                                                         \
    do {                                                                                                     \
        const time_t limit = time(NULL) + PATIENCE;                                                          \
        while (!(condition)) {                                                                               \
            assert_true(time(NULL) < limit);                                                                 \
            turn(world);                                                                                     \
        }                                                                                                    \
    } while (0)

static void must_have_ended(struct world *world, uint64_t good, uint64_t bad)
{
    wait_until(world, ended(world) >= good + bad);
    assert_int_equal(counted(world->counts, COUNT_HOOKS), good);
    assert_int_equal(counted(world->counts, COUNT_HOOKS_FAILED), bad);
}

/* A file of the folder; "" where there is none. free() it. */
static char *text_of(const struct world *world, const char *name)
{
    FILE *file = fopen(path_of(world, name), "r");
    char *text = must_have(1 << 20);
    if (file != NULL) {
        text[fread(text, 1, (1 << 20) - 1, file)] = '\0';
        fclose(file);
    }
    return text;
}

static bool is_there(const struct world *world, const char *name)
{
    struct stat st;
    return stat(path_of(world, name), &st) == 0 && st.st_size > 0;
}

static void must_say(const struct world *world, const char *name, const char *text)
{
    OWNED(free) char *found = text_of(world, name);
    assert_string_equal(found, text);
}

/* How often the log has this. */
static unsigned logged(const struct world *world, const char *part)
{
    OWNED(free) char *text = text_of(world, "log");
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
        n++;
    return n;
}

static pid_t pid_of(const struct world *world, const char *name)
{
    OWNED(free) char *text = text_of(world, name);
    const long pid = strtol(text, NULL, 10);
    assert_true(pid > 1);
    return (pid_t)pid;
}

/* Not there, or dead and waiting for its parent, which is init. */
static bool is_gone(pid_t pid)
{
    char path[64], state = 'Z';
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return true;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'Z';
    fclose(file);
    return state == 'Z' || state == 'X';
}

/* ---- what it is given ------------------------------------------------------------------------------ */

TEST_IN(it_gets_its_arguments_and_the_change, struct world *world, setup, teardown)
{
    set_hook(world, "cd $1; for one; do echo \"[$one]\"; done | tail -n +2 > args\n"
                    "echo \"$FABRICD_GENERATION $FABRICD_RUNDIR\" > env; cat > \"told.$FABRICD_GENERATION\"");
    assert_int_equal(config_append(&world->config.hook, "two words; $HOME `id` *"), PMIXFAB_OK);
    assert_int_equal(config_append(&world->config.hook, ""), PMIXFAB_OK);
    publish(world, 2);
    publish(world, 0);
    must_have_ended(world, 2, 0);
    must_say(world, "args", "[two words; $HOME `id` *]\n[]\n"); /* no shell of ours looks at them */
    must_say(world, "env", "2 /run/of/the test\n");
    OWNED(free) char *text = text_of(world, "told.1");
    json_t *told = json_loads(text, 0, NULL);
    json_t *expected = json_pack("{s:i, s:s, s:[{s:i, s:s}], s:i, s:i, s:[]}", "generation", 1, "published",
                                 "2023-11-14T22:13:21.000000Z", "planes", "index", 3, "name", "ib3", "from",
                                 0, "to", 1, "findings");
    json_t *changes = json_incref(json_object_get(told, "changes"));
    assert_int_equal(json_object_del(told, "changes"), 0);
    assert_true(json_equal(told, expected));
    assert_int_equal(json_array_size(changes), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(changes, 1), "what")), "thing 1.1");
    json_decref(changes);
    json_decref(expected);
    json_decref(told);
    free(text);
    text = text_of(world, "told.2"); /* its own changes only */
    assert_non_null(strstr(text, "\"changes\":[]"));
    assert_int_equal(logged(world, "hook"), 0);
}

TEST_IN(without_a_hook_nothing_is_done, struct world *world, setup, teardown)
{
    publish(world, 1);
    hooks_tell(NULL, &(struct hook_news){.generation = 1, .changed = true});
    assert_int_equal(ended(world), 0);
    assert_int_equal(logged(world, "\n"), 0);
}

/* Megabytes: more than any pipe holds. */
TEST_IN(all_of_a_large_change_comes, struct world *world, setup, teardown)
{
    set_hook(world, "wc -c < /dev/stdin > $1/size");
    publish(world, 20000);
    must_have_ended(world, 1, 0);
    OWNED(free) char *text = text_of(world, "size");
    assert_true(strtol(text, NULL, 10) > 20000 * 100);
}

/* ---- one at a time --------------------------------------------------------------------------------- */

TEST_IN(the_next_waits_for_the_one_that_runs, struct world *world, setup, teardown)
{
    set_hook(world, "mkdir $1/lock || exit 9; n=$FABRICD_GENERATION; echo $$ > $1/runs\n"
                    "[ $n -gt 1 ] || read x < $1/gate; echo $n >> $1/order; rmdir $1/lock");
    assert_int_equal(mkfifo(path_of(world, "gate"), 0600), 0);
    for (unsigned i = 0; i < 5; i++)
        publish(world, 1);
    wait_until(world, is_there(world, "runs"));
    assert_int_equal(ended(world), 0);
    int gate = open(path_of(world, "gate"), O_RDWR | O_CLOEXEC);
    assert_int_equal(write(gate, "go\n", 3), 3);
    must_have_ended(world, 5, 0);
    close(gate);
    must_say(world, "order", "1\n2\n3\n4\n5\n");
}

TEST_IN(when_too_many_wait_the_oldest_is_left_out, struct world *world, setup, teardown)
{
    set_hook(world, "echo $FABRICD_GENERATION >> $1/order");
    for (unsigned i = 0; i < HOOK_WAITING + 3;
         i++) /* the loop does not turn: the first one runs all the time */
        publish(world, 1);
    assert_int_equal(counted(world->counts, COUNT_HOOKS_DROPPED), 2);
    assert_int_equal(logged(world, "hook: generation 2 is not told"), 1);
    assert_int_equal(logged(world, "is not told"), 2);
    must_have_ended(world, HOOK_WAITING + 1, 0);
    OWNED(free) char *order = text_of(world, "order");
    assert_int_equal(strncmp(order, "1\n4\n5\n", 6), 0);
}

/* ---- failing --------------------------------------------------------------------------------------- */

TEST_IN(a_failure_is_one_line_and_the_next_is_told, struct world *world, setup, teardown)
{
    set_hook(world, "case $FABRICD_GENERATION in 1) echo no such system >&2; exit 5;; 2) kill -9 $$;; esac");
    for (unsigned i = 0; i < 3; i++)
        publish(world, 1);
    must_have_ended(world, 1, 2);
    assert_int_equal(logged(world,
                            "hook for generation 1: the child ended with status 5; its last words were: "
                            "no such system\n"),
                     1);
    assert_int_equal(logged(world, "error"), 2);
    assert_int_equal(logged(world, "hook for generation 2: the child died of signal 9"), 1);
}

TEST_IN(one_that_cannot_be_started_is_one_line, struct world *world, setup, teardown)
{
    set_hook(world, "exit 0");
    assert_int_equal(unlink(path_of(world, "hook")), 0); /* since the configuration was checked */
    publish(world, 1);
    publish(world, 1);
    must_have_ended(world, 0, 2);
    assert_int_equal(logged(world, "\n"), 2);
    assert_int_equal(logged(world, "hook for generation 2: the child cannot be started: No such file"), 1);
}

TEST_IN(a_history_that_cannot_be_read_is_one_line, struct world *world, setup, teardown)
{
    set_hook(world, "echo x > $1/ran");
    publish(world, 1);
    must_have_ended(world, 1, 0);
    assert_int_equal(unlink(path_of(world, "ran")), 0);
    publish(world, 1); /* starts at once */
    publish(world, 1); /* waits */
    assert_int_equal(sqlite3_exec(world->store->db, "DROP TABLE change", NULL, NULL, NULL), SQLITE_OK);
    must_have_ended(world, 2, 1);
    assert_int_equal(logged(world, "hook: generation 3 is not told: "), 1);
    assert_int_equal(logged(world, "\n"), 1);
}

TEST_IN(after_the_deadline_all_of_it_is_killed, struct world *world, setup, teardown)
{
    world->config.hook_deadline = 1;
    set_hook(world,
             "[ $FABRICD_GENERATION -gt 1 ] && exit 0; trap '' TERM INT HUP\n"
             "(trap '' TERM; sleep 300 & echo $! > $1/grandchild; wait) & echo $$ > $1/pid; wait; wait");
    publish(world, 30000); /* nobody reads it */
    publish(world, 1);
    must_have_ended(world, 1, 1);
    assert_true(is_gone(pid_of(world, "pid")));
    wait_until(world, is_gone(pid_of(world, "grandchild")));
    assert_int_equal(logged(world, "hook for generation 1: not done after 1 s, killed\n"), 1);
    assert_int_equal(logged(world, "\n"), 1);
}

/* ---- odd programs ---------------------------------------------------------------------------------- */

TEST_IN(one_that_reads_nothing_has_done_well, struct world *world, setup, teardown)
{
    set_hook(world, "exit 0");
    publish(world, 30000);
    must_have_ended(world, 1, 0);
}

TEST_IN(one_that_closes_its_input_has_done_well, struct world *world, setup, teardown)
{
    set_hook(world, "head -c 10 > $1/head; exec <&-; while [ ! -s $1/go ]; do sleep .01; done");
    publish(world, 30000);
    wait_until(world, is_there(world, "head"));
    for (unsigned i = 0; i < 20;
         i++) /* a closed pipe can be written to at any time: that is found out once */
        turn(world);
    write_file(path_of(world, "go"), "go\n", 3);
    must_have_ended(world, 1, 0);
    assert_int_equal(logged(world, "hook"), 0);
}

TEST_IN(one_that_writes_without_end_does_not_fill_the_log, struct world *world, setup, teardown)
{
    set_hook(world, "yes aloud | head -c 3000000; yes chatter | head -n 100000 >&2\n"
                    "head -c 3000000 /dev/zero | tr '\\0' x >&2");
    publish(world, 1);
    must_have_ended(world, 1, 0);
    assert_int_equal(logged(world, ": chatter\n"), CHILD_LINES);
    assert_int_equal(logged(world, "it says more than 100 lines"), 1);
    assert_int_equal(logged(world, "\n"), CHILD_LINES + 1);
    assert_int_equal(logged(world, ": aloud"), 0); /* of its standard output nothing comes */
}

/* What it leaves behind in its group goes with it; what has left the group is not waited for. */
TEST_IN(one_that_forks_is_done_when_it_ends, struct world *world, setup, teardown)
{
    set_hook(world,
             "sleep 300 & echo $! > $1/inside; setsid sh -c 'echo $$ > '$1'/outside; exec sleep 300' &\n"
             "while [ ! -s $1/outside ]; do sleep .01; done");
    publish(world, 1);
    must_have_ended(world, 1, 0);
    wait_until(world, is_gone(pid_of(world, "inside")));
    assert_false(is_gone(pid_of(world, "outside")));
    assert_int_equal(kill(pid_of(world, "outside"), SIGKILL), 0);
}

/* ---- the end --------------------------------------------------------------------------------------- */

TEST_IN(the_daemons_end_is_its_end, struct world *world, setup, teardown)
{
    set_hook(world, "trap '' TERM; sleep 300 & echo $! > $1/grandchild; echo $$ > $1/pid; wait");
    publish(world, 30000);
    publish(world, 1);
    wait_until(world, is_there(world, "pid"));
    const time_t start = time(NULL);
    hooks_free(world->hooks);
    world->hooks = NULL;
    assert_true(time(NULL) - start < 30);
    assert_int_equal(kill(pid_of(world, "pid"), 0), -1); /* and it was waited for */
    assert_int_equal(errno, ESRCH);
    wait_until(world, is_gone(pid_of(world, "grandchild")));
    for (unsigned i = 0; i < 5; i++)
        turn(world);
    assert_int_equal(ended(world), 0); /* nobody is told of it, and no other one begins */
    assert_int_equal(logged(world, "hook"), 0);
}
