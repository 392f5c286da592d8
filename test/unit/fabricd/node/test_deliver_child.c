/* Inventories on their way to fabricd: what waits, what fabricd answers, and the end. */

#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabricd/base/base64.h"
#include "fabricd/base/log.h"
#include "fabricd/node/deliver_child.h"
#include "test/fabrics/fabrics.h"
#include "test/unit/delivered.h"

#define HOSTS 8

/* The child; and in the place of fabricd a socket that the test answers by hand. */
struct place {
    char dir[64], said[1 << 16];
    int listener, caller, to, from;
    size_t n_said;
    pid_t pid;
};

static void wait_readable(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&one, 1, 20000), 1);
}

static void start(struct place *p, size_t max_bytes)
{
    int ends[2], text[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(pipe(text), 0);
    p->pid = fork();
    if (p->pid == 0) {
        close(ends[0]);
        dup2(text[1], STDERR_FILENO);
        signal(SIGPIPE, SIG_IGN);
        log_open(PMIXFAB_LOG_INFO, 0);
        log_as("child");
        _exit(deliver_from(ends[1], p->dir, HOSTS, max_bytes));
    }
    close(ends[1]);
    close(text[1]);
    p->to = ends[0];
    p->from = text[0];
}

/* What comes, or came, on its standard error; false: it has closed it without. */
static bool says(struct place *p, const char *text)
{
    for (;;) {
        char *found = strstr(p->said, text);
        if (found != NULL) { /* what follows is for the next question */
            found += strlen(text);
            p->n_said = strlen(found);
            memmove(p->said, found, p->n_said + 1);
            return true;
        }
        wait_readable(p->from);
        ssize_t n = read(p->from, p->said + p->n_said, sizeof(p->said) - 1 - p->n_said);
        if (n <= 0)
            return false;
        p->n_said += (size_t)n;
        p->said[p->n_said] = '\0';
    }
}

/* Nothing comes any more; how it ends then. */
static int end(struct place *p)
{
    int status = -1;
    close(p->to);
    p->to = -1;
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    p->pid = 0;
    return status;
}

static void open_shop(struct place *p)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", p->dir);
    p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(p->listener, 5), 0);
}

static void hang_up(struct place *p)
{
    if (p->caller >= 0)
        close(p->caller);
    p->caller = -1;
}

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    strcpy(p->dir, "/tmp/pmixfab-deliver-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    p->listener = p->caller = p->to = p->from = -1;
    *state = p;
    return 0;
}

static int setup_started(void **state)
{
    setup(state);
    start(*state, 1 << 20);
    return 0;
}

static int teardown(void **state)
{
    OWNED(free) struct place *p = *state;
    if (p->pid != 0)
        assert_int_equal(end(p), 0);
    hang_up(p);
    if (p->listener >= 0)
        close(p->listener);
    if (p->from >= 0)
        close(p->from);
    return remove_folder(p->dir);
}

/* The whole report of a host; `n`: which of its reports. */
static void *numbered(const char *host, unsigned n, uint64_t base, size_t *size)
{
    return delivery_of(host, printed("eth%06u", n), base, size);
}

static void give(struct place *p, const void *bytes, size_t size)
{
    uint32_t length = (uint32_t)size;
    assert_int_equal(send(p->to, &length, sizeof(length), MSG_NOSIGNAL), sizeof(length));
    assert_int_equal(send(p->to, bytes, size, MSG_NOSIGNAL), size);
}

static void add(struct place *p, const char *host, unsigned n)
{
    size_t size;
    OWNED(free) void *bytes = numbered(host, n, 0, &size);
    give(p, bytes, size);
}

/* The bytes of the next request. */
static void *next_request(struct place *p, size_t *size)
{
    char line[4096] = "";
    size_t have = 0;
    void *bytes;
    while (have == 0 || line[have - 1] != '\n') {
        if (p->caller < 0) {
            wait_readable(p->listener);
            p->caller = accept(p->listener, NULL, NULL);
            assert_true(p->caller >= 0);
        }
        wait_readable(p->caller);
        ssize_t got = recv(p->caller, line + have, sizeof(line) - have, 0);
        if (got == 0 && have == 0) { /* it hung up as nothing waited */
            hang_up(p);
            continue;
        }
        assert_true(got > 0);
        have += (size_t)got;
    }
    assert_ptr_equal(memchr(line, '\n', have), line + have - 1);
    json_t *request = json_loadb(line, have, 0, NULL);
    assert_int_equal(json_object_size(request), 2);
    assert_string_equal(json_string_value(json_object_get(request, "op")), "deliver");
    const char *text = json_string_value(json_object_get(request, "bytes"));
    assert_int_equal(base64_decode(text, strlen(text), &bytes, size), 0);
    json_decref(request);
    return bytes;
}

static void expect_request(struct place *p, const char *host, unsigned n)
{
    size_t size, wanted_size;
    OWNED(free) void *bytes = next_request(p, &size), *wanted = numbered(host, n, 0, &wanted_size);
    assert_int_equal(size, wanted_size);
    assert_memory_equal(bytes, wanted, size);
}

static void say(struct place *p, const char *text)
{
    assert_int_equal(send(p->caller, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

TEST_IN(test_taken_and_refused, struct place *p, setup_started, teardown)
{
    open_shop(p);
    add(p, "node1", 1);
    expect_request(p, "node1", 1);
    add(p, "node2", 1);
    add(p, "node3", 1);
    say(p, "{\"progress\":\"storing\"}\n{\"ok\":true,");
    say(p, "\"held\":null}\n");
    expect_request(p, "node2", 1);
    say(p, "{\"ok\":false,\"error\":-14,\"message\":\"deliver: uid 7 may not do that\"}\n");
    assert_true(says(p, "child: inventory of node2 refused: deliver: uid 7 may not do that\n"));
    expect_request(p, "node3", 1);
    say(p, "{\"ok\":true}\n");
    add(p, "node1", 2); /* after a pause of nothing */
    expect_request(p, "node1", 2);
    say(p, "{\"ok\":false,\"error\":-14}\n");
    assert_true(says(p, "inventory of node1 refused: "));
    assert_int_equal(end(p), 0);
    assert_false(says(p, "dropped"));
}

static unsigned next_random(uint64_t *random, unsigned n)
{
    return (unsigned)(fabric_random_next(random) >> 20) % n;
}

/* Random inventories while fabricd is away, more hosts than may wait: of each the newest comes, once. */
TEST_IN(test_away_and_back, struct place *p, setup_started, teardown)
{
    unsigned newest[HOSTS + 4] = {0}, n = 0, refused = 0;
    uint64_t random = 3;
    char host[16];
    for (unsigned round = 1; round <= 500; round++) {
        unsigned at = next_random(&random, HOSTS + 4);
        snprintf(host, sizeof(host), "node%02u", at);
        add(p, host, round);
        if (newest[at] == 0 && n == HOSTS) {
            const char *text =
                printed("inventory refused: %s: too many inventories are waiting for fabricd\n", host);
            assert_true(says(p, text));
            refused++;
            continue;
        }
        n += newest[at] == 0;
        newest[at] = round;
        if (round == 1)
            assert_true(says(p, "waits: ") && says(p, "check that fabricd is running"));
    }
    assert_true(n == HOSTS && refused > 50);
    open_shop(p);
    for (; n > 0; n--) {
        struct fab_delivery delivery;
        size_t size, wanted_size;
        OWNED(free) void *bytes = next_request(p, &size);
        assert_int_equal(fab_delivery_decode(bytes, size, &delivery, NULL), 0);
        unsigned at = (unsigned)atoi(delivery.host + 4);
        assert_true(newest[at] != 0);
        OWNED(free) void *wanted = numbered(delivery.host, newest[at], 0, &wanted_size);
        assert_int_equal(size, wanted_size);
        assert_memory_equal(bytes, wanted, size);
        newest[at] = 0;
        say(p, "{\"ok\":true}\n");
    }
    assert_true(says(p, "accepted by fabricd\n"));
    assert_int_equal(end(p), 0);
    assert_false(says(p, "dropped"));
}

/* The bytes that wait are bounded, what is replaced does not count. */
TEST_IN(test_too_many_bytes, struct place *p, setup, teardown)
{
    size_t size;
    free(numbered("node1", 1, 0, &size));
    start(p, 3 * size + size / 2);
    for (unsigned round = 0; round < 3; round++) {
        add(p, "node1", round);
        add(p, "node2", round);
        add(p, "node3", round);
    }
    add(p, "node4", 1);
    assert_true(says(p, "inventory refused: node4: too many inventories are waiting for fabricd\n"));
    assert_int_equal(end(p), 0);
    assert_true(says(p, "inventories dropped, not accepted by fabricd: 3\n"));
}

/* A newer one while the older is under way, which then fails: only the newer is left. */
TEST_IN(test_newer_while_under_way, struct place *p, setup_started, teardown)
{
    open_shop(p);
    add(p, "node1", 1);
    expect_request(p, "node1", 1);
    add(p, "node1", 2);
    give(p, "", 0); /* so that it is known to have come */
    assert_true(says(p, "refused"));
    say(p, "{\"ok\":false,\"error\":-13,\"message\":\"not now\"}\n"); /* BUSY: a moment later */
    assert_true(says(p, "inventory of node1 waits: not now\n"));
    hang_up(p);
    expect_request(p, "node1", 2);
    add(p, "node1", 3);
    give(p, "", 0);
    assert_true(says(p, "refused"));
    say(p, "{\"ok\":true}\n"); /* which was said of the older */
    expect_request(p, "node1", 3);
    say(p, "{\"ok\":true}\n");
    assert_int_equal(end(p), 0);
    assert_false(says(p, "dropped"));
}

/* It is asked again, on another connection. */
TEST_IN(test_strange_answers, struct place *p, setup_started, teardown)
{
    static char endless[(1 << 16) + 2];
    const char *const answers[] = {"", "{\"ok\":false,\"error\":\"-14\"}\n", endless};
    memset(endless, 'x', sizeof(endless) - 1);
    open_shop(p);
    add(p, "node1", 1);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        expect_request(p, "node1", 1);
        (void)!send(p->caller, answers[i], strlen(answers[i]), MSG_NOSIGNAL);
        if (i > 0)
            wait_readable(p->caller); /* it is the child that hangs up */
        hang_up(p);
    }
    expect_request(p, "node1", 1);
    say(p, "{\"ok\":true}\n");
    assert_true(says(p, "inventory of node1 accepted by fabricd\n"));
}

TEST_IN(test_not_an_inventory, struct place *p, setup_started, teardown)
{
    size_t size;
    OWNED(free) uint8_t *bytes = numbered("node1", 1, 0, &size);
    for (size_t n = 0; n < size; n++) {
        give(p, bytes, n);
        assert_true(says(p, "inventory refused: "));
    }
    for (size_t n = 0; n < size; n++) {
        bytes[n] ^= 0x40;
        give(p, bytes, size);
        assert_true(says(p, "inventory refused: "));
        bytes[n] ^= 0x40;
    }
    free(bytes);
    bytes = numbered("node1", 1, 77, &size);
    give(p, bytes, size);
    assert_true(says(p, "inventory refused: node1: a delta, not a full inventory\n"));
    assert_int_equal(end(p), 0);
    assert_false(says(p, "dropped"));
}

TEST_IN(test_end_delivers_what_waits, struct place *p, setup_started, teardown)
{
    open_shop(p);
    for (unsigned i = 0; i < HOSTS; i++) {
        add(p, printed("n%u", i), 1);
    }
    shutdown(p->to, SHUT_WR);
    for (unsigned i = 0; i < HOSTS; i++) {
        expect_request(p, printed("n%u", i), 1);
        say(p, "{\"ok\":true}\n");
    }
    assert_int_equal(end(p), 0);
    assert_false(says(p, "dropped"));
}

TEST(test_long_path)
{
    char path[200];
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(deliver_from(-1, path, HOSTS, 1), 1);
}
