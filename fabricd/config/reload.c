#include "fabricd/config/reload.h"

#include <stdio.h>
#include <string.h>

#include "fabricd/config/daemon_options.h"
#include "fabricd/config/setting.h"
#include "topo/base/error.h"

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_list(const struct config_list *a, const struct config_list *b)
{
    for (unsigned i = 0; i < a->n && i < b->n; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return a->n == b->n;
}

static size_t value_size(const struct setting *s)
{
    return s->type == TEXT                          ? sizeof(char *)
           : s->type == NUMBER || s->type == CHOICE ? sizeof(unsigned)
           : s->type == BOOLEAN                     ? sizeof(bool)
                                                    : sizeof(struct config_list);
}

static bool same_value(const struct setting *s, const void *a, const void *b)
{
    if (s->type == TEXT)
        return same_text(*(char *const *)a, *(char *const *)b);
    return value_size(s) == sizeof(struct config_list) ? same_list(a, b) : memcmp(a, b, value_size(s)) == 0;
}

/* Has it the same value? Then it stays where it is, as somebody may point there, and its place is taken over;
 * where it has another one, and can change now, the two are exchanged. */
static bool take_setting(struct config *config, struct config *fresh, size_t i)
{
    const struct setting *s = &config_settings[i];
    void *now = (char *)config + s->offset, *then = (char *)fresh + s->offset;
    struct config_list kept;
    const bool same = same_value(s, now, then);
    if (same && value_size(s) == sizeof(struct config_list)) {
        memcpy(((struct config_list *)now)->at, ((struct config_list *)then)->at, sizeof(kept.at));
    } else if (!same && s->live) {
        memcpy(&kept, now, value_size(s));
        memcpy(now, then, value_size(s));
        memcpy(then, &kept, value_size(s));
    }
    if (same || s->live)
        config->at[i] = fresh->at[i];
    return same;
}

int config_reload(struct config *config, struct config_reload *out)
{
    const struct config_place nowhere = {CONFIG_DEFAULT, 0};
    struct config fresh;
    *out = (struct config_reload){0};
    config_init(&fresh);
    int rc = options_read(config->argc, config->argv, &fresh, &out->mistakes);
    if (config->file != NULL && fresh.file == NULL)
        rc = config_mistake(&out->mistakes, PMIXFAB_ERR_NOTFOUND, nowhere, "%s: it is not there any more",
                            config->file);
    for (size_t i = 0; rc == PMIXFAB_OK && config_settings[i].section != NULL; i++) {
        const struct setting *s = &config_settings[i];
        if (take_setting(config, &fresh, i))
            continue;
        if (s->live)
            out->changed[out->n_changed++] = s;
        else
            out->restart[out->n_restart++] = s;
    }
    if (rc == PMIXFAB_OK)
        config->file = fresh.file;
    config_destroy(&fresh);
    return rc;
}

int config_can_start(const struct config *config, struct fab_err *err)
{
    struct config fresh;
    struct config_mistakes mistakes = {0};
    config_init(&fresh);
    int rc = options_read(config->argc, config->argv, &fresh, &mistakes);
    if (rc != PMIXFAB_OK)
        fab_fail(err, rc, "the configuration has mistakes: %s",
                 mistakes.n > 0 ? mistakes.items[0].text : "?");
    config_mistakes_destroy(&mistakes);
    config_destroy(&fresh);
    return rc;
}

void config_reload_destroy(struct config_reload *reload)
{
    config_mistakes_destroy(&reload->mistakes);
}

bool config_reload_has(const struct config_reload *reload, const char *section, const char *name)
{
    for (unsigned i = 0; i < reload->n_changed; i++)
        if (strcmp(reload->changed[i]->section, section) == 0 && same_text(reload->changed[i]->name, name))
            return true;
    return false;
}

void config_name_text(const struct setting *setting, char text[static CONFIG_NAME_SIZE])
{
    snprintf(text, CONFIG_NAME_SIZE, "[%s]%s%s", setting->section, setting->name != NULL ? " " : "",
             setting->name != NULL ? setting->name : "");
}

void config_names_text(const struct setting *const *settings, unsigned n, char text[static CONFIG_NAMES_SIZE])
{
    size_t len = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < n && len < CONFIG_NAMES_SIZE - CONFIG_NAME_SIZE; i++) {
        char name[CONFIG_NAME_SIZE];
        config_name_text(settings[i], name);
        len += (size_t)snprintf(text + len, CONFIG_NAMES_SIZE - len, "%s%s", i > 0 ? ", " : "", name);
    }
}
