/* launcher.c - the command lines of Open MPI, PRRTE, Hydra and srun: read the number of ranks, and add a host
 * file. */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "fabricctl/run/run.h"

/* Meaning of an option. OWN: the command sets a mapping of its own, which stays. */
enum meaning { PASS, RANKS, PER_NODE, PER_NODE_1, HOSTS, HOSTFILE, MAP, NODES, CPUS, OWN };

struct option {
    const char *name;
    uint8_t values; /* words after the option */
    uint8_t meaning;
};

/* Options that are not in a table pass unchanged, if it is clear where they end. */
static const struct option openmpi_options[] = {
    {"n", 1, RANKS},
    {"np", 1, RANKS},
    {"c", 1, RANKS},
    {"N", 1, PER_NODE},
    {"npernode", 1, PER_NODE},
    {"pernode", 0, PER_NODE_1},
    {"host", 1, HOSTS},
    {"H", 1, HOSTS},
    {"hostfile", 1, HOSTFILE},
    {"machinefile", 1, HOSTFILE},
    {"map-by", 1, MAP},
    {"rank-by", 1, OWN},
    {"rankfile", 1, OWN},
    {"rf", 1, OWN},
    {"app", 1, OWN},
    {"bynode", 0, OWN},
    {"bycore", 0, OWN},
    {"bysocket", 0, OWN},
    {"npersocket", 1, OWN},
    {"cpus-per-proc", 1, OWN},
    {"cpus-per-rank", 1, OWN},
    {"nolocal", 0, OWN},
    {"mca", 2, PASS},
    {"gmca", 2, PASS},
    {"omca", 2, PASS},
    {"prtemca", 2, PASS},
    {"gprtemca", 2, PASS},
    {"pmixmca", 2, PASS},
    {"gpmixmca", 2, PASS},
    {"am", 1, PASS},
    {"tune", 1, PASS},
    {"x", 1, PASS},
    {"wd", 1, PASS},
    {"wdir", 1, PASS},
    {"path", 1, PASS},
    {"prefix", 1, PASS},
    {"bind-to", 1, PASS},
    {"cpu-set", 1, PASS},
    {"cpu-list", 1, PASS},
    {"output", 1, PASS},
    {"output-filename", 1, PASS},
    {"stdin", 1, PASS},
    {"timeout", 1, PASS},
    {"personality", 1, PASS},
    {"display", 1, PASS},
    {"runtime-options", 1, PASS},
    {"dvm-uri", 1, PASS},
    {"dvm", 1, PASS},
    {"report-pid", 1, PASS},
    {"report-uri", 1, PASS},
    {"v", 0, PASS},
    {"q", 0, PASS},
    {"verbose", 0, PASS},
    {"quiet", 0, PASS},
    {"byslot", 0, PASS},
    {"oversubscribe", 0, PASS},
    {"nooversubscribe", 0, PASS},
    {"allow-run-as-root", 0, PASS},
    {"tag-output", 0, PASS},
    {"timestamp-output", 0, PASS},
    {"report-bindings", 0, PASS},
    {"display-map", 0, PASS},
    {"display-allocation", 0, PASS},
    {"use-hwthread-cpus", 0, PASS},
    {"enable-recovery", 0, PASS},
    {NULL},
};

static const struct option hydra_options[] = {
    {"n", 1, RANKS},
    {"np", 1, RANKS},
    {"ppn", 1, PER_NODE},
    {"perhost", 1, PER_NODE},
    {"hosts", 1, HOSTS},
    {"host", 1, HOSTS},
    {"f", 1, HOSTFILE},
    {"hostfile", 1, HOSTFILE},
    {"machinefile", 1, HOSTFILE},
    {"configfile", 1, OWN},
    {"rr", 0, OWN},
    {"env", 2, PASS},
    {"genv", 2, PASS},
    {"envlist", 1, PASS},
    {"genvlist", 1, PASS},
    {"genvall", 0, PASS},
    {"envall", 0, PASS},
    {"genvnone", 0, PASS},
    {"envnone", 0, PASS},
    {"wdir", 1, PASS},
    {"bind-to", 1, PASS},
    {"map-by", 1, PASS},
    {"membind", 1, PASS},
    {"launcher", 1, PASS},
    {"launcher-exec", 1, PASS},
    {"bootstrap", 1, PASS},
    {"bootstrap-exec", 1, PASS},
    {"rmk", 1, PASS},
    {"iface", 1, PASS},
    {"topolib", 1, PASS},
    {"usize", 1, PASS},
    {"prepend-pattern", 1, PASS},
    {"outfile-pattern", 1, PASS},
    {"errfile-pattern", 1, PASS},
    {"prepend-rank", 0, PASS},
    {"l", 0, PASS},
    {"v", 0, PASS},
    {"verbose", 0, PASS},
    {"print-all-exitcodes", 0, PASS},
    {"disable-auto-cleanup", 0, PASS},
    {NULL},
};

static const struct option srun_options[] = {
    {"ntasks", 1, RANKS},
    {"ntasks-per-node", 1, PER_NODE},
    {"nodes", 1, NODES},
    {"cpus-per-task", 1, CPUS},
    {"nodelist", 1, HOSTS},
    {"nodefile", 1, OWN},
    {"exclude", 1, OWN},
    {"distribution", 1, OWN},
    {"relative", 1, OWN},
    {"jobid", 1, OWN},
    {"het-group", 1, OWN},
    {"no-allocate", 0, OWN},
    {"mpi", 1, PASS},
    {"chdir", 1, PASS},
    {"export", 1, PASS},
    {"cpu-bind", 1, PASS},
    {"mem-bind", 1, PASS},
    {"mem", 1, PASS},
    {"mem-per-cpu", 1, PASS},
    {"gres", 1, PASS},
    {"gpus", 1, PASS},
    {"gpus-per-node", 1, PASS},
    {"gpus-per-task", 1, PASS},
    {"gpu-bind", 1, PASS},
    {"time", 1, PASS},
    {"partition", 1, PASS},
    {"account", 1, PASS},
    {"job-name", 1, PASS},
    {"input", 1, PASS},
    {"output", 1, PASS},
    {"error", 1, PASS},
    {"wait", 1, PASS},
    {"threads-per-core", 1, PASS},
    {"label", 0, PASS},
    {"quiet", 0, PASS},
    {"verbose", 0, PASS},
    {"unbuffered", 0, PASS},
    {"exclusive", 0, PASS},
    {"exact", 0, PASS},
    {"overlap", 0, PASS},
    {"overcommit", 0, PASS},
    {"multi-prog", 0, PASS},
    {"kill-on-bad-exit", 0, PASS},
    {NULL},
};

/* Short options of srun: those with a value, and a meaning for some of them. */
#define SRUN_VALUES "aAbcCdDeFGiJLmMnNopqrRStTwWx"
static const struct option srun_letters[] = {
    {"n", 1, RANKS}, {"N", 1, NODES}, {"c", 1, CPUS}, {"w", 1, HOSTS}, {"F", 1, OWN},
    {"x", 1, OWN},   {"m", 1, OWN},   {"r", 1, OWN},  {"Z", 0, OWN},   {NULL},
};

static const struct option *const tables[] = {
    [RUN_OPENMPI] = openmpi_options,
    [RUN_HYDRA] = hydra_options,
    [RUN_SRUN] = srun_options,
};

static const struct option *option_of(const struct option *table, const char *name, size_t len)
{
    for (; table->name != NULL; table++)
        if (strlen(table->name) == len && memcmp(table->name, name, len) == 0)
            return table;
    return NULL;
}

/* ---- which launcher ---- */

/* Return the path of a program as a shell finds it, without symbolic links; NULL: not found. */
static char *program_path(const char *name)
{
    const char *at = getenv("PATH");
    char path[PATH_MAX];
    if (strchr(name, '/') != NULL)
        return realpath(name, NULL);
    for (; at != NULL && *at != '\0'; at += strcspn(at, ":"), at += *at == ':')
        if (snprintf(path, sizeof path, "%.*s/%s", (int)strcspn(at, ":"), at, name) < (int)sizeof path &&
            access(path, X_OK) == 0)
            return realpath(path, NULL);
    return NULL;
}

/* Several products name their launcher mpirun. Return whether this is the program of Open MPI 5. */
static bool starts_prterun(const char *path)
{
    size_t size = 0;
    char *bytes = ctl_target_read(path, &size);
    const bool found = bytes != NULL && size > 2 && memcmp(bytes, "#!", 2) != 0 &&
                       memmem(bytes, size, "prterun", strlen("prterun")) != NULL;
    free(bytes);
    return found;
}

static bool launcher_of(const char *name, enum run_launcher *launcher)
{
    static const struct {
        const char *name;
        enum run_launcher launcher;
    } known[] = {{"orterun", RUN_OPENMPI},        {"prterun", RUN_OPENMPI},
                 {"prun", RUN_OPENMPI},           {"mpirun", RUN_OPENMPI},
                 {"mpirun.openmpi", RUN_OPENMPI}, {"mpiexec.hydra", RUN_HYDRA},
                 {"mpirun.hydra", RUN_HYDRA},     {"srun", RUN_SRUN}};
    char *path = program_path(name);
    const char *base = path != NULL ? strrchr(path, '/') + 1 : "";
    bool found = false;
    for (size_t i = 0; i < CTL_COUNT(known) && !found; i++) {
        found = strcmp(base, known[i].name) == 0;
        *launcher = known[i].launcher;
    }
    if (found && strncmp(base, "mpirun", 6) == 0 && *launcher == RUN_OPENMPI)
        found = starts_prterun(path);
    free(path);
    return found;
}

/* ---- the options ---- */

static bool run_fail(char why[static RUN_WHY], const char *fmt, const char *word)
{
    snprintf(why, RUN_WHY, fmt, word);
    return false;
}

static bool read_count(const char *text, uint32_t *number)
{
    char *end;
    const unsigned long value = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || value == 0 || value > 100000000)
        return false;
    *number = (uint32_t)value;
    return true;
}

/* Take the option; value: NULL if it has none. Return false with the reason to start unchanged. */
static bool take_option(struct run_command *c, const struct option *option, const char *word,
                        const char *value, char why[static RUN_WHY])
{
    bool good = true;
    char *end;
    switch ((enum meaning)option->meaning) {
    case RANKS:
        good = read_count(value, &c->ranks);
        break;
    case PER_NODE:
        good = read_count(value, &c->per_node);
        break;
    case NODES:
        good = read_count(value, &c->nodes);
        break;
    case CPUS:
        good = read_count(value, &c->cpus);
        break;
    case PER_NODE_1:
        c->per_node = 1;
        break;
    case HOSTS:
        c->hosts = value;
        break;
    case HOSTFILE:
        c->hostfile = value;
        break;
    case MAP: /* only mappings that fill one host after the other */
        if (strcasecmp(value, "slot") == 0)
            break;
        if (strncasecmp(value, "ppr:", 4) != 0)
            return run_fail(why, "the command has its own mapping: --map-by %s", value);
        c->per_node = (uint32_t)strtoul(value + 4, &end, 10);
        if (c->per_node == 0 || strcasecmp(end, ":node") != 0)
            return run_fail(why, "the command has its own mapping: --map-by %s", value);
        break;
    case OWN:
        return run_fail(why, "the command has its own mapping: %s", word);
    case PASS:
        break;
    }
    return good ? true : run_fail(why, "not a number: %s", value);
}

/* Return whether our host file replaces the option. srun takes the last one of several. */
static bool is_replaced(const struct run_command *c, const struct option *option)
{
    return c->launcher != RUN_SRUN &&
           (option->meaning == HOSTS || option->meaning == HOSTFILE || option->meaning == MAP ||
            option->meaning == PER_NODE || option->meaning == PER_NODE_1);
}

/* Read a word with short options of srun: "-n4", "-ln", "4". *at moves to its last word. */
static bool read_letters(struct run_command *c, int *at, char why[static RUN_WHY])
{
    const char *word = c->words[*at], *p;
    for (p = word + 1; *p != '\0'; p++) {
        const struct option *option = option_of(srun_letters, p, 1);
        const char *value = NULL;
        if (strchr(SRUN_VALUES, *p) != NULL) {
            value = p[1] != '\0' ? p + 1 : *at + 1 < c->n ? c->words[++*at] : NULL;
            if (value == NULL)
                return run_fail(why, "no value: %s", word);
        }
        if (option != NULL && !take_option(c, option, word, value, why))
            return false;
        if (value != NULL)
            break;
    }
    return true;
}

/* Read "-np 4", "--np=4", "--mca a b". *at moves to the last word of the option. */
static bool read_option(struct run_command *c, int *at, char why[static RUN_WHY])
{
    const char *word = c->words[*at], *name = word + strspn(word, "-"), *value = strchr(name, '=');
    const size_t len = value != NULL ? (size_t)(value - name) : strlen(name);
    const struct option *option = option_of(tables[c->launcher], name, len);
    const int first = *at;
    if (option == NULL) {
        /* the next word may be a value or the application */
        if (value == NULL && *at + 1 < c->n && c->words[*at + 1][0] != '-')
            return run_fail(why, "cannot read the command: %s: it is unknown whether this option has a value",
                            word);
        return true;
    }
    if (value != NULL)
        value++;
    else if (option->values > 0 && *at + 1 < c->n)
        value = c->words[*at + 1];
    *at += option->values - (strchr(name, '=') != NULL && option->values > 0);
    if (*at >= c->n || (option->values > 0 && value == NULL))
        return run_fail(why, "no value: %s", word);
    for (int i = first; i <= *at; i++)
        c->drop[i] = is_replaced(c, option);
    return take_option(c, option, word, value, why);
}

bool run_command_read(char *const *words, int n, struct run_command *out, char why[static RUN_WHY])
{
    int at;
    *out = (struct run_command){.words = words, .n = n, .drop = calloc((size_t)n + 1, sizeof(bool))};
    if (out->drop == NULL)
        return run_fail(why, "%s", "out of memory");
    if (!launcher_of(words[0], &out->launcher))
        return run_fail(why, "no launcher: %s: it is none of Open MPI, PRRTE, Hydra and Slurm", words[0]);
    for (at = 1; at < n && words[at][0] == '-' && strcmp(words[at], "--") != 0; at++)
        if (out->launcher == RUN_SRUN && words[at][1] != '-' ? !read_letters(out, &at, why)
                                                             : !read_option(out, &at, why))
            return false;
    out->app = at;
    for (; at < n; at++)
        if (strcmp(words[at], ":") == 0)
            return run_fail(why, "%s", "the command starts several programs");
    return true;
}

char **run_command_words(const struct run_command *command, const char *file, uint32_t ranks, char **option)
{
    static char *const added[][3] = {
        [RUN_OPENMPI] = {"--map-by", "seq", "--hostfile"}, /* one line of the file is one rank */
        [RUN_HYDRA] = {"-f"},
        [RUN_SRUN] = {"-m", "arbitrary"},
    };
    char **words = calloc((size_t)command->n + 8, sizeof *words), *number;
    int n = 0;
    /* two words in one allocation */
    if (words == NULL || asprintf(option, "%u%c--nodelist=%s", ranks, '\0', file) < 0) {
        free(words);
        *option = NULL;
        return NULL;
    }
    number = *option;
    for (int i = 0; i <= command->n; i++) {
        if (i == command->app) {
            for (int k = 0; k < 3 && added[command->launcher][k] != NULL; k++)
                words[n++] = added[command->launcher][k];
            words[n++] = command->launcher == RUN_SRUN ? number + strlen(number) + 1 : (char *)file;
            if (command->ranks == 0) {
                words[n++] = "-n";
                words[n++] = number;
            }
        }
        if (i < command->n && !command->drop[i])
            words[n++] = command->words[i];
    }
    return words;
}

void run_command_free(struct run_command *command)
{
    free(command->drop);
    command->drop = NULL;
}
