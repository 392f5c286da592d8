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
enum meaning { PASS, OWN, RANKS, CPUS, NODES, PER_NODE, PER_NODE_1, HOSTS, HOSTFILE, MAP };

/* Options of one meaning: the number of words after them, and their names with blanks around. */
struct options {
    uint8_t meaning, values;
    const char *names;
};

/* Options that are not in a table pass unchanged, if it is clear where they end. */
static const struct options openmpi_options[] = {
    {RANKS, 1, " n np c "},
    {PER_NODE, 1, " N npernode "},
    {PER_NODE_1, 0, " pernode "},
    {HOSTS, 1, " host H "},
    {HOSTFILE, 1, " hostfile machinefile "},
    {MAP, 1, " map-by "},
    {OWN, 1, " rank-by rankfile rf app npersocket cpus-per-proc cpus-per-rank "},
    {OWN, 0, " bynode bycore bysocket nolocal "},
    {PASS, 2, " mca gmca omca prtemca gprtemca pmixmca gpmixmca "},
    {PASS, 1,
     " am tune x wd wdir path prefix bind-to cpu-set cpu-list output output-filename stdin timeout "},
    {PASS, 1, " personality display runtime-options dvm-uri dvm report-pid report-uri "},
    {PASS, 0, " v q verbose quiet byslot oversubscribe nooversubscribe allow-run-as-root tag-output "},
    {PASS, 0, " timestamp-output report-bindings display-map display-allocation use-hwthread-cpus "},
    {0},
};
static const struct options hydra_options[] = {
    {RANKS, 1, " n np "},
    {PER_NODE, 1, " ppn perhost "},
    {HOSTS, 1, " hosts host "},
    {HOSTFILE, 1, " f hostfile machinefile "},
    {OWN, 1, " configfile "},
    {OWN, 0, " rr "},
    {PASS, 2, " env genv "},
    {PASS, 1,
     " envlist genvlist wdir bind-to map-by membind launcher launcher-exec bootstrap bootstrap-exec "},
    {PASS, 1, " rmk iface topolib usize prepend-pattern outfile-pattern errfile-pattern "},
    {PASS, 0, " genvall envall genvnone envnone prepend-rank l v verbose print-all-exitcodes "},
    {0},
};
static const struct options srun_options[] = {
    {RANKS, 1, " ntasks n "},
    {PER_NODE, 1, " ntasks-per-node "},
    {NODES, 1, " nodes N "},
    {CPUS, 1, " cpus-per-task c "},
    {HOSTS, 1, " nodelist w "},
    {OWN, 1, " nodefile exclude distribution relative jobid het-group F x m r "},
    {OWN, 0, " no-allocate Z "},
    {PASS, 1, " mpi chdir export cpu-bind mem-bind mem mem-per-cpu gres gpus gpus-per-node gpus-per-task "},
    {PASS, 1, " gpu-bind time partition account job-name input output error wait threads-per-core "},
    {PASS, 1, " a A b B C d D e G i J L M o p P q R S t T U W "},
    {PASS, 0, " label quiet verbose unbuffered exclusive exact overlap overcommit multi-prog "},
    {0},
};
static const struct options *const tables[] = {
    [RUN_OPENMPI] = openmpi_options,
    [RUN_HYDRA] = hydra_options,
    [RUN_SRUN] = srun_options,
};

static const struct options *option_of(const struct options *table, const char *name, size_t len)
{
    char word[64];
    snprintf(word, sizeof word, " %.*s ", (int)len, name);
    while (table->names != NULL && strstr(table->names, word) == NULL)
        table++;
    return table->names != NULL ? table : NULL;
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
    if (strcmp(base, "prte") == 0) /* one program with several names */
        base = strrchr(name, '/') != NULL ? strrchr(name, '/') + 1 : name;
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
static bool take_meaning(struct run_command *c, enum meaning meaning, const char *word, const char *value,
                         char why[static RUN_WHY])
{
    uint32_t *const numbers[MAP + 1] = {
        [RANKS] = &c->ranks, [NODES] = &c->nodes, [CPUS] = &c->cpus, [PER_NODE] = &c->per_node};
    char *end;
    value = value != NULL ? value : "";
    if (numbers[meaning] != NULL && !read_count(value, numbers[meaning]))
        return run_why(why, false, "not a number: %s", value);
    if (meaning == PER_NODE_1)
        c->per_node = 1;
    if (meaning == HOSTS)
        c->hosts = value;
    if (meaning == HOSTFILE)
        c->hostfile = value;
    if (meaning == MAP && strncasecmp(value, "ppr:", 4) == 0) {
        c->per_node = (uint32_t)strtoul(value + 4, &end, 10);
        if (c->per_node > 0 && strcasecmp(end, ":node") == 0)
            return true;
    }
    /* others than slot and ppr:N:node do not fill one host after the other */
    if (meaning == OWN || (meaning == MAP && strcasecmp(value, "slot") != 0))
        return run_why(why, false, "the command has its own mapping: %s%s%s", word,
                       value[0] != '\0' ? " " : "", value);
    return true;
}

/* srun takes the last of several lists of hosts, but from 24.05 on no number of hosts beside a list. */
static bool is_replaced_by_file(const struct run_command *c, enum meaning meaning)
{
    return c->launcher == RUN_SRUN ? meaning == NODES : meaning >= PER_NODE;
}

/* Read a word with short options of srun: "-n4", "-ln", "4". *at moves to its last word. */
static bool read_letters(struct run_command *c, int *at, char why[static RUN_WHY])
{
    const char *word = c->words[*at], *value = NULL;
    const int first = *at;
    for (const char *p = word + 1; *p != '\0' && value == NULL; p++) {
        const struct options *option = option_of(srun_options, p, 1);
        if (option != NULL && option->values > 0) {
            value = p[1] != '\0' ? p + 1 : *at + 1 < c->n ? c->words[++*at] : NULL;
            if (value == NULL)
                return run_why(why, false, "no value: %s", word);
        }
        if (option != NULL && !take_meaning(c, option->meaning, word, value, why))
            return false;
        if (option != NULL && is_replaced_by_file(c, option->meaning)) {
            if (p != word + 1)
                return run_why(why, false, "several options in one word: %s: give -N by itself", word);
            c->drop[first] = c->drop[*at] = true;
        }
    }
    return true;
}

/* Read "-np 4", "--np=4", "--mca a b". *at moves to the last word of the option. */
static bool read_option(struct run_command *c, int *at, char why[static RUN_WHY])
{
    const char *word = c->words[*at], *name = word + strspn(word, "-"), *value = strchr(name, '=');
    const size_t len = value != NULL ? (size_t)(value - name) : strlen(name);
    const struct options *option = option_of(tables[c->launcher], name, len);
    const int first = *at;
    if (option == NULL) {
        /* the next word may be a value or the application */
        if (value == NULL && *at + 1 < c->n && c->words[*at + 1][0] != '-')
            return run_why(why, false,
                           "cannot read the command: %s: it is unknown whether this option has a value",
                           word);
        return true;
    }
    if (value != NULL)
        value++;
    else if (option->values > 0 && *at + 1 < c->n)
        value = c->words[*at + 1];
    *at += option->values - (strchr(name, '=') != NULL && option->values > 0);
    if (*at >= c->n || (option->values > 0 && value == NULL))
        return run_why(why, false, "no value: %s", word);
    for (int i = first; i <= *at; i++)
        c->drop[i] = is_replaced_by_file(c, option->meaning);
    return take_meaning(c, option->meaning, word, value, why);
}

bool run_command_read(char *const *words, int n, struct run_command *out, char why[static RUN_WHY])
{
    int at;
    *out = (struct run_command){.words = words, .n = n, .drop = calloc((size_t)n + 1, sizeof(bool))};
    if (out->drop == NULL)
        return run_why(why, false, "out of memory");
    if (!launcher_of(words[0], &out->launcher))
        return run_why(why, false, "no launcher: %s: it is none of Open MPI, PRRTE, Hydra and Slurm",
                       words[0]);
    for (at = 1; at < n && words[at][0] == '-' && strcmp(words[at], "--") != 0; at++)
        if (out->launcher == RUN_SRUN && words[at][1] != '-' ? !read_letters(out, &at, why)
                                                             : !read_option(out, &at, why))
            return false;
    out->app = at;
    for (; at < n; at++)
        if (strcmp(words[at], ":") == 0)
            return run_why(why, false, "the command starts several programs");
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
