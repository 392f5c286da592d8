/* The library of a server takes a listening socket that others hold, and leaves it to them when it ends. */
#include <arpa/inet.h>
#include <pmix_server.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guard/guard.h"
#include "guard/guard_enter.h"
#include "test/unit/test.h"

__attribute__((constructor)) static void begin(int argc, char **argv)
{
    (void)argc;
    guard_enter(argv);
}

static struct sockaddr_in address = {.sin_family = AF_INET};

static int listening(void)
{
    socklen_t size = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    return fd;
}

static int connected(void)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* What no client sends: the library's side ends the connection. */
static bool is_ended(int fd)
{
    static const char rubbish[4096];
    char byte;
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    return write(fd, rubbish, sizeof(rubbish)) == sizeof(rubbish) && poll(&waiting, 1, 10000) == 1 &&
           read(fd, &byte, 1) <= 0;
}

static void server_start(const char *folder)
{
    static pmix_server_module_t module;
    pmix_info_t info[4];
    bool yes = true;
    const char *report = printed("%s/uri", folder);
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TOOL_SUPPORT, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_SERVER_TMPDIR, folder, PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_SYSTEM_TMPDIR, folder, PMIX_STRING);
    PMIX_INFO_LOAD(&info[3], PMIX_TCP_REPORT_URI, report, PMIX_STRING);
    assert_int_equal(PMIx_server_init(&module, info, 4), PMIX_SUCCESS);
    for (size_t i = 0; i < 4; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    OWNED(free) char *uri = read_file(report, NULL);
    assert_non_null(strstr(uri, printed("tcp4://127.0.0.1:%u\n", ntohs(address.sin_port))));
}

TEST(the_socket_outlives_the_server)
{
    char folder[] = "/tmp/fabricd-listen-XXXXXX", why[GUARD_WHY];
    const struct pmix_guard *guard = guard_find();
    assert_non_null(guard);
    if (guard->why_not(GUARD_CONNECTIONS, why))
        skip(); /* another version: it is refused */
    assert_non_null(mkdtemp(folder));
    const int held = listening();
    assert_false(guard->listen_on(held)); /* it does not know yet whose server it is */
    guard->serve(GUARD_SERVER_FABRIC);
    assert_false(guard->listen_on(STDIN_FILENO));
    const int early = connected(); /* waits until there is a server */
    assert_true(guard->listen_on(dup(held)));
    server_start(folder);
    const int late = connected();
    assert_true(is_ended(early) && is_ended(late));
    close(early);
    close(late);
    guard->stop();
    assert_int_equal(PMIx_server_finalize(), PMIX_SUCCESS);
    const int after = connected();
    const int taken = accept(held, NULL, NULL);
    assert_true(taken >= 0);
    close(taken);
    close(after);
    close(held);
    remove_folder(folder);
}
