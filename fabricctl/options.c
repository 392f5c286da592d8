/*
 * options.c - the command line: what there is, what was asked, and the help.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "source.h"

/* Every option by its letter; those without a short form have letters that are in no optstring. */
struct option_help {
    char letter;
    const char *shown;
    const char *text;
};

static const struct option_help helps[] = {
    {'r', "    --rundir DIR",
     "the daemon's run directory (environment FABRICD_RUNDIR, else " CTL_DEFAULT_RUNDIR ")"},
    {'u', "    --uri URI", "read over PMIx, from the server with this URI, instead"},
    {'p', "    --plane P",
     "that plane only (else: all planes; cost: the first that has both; matrix: the default)"},
    {'F', "    --format FORMAT", "text (for people), json or csv (for programs)"},
    {'h', "-h, --help", "this help; after a command, the command's"},
    {'V', "-V, --version", "the version"},
    {'o', "-o, --output FILE.npy", "write a file that numpy.load() reads; - is standard output"},
    {'H', "    --host H", "have this host look at its devices first, and show what changed about it"},
    {'S', "    --switch S", "sweep only this switch (a name or a GUID), and show what changed there"},
    {'w', "    --wait", "wait until it is done, as without this option"},
    {'W', "    --no-wait", "return as soon as the daemon has taken it up"},
    {'a', "    --accept-partial", "publish what answered, even if the fabric shrinks by it"},
    {'L', "    --release",
     "what is suppressed, of that host or switch or all of it, is believed again first"},
    {'O', "    --force", "replace a backup that is there"},
    {'R', "    --replace", "what changes of it from now on is planned"},
    {'t', "    --for TIME", "for so long: 90s, 30m, 4h (the default), 2d"},
    {'c', "    --cancel", "it is not expected any more"},
    {'f', "-f, --follow", "go on printing events as they happen"},
    {'n', "-n, --limit N", "the latest N changes only"},
    {'l', "-l, --long", "also when the old was last seen, and the new first"},
};

#define GLOBAL_OPTIONS "rupFhV"

static const struct option long_options[] = {
    {"rundir", required_argument, NULL, 'r'},
    {"uri", required_argument, NULL, 'u'},
    {"plane", required_argument, NULL, 'p'},
    {"format", required_argument, NULL, 'F'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {"output", required_argument, NULL, 'o'},
    {"host", required_argument, NULL, 'H'},
    {"switch", required_argument, NULL, 'S'},
    {"wait", no_argument, NULL, 'w'},
    {"no-wait", no_argument, NULL, 'W'},
    {"replace", no_argument, NULL, 'R'},
    {"for", required_argument, NULL, 't'},
    {"cancel", no_argument, NULL, 'c'},
    {"accept-partial", no_argument, NULL, 'a'},
    {"release", no_argument, NULL, 'L'},
    {"follow", no_argument, NULL, 'f'},
    {"force", no_argument, NULL, 'O'},
    {"limit", required_argument, NULL, 'n'},
    {"long", no_argument, NULL, 'l'},
    {NULL, 0, NULL, 0},
};

static const struct ctl_command commands[] = {
    {"status", "", "what is published, how fresh it is, and whether fabricd is running", "", 0, 0,
     ctl_status},
    {"planes", "", "the planes of the fabric", "", 0, 0, ctl_planes},
    {"devices", "[HOST]", "the devices, in index order; or those of one host", "", 0, 1, ctl_devices},
    {"switches", "", "the switches", "", 0, 0, ctl_switches},
    {"links", "", "the cables", "", 0, 0, ctl_links},
    {"groups", "", "the hosts that stand together", "", 0, 0, ctl_groups},
    {"coords", "", "the coordinates of each device", "", 0, 0, ctl_coords},
    {"cost", "A B", "the cost between two devices: host, host:device or a device id", "", 2, 2, ctl_cost},
    {"matrix", "", "all costs of a plane", "o", 0, 0, ctl_matrix},
    {"nodes", "[HOST]", "the hosts that report their own devices", "", 0, 1, ctl_nodes},
    {"forget", "HOST", "forget what a host reported, until it does so again", "", 1, 1, ctl_forget},
    {"refresh", "", "look at the fabric now, and show what changed", "HSwWaL", 0, 0, ctl_refresh},
    {"verify", "", "sweep, and compare with what is served; publish nothing", "", 0, 0, ctl_verify},
    {"check", "", "what looks wrong in the fabric as it stands, and what to do", "", 0, 0, ctl_check},
    {"expect", "[NAME]", "announce a swap of a host or switch, or list what is announced", "Rtc", 0, 1,
     ctl_expect},
    {"events", "", "the latest events, or those to come", "f", 0, 0, ctl_events},
    {"history", "[WHAT]", "what changed so far; WHAT: a part of a name", "nl", 0, 1, ctl_history},
    {"diff", "[FROM [TO]]", "what changed between two generations", "l", 0, 2, ctl_diff},
    {"metrics", "", "the daemon's counters and gauges, in Prometheus' text format", "", 0, 0, ctl_metrics},
    {"backup", "FILE", "the daemon's database into a file, while it is in use", "O", 1, 1, ctl_backup},
};

#define N_COMMANDS (sizeof commands / sizeof commands[0])

/* What the options ask for beside the command's own. */
struct asked {
    bool help, version;
    char letters[32]; /* options seen */
};

static const struct ctl_command *find_command(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static void print_options(const char *letters)
{
    for (size_t i = 0; i < sizeof helps / sizeof helps[0]; i++)
        if (strchr(letters, helps[i].letter) != NULL)
            printf("  %-24s %s\n", helps[i].shown, helps[i].text);
}

static enum ctl_exit print_help(const struct ctl_command *command)
{
    if (command == NULL) {
        puts("Usage: fabricctl [OPTION]... COMMAND [ARGUMENT]...\nAsk fabricd what it knows about the "
             "fabric.\n\nCommands:");
        for (size_t i = 0; i < N_COMMANDS; i++)
            printf("  %-9s%-13s %s\n", commands[i].name, commands[i].args, commands[i].summary);
    } else {
        printf("Usage: fabricctl %s%s%s [OPTION]...\n\n%s: %s.\n", command->name,
               command->args[0] != '\0' ? " " : "", command->args, command->name, command->summary);
        if (command->options[0] != '\0')
            puts("\nOptions of this command:");
        print_options(command->options);
    }
    puts(command == NULL ? "\nOptions:" : "\nOptions of all commands:");
    print_options(GLOBAL_OPTIONS);
    puts("\nExit status: 0 done, 1 the answer is no or the work failed, 2 bad usage. More in fabricctl(1).");
    return CTL_DONE;
}

static enum ctl_exit set_format(struct ctl *ctl, const char *text)
{
    static const char *const names[] = {[CTL_TEXT] = "text", [CTL_JSON] = "json", [CTL_CSV] = "csv"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], text) == 0) {
            ctl->format = (enum ctl_format)i;
            return CTL_DONE;
        }
    return ctl_usage("no such format: --format %s: there are text, json and csv", text);
}

static enum ctl_exit set_limit(struct ctl *ctl, const char *text)
{
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value == 0 || value > 1000000000)
        return ctl_usage("not a number of changes: --limit %s: give a number from 1 up", text);
    ctl->limit = (uint32_t)value;
    return CTL_DONE;
}

/* A number with s, m, h or d behind it; of seconds without. */
static enum ctl_exit set_time(struct ctl *ctl, const char *text)
{
    static const char units[] = "smhd";
    static const uint32_t lengths[] = {1, 60, 3600, 86400};
    const char *unit;
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);
    unit = *end == '\0' ? units : strchr(units, *end);
    if (text[0] < '0' || text[0] > '9' || errno != 0 || value == 0 || unit == NULL ||
        (*end != '\0' && end[1] != '\0') || value > UINT32_MAX / lengths[unit - units])
        return ctl_usage("not a time: --for %s: give a number with s, m, h or d behind it, as 4h", text);
    ctl->seconds = (uint32_t)value * lengths[unit - units];
    return CTL_DONE;
}

static enum ctl_exit set_text(const char **to, const char *option, const char *text)
{
    if (text[0] == '\0')
        return ctl_usage("empty: %s: give it a value, or leave it out", option);
    *to = text;
    return CTL_DONE;
}

static enum ctl_exit set_option(struct ctl *ctl, struct asked *asked, int letter, const char *value)
{
    size_t seen = strlen(asked->letters);

    if (strchr(asked->letters, letter) == NULL && seen + 1 < sizeof asked->letters)
        asked->letters[seen] = (char)letter;
    switch (letter) {
    case 'r':
        return set_text(&ctl->rundir, "--rundir", value);
    case 'u':
        return set_text(&ctl->uri, "--uri", value);
    case 'p':
        return set_text(&ctl->plane, "--plane", value);
    case 'o':
        return set_text(&ctl->output, "--output", value);
    case 'H':
        return set_text(&ctl->host, "--host", value);
    case 'S':
        return set_text(&ctl->sw, "--switch", value);
    case 't':
        return set_time(ctl, value);
    case 'F':
        return set_format(ctl, value);
    case 'n':
        return set_limit(ctl, value);
    case 'h':
        asked->help = true;
        break;
    case 'V':
        asked->version = true;
        break;
    case 'O':
        ctl->force = true;
        break;
    case 'a':
        ctl->accept_partial = true;
        break;
    case 'L':
        ctl->release = true;
        break;
    case 'l':
        ctl->longer = true;
        break;
    case 'w':
        ctl->wait = true;
        break;
    case 'W':
        ctl->no_wait = true;
        break;
    case 'R':
        ctl->replace = true;
        break;
    case 'c':
        ctl->cancel = true;
        break;
    default:
        ctl->follow = true;
        break;
    }
    return CTL_DONE;
}

/* Options of argv[1..]; `shortform` begins with + to stop at the first argument. optind is where they end. */
static enum ctl_exit read_options(struct ctl *ctl, struct asked *asked, int argc, char **argv,
                                  const char *shortform)
{
    enum ctl_exit status = CTL_DONE;
    int letter;

    opterr = 0;
    optind = 0; /* GNU: begin anew */
    while (status == CTL_DONE && (letter = getopt_long(argc, argv, shortform, long_options, NULL)) != -1) {
        const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : "";

        if (letter == ':')
            status = ctl_usage("no value: %s: this option needs one; see fabricctl --help", word);
        else if (letter == '?' && optopt != 0 && word[0] == '-' && word[1] == '-')
            status = ctl_usage("takes no value: %s: see fabricctl --help", word);
        else if (letter == '?' && optopt != 0)
            status = ctl_usage("no such option: -%c: see fabricctl --help", optopt);
        else if (letter == '?')
            status = ctl_usage("no such option: %s: see fabricctl --help", word);
        else
            status = set_option(ctl, asked, letter, optarg);
    }
    return status;
}

/* Is every option one that the command has, and are there as many arguments as it takes? */
static enum ctl_exit check_usage(const struct ctl *ctl, const struct asked *asked,
                                 const struct ctl_command *command)
{
    for (const char *p = asked->letters; *p != '\0'; p++) {
        if (strchr(GLOBAL_OPTIONS, *p) != NULL || strchr(command->options, *p) != NULL)
            continue;
        for (size_t i = 0; i < sizeof helps / sizeof helps[0]; i++)
            if (helps[i].letter == *p)
                return ctl_usage("not an option of %s: %s: see fabricctl %s --help", command->name,
                                 strstr(helps[i].shown, "--"), command->name);
    }
    if (strchr(asked->letters, 'r') != NULL && ctl->uri != NULL)
        return ctl_usage("one or the other: --rundir and --uri: read files of this host, or over PMIx");
    if (ctl->n_args < command->min_args)
        return ctl_usage("too few arguments: %s: usage: fabricctl %s %s", command->name, command->name,
                         command->args);
    if (ctl->n_args > command->max_args)
        return ctl_usage("too many arguments: %s: see fabricctl %s --help", ctl->args[command->max_args],
                         command->name);
    return CTL_DONE;
}

/* A program that starts without descriptors 0 to 2 would take its first file for one of them. */
static void open_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            _exit(CTL_FAILED);
}

static enum ctl_exit command_run(int argc, char **argv)
{
    const char *rundir = getenv("FABRICD_RUNDIR");
    struct ctl ctl = {.rundir = rundir != NULL && rundir[0] != '\0' ? rundir : CTL_DEFAULT_RUNDIR};
    const struct ctl_command *command;
    struct asked asked = {0};
    enum ctl_exit status = read_options(&ctl, &asked, argc, argv, "+:hVo:fn:l");
    int at = optind;

    if (status != CTL_DONE)
        return status;
    if (asked.version) {
        printf("fabricctl %s\n", PMIXFAB_VERSION);
        return CTL_DONE;
    }
    if (at >= argc)
        return asked.help ? print_help(NULL) : ctl_usage("no command: say what to do: see fabricctl --help");
    command = find_command(argv[at]);
    if (command == NULL)
        return ctl_usage("no such command: %s: see fabricctl --help", argv[at]);
    status = read_options(&ctl, &asked, argc - at, argv + at, ":hVo:fn:l");
    if (status != CTL_DONE)
        return status;
    if (asked.help)
        return print_help(command);
    ctl.args = argv + at + optind;
    ctl.n_args = argc - at - optind;
    status = check_usage(&ctl, &asked, command);
    return status == CTL_DONE ? command->run(&ctl) : status;
}

int ctl_main(int argc, char **argv)
{
    enum ctl_exit status;

    open_standard_streams();
    setlocale(LC_CTYPE, "");
    /* a reader that left and a file grown too large are failures to tell, not ways to die */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    ctl_source_log();
    status = command_run(argc, argv);
    ctl_source_end();
    return (int)ctl_finish(status);
}
