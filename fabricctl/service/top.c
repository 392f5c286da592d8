/* top.c - a page that is drawn again and again: the daemon, its planes, and the latest changes. */
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
#include "fabricctl/service/service.h"
#include "fabricctl/show/show.h"

/* ---- a page on the terminal, with the few sequences of ECMA-48 and xterm that every terminal has ---- */

/* The alternate screen, without a cursor and with long lines cut; and back. */
#define SCREEN_TAKE   "\033[?1049h\033[?25l\033[?7l"
#define SCREEN_RETURN "\033[?7h\033[?25h\033[?1049l"
#define SCREEN_HOME   "\033[H"
#define END_OF_LINE   "\033[K"
#define REST_EMPTY    "\033[J"
#define SCREEN_LINES  24 /* if the terminal does not report its size */

static struct termios before;
static struct sigaction stop_before;
static bool taken;
static volatile sig_atomic_t stopping;

/* Return whether standard input and output are a terminal on which the page can be drawn. */
static bool screen_possible(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
}

/* The handler does nothing: the signal ends the wait. */
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
    /* these signals end other commands at once, but would leave the terminal in its changed state here */
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

/*
 * Set up the terminal. Keys arrive one by one without echo, and long lines are cut. From this call on,
 * interrupts, a hang-up and SIGQUIT end the work (ctl_interrupted()). screen_wait() handles SIGTSTP, for
 * example of Ctrl-Z, so the terminal has its former state while the process is stopped.
 */
static bool screen_begin(void)
{
    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return false;
    screen_signals();
    return screen_take();
}

/* Restore the terminal. After a failed begin, and a second time, do nothing. */
static void screen_end(void)
{
    if (!taken)
        return;
    taken = false;
    fputs(SCREEN_RETURN, stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

/* Restore the terminal and stop, until the shell continues the process. Return false if that fails. */
static bool screen_stop(void)
{
    struct sigaction ours;
    stopping = 0;
    screen_end();
    sigaction(SIGTSTP, &stop_before, &ours);
    raise(SIGTSTP);
    sigaction(SIGTSTP, &ours, NULL);
    return !ctl_interrupted() && screen_take();
}

static unsigned screen_lines(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : SCREEN_LINES;
}

static bool screen_draw(const char *page)
{
    unsigned left = screen_lines();
    fputs(SCREEN_HOME, stdout);
    for (; *page != '\0' && left > 0; left--) {
        const size_t len = strcspn(page, "\n");
        fwrite(page, 1, len, stdout);
        fputs(END_OF_LINE, stdout);
        page += len + (page[len] == '\n');
        if (left > 1) /* after the last line it would scroll */
            putchar('\n');
    }
    if (left > 0)
        fputs(REST_EMPTY, stdout);
    return fflush(stdout) == 0 && !ferror(stdout);
}

/*
 * Wait until it is time to draw again: for this many milliseconds, a key, or a new size. Return false if the
 * operator ended the page, by q or an interrupt, or the terminal is gone.
 */
static bool screen_wait(int milliseconds)
{
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    const struct timespec timeout = {.tv_sec = milliseconds / 1000,
                                     .tv_nsec = (long)(milliseconds % 1000) * 1000000};
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
    sigset_t block, let;
    char key = 0;
    int n = 0;
    /* the signal may arrive between the check and the wait: it is unblocked only during the wait */
    sigemptyset(&block);
    for (size_t i = 0; i < CTL_COUNT(signals); i++)
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

/* ---- the page: the daemon, its planes, and the latest changes ---- */

#define TOP_MS      1000 /* from page to page */
#define TOP_SECONDS 2    /* for an answer: a missing answer must be visible soon */
#define TOP_CHANGES 10   /* number of changes if the terminal's height does not give it */

/* Format an age in words. */
static char *top_age(int64_t seconds, char buf[static 40])
{
    if (seconds < 100)
        snprintf(buf, 40, "%lld s", (long long)(seconds < 0 ? 0 : seconds));
    else if (seconds < 100 * 60)
        snprintf(buf, 40, "%lld min", (long long)seconds / 60);
    else if (seconds < 48 * 3600)
        snprintf(buf, 40, "%lld h", (long long)seconds / 3600);
    else
        snprintf(buf, 40, "%lld days", (long long)seconds / 86400);
    return buf;
}

/* Format the age of a time of the daemon. Without a time, write "never". */
static const char *top_ago(const json_t *facts, const char *key, char buf[static 40])
{
    const char *text = ctl_text_of(facts, key);
    struct tm tm = {0};
    if (text == NULL || strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) == NULL)
        return "never";
    return strcat(top_age(ctl_now() - (int64_t)timegm(&tm), buf), " ago");
}

static const char *top_text(const json_t *facts, const char *key)
{
    const char *text = ctl_text_of(facts, key);
    return text != NULL ? text : "?";
}

/* Print the number of findings, and the gravest. */
static void top_findings(FILE *out, const json_t *findings)
{
    const json_t *worst = json_object_get(findings, "worst");
    char words[CTL_FINDINGS_WORDS];
    fprintf(out, "%-13s %s", "findings", ctl_findings_words(findings, words));
    if (json_is_object(worst))
        ctl_say(out, worst, "; {kind} {where}: {what}");
    fputc('\n', out);
}

/* Print a line with its label and text (ctl_say()). */
static void top_say(FILE *out, const char *label, const json_t *facts, const char *text)
{
    fprintf(out, "%-13s ", label);
    ctl_say(out, facts, text);
    fputc('\n', out);
}

/*
 * Print the work of the daemon and its clients. The work is sweeps in the role scheduler, and scans in the
 * role node.
 */
static void top_daemon(FILE *out, const json_t *facts)
{
    const bool node = strcmp(top_text(facts, "role"), "node") == 0;
    const json_t *pmix = json_object_get(facts, "pmix");
    char ago[40];
    fprintf(out, "%-13s %s, took %.1f ms, every %lld s%s\n", node ? "last scan" : "last sweep",
            top_ago(facts, node ? "last_scan" : "last_sweep", ago),
            json_number_value(json_object_get(facts, node ? "scan_ms" : "sweep_ms")),
            (long long)ctl_number_of(facts, "interval"),
            ctl_is(facts, node ? "scanning" : "sweeping") ? "; running now" : "");
    if (ctl_number_of(facts, "light_sweep") > 0)
        top_say(
            out, "light sweeps", facts,
            "{light_sweeps}, {light_sweeps_dirty} found a change; the last took {light_sweep_ms} ms, every "
            "{light_sweep} s");
    if (node)
        top_say(out, "scheduler", facts,
                ctl_is(facts, "connected") ? "{scheduler}, connected" : "{scheduler}, NOT connected");
    if (json_is_object(pmix))
        top_say(out, "clients", pmix, "{connected} connected over PMIx");
    if (!node)
        top_say(out, "reporting", facts, "{nodes} hosts");
    if (json_is_object(json_object_get(facts, "findings")))
        top_findings(out, json_object_get(facts, "findings"));
    if (ctl_number_of(facts, "missing") + ctl_number_of(facts, "flapping") > 0)
        top_say(out, "WRONG", facts, "{missing} HCAs missing, {flapping} cables and switches flapping");
}

static void top_head(FILE *out, const json_t *facts, const char *why)
{
    const bool daemon = ctl_is(facts, "daemon");
    char ago[40], now[32];
    const time_t seconds = (time_t)ctl_now();
    struct tm tm;
    strftime(now, sizeof now, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&seconds, &tm));
    if (daemon)
        fprintf(out, "%-13s %s, role %s, on %s, %s\n", "fabricd", top_text(facts, "version"),
                top_text(facts, "role"), top_text(facts, "host"), now);
    else
        fprintf(out, "%-13s DOES NOT ANSWER, %s: %s\n", "fabricd", now, why);
    fprintf(out, "%-13s %lld, published %s\n", "generation", (long long)ctl_number_of(facts, "generation"),
            top_ago(facts, "published", ago));
    if (daemon && ctl_is(facts, "stale"))
        fprintf(out, "%-13s %s: %s\n", "STALE", top_ago(facts, "stale_since", ago),
                top_text(facts, "stale_reason"));
    if (daemon) {
        top_daemon(out, facts);
        /* Print exports only if one fails. */
        const json_t *list = json_object_get(facts, "exports"), *one;
        size_t i, failing = 0;
        json_array_foreach(list, i, one) failing += ctl_number_of(one, "failures") > 0;
        if (failing > 0)
            fprintf(out, "%-13s %zu of %zu exports fail: see fabricctl status\n", "WRONG", failing,
                    json_array_size(list));
    }
}

static const struct ctl_column top_columns[] = {
    {"name", "PLANE", false},       {"kind", "KIND", false},
    {"devices", "DEVICES", true},   {"hosts", "HOSTS", true},
    {"switches", "SWITCHES", true}, {"links", "LINKS", true},
    {"groups", "GROUPS", true},     {"generation", "GENERATION", true},
    {"age", "AGE", true},
};

static bool top_plane(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                      const struct pmixfab_plane *plane)
{
    char age[40];
    (void)fab;
    if (ctl->plane != NULL && strcmp(ctl->plane, plane->name) != 0)
        return true;
    ctl_put_text(table, plane->name);
    ctl_put_text(table, plane->kind);
    ctl_put_number(table, plane->n_devices);
    ctl_put_number(table, plane->n_hosts);
    ctl_put_number(table, plane->n_switches);
    ctl_put_number(table, plane->n_links);
    ctl_put_number(table, plane->n_groups);
    ctl_put_number(table, (int64_t)plane->generation);
    ctl_put_text(table, top_age(ctl_now() - plane->published / 1000000, age));
    return ctl_table_row(table);
}

/* Print as many changes as fit; those of a node are in its scheduler. */
static void top_changes(FILE *out, const struct ctl *ctl, const json_t *facts, unsigned room)
{
    char why[CTL_WHY_SIZE];
    json_t *answer;
    if (!ctl_is(facts, "daemon") || strcmp(top_text(facts, "role"), "node") == 0 || room == 0)
        return;
    fputc('\n', out);
    if (ctl_control_ask(ctl->rundir, json_pack("{s:s, s:I}", "op", "history", "limit", (json_int_t)room),
                        TOP_SECONDS, &answer, why) == CTL_DONE)
        ctl_changes_write(out, ctl, json_object_get(answer, "changes"));
    else
        fprintf(out, "no changes: %s\n", why);
    json_decref(answer);
}

static unsigned top_lines(const char *text)
{
    unsigned n = 0;
    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

/*
 * Make a page of at most `lines`, 0: no limit. Failures to read are shown on the page; if there is nothing
 * else to show, that is a failure, with its message in `why`. The caller frees *page; NULL without memory.
 */
static enum ctl_exit top_page(const struct ctl *ctl, unsigned lines, char **page,
                              char why[static CTL_WHY_SIZE])
{
    char reason[CTL_REASON_SIZE] = "it cannot be read: see fabricctl planes";
    struct ctl_view view;
    enum ctl_exit status = ctl_view_any(ctl, &view, reason);
    json_t *facts = ctl_status_facts(ctl, &view, TOP_SECONDS, why);
    size_t size;
    FILE *out = facts != NULL ? open_memstream(page, &size) : NULL;
    if (out == NULL)
        *page = NULL;
    else {
        top_head(out, facts, why);
        fputc('\n', out);
        if (view.n == 0)
            fprintf(out, "no planes: %s\n", reason);
        else
            ctl_list_view(
                ctl_table_open(out, CTL_TEXT, CTL_JSON_ARRAY, NULL, top_columns, CTL_COUNT(top_columns)), ctl,
                &view, top_plane);
        fflush(out);
        if (lines == 0)
            top_changes(out, ctl, facts, TOP_CHANGES);
        else if (top_lines(*page) + 2 < lines) /* an empty line, and the heads */
            top_changes(out, ctl, facts, lines - top_lines(*page) - 2);
        if (view.n == 0 && !ctl_is(facts, "daemon"))
            status = CTL_FAILED;
        fclose(out);
    }
    json_decref(facts);
    ctl_view_close(&view);
    return status;
}

static enum ctl_exit top_once(const struct ctl *ctl)
{
    char why[CTL_WHY_SIZE], *page;
    enum ctl_exit status = top_page(ctl, 0, &page, why);
    if (page == NULL)
        return ctl_nomem();
    if (status != CTL_DONE && why[0] != '\0')
        ctl_error("%s", why);
    else
        fputs(page, stdout);
    free(page);
    return status;
}

/* Draw again and again: a daemon that does not answer may be back in a moment. */
static enum ctl_exit top_watch(const struct ctl *ctl)
{
    char why[CTL_WHY_SIZE], *page;
    bool going = screen_begin();
    if (!going)
        return ctl_error("no page: cannot change the settings of this terminal: use --once");
    while (going) {
        top_page(ctl, screen_lines(), &page, why);
        going = page == NULL || ctl_interrupted() || screen_draw(page);
        going = going && screen_wait(TOP_MS);
        free(page);
    }
    screen_end();
    return CTL_DONE;
}

enum ctl_exit ctl_top(const struct ctl *ctl)
{
    struct ctl_view view;
    enum ctl_exit status = ctl_control_only(ctl, "top");
    if (ctl->format == CTL_CSV)
        return ctl_usage("no such format of top: csv: programs read status and history");
    if (status == CTL_DONE && ctl->plane != NULL) { /* check that the plane exists, with a message */
        status = ctl_view_one(ctl, &view);
        ctl_view_close(&view);
    }
    if (status != CTL_DONE)
        return status;
    if (ctl->format == CTL_JSON) /* the facts of the page */
        return ctl_status(ctl);
    return ctl->once || !screen_possible() ? top_once(ctl) : top_watch(ctl);
}
