/* screen.c - a page on the terminal, with the few sequences of ECMA-48 and xterm that every terminal knows.
 */
#include "fabricctl/service/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "fabricctl/core/ctl.h"

/* The other screen, no cursor, and what is longer than a line is cut; and back. */
#define SCREEN_TAKE   "\033[?1049h\033[?25l\033[?7l"
#define SCREEN_RETURN "\033[?7h\033[?25h\033[?1049l"
#define SCREEN_HOME   "\033[H"
#define END_OF_LINE   "\033[K"
#define REST_EMPTY    "\033[J"
#define SCREEN_LINES  24 /* of a terminal that does not know its size */

static struct termios before;
static struct sigaction stop_before;
static bool taken;
static volatile sig_atomic_t stopping;

bool ctl_screen_possible(void)
{
    const char *term = getenv("TERM");

    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
}

/* It has nothing to do but to end the wait. */
static void on_resize(int signal_number)
{
    (void)signal_number;
}

static void on_stop(int signal_number)
{
    (void)signal_number;
    stopping = 1;
}

static void screen_signals(void)
{
    struct sigaction action = {.sa_handler = on_resize};

    sigemptyset(&action.sa_mask);
    sigaction(SIGWINCH, &action, NULL);
    action.sa_handler = on_stop;
    sigaction(SIGTSTP, &action, &stop_before);
    ctl_catch_interrupts();
    /* what ends other commands at once would leave the terminal as it is now */
    sigaction(SIGTERM, NULL, &action);
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGQUIT, &action, NULL);
}

static bool screen_take(void)
{
    struct termios raw = before;

    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) != 0)
        return false;
    taken = true;
    fputs(SCREEN_TAKE, stdout);
    return true;
}

bool ctl_screen_begin(void)
{
    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return false;
    screen_signals();
    return screen_take();
}

void ctl_screen_end(void)
{
    if (!taken)
        return;
    taken = false;
    fputs(SCREEN_RETURN, stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

/* The shell has the terminal as it was, until it lets this go on. False: it never does. */
static bool screen_stop(void)
{
    struct sigaction ours;

    stopping = 0;
    ctl_screen_end();
    sigaction(SIGTSTP, &stop_before, &ours);
    raise(SIGTSTP);
    sigaction(SIGTSTP, &ours, NULL);
    return !ctl_interrupted() && screen_take();
}

unsigned ctl_screen_lines(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : SCREEN_LINES;
}

bool ctl_screen_draw(const char *page)
{
    unsigned left = ctl_screen_lines();

    fputs(SCREEN_HOME, stdout);
    for (; *page != '\0' && left > 0; left--) {
        const size_t len = strcspn(page, "\n");

        fwrite(page, 1, len, stdout);
        fputs(END_OF_LINE, stdout);
        page += len + (page[len] == '\n');
        if (left > 1) /* behind the last line it would roll */
            putchar('\n');
    }
    if (left > 0)
        fputs(REST_EMPTY, stdout);
    return fflush(stdout) == 0 && !ferror(stdout);
}

bool ctl_screen_wait(int milliseconds)
{
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    const struct timespec timeout = {.tv_sec = milliseconds / 1000,
                                     .tv_nsec = (long)(milliseconds % 1000) * 1000000};
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
    sigset_t block, let;
    char key = 0;
    int n = 0;

    /* a signal may come between the look at it and the wait: it is let in only during the wait */
    sigemptyset(&block);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaddset(&block, signals[i]);
    sigprocmask(SIG_BLOCK, &block, &let);
    if (!ctl_interrupted() && !stopping)
        n = ppoll(&keys, 1, &timeout, &let);
    sigprocmask(SIG_SETMASK, &let, NULL);
    if (ctl_interrupted() || (n < 0 && errno != EINTR))
        return false;
    if (stopping)
        return screen_stop();
    if (n <= 0)
        return true;
    return read(STDIN_FILENO, &key, 1) == 1 && key != 'q';
}
