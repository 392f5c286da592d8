/* environment.c - variables that make communication libraries use a certain device. */
#include "place/environment.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MAX_ENTRIES (1u << 20) /* maximum size of an environment in the kernel */

static const struct {
    const char *word;
    enum fab_env bit;
    const char *name;
    const char *before; /* the device's name in the value */
    bool with_port;
    const char *other; /* a variable that excludes this one, or NULL */
} libraries[FAB_ENV_SETTINGS] = {
    {"ucx", FAB_ENV_UCX, "UCX_NET_DEVICES", "", true, "UCX_TLS"},
    {"nccl", FAB_ENV_NCCL, "NCCL_IB_HCA", "=", true, NULL},
    {"ofi", FAB_ENV_OFI, "FI_VERBS_DEVICE_NAME", "", false, "FI_VERBS_IFACE"}, /* has no ports */
};

int fab_env_parse(const char *text, unsigned *wanted)
{
    *wanted = 0;
    while (text != NULL && *text != '\0') {
        const size_t len = strcspn(text, ",");
        unsigned bit = 0;
        for (size_t i = 0; i < FAB_ENV_SETTINGS; i++)
            if (strncmp(libraries[i].word, text, len) == 0 && libraries[i].word[len] == '\0')
                bit = libraries[i].bit;
        if (bit == 0)
            return PMIXFAB_ERR_SYNTAX;
        *wanted |= bit;
        text += len;
        text += *text == ',';
    }
    return PMIXFAB_OK;
}

int fab_env_order_parse(const char *text, enum fab_env_from order[FAB_ENV_FROMS])
{
    static const char *const words[FAB_ENV_FROMS] = {"site", "fabricd", "library"};
    bool there[FAB_ENV_FROMS] = {false};
    unsigned n = 0;
    int rc = PMIXFAB_OK;
    while (rc == PMIXFAB_OK && text != NULL && *text != '\0') {
        const size_t len = strcspn(text, ",");
        unsigned word = 0;
        while (word < FAB_ENV_FROMS &&
               (strncmp(words[word], text, len) != 0 || words[word][len] != '\0' || there[word]))
            word++;
        if (word == FAB_ENV_FROMS) {
            rc = PMIXFAB_ERR_SYNTAX;
        } else {
            there[word] = true;
            order[n++] = (enum fab_env_from)word;
            text += len;
            text += *text == ',';
        }
    }
    for (unsigned word = 0; word < FAB_ENV_FROMS; word++)
        if (!there[word])
            order[n++] = (enum fab_env_from)word;
    return rc;
}

const char *fab_env_choose(const enum fab_env_from order[FAB_ENV_FROMS],
                           const char *const values[FAB_ENV_FROMS])
{
    for (unsigned i = 0; i < FAB_ENV_FROMS; i++)
        if (values[order[i]] != NULL)
            return values[order[i]];
    return NULL;
}

const char *fab_env_variable(unsigned i)
{
    return i < FAB_ENV_SETTINGS ? libraries[i].name : i == FAB_ENV_SETTINGS ? "PSM3_NIC" : NULL;
}

static bool env_has(char *const *env, const char *name)
{
    const size_t len = strlen(name);
    for (size_t i = 0; env != NULL && env[i] != NULL && i < MAX_ENTRIES; i++)
        if (strncmp(env[i], name, len) == 0 && (env[i][len] == '=' || env[i][len] == '\0'))
            return true;
    return false;
}

/* Return whether each of the libraries takes the name literally: they have lists, prefixes and exclusions. */
static bool env_plain(const char *name)
{
    const size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
    return len > 0 && len < 64 && name[len] == '\0';
}

/*
 * Return the node's own name for the device; NULL: it was not reported. A sweep has only a description, which
 * may be any text.
 */
static const char *env_own_name(const struct pmixfab *fab, uint32_t device)
{
    struct pmixfab_fact fact;
    for (uint32_t i = 0; pmixfab_fact(fab, device, i, &fact) == PMIXFAB_OK; i++) {
        if (strcmp(fact.kind, "name") != 0 || !fact.chosen)
            continue;
        for (uint32_t s = 0; pmixfab_source_name(s) != NULL; s++)
            if ((fact.sources >> s & 1) != 0 && strcmp(pmixfab_source_name(s), "subnet") != 0)
                return fact.text;
    }
    return NULL;
}

unsigned fab_env_settings(const struct pmixfab *fab, uint32_t device, unsigned wanted, char *const *env,
                          struct fab_env_setting out[FAB_ENV_SETTINGS])
{
    struct pmixfab_device about;
    unsigned n = 0;
    const char *name = env_own_name(fab, device);
    if (pmixfab_device(fab, device, &about) != PMIXFAB_OK || about.state != PMIXFAB_STATE_UP ||
        strncmp(about.id, "fab://", strlen("fab://")) != 0 || name == NULL || !env_plain(name))
        return 0;
    for (size_t i = 0; i < FAB_ENV_SETTINGS; i++) {
        if ((wanted & libraries[i].bit) == 0 || env_has(env, libraries[i].name) ||
            (libraries[i].other != NULL && env_has(env, libraries[i].other)))
            continue;
        out[n].name = libraries[i].name;
        snprintf(out[n].value, sizeof(out[n].value), libraries[i].with_port ? "%s%s:%u" : "%s%s",
                 libraries[i].before, name, about.port);
        n++;
    }
    return n;
}
