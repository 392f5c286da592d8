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
static bool taken;

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

bool ctl_screen_begin(void)
{
    struct sigaction action = {.sa_handler = on_resize};
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return false;
    ctl_catch_interrupts();
    sigemptyset(&action.sa_mask);
    sigaction(SIGWINCH, &action, NULL);
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    /* what these do would leave the terminal as it is now */
    raw.c_cc[VSUSP] = raw.c_cc[VQUIT] = _POSIX_VDISABLE;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) != 0)
        return false;
    taken = true;
    fputs(SCREEN_TAKE, stdout);
    return true;
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
    sigset_t block, let;
    char key = 0;
    int n = 0;

    /* a signal may come between the look at it and the wait: it is let in only during the wait */
    sigemptyset(&block);
    sigaddset(&block, SIGINT);
    sigaddset(&block, SIGTERM);
    sigprocmask(SIG_BLOCK, &block, &let);
    if (!ctl_interrupted())
        n = ppoll(&keys, 1, &timeout, &let);
    sigprocmask(SIG_SETMASK, &let, NULL);
    if (ctl_interrupted() || (n < 0 && errno != EINTR))
        return false;
    if (n <= 0)
        return true;
    return read(STDIN_FILENO, &key, 1) == 1 && key != 'q';
}
