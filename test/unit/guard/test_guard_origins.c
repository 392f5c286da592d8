/* Who is connected, how often and with how much: the bounds of an origin, and whom the kernel tells. */
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guard/guard_priv.h"
#include "test/unit/test.h"

#define PLACES 200 /* the limit of descriptors: an eighth of them for one */

/* A TCP connection inside of this process: the accepted end, and the other. */
static void connect_pair(int ends[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(listen(listener, 1), 0);
    ends[1] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(ends[1], (struct sockaddr *)&address, size), 0);
    ends[0] = accept(listener, NULL, NULL);
    assert_true(ends[0] >= 0);
    close(listener);
}

TEST(the_kernel_tells_the_user)
{
    struct guard_origin origin;
    int ends[2];
    connect_pair(ends);
    origin_of(ends[0], &origin);
    assert_true(origin.local == 1 && origin.uid == geteuid());
    close(ends[1]);
    close(ends[0]);
}

/* The kernel says root's of such a socket. */
TEST(who_has_closed_his_end_is_nobody_here)
{
    struct guard_origin origin;
    const uint8_t loopback[] = {127, 0, 0, 1};
    int ends[2];
    connect_pair(ends);
    assert_int_equal(write(ends[1], "x", 1), 1);
    close(ends[1]);
    origin_of(ends[0], &origin);
    assert_true(origin.local == 0 && origin.uid == 0);
    assert_true(IN6_IS_ADDR_V4MAPPED(&origin.address));
    assert_memory_equal(&origin.address.s6_addr[12], loopback, sizeof(loopback));
    close(ends[0]);
}

/* A socket of which the kernel tells no user stands for another host's. */
static int stranger(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    return fd;
}

static void let_go(int fd)
{
    assert_int_equal(connections_close(fd), CONNECTIONS_FIRST);
    assert_int_equal(connections_close(fd), CONNECTIONS_AGAIN);
    connections_forget(fd);
    assert_int_equal(connections_close(fd), CONNECTIONS_OTHER);
    close(fd);
}

TEST(places_of_an_origin)
{
    struct rlimit limit, usual;
    int held[PLACES / 8];
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    limit = (struct rlimit){.rlim_cur = PLACES, .rlim_max = usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (unsigned i = 0; i < PLACES / 8; i++)
        assert_true(connections_admit(held[i] = stranger(), false));
    int late = stranger(), own[2];
    assert_false(connections_admit(late, false));
    assert_int_equal(connections_close(late), CONNECTIONS_OTHER);
    connect_pair(own); /* this user's are not among them */
    assert_true(connections_admit(own[0], false));
    let_go(held[0]);
    assert_true(connections_admit(late, false));
    let_go(late);
    let_go(own[0]);
    close(own[1]);
    for (unsigned i = 1; i < PLACES / 8; i++)
        let_go(held[i]);
    setrlimit(RLIMIT_NOFILE, &usual);
}

TEST(bytes_and_events)
{
    const size_t most = (size_t)32 << 20;
    int one = stranger(), other = stranger();
    assert_true(connections_take(one, most * 2)); /* none of these connections: not counted */
    assert_true(connections_admit(one, false) && connections_admit(other, false));
    assert_true(connections_take(one, most - 1));
    assert_false(connections_take(other, 2)); /* of the same origin */
    assert_true(connections_take(other, 1));
    connections_give(one, most - 1);
    assert_true(connections_take(other, most - 1));
    assert_int_equal(connections_set_events(one, 1, true), 1);
    assert_int_equal(connections_set_events(one, 3, true), 2);
    assert_int_equal(connections_set_events(one, 3, true), 0);
    assert_int_equal(connections_set_events(other, 3, false), 0);
    assert_int_equal(connections_set_events(one, 2, false), 2);
    assert_int_equal(connections_set_events(one, 3, true), 2);
    let_go(other); /* and what it had on its way */
    assert_true(connections_take(one, most));
    let_go(one);
}

TEST(answers_that_are_not_read)
{
    const size_t most = (size_t)64 << 20;
    int one = stranger(), other = stranger(), own[2];
    connect_pair(own);
    assert_true(connections_unread(one, 2 * most)); /* none of these connections: not counted */
    assert_true(connections_admit(one, false) && connections_admit(other, false) &&
                connections_admit(own[0], false));
    assert_true(connections_unread(one, most));
    assert_false(connections_unread(other, 1)); /* of the same origin */
    assert_true(connections_unread(other, 0));  /* who reads is not disturbed */
    assert_true(connections_unread(own[0], 2 * most));
    assert_true(connections_unread(one, most - 1));
    assert_true(connections_unread(other, 1));
    let_go(one);
    assert_true(connections_unread(other, most));
    let_go(other);
    let_go(own[0]);
    close(own[1]);
}

TEST(counted_while_they_are_there)
{
    int other = stranger(), pair[2];
    connect_pair(pair);
    assert_int_equal(connections_count(), 0);
    assert_true(connections_admit(other, false) && connections_admit(pair[0], false));
    assert_int_equal(connections_count(), 2);
    let_go(other);
    assert_int_equal(connections_count(), 1);
    let_go(pair[0]);
    assert_int_equal(connections_count(), 0);
    close(pair[1]);
}
