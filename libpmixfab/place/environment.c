/* environment.c - variables that make communication libraries use a certain device. */
#include "place/environment.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_ENTRIES (1u << 20) /* maximum size of an environment in the kernel */

/* Return how a library denotes the device with this name; NULL: not at all. */
typedef const char *(*env_form_fn)(const char *name);

static const char *env_named(const char *name)
{
    return name;
}

/* PSM3 also reads numbers, decimal or hexadecimal, and "any". */
static const char *env_psm3(const char *name)
{
    return name[strspn(name, "0123456789abcdefABCDEFxX-")] == '\0' || strcasecmp(name, "any") == 0 ? NULL
                                                                                                   : name;
}

/* OPX reads a number, and its device N is hfi1_N. */
static const char *env_opx(const char *name)
{
    static const char prefix[] = "hfi1_";
    const char *number = name + strlen(prefix);
    if (strncmp(name, prefix, strlen(prefix)) != 0)
        return NULL;
    const size_t len = strspn(number, "0123456789");
    return len > 0 && len < 5 && number[len] == '\0' && (number[0] != '0' || len == 1) ? number : NULL;
}

static const struct {
    const char *word;
    enum fab_env bit;
    const char *name;
    env_form_fn form;
    const char *before; /* the device in the value */
    bool with_port;
    const char *others[2]; /* variables that exclude this one, or NULL */
} libraries[FAB_ENV_SETTINGS] = {
    {"ucx", FAB_ENV_UCX, "UCX_NET_DEVICES", env_named, "", true, {"UCX_TLS"}},
    {"nccl", FAB_ENV_NCCL, "NCCL_IB_HCA", env_named, "=", true, {NULL}},
    {"ofi", FAB_ENV_OFI, "FI_VERBS_DEVICE_NAME", env_named, "", false, {"FI_VERBS_IFACE"}}, /* has no ports */
    {"psm3", FAB_ENV_PSM3, "PSM3_NIC", env_psm3, "", false, {"PSM3_HAL", "PSM3_MULTIRAIL"}},
    {"opx", FAB_ENV_OPX, "FI_OPX_HFI_SELECT", env_opx, "", false, {NULL}},
    {"nvshmem", FAB_ENV_NVSHMEM, "NVSHMEM_HCA_LIST", env_named, "", true, {"NVSHMEM_HCA_PE_MAPPING"}},
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
    return i < FAB_ENV_SETTINGS ? libraries[i].name : NULL;
}

static bool env_has(char *const *env, const char *name)
{
    const size_t len = strlen(name);
    for (size_t i = 0; env != NULL && env[i] != NULL && i < MAX_ENTRIES; i++)
        if (strncmp(env[i], name, len) == 0 && (env[i][len] == '=' || env[i][len] == '\0'))
            return true;
    return false;
}

static bool env_excluded(char *const *env, const char *const others[2])
{
    return (others[0] != NULL && env_has(env, others[0])) || (others[1] != NULL && env_has(env, others[1]));
}

/* Return whether the libraries take the name literally: they have lists, patterns, prefixes and exclusions.
 */
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
        const char *form = libraries[i].form(name);
        if ((wanted & libraries[i].bit) == 0 || form == NULL || env_has(env, libraries[i].name) ||
            env_excluded(env, libraries[i].others))
            continue;
        out[n].name = libraries[i].name;
        snprintf(out[n].value, sizeof(out[n].value), libraries[i].with_port ? "%s%s:%u" : "%s%s",
                 libraries[i].before, form, about.port);
        n++;
    }
    return n;
}
