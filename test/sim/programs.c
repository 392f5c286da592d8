/* programs.c - programs other than fabricd that it starts. A test plays hooks and the commands of exports;
 * fabricctl is the real one, in this process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/config/config.h"
#include "fabricd/process/child.h"
#include "test/sim/played.h"

static struct {
    sim_program_fn fn;
    struct program *begins; /* the one that is being started */
} programs;

void sim_programs(struct sim *s, sim_program_fn fn)
{
    (void)s;
    programs.fn = fn;
}

void sim_program_ends(struct sim *s, int status, int64_t takes, const char *says)
{
    (void)s;
    if (programs.begins == NULL)
        sim_fail("no program is being started");
    free(programs.begins->says);
    *programs.begins = (struct program){.status = status, .takes = takes, .says = strdup(says)};
}

static bool is_fabricctl(const struct child_order *order)
{
    const char *slash = strrchr(order->program, '/');
    return slash != NULL && strcmp(slash, "/fabricctl") == 0;
}

static char *lines_of(char *const *items, size_t n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (file == NULL)
        sim_fail("out of memory");
    for (size_t i = 0; i < n && items[i] != NULL; i++)
        fprintf(file, "%s%s", i == 0 ? "" : "\n", items[i]);
    fclose(file);
    return text;
}

void program_begin(const struct child_order *order, struct program *program)
{
    if (programs.fn == NULL || is_fabricctl(order))
        return;
    char *words = lines_of(order->argv, SIZE_MAX);
    char *environment =
        order->env == NULL ? strdup("") : lines_of((char *const *)order->env->items, order->env->n);
    char *input = strndup(order->input == NULL ? "" : order->input, order->input_size);
    programs.begins = program;
    programs.fn(order->what, words, environment, input);
    programs.begins = NULL;
    free(words);
    free(environment);
    free(input);
}

void program_end(const struct child_order *order, char *const *argv, struct program *program, char *words,
                 size_t size)
{
    char *out = NULL, *rest = NULL;
    if (is_fabricctl(order)) {
        free(program->says);
        program->status = ctl_run(sim_rundir(the_sim()), argv + 1, &out, &program->says);
        free(out);
    }
    words[0] = '\0';
    for (char *line = program->says == NULL ? NULL : strtok_r(program->says, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        log_info("%s: %s", order->what, line);
        snprintf(words, size, "%s", line);
    }
    sim_note(the_sim(), "child: %s: ends with %d", order->what, program->status);
}

void program_free(struct program *program)
{
    free(program->says);
    program->says = NULL;
}
