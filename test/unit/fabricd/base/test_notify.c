/* What a service manager hears of us, and the lines that its journal gets: from sockets and files that are
 * theirs. */
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "fabricd/base/notify.h"
#include "fabricd/store/store_priv.h"
#include "test/unit/test.h"

static int manager = -1;
static char folder[] = "/tmp/test_notify.XXXXXX";

/* A name of its own for each test: "@": an abstract one. */
static void listen_at(const char *format)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char name[sizeof(at.sun_path)];
    const int len = snprintf(name, sizeof(name), format, folder, (int)getpid());
    memcpy(at.sun_path, name, (size_t)len);
    if (name[0] == '@')
        at.sun_path[0] = '\0';
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(manager, (struct sockaddr *)&at,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)),
                     0);
    setenv("NOTIFY_SOCKET", name, 1);
}

static void assert_heard(const char *expected)
{
    char text[1024];
    const ssize_t n = recv(manager, text, sizeof(text) - 1, 0);
    assert_true(n >= 0 || expected == NULL);
    text[n < 0 ? 0 : n] = '\0';
    assert_string_equal(text, expected == NULL ? "" : expected);
}

FIXTURE(enter_folder)
{
    return mkdtemp(folder) == NULL;
}

FIXTURE(leave_folder)
{
    return remove_folder(folder);
}
TEST_GROUP(enter_folder, leave_folder)

TEST(without_a_manager_nothing_is_said)
{
    unsetenv("NOTIFY_SOCKET");
    setenv("WATCHDOG_USEC", "1000000", 1);
    notify_open();
    notify_send("READY=1");
    assert_int_equal(notify_watchdog(), 0);
    setenv("NOTIFY_SOCKET", "relative", 1);
    notify_open();
    notify_send("READY=1");
    assert_null(getenv("NOTIFY_SOCKET"));
}

TEST(what_is_sent_arrives_and_children_inherit_nothing)
{
    static const char *const names[] = {"%s/socket", "@%s.%d"};
    for (size_t i = 0; i < 2; i++) {
        char pid[16];
        listen_at(names[i]);
        snprintf(pid, sizeof(pid), "%d", (int)getpid());
        setenv("WATCHDOG_PID", pid, 1);
        setenv("WATCHDOG_USEC", "3000000", 1);
        notify_open();
        assert_null(getenv("NOTIFY_SOCKET"));
        assert_null(getenv("WATCHDOG_PID"));
        assert_null(getenv("WATCHDOG_USEC"));
        assert_int_equal(notify_watchdog(), 3000000);
        notify_send("READY=1");
        assert_heard("READY=1");
        notify_status("serving %s", "a\nREADY=1");
        assert_heard("STATUS=serving a?READY=1");
        close(manager);
    }
    notify_send("STOPPING=1"); /* to nobody */
}

TEST(a_long_start_is_told_once_a_second)
{
    listen_at("@%s.start.%d");
    notify_open();
    notify_starting();
    notify_starting();
    assert_heard("EXTEND_TIMEOUT_USEC=120000000\nWATCHDOG=1");
    assert_heard(NULL);
    close(manager);
}

TEST(a_migration_that_goes_on_is_told)
{
    const char *steps[64] = {NULL};
    struct store *store = NULL;
    size_t n = 0;
    for (; schema_sql[n] != NULL; n++)
        steps[n] = schema_sql[n];
    must_do(store_open_schema(printed("%s/db", folder), steps, true, &store, fresh_err()));
    store_close(store);
    listen_at("@%s.migrate.%d");
    notify_open();
    must_do(store_open_schema(printed("%s/db", folder), steps, true, &store, fresh_err()));
    store_close(store);
    assert_heard(NULL); /* a quick start needs no more time */
    steps[n] =
        "CREATE TABLE slow AS WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number "
        "WHERE n < 100000) SELECT n FROM number";
    must_do(store_open_schema(printed("%s/db", folder), steps, true, &store, fresh_err()));
    store_close(store);
    assert_heard("EXTEND_TIMEOUT_USEC=120000000\nWATCHDOG=1");
    close(manager);
}

TEST(the_watchdog_of_another_process_is_none_of_ours)
{
    listen_at("@%s.other.%d");
    setenv("WATCHDOG_PID", "1", 1);
    setenv("WATCHDOG_USEC", "3000000", 1);
    notify_open();
    assert_int_equal(notify_watchdog(), 0);
    close(manager);
}

/* What log_line() writes to standard error that is a file; journal: the environment names that file. */
static void logged(bool journal, char *text, size_t size)
{
    char stream[64];
    struct stat st;
    const int saved = dup(STDERR_FILENO), file = open(folder, O_TMPFILE | O_RDWR, 0600);
    assert_true(file >= 0);
    dup2(file, STDERR_FILENO);
    fstat(file, &st);
    snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev,
             (uintmax_t)st.st_ino + (journal ? 0 : 1));
    setenv("JOURNAL_STREAM", stream, 1);
    log_open(PMIXFAB_LOG_DEBUG, 0);
    log_error("cannot\n<7>be");
    log_warning("odd");
    log_info("so it is");
    log_debug("detail");
    log_as("pnet:fabricd");
    log_info("in another program's journal");
    log_as(NULL);
    dup2(saved, STDERR_FILENO);
    close(saved);
    const ssize_t n = pread(file, text, size - 1, 0);
    text[n < 0 ? 0 : n] = '\0';
    close(file);
}

TEST(the_journal_gets_priorities_and_no_time)
{
    char text[512];
    logged(true, text, sizeof(text));
    assert_string_equal(text, "<3>cannot?<7>be\n<4>odd\n<6>so it is\n<7>detail\n"
                              "<6>pnet:fabricd: in another program's journal\n");
}

TEST(elsewhere_a_line_has_time_and_level)
{
    char text[512];
    logged(false, text, sizeof(text)); /* inherited from a service whose child this is */
    assert_null(strchr(text, '<') == text ? text : NULL);
    assert_non_null(strstr(text, " fabricd error: cannot?<7>be\n"));
    assert_non_null(strstr(text, " fabricd debug: detail\n"));
}
