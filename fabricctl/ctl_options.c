/* ctl_options.c - the command line: commands, options, and the help. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/ctl_options.h"
#include "fabricctl/export/export.h"
#include "fabricctl/report/report_page.h"
#include "fabricctl/run/run.h"
#include "fabricctl/service/service.h"
#include "fabricctl/show/show.h"
#include "fabricctl/simulate/simulate.h"
#include "fabricctl/slurm/slurm.h"
#include "topo/base/formats.h"
#include "topo/base/nearest_words.h"

/* ---- the command line: commands, options, and the help ---- */

/* Options, in the order of the help. Options without a short form have letters that are in no optstring. */
#define SHORT_OPTIONS "hVo:fn:lqj"

struct option_of {
    char letter;
    const char *name;
    const char *value; /* as the help shows it; NULL: the option takes no value */
    const char *text;
    size_t offset; /* in struct ctl: of a text, or of a bool for an option without a value */
    enum ctl_exit (*set)(struct ctl *ctl, const char *value); /* for options that are neither */
};

#define AT(field) offsetof(struct ctl, field), NULL
static const struct option_of all_options[] = {
    {'r', "rundir", "DIR",
     "the run directory of fabricd (default: environment FABRICD_RUNDIR, else " CTL_DEFAULT_RUNDIR ")",
     AT(rundir)},
    {'u', "uri", "URI", "read over PMIx from the server with this URI", AT(uri)},
    {'p', "plane", "P",
     "only this plane (default: all planes; cost: the first plane with both ends; matrix: the default plane)",
     AT(plane)},
    {'F', "format", "FORMAT", "text (for people), json or csv (for programs)", 0, ctl_set_format},
    {'j', "json", NULL, "the same as --format json", 0, ctl_set_json},
    {'l', "long", NULL, "do not shorten lines and times; for changes: add when the old part was last seen",
     AT(longer)},
    {'h', "help", NULL, "this help; after a command: the help of that command", AT(help)},
    {'V', "version", NULL, "print the version", AT(version)},
    {'o', "output", "FILE", "write this file, completely or not at all; - means standard output", AT(output)},
    {'i', "if-changed", NULL, "keep a file whose content is the same already, and exit with status 3",
     AT(if_changed)},
    {'B', "block-sizes", "LIST",
     "slurm-block: hosts per block at each level, for example 18,36,72 (default: from the fabric)",
     AT(block_sizes)},
    {'I', "interface", "PATTERN", "place hosts by these devices, ports or leaves: mlx5_0,mlx5_2:1,leaf-c*",
     AT(interface)},
    {'D', "nodes", "LIST", "only these hosts: a list, slurm (the nodes of Slurm), or slurm:FEATURE",
     AT(nodes)},
    {'P', "above", "FILE", "add levels from this file, with lines such as: row1 = leaf[1-4]", AT(above)},
    {'Y', "topologies", "LIST",
     "slurm-yaml: topologies NAME=KIND:PLANE[+PLANE...], the default one with * in front", AT(topologies)},
    {'Z', "spare", "N", "slurm-block: add N blocks without hosts, for leaves that come later", 0,
     ctl_set_spare},
    {'Q', "slurm", "VERSION", "slurm-block: write for this version of Slurm: 24.11 (default: 25.05)", 0,
     ctl_set_slurm},
    {'M', "max-shrink", "PERCENT", "keep the file if more than PERCENT of its hosts would leave it", 0,
     ctl_set_max_shrink},
    {'T', "strict", NULL, "write nothing if the format cannot describe the fabric completely", AT(strict)},
    {'H', "host", "H", "let this host scan its devices first, and show what changed there", AT(host)},
    {'S', "switch", "S", "sweep only this switch (a name or a GUID), and show what changed there", AT(sw)},
    {'w', "wait", NULL, "wait for the end of the sweep (the default)", AT(wait)},
    {'W', "no-wait", NULL, "return as soon as fabricd has accepted the request", AT(no_wait)},
    {'a', "accept-partial", NULL, "publish an incomplete sweep, even if the fabric shrinks",
     AT(accept_partial)},
    {'L', "release", NULL, "lift flap damping before the sweep: of this host or switch, else of all",
     AT(release)},
    {'O', "force", NULL, "replace an existing backup", AT(force)},
    {'E', "free", NULL, "release the endpoints of JOB, which process PID started", AT(free)},
    {'R', "replace", NULL, "mark all changes of this host or switch as planned from now on", AT(replace)},
    {'t', "for", "TIME", "how long: 90s, 30m, 4h (the default), 2d", 0, ctl_set_purpose},
    {'c', "cancel", NULL, "withdraw the announcement", AT(cancel)},
    {'v', "severity", "LEVEL", "the least severity to show: error, warning or notice", 0, ctl_set_severity},
    {'k', "check", NULL, "print one line for a monitor; exit with 0 (good), 1 (warnings) or 2 (errors)",
     AT(check)},
    {'K', "store", NULL, "check the stored history instead of the fabric", AT(store)},
    {'e', "errors", NULL, "only ports over the thresholds of ibqueryerrors, worst first", AT(errors)},
    {'f', "follow", NULL, "wait for events and print them as they happen", AT(follow)},
    {'1', "once", NULL, "draw one page and exit (the default without a terminal)", AT(once)},
    {'n', "limit", "N", "only the latest N changes", 0, ctl_set_limit},
    {'A', "all", NULL, "the whole history", AT(all)},
    {'s', "since", "TIME", "changes since a time: 2h (ago), 3d, 2026-11-20, 2026-11-20T08:00 (UTC)", 0,
     ctl_set_since},
    {'d', "down", NULL, "only rows that are down or missing", AT(down)},
    {'C', "columns", "LIST", "only these columns, named by their JSON keys: name,lid", AT(columns)},
    {'N', "no-header", NULL, "no header line", AT(no_header)},
    {'y', "from", "HOSTLIST", "choose among these hosts: node[0001-0099,0120]", AT(from)},
    {'x', "exclude", "HOSTLIST", "choose among all other hosts of the plane", AT(exclude)},
    {'J', "objective", "GOAL", "what to minimize: sum (of costs; the default), max (cost) or switches",
     AT(objective)},
    {'G', "alone", NULL, "with --for: no other job is on the links (the default)", AT(alone)},
    {'X', "shared", NULL, "with --for: all other hosts communicate like the job", AT(shared)},
    {'U', "hold", "REASON", "stop all exports of fabricd, and slurm apply, until --release", AT(hold)},
    {'m', "repair", NULL, "bring Slurm back to the file also if somebody changed Slurm", AT(repair)},
    {'0', "order", NULL, "put the ranks on the hosts in the order of `fabricctl order` (the default)",
     AT(order)},
    {'g', "grid", "AxBxC", "map a Cartesian grid of ranks, the last coordinate first, to near hosts",
     AT(grid)},
    {'b', "matrix", "FILE", "map ranks by their communication, in lines FROM TO BYTES", AT(traffic)},
    {'q', "quiet", NULL, "print only the list of hosts", AT(quiet)},
    {'2', "hosts", "LIST", "the hosts of the job; of several jobs at once: 'LIST;LIST'", AT(hosts)},
    {'3', "pattern", "PATTERN", SIM_PATTERNS ", or a file with lines FROM TO BYTES", AT(pattern)},
    {'4', "bytes", "N", "bytes of each message, for allreduce of the vector (default: 1M)", 0, ctl_set_bytes},
    {'z', "values", "OF", "for completion: list the values of an option, or the arguments of a command",
     AT(values)},
};

#define PLACE_PATTERNS "alltoall, neighbours, allreduce, ring or any"

/* Options with another meaning for one command. */
static const struct {
    const char *of;
    char letter;
    const char *text, *name, *value; /* NULL: as for other commands */
} other_words[] = {
    {"matrix", 'o', "write a file for numpy.load(); - means standard output", NULL, NULL},
    {"check", 'A', "include findings that follow from another one, such as the hosts of a dead leaf", NULL,
     NULL},
    {"counters", 'A', "all ports of the fabric, as the background rounds read them last; worst first", NULL,
     NULL},
    {"ack", 't', "how long: 12h, 30d (default: until the finding is gone or gets worse)", NULL, NULL},
    {"ack", 'c', "withdraw the acknowledgement", NULL, NULL},
    {"place", 'n', "the number of hosts", "nodes", "NODES"},
    {"place", 't', "choose hosts on which this is fast: " PLACE_PATTERNS, NULL, "PATTERN"},
    {"order", 't', "also show how fast this is: " PLACE_PATTERNS, NULL, "PATTERN"},
    {"export", 'L', "end the hold of the exports", NULL, NULL},
    {"simulate", 'n', "the number of ranks of each job (default: one on each host)", "ranks", "RANKS"},
    {"slurm", 'o', "first copy FILE to this file, which slurmctld reads", NULL, NULL},
    {"slurm", 'n', "calls of scontrol a second, at most (default: 20)", "rate", "N"},
    {"run", 'o', "write the host of each rank to this file, and start nothing; - means standard output", NULL,
     NULL},
    {"run", 'q', "start the command without a message also if it starts unchanged", NULL, NULL},
    {"slurm", 'q', "diff: only one line, on a difference; apply: report a failure only once", NULL, NULL},
};

#define N_OPTIONS      CTL_COUNT(all_options)
#define N_OTHER_WORDS  CTL_COUNT(other_words)
#define GLOBAL_OPTIONS "rupFjlhV"

static const struct option_of *option_by_letter(int letter)
{
    const struct option_of *option = all_options;
    while (option->letter != letter)
        option++;
    return option;
}

#define MAX_NAMES 4096

static const struct command {
    const char *name;
    const char *args;    /* as in the usage line */
    const char *summary; /* one line */
    const char *options; /* letters of its options besides the global ones */
    int min_args, max_args;
    enum ctl_exit (*run)(const struct ctl *ctl);
    const char *none;  /* line that replaces a table without rows; NULL: none */
    const char *group; /* heading of the help that begins with this command; NULL: none */
} commands[] = {
    {"status", "", "what fabricd serves, how fresh it is, and the number of findings", "k", 0, 0, ctl_status,
     NULL, "See the fabric"},
    {"check", "", "find faults in the fabric, and print what to do about each", "vAKCN", 0, 0, ctl_check,
     NULL, NULL},
    {"show", "NAME",
     "one host, device, switch, GUID, plane, rail, group or cable, and what is connected to it", "", 1, 1,
     ctl_show, NULL, NULL},
    {"planes", "", "the planes of the fabric", "CN", 0, 0, ctl_list, "no planes", NULL},
    {"devices", "[HOST]", "all devices in index order, or the devices of a host", "dCN", 0, 1, ctl_devices,
     "no devices", NULL},
    {"switches", "[NAME]...", "all switches, or these (names or GUIDs)", "dCN", 0, MAX_NAMES, ctl_list,
     "no switches", NULL},
    {"links", "[NAME]...", "all cables, or the cables of these hosts, devices and switches", "dCN", 0,
     MAX_NAMES, ctl_list, "no cables", NULL},
    {"groups", "[NAME]...", "the hosts of each leaf or pod, or only the groups of these hosts and leaves",
     "dCN", 0, MAX_NAMES, ctl_list, "no groups", NULL},
    {"rails", "[NAME]...", "the leaves or the plane of each rail, and the devices on a wrong one", "CN", 0,
     MAX_NAMES, ctl_list, "the fabric has no rails", NULL},
    {"coords", "[NAME]...", "the coordinates of all devices, or of the devices of these hosts", "dCN", 0,
     MAX_NAMES, ctl_list, "no devices", NULL},
    {"counters", "[NAME]", "error counters: of changed links, or of the ports of one switch or host", "AeCN",
     0, 1, ctl_counters, NULL, NULL},
    {"nodes", "[HOST]", "the hosts that report their own devices", "CN", 0, 1, ctl_nodes,
     "no host reports its devices", NULL},
    {"top", "", "status, planes and latest changes, drawn again each second", "1", 0, 0, ctl_top, NULL, NULL},
    {"report", "", REPORT_SUMMARY, "o", 0, 0, ctl_report, NULL, NULL},
    {"cost", "A B", "the cost between two devices: host, host:device or device id", "", 2, 2, ctl_cost, NULL,
     "Place jobs"},
    {"where", "HOST[:N] [CPUS]...", "the nearest device for each of N ranks on a host, and the reason", "", 1,
     4096, ctl_where, NULL, NULL},
    {"place", "-n NODES", "choose hosts for a job, and show the costs between them", "nyxJtGXq", 0, 0,
     ctl_place, NULL, NULL},
    {"order", "HOSTLIST", "sort hosts so that neighbours in the list are near each other", "tGXq", 1, 1,
     ctl_order, NULL, NULL},
    {"run", "[--] COMMAND...",
     "start an MPI job with near ranks on near hosts: mpirun, mpiexec of Hydra, prun, srun", "0gboq", 1,
     INT_MAX, ctl_run_job, NULL, NULL},
    {"matrix", "", "the cost matrix of a plane", "o", 0, 0, ctl_matrix, NULL, NULL},
    {"export", "FORMAT [HOSTLIST]",
     "write the fabric for another program, such as Slurm (\"export --help\" lists the formats)",
     "oiDPYBZQIMTUL", 0, 2, ctl_export, NULL, NULL},
    {"simulate", "--hosts LIST",
     "the time that messages of a job need on these hosts, by SimGrid, and the fullest cables", "n234", 0, 0,
     ctl_simulate, NULL, NULL},
    {"slurm", "diff|apply FILE",
     "compare a running Slurm with an exported topology file, or bring Slurm to the file", "onmq", 2, 2,
     ctl_slurm, NULL, NULL},
    {"endpoints", "[JOB PID]", "the endpoints that jobs hold; with --free: release those of a job", "ECN", 0,
     2, ctl_endpoints, NULL, NULL},
    {"history", "[NAME]", "what changed so far; NAME: a part of a name", "nAsCN", 0, 1, ctl_history, NULL,
     "Follow changes"},
    {"watch", "", "print changes as they are published", "", 0, 0, ctl_watch, NULL, NULL},
    {"events", "", "the latest events of fabricd, with --follow: as they happen", "fCN", 0, 0, ctl_events,
     "no event so far", NULL},
    {"diff", "[FROM [TO]]", "the changes between two generations, or between two captures (files)", "CN", 0,
     2, ctl_diff, NULL, NULL},
    {"refresh", "", "sweep the fabric now, and show what changed", "HSwWaL", 0, 0, ctl_refresh, NULL,
     "Maintain"},
    {"verify", "", "sweep the fabric and compare it with what is served; publish nothing", "", 0, 0,
     ctl_verify, NULL, NULL},
    {"ack", "FINDING", "acknowledge a finding (its id or kind), or all findings of a host or switch", "tcCN",
     1, 1, ctl_ack, NULL, NULL},
    {"expect", "[NAME]", "announce the swap of a host or switch, or list the announced swaps", "Rtc", 0, 1,
     ctl_expect, NULL, NULL},
    {"forget", "NAME", "remove the report of a host, and its missing or lost devices", "", 1, 1, ctl_forget,
     NULL, NULL},
    {"config", "", "the settings in force, and the source of each", "", 0, 0, ctl_config, NULL,
     "Run the service"},
    {"reload", "", "read the configuration again, and apply the settings that can change at run time", "", 0,
     0, ctl_reload, NULL, NULL},
    {"log", "LEVEL", "set the level of the log: error, warning, info or debug", "", 1, 1, ctl_log, NULL,
     NULL},
    {"schema", "[COMMAND]", "the JSON Schema of the --json output of a command, or of all commands", "", 0, 1,
     ctl_schema, NULL, NULL},
    {"metrics", "", "the metrics of fabricd in the text format of Prometheus", "", 0, 0, ctl_metrics, NULL,
     NULL},
    {"backup", "FILE", "write the database of fabricd to a file, while fabricd runs", "O", 1, 1, ctl_backup,
     NULL, NULL},
    {"restore", "FILE", "replace the database of the running fabricd with a backup", "", 1, 1, ctl_restore,
     NULL, NULL},
};

#define N_COMMANDS CTL_COUNT(commands)

static const char *words_for_none(const struct ctl *ctl, const struct command *command)
{
    return ctl->follow                          ? NULL /* rows are printed as they come */
           : command->none != NULL && ctl->down ? "nothing is down or missing"
           : ctl->n_args == 0                   ? command->none
                                                : NULL; /* an unknown name gives a message instead */
}

/*
 * Return the command with this name, or the only command that begins with it. On failure write a message
 * and return NULL.
 */
static const struct command *find_command(const char *name)
{
    const struct command *found = NULL;
    const char *names[N_COMMANDS], *nearest;
    char list[400] = "";
    size_t used = 0, n = 0;
    for (size_t i = 0; i < N_COMMANDS; i++) {
        names[i] = commands[i].name;
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
        if (*name == '\0' || strncmp(commands[i].name, name, strlen(name)) != 0)
            continue;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", n > 0 ? ", " : "",
                                     commands[i].name);
        found = &commands[i];
        n++;
    }
    nearest = n == 0 ? fab_nearest_word(name, names, N_COMMANDS) : NULL;
    if (n > 1)
        ctl_usage("several commands begin like that: %s: %s", name, list);
    else if (nearest != NULL)
        ctl_usage("no such command: %s: did you mean %s? See fabricctl --help", name, nearest);
    else if (n == 0)
        ctl_usage("no such command: %s: see fabricctl --help", name);
    return n == 1 ? found : NULL;
}

/* Return an option with the texts of this command. */
static struct option_of option_of_command(const struct command *command, const struct option_of *option)
{
    struct option_of own = *option;
    for (size_t i = 0; command != NULL && i < N_OTHER_WORDS; i++)
        if (strcmp(other_words[i].of, command->name) == 0 && other_words[i].letter == option->letter) {
            own.text = other_words[i].text;
            own.name = other_words[i].name != NULL ? other_words[i].name : own.name;
            own.value = other_words[i].value != NULL ? other_words[i].value : own.value;
        }
    return own;
}

static void print_options(const struct command *command, const char *letters)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const struct option_of option = option_of_command(command, &all_options[i]);
        char begin[] = "-x, ", shown[40];
        if (strchr(letters, option.letter) == NULL)
            continue;
        begin[1] = option.letter;
        snprintf(shown, sizeof shown, "%s--%s%s%s",
                 strchr(SHORT_OPTIONS, option.letter) != NULL ? begin : "    ", option.name,
                 option.value != NULL ? " " : "", option.value != NULL ? option.value : "");
        printf("  %-24s %s\n", shown, option.text);
    }
}

static enum ctl_exit print_help(const struct command *command)
{
    if (command == NULL) {
        puts("Usage: fabricctl [OPTION]... COMMAND [ARGUMENT]...\nShow the fabric of a cluster, its "
             "faults and its changes, and place jobs.");
        for (size_t i = 0; i < N_COMMANDS; i++) {
            if (commands[i].group != NULL)
                printf("\n%s:\n", commands[i].group);
            printf("  %-9s %-18s %s\n", commands[i].name, commands[i].args, commands[i].summary);
        }
    } else {
        printf("Usage: fabricctl %s%s%s [OPTION]...\n\n%s: %s.\n", command->name,
               command->args[0] != '\0' ? " " : "", command->args, command->name, command->summary);
        if (command->run == ctl_export)
            ctl_export_help();
        if (command->options[0] != '\0')
            puts("\nOptions of this command:");
        print_options(command, command->options);
    }
    puts(command == NULL ? "\nOptions:" : "\nOptions of all commands:");
    print_options(NULL, GLOBAL_OPTIONS);
    puts("\nExit status: 0 success, 1 failure or a negative answer, 2 bad usage. See fabricctl(1).");
    return CTL_DONE;
}

/* Set an option. seen: letters of the options so far, with room for all. */
static enum ctl_exit set_option(struct ctl *ctl, char *seen, int letter, const char *value)
{
    const struct option_of *option = option_by_letter(letter);
    if (strchr(seen, letter) == NULL)
        seen[strlen(seen)] = (char)letter;
    if (option->set != NULL)
        return option->set(ctl, value);
    if (option->value == NULL) {
        *(bool *)((char *)ctl + option->offset) = true;
        return CTL_DONE;
    }
    if (value[0] == '\0')
        return ctl_usage("empty: --%s: give it a value, or leave it out", option->name);
    *(const char **)((char *)ctl + option->offset) = value;
    return CTL_DONE;
}

static enum ctl_exit no_such_option(const char *word)
{
    const char *names[N_OPTIONS], *nearest;
    char name[64];
    for (size_t i = 0; i < N_OPTIONS; i++)
        names[i] = all_options[i].name;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    nearest = strncmp(name, "--", 2) == 0 ? fab_nearest_word(name + 2, names, N_OPTIONS) : NULL;
    return nearest != NULL
               ? ctl_usage("no such option: %s: did you mean --%s? See fabricctl --help", word, nearest)
               : ctl_usage("no such option: %s: see fabricctl --help", word);
}

/*
 * Read the options of argv[1..]; `shortform` begins with + to stop at the first argument. optind is the end
 * of the options. command: an option has the name that it has for this command; NULL: not yet read.
 */
static enum ctl_exit read_options(struct ctl *ctl, char *seen, int argc, char **argv, const char *shortform,
                                  const struct command *command)
{
    struct option long_options[N_OPTIONS + N_OTHER_WORDS + 1] = {0};
    size_t n = 0;
    enum ctl_exit status = CTL_DONE;
    int letter;
    /* of two equal names, getopt takes the first */
    for (size_t i = 0; i < N_OTHER_WORDS; i++)
        if (other_words[i].name != NULL && (command == NULL || strcmp(other_words[i].of, command->name) == 0))
            long_options[n++] =
                (struct option){other_words[i].name, required_argument, NULL, other_words[i].letter};
    for (size_t i = 0; i < N_OPTIONS; i++)
        long_options[n++] = (struct option){
            .name = all_options[i].name,
            .has_arg = all_options[i].value != NULL ? required_argument : no_argument,
            .val = all_options[i].letter,
        };
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
            status = no_such_option(word);
        else
            status = set_option(ctl, seen, letter, optarg);
    }
    return status;
}

/* Check that the command has every given option, and the number of arguments. */
static enum ctl_exit check_usage(const struct ctl *ctl, const char *seen, const struct command *command)
{
    for (const char *p = seen; *p != '\0'; p++) {
        const struct option_of *option = option_by_letter(*p);
        if (strchr(GLOBAL_OPTIONS, *p) == NULL && strchr(command->options, *p) == NULL)
            return ctl_usage("not an option of %s: --%s%s%s: see fabricctl %s --help", command->name,
                             option->name, option->value != NULL ? " " : "",
                             option->value != NULL ? option->value : "", command->name);
    }
    if (ctl->all && ctl->limit > 0)
        return ctl_usage("one or the other: --all and --limit");
    if (strchr(seen, 'r') != NULL && ctl->uri != NULL)
        return ctl_usage("one or the other: --rundir and --uri: read files of this host, or over PMIx");
    if (ctl->n_args < command->min_args)
        return ctl_usage("too few arguments: %s: usage: fabricctl %s %s", command->name, command->name,
                         command->args);
    if (ctl->n_args > command->max_args)
        return ctl_usage("too many arguments: %s: see fabricctl %s --help", ctl->args[command->max_args],
                         command->name);
    return CTL_DONE;
}

/* Open descriptors 0 to 2 if the caller closed them: else the first opened file would become one of them. */
static void open_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            _exit(CTL_FAILED);
}

static enum ctl_exit command_run(int argc, char **argv)
{
    const char *rundir = getenv("FABRICD_RUNDIR");
    struct ctl_ports ports = {.answer = NULL};
    struct ctl ctl = {.rundir = rundir != NULL && rundir[0] != '\0' ? rundir : CTL_DEFAULT_RUNDIR,
                      .max_shrink = 100};
    const struct command *command;
    char seen[N_OPTIONS + 1] = "";
    enum ctl_exit status = read_options(&ctl, seen, argc, argv, "+:" SHORT_OPTIONS, NULL);
    int at = optind;
    if (status != CTL_DONE)
        return status;
    if (ctl.version) {
        printf("fabricctl %s\n", PMIXFAB_VERSION);
        return CTL_DONE;
    }
    if (ctl.values != NULL)
        return ctl_print_values(&ctl, ctl.values);
    if (at >= argc)
        return ctl.help ? print_help(NULL) : ctl_usage("no command: say what to do: see fabricctl --help");
    command = find_command(argv[at]);
    if (command == NULL)
        return CTL_USAGE;
    /* the options of the command that run starts are not those of fabricctl */
    status = read_options(&ctl, seen, argc - at, argv + at,
                          command->run == ctl_run_job ? "+:" SHORT_OPTIONS : ":" SHORT_OPTIONS, command);
    if (status != CTL_DONE)
        return status;
    if (ctl.help)
        return print_help(command);
    ctl.command = command->name;
    ctl.args = argv + at + optind;
    ctl.n_args = argc - at - optind;
    status = check_usage(&ctl, seen, command);
    if (status == CTL_DONE && ctl.purpose != NULL && command->run != ctl_place && command->run != ctl_order)
        status = ctl_set_time(&ctl, ctl.purpose);
    ctl_table_layout(&ctl, words_for_none(&ctl, command));
    if (status != CTL_DONE)
        return status;
    ctl.met = calloc((size_t)ctl.n_args + 1, sizeof *ctl.met);
    ctl.ports = &ports;
    status = ctl.met == NULL ? ctl_nomem() : command->run(&ctl);
    free(ctl.met);
    json_decref(ports.answer);
    json_decref(ports.shared);
    return status;
}

int ctl_main(int argc, char **argv)
{
    enum ctl_exit status;
    open_standard_streams();
    setlocale(LC_CTYPE, "");
    /* a closed pipe and a file that grows too large are reported as failures and do not kill the process */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    ctl_source_log();
    status = command_run(argc, argv);
    ctl_source_end();
    return (int)ctl_finish(status);
}
