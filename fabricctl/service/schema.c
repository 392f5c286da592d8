/* schema.c - `schema`: the JSON Schema of what the commands print with --json. */
#include <jansson.h>
#include <string.h>

#include "fabricctl/service/service.h"
#include "topo/base/nearest_words.h"

#define COMMANDS_MOST 64

/* Names that begin with "_" are types that several commands use. */
static bool is_command(const char *name)
{
    return name[0] != '_';
}

static json_t *schema_load(void)
{
    return json_loadb((const char *)ctl_schema_text, ctl_schema_text_size, 0, NULL);
}

void ctl_schema_each(void (*fn)(const char *command, void *arg), void *arg)
{
    json_t *schema = schema_load(), *value;
    const char *name;
    json_object_foreach(json_object_get(schema, "$defs"), name, value)
    {
        if (is_command(name))
            fn(name, arg);
    }
    json_decref(schema);
}

static enum ctl_exit no_schema(const json_t *defs, const char *command)
{
    const char *names[COMMANDS_MOST], *name;
    size_t n = 0;
    json_t *value;
    json_object_foreach((json_t *)defs, name, value)
    {
        if (is_command(name) && n < COMMANDS_MOST)
            names[n++] = name;
    }
    name = fab_nearest_word(command, names, n);
    return name != NULL ? ctl_usage("no schema: %s: did you mean %s?", command, name)
                        : ctl_usage("no schema: %s: this command has no JSON output", command);
}

enum ctl_exit ctl_schema(const struct ctl *ctl)
{
    json_t *schema = schema_load(), *defs = json_object_get(schema, "$defs");
    const char *command = ctl->n_args > 0 ? ctl->args[0] : NULL;
    char reference[80];
    enum ctl_exit status;
    if (defs == NULL)
        status = ctl_nomem();
    else if (command != NULL && (!is_command(command) || json_object_get(defs, command) == NULL))
        status = no_schema(defs, command);
    else {
        snprintf(reference, sizeof reference, "#/$defs/%.64s", command != NULL ? command : "");
        if (command != NULL && json_object_set_new(schema, "$ref", json_string(reference)) != 0)
            status = ctl_nomem();
        else
            status = ctl_json_print(stdout, json_incref(schema));
    }
    json_decref(schema);
    return status;
}
