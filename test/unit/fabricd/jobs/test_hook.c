/* The site's program: what it is given, and that nothing it does is in anybody's way. */
#include "test/unit/store_fixture.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/jobs/hook.h"
#include "fabricd/process/child.h"
#include "topo/changes/changes.h"

#define LARGE 3000 /* changes: more than a pipe holds */

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
    world->config.hook_deadline = 60;
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

static uint64_t ended(const struct world *world)
{
    return counted(world->counts, COUNT_HOOKS) + counted(world->counts, COUNT_HOOKS_FAILED);
}

static void must_have_ended(struct world *world, uint64_t good, uint64_t bad)
{
    while (ended(world) < good + bad)
        event_base_loop(world->base, EVLOOP_ONCE);
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

/* A named pipe that a process of the hook has open as long as it lives, and into which it says its number. */
static int wait_for_process(struct world *world, const char *name, pid_t *pid)
{
    char text[16] = "";
    const int fd = open(path_of(world, name), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    *pid = (pid_t)strtol(text, NULL, 10);
    assert_true(*pid > 1);
    return fd;
}

static void make_pipe(struct world *world, const char *name)
{
    assert_int_equal(mkfifo(path_of(world, name), 0600), 0);
}

/* Until the process has ended. */
static void must_end(int fd)
{
    char byte;
    assert_int_equal(read(fd, &byte, 1), 0);
    close(fd);
}

#define SLEEPER(name) "sh -c 'exec > '$1'/" name "; echo $$; trap \"\" TERM; exec sleep 300'"

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

/* ---- failing --------------------------------------------------------------------------------------- */

TEST_IN(one_that_cannot_be_started_is_one_line, struct world *world, setup, teardown)
{
    publish(world, 1); /* there is none, of this daemon or at all */
    hooks_tell(NULL, &(struct hook_news){.generation = 1, .changed = true});
    assert_int_equal(ended(world), 0);
    set_hook(world, "exit 0");
    assert_int_equal(unlink(path_of(world, "hook")), 0); /* since the configuration was checked */
    publish(world, 1);
    publish(world, 1);
    must_have_ended(world, 0, 2);
    assert_int_equal(logged(world, "\n"), 2);
    assert_int_equal(logged(world, "hook for generation 3: cannot start the child: No such file"), 1);
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
    assert_int_equal(logged(world, "hook: not run for generation 3: "), 1);
    assert_int_equal(logged(world, "\n"), 1);
}

TEST_IN(after_the_deadline_all_of_it_is_killed, struct world *world, setup, teardown)
{
    pid_t pid;
    make_pipe(world, "grandchild");
    world->config.hook_deadline = 1;
    set_hook(world, "[ $FABRICD_GENERATION -gt 1 ] && exit 0; trap '' TERM INT HUP\n" SLEEPER(
                        "grandchild") " & wait; wait");
    publish(world, LARGE); /* nobody reads it */
    publish(world, 1);
    const int grandchild = wait_for_process(world, "grandchild", &pid);
    must_have_ended(world, 1, 1);
    must_end(grandchild);
    assert_int_equal(logged(world, "hook for generation 1: timed out after 1 s: killed\n"), 1);
    assert_int_equal(logged(world, "\n"), 1);
}

/* ---- odd programs ---------------------------------------------------------------------------------- */

TEST_IN(one_that_closes_its_input_has_done_well, struct world *world, setup, teardown)
{
    set_hook(world, "head -c 10 > /dev/null; exec <&-");
    publish(world, LARGE);
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
    assert_int_equal(logged(world, "more than 100 lines"), 1);
    assert_int_equal(logged(world, "\n"), CHILD_LINES + 1);
    assert_int_equal(logged(world, ": aloud"), 0); /* of its standard output nothing comes */
}

/* What it leaves behind in its group goes with it; what has left the group is not waited for. */
TEST_IN(one_that_forks_is_done_when_it_ends, struct world *world, setup, teardown)
{
    pid_t pid;
    make_pipe(world, "inside");
    make_pipe(world, "outside");
    make_pipe(world, "gate");
    set_hook(world, SLEEPER("inside") " & setsid " SLEEPER("outside") " & read go < $1/gate");
    publish(world, 1);
    const int inside = wait_for_process(world, "inside", &pid);
    const int outside = wait_for_process(world, "outside", &pid);
    const int gate = open(path_of(world, "gate"), O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(gate, "go\n", 3), 3);
    close(gate);
    must_have_ended(world, 1, 0);
    must_end(inside);
    struct pollfd lives = {.fd = outside, .events = POLLIN};
    assert_int_equal(poll(&lives, 1, 0), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    must_end(outside);
}

/* ---- the end --------------------------------------------------------------------------------------- */

TEST_IN(the_daemons_end_is_its_end, struct world *world, setup, teardown)
{
    pid_t pid;
    make_pipe(world, "grandchild");
    set_hook(world, "trap '' TERM; " SLEEPER("grandchild") " & wait");
    publish(world, LARGE);
    publish(world, 1);
    const int grandchild = wait_for_process(world, "grandchild", &pid);
    hooks_free(world->hooks);
    world->hooks = NULL;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* it was waited for */
    assert_int_equal(errno, ECHILD);
    must_end(grandchild);
    for (unsigned i = 0; i < 5; i++)
        event_base_loop(world->base, EVLOOP_NONBLOCK);
    assert_int_equal(ended(world), 0); /* nobody is told of it, and no other one begins */
    assert_int_equal(logged(world, "hook"), 0);
}
