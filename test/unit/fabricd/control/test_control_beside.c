/* Callers of the control socket while the daemon computes: `status` is answered, and everything else waits.
 * The computation is the caller, so what it hears it hears meanwhile. */
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabricd/base/loop.h"
#include "fabricd/control/connection.h"
#include "test/unit/test.h"

static struct world {
    struct loop loop;
    struct config config;
    struct control *control;
    struct counts *counts;
    char folder[32];
    unsigned statuses, others; /* that were asked for */
    int others_fd, silent_fd, gone_fd;
    int early_fd, asked_fd; /* connected before */
    bool ran;
} world;

static void op_status(struct connection *connection, json_t *request)
{
    (void)request;
    connection_send(connection, json_pack("{s:b, s:i}", "ok", 1, "asked", (int)++world.statuses));
}

static void op_other(struct connection *connection, json_t *request)
{
    (void)request;
    connection_send(connection, json_pack("{s:b, s:i}", "ok", 1, "other", (int)++world.others));
}

static const struct control_op ops[] = {{"other", op_other}, {"status", op_status}, {NULL, NULL}};

static int caller(const char *line)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", world.folder);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    if (*line !=
        '\0') /* a refused caller's connection has ended by now, and writing nothing raises SIGPIPE too */
        assert_int_equal(write(fd, line, strlen(line)), strlen(line));
    return fd;
}

/* What is there within so many milliseconds. */
static const char *hears(int fd, int milliseconds)
{
    static char text[256];
    struct pollfd wait = {fd, POLLIN, 0};
    const ssize_t n = poll(&wait, 1, milliseconds) == 1 ? read(fd, text, sizeof(text) - 1) : 0;
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* The other side closes it. */
static bool ends(int fd)
{
    char byte;
    struct pollfd wait = {fd, POLLIN, 0};
    return poll(&wait, 1, 20000) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

FIXTURE(begin)
{
    struct fab_err err;
    world = (struct world){.counts = counts_new(), .folder = "/tmp/besideXXXXXX"};
    assert_int_equal(loop_new(&world.loop), PMIXFAB_OK);
    assert_non_null(mkdtemp(world.folder));
    config_init(&world.config);
    free(world.config.rundir);
    world.config.rundir = strdup(world.folder);
    assert_int_equal(
        control_new(world.loop.base, &world.config, world.counts, ops, NULL, &world.control, &err),
        PMIXFAB_OK);
    return 0;
}

FIXTURE(end)
{
    control_free(world.control);
    config_destroy(&world.config);
    counts_free(world.counts);
    loop_free(&world.loop);
    assert_int_equal(rmdir(world.folder), 0);
    return 0;
}

static void compute(void *arg)
{
    assert_ptr_equal(arg, &world);
    world.others_fd = caller("{\"op\":\"other\"}\n");
    world.silent_fd = caller("{\"op\":\"sta");
    world.gone_fd = caller("{\"op\":\"status\"}\n");
    close(world.gone_fd);
    assert_string_equal(hears(world.asked_fd, 20000), "{\"ok\":true,\"asked\":1}\n");
    assert_int_equal(write(world.early_fd, "{\"op\":\"status\"}\n", 16), 16);
    assert_string_equal(hears(world.early_fd, 20000), "{\"ok\":true,\"asked\":1}\n");
    const int fd = caller("{\"op\":\"status\"}\n");
    for (unsigned i = 0; i < 3; i++) {
        assert_string_equal(hears(fd, 20000), "{\"ok\":true,\"asked\":1}\n");
        assert_int_equal(write(fd, "{\"op\":\"status\"}\n", 16), 16);
    }
    hears(fd, 20000);
    for (unsigned i = 0; i < 100; i++) { /* one after the other, as many as come */
        const int next = caller("{\"op\":\"status\",\"more\":[1,2]}\n");
        assert_string_equal(hears(next, 20000), "{\"ok\":true,\"asked\":1}\n");
        close(next);
    }
    close(fd);
    assert_string_equal(hears(world.others_fd, 50), "");
    assert_int_equal(world.others, 0);
    world.ran = true;
}

TEST_WITH(status_is_answered_meanwhile, begin, end)
{
    world.early_fd = caller("");
    world.asked_fd = caller("{\"op\":\"status\"}\n{\"op\":\"other\"}\n");
    event_base_loop(world.loop.base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
    assert_int_equal(world.statuses, 0); /* it is read, and not its turn yet */
    control_beside(world.control, compute, &world);
    assert_true(world.ran);
    assert_int_equal(world.statuses, 1);
    assert_string_equal(hears(world.asked_fd, 0), "");
    assert_int_equal(write(world.silent_fd, "tus\"}\n", 6), 6);
    for (unsigned i = 0; i < 100 && (world.others < 2 || world.statuses == 1); i++)
        event_base_loop(world.loop.base, EVLOOP_NONBLOCK);
    assert_string_equal(hears(world.asked_fd, 0), "{\"ok\":true,\"other\":1}\n");
    assert_string_equal(hears(world.others_fd, 0), "{\"ok\":true,\"other\":2}\n");
    assert_string_equal(hears(world.silent_fd, 0), "{\"ok\":true,\"asked\":2}\n");
    assert_int_equal(write(world.early_fd, "{\"op\":\"other\"}\n", 15), 15);
    for (unsigned i = 0; i < 100 && world.others < 3; i++)
        event_base_loop(world.loop.base, EVLOOP_NONBLOCK);
    assert_string_equal(hears(world.early_fd, 0), "{\"ok\":true,\"other\":3}\n");
    close(world.early_fd);
    close(world.asked_fd);
    close(world.others_fd);
    close(world.silent_fd);
}

/* Other users that connect and say nothing, as many as they can, and root, who asks. */
static void crowd(void *arg)
{
    int fds[CONTROL_MAX_CONNECTIONS];
    unsigned refused = 0;
    (void)arg;
    for (unsigned i = 0; i < CONTROL_MAX_CONNECTIONS; i++) {
        /* of this thread alone; the library's function is for all threads */
        assert_int_equal(syscall(SYS_setresuid, -1, 60000 + i / (CONTROL_MAX_OF_UID + 8), -1), 0);
        fds[i] = caller("");
        refused += i % (CONTROL_MAX_OF_UID + 8) >= CONTROL_MAX_OF_UID && ends(fds[i]);
        assert_int_equal(syscall(SYS_setresuid, -1, 0, -1), 0);
    }
    assert_int_equal(refused, 8 * CONTROL_MAX_CONNECTIONS / (CONTROL_MAX_OF_UID + 8));
    const int fd = caller("{\"op\":\"status\"}\n");
    assert_string_equal(hears(fd, 20000), "{\"ok\":true,\"asked\":1}\n");
    close(fd);
    for (unsigned i = 0; i < CONTROL_MAX_CONNECTIONS; i++)
        close(fds[i]);
    world.ran = true;
}

TEST_WITH(no_user_keeps_others_from_an_answer, begin, end)
{
    if (geteuid() != 0)
        skip(); /* only root can connect as others */
    assert_int_equal(chmod(world.folder, 0755), 0);
    control_beside(world.control, crowd, NULL);
    assert_true(world.ran);
}

static void set(void *arg)
{
    *(bool *)arg = true;
}

TEST(without_a_socket_it_is_computed)
{
    bool ran = false;
    control_beside(NULL, set, &ran);
    assert_true(ran);
}
