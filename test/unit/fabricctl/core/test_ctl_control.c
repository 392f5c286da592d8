/* The client's side of the control socket, against a peer that this program plays. */

#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabricctl/core/ctl.h"
#include "test/unit/test.h"

OWNER(ctl_control_close, struct ctl_control)

static char why[CTL_WHY_SIZE];

/* A connection whose other end is ours. */
static struct ctl_control *pair(int *peer)
{
    struct ctl_control *control;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    *peer = fds[1];
    assert_int_equal(ctl_control_adopt(fds[0], "the test", &control, why), CTL_DONE);
    return control;
}

static void say(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

TEST(test_lines)
{
    json_t *line;
    int peer;
    struct ctl_control *control = pair(&peer);

    say(peer, "{\"a\":1}\n{\"a\":2}\n{\"a\":");
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(ctl_control_next(control, 5, &line, why), CTL_DONE);
        assert_int_equal(json_integer_value(json_object_get(line, "a")), i);
        json_decref(line);
    }
    say(peer, "3}\n");
    assert_int_equal(ctl_control_next(control, 5, &line, why), CTL_DONE);
    assert_int_equal(json_integer_value(json_object_get(line, "a")), 3);
    json_decref(line);
    close(peer);
    assert_int_equal(ctl_control_next(control, 5, &line, why), CTL_FAILED);
    assert_null(line);
    assert_non_null(strstr(why, "closed the connection"));
    ctl_control_close(control);
    ctl_control_close(NULL);
}

static void refuse(const char *bytes, size_t size, const char *because)
{
    json_t *line;
    int peer;
    OWNED(ctl_control_close) struct ctl_control *control = pair(&peer);

    assert_int_equal(write(peer, bytes, size), (ssize_t)size);
    shutdown(peer, SHUT_WR);
    assert_int_equal(ctl_control_next(control, 5, &line, why), CTL_FAILED);
    assert_null(line);
    assert_non_null(strstr(why, because));
    assert_null(strchr(why, '\n'));
    close(peer);
}

TEST(test_bad_lines)
{
    refuse("", 0, "closed");
    refuse("{\"ok\":true}", 11, "closed"); /* cut off before its end */
    refuse("\n", 1, "not an answer");
    refuse("hello\n", 6, "not an answer");
    refuse("[1,2]\n", 6, "not an answer");
    refuse("{\"ok\":true} x\n", 14, "not an answer");
    refuse("{\"a\":1,\"a\":2}\n", 14, "not an answer");
    refuse("{\"a\":\"\0\"}\n", 10, "not an answer");
    refuse("{\"a\":\"\xff\"}\n", 10, "not an answer");
}

TEST(test_silence)
{
    json_t *line;
    int peer;
    OWNED(ctl_control_close) struct ctl_control *control = pair(&peer);

    say(peer, "{\"never\":");
    assert_int_equal(ctl_control_next(control, 0, &line, why), CTL_FAILED);
    assert_non_null(strstr(why, "does not answer"));
    close(peer);
}

/* A peer that talks without ever ending its line. */
static void *babble(void *arg)
{
    static char block[1 << 16];
    int fd = *(int *)arg;

    memset(block, ' ', sizeof block);
    while (send(fd, block, sizeof block, MSG_NOSIGNAL) > 0)
        ;
    return NULL;
}

TEST(test_endless_line)
{
    struct ctl_control *control;
    pthread_t thread;
    json_t *line;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(ctl_control_adopt(fds[0], "the test", &control, why), CTL_DONE);
    assert_int_equal(pthread_create(&thread, NULL, babble, &fds[1]), 0);
    assert_int_equal(ctl_control_next(control, 60, &line, why), CTL_FAILED);
    assert_non_null(strstr(why, "too long"));
    ctl_control_close(control);
    pthread_join(thread, NULL);
    close(fds[1]);
}

/* ---- ctl_control_ask, over a real socket ---- */

struct daemon {
    char dir[64], path[100];
    int listener;
    const char *answer;
    char request[256];
    pthread_t thread;
};

static void *serve(void *arg)
{
    struct daemon *d = arg;
    int fd = accept(d->listener, NULL, NULL);
    size_t used = 0;

    while (used + 1 < sizeof d->request && memchr(d->request, '\n', used) == NULL) {
        ssize_t n = read(fd, d->request + used, sizeof d->request - 1 - used);

        if (n <= 0)
            break;
        used += (size_t)n;
    }
    if (write(fd, d->answer, strlen(d->answer)) < 0)
        d->request[0] = '\0';
    close(fd);
    return NULL;
}

static enum ctl_exit ask(const char *answer_text, struct daemon *d, json_t **answer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    enum ctl_exit status;

    memset(d, 0, sizeof *d);
    d->answer = answer_text;
    strcpy(d->dir, "test_ctl_control.XXXXXX");
    assert_non_null(mkdtemp(d->dir));
    snprintf(d->path, sizeof d->path, "%s/control.sock", d->dir);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", d->path);
    d->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(d->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(d->listener, 4), 0);
    assert_int_equal(pthread_create(&d->thread, NULL, serve, d), 0);
    status = ctl_control_ask(d->dir, json_pack("{s:s, s:i}", "op", "test", "n", 7), 10, answer, why);
    pthread_join(d->thread, NULL);
    close(d->listener);
    unlink(d->path);
    rmdir(d->dir);
    return status;
}

TEST(test_ask)
{
    struct daemon d;
    json_t *answer;

    assert_int_equal(ask("{\"ok\":true,\"x\":[1,2,3]}\n", &d, &answer), CTL_DONE);
    assert_string_equal(d.request, "{\"op\":\"test\",\"n\":7}\n");
    assert_int_equal(json_array_size(json_object_get(answer, "x")), 3);
    json_decref(answer);
    assert_int_equal(ask("{\"news\":\"of a later version\"}\n{\"ok\":true}\n", &d, &answer), CTL_DONE);
    json_decref(answer);
}

TEST(test_ask_refused)
{
    struct daemon d;
    json_t *answer;

    assert_int_equal(
        ask("{\"ok\":false,\"error\":-14,\"message\":\"no\\u001b[2J: you: ask root\"}\n", &d, &answer),
        CTL_FAILED);
    assert_null(answer);
    assert_string_equal(why, "no?[2J: you: ask root");
    assert_int_equal(ask("{\"ok\":false,\"error\":-14}\n", &d, &answer), CTL_FAILED);
    assert_non_null(strstr(why, pmixfab_strerror(PMIXFAB_ERR_PERM)));
    assert_int_equal(ask("{\"ok\":false,\"error\":\"text\",\"message\":4}\n", &d, &answer), CTL_FAILED);
    assert_int_equal(ask("{\"progress\":\"half of it\"}\n", &d, &answer), CTL_FAILED);
    assert_non_null(strstr(why, "closed the connection"));
    assert_int_equal(ask("", &d, &answer), CTL_FAILED);
}

TEST(test_nobody)
{
    char dir[] = "test_ctl_control.XXXXXX", file[64], longname[300];
    json_t *answer;

    assert_non_null(mkdtemp(dir));
    assert_int_equal(ctl_control_ask(dir, json_object(), 1, &answer, why), CTL_FAILED);
    assert_null(answer);
    assert_non_null(strstr(why, "no fabricd answers"));
    assert_non_null(strstr(why, dir));
    snprintf(file, sizeof file, "%s/control.sock", dir);
    assert_int_equal(mkdir(file, 0700), 0);
    assert_int_equal(ctl_control_ask(dir, json_object(), 1, &answer, why), CTL_FAILED);
    rmdir(file);
    rmdir(dir);
    memset(longname, 'x', sizeof longname - 1);
    longname[sizeof longname - 1] = '\0';
    assert_int_equal(ctl_control_ask(longname, json_object(), 1, &answer, why), CTL_FAILED);
    assert_non_null(strstr(why, "too long"));
}
