/*
 * stock_starter.c - the starter of jobs and the server of a node in one process, with nothing but the stock
 * library; does what the lines of its input say, and answers each with a line.
 *
 *   stock_starter HERE
 *
 *   register JOB NODES RANKS     PMIx_server_register_nspace()
 *   app JOB [KEY=VALUE...]       PMIx_server_setup_application(): its status, and the sizes of the byte
 *                                objects that come of it, which are kept beside those of before
 *   local JOB [DAMAGE]           PMIx_server_setup_local_support() with what is kept; see damage()
 *   drop                         keep nothing
 *   blob FILE                    write what is kept into a file
 *   keep FILE                    what another starter has written so is kept, too
 *   fork JOB RANK [NAME=VALUE]   PMIx_server_setup_fork(): NAME=VALUE,... of what is not the library's own
 *   run JOB RANK PROGRAM FILE    PMIx_server_register_client(), and PROGRAM FILE as that rank
 *   get JOB RANK KEY             PMIx_Get() of what this server has; RANK may be "job" or @NODE
 *   end JOB                      PMIx_server_deregister_nspace()
 *
 * Of app: nodes=a,b ranks=0,1;2 go through PMIx_generate_regex() and _ppn(), nodemap= and procmap= as they
 * are; envars, others, all, key; id=, plane=, endpts=, nodendpts=, qos=, bw=, type=; parent=; cutmap=N: the
 * compressed map of nodes with N bytes less. A '!' before what is in PMIX_ALLOC_NETWORK: it is required.
 */
#include <fcntl.h>
#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/integration/stock_json.h"
#include "test/integration/stock_status.h"

#define MAX_INFOS 32

static pmix_info_t kept[MAX_INFOS];
static size_t n_kept;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool answered;

static void starter_say(pmix_status_t status)
{
    printf("%s", stock_status(status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status));
}

/* ---- setup_application ------------------------------------------------------------------------------ */

static void on_setup(pmix_status_t status, pmix_info_t info[], size_t n, void *provided,
                     pmix_op_cbfunc_t done, void *cbdata)
{
    (void)provided;
    starter_say(status);
    for (size_t i = 0; i < n; i++) {
        if (info[i].value.type == PMIX_BYTE_OBJECT)
            printf(" %s=%zu", info[i].key, info[i].value.data.bo.size);
        if (n_kept < MAX_INFOS)
            PMIX_INFO_XFER(&kept[n_kept++], &info[i]);
    }
    if (done != NULL)
        done(PMIX_SUCCESS, cbdata);
    pthread_mutex_lock(&lock);
    answered = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void load_map(pmix_info_t *info, const char *key, const char *text,
                     pmix_status_t (*make)(const char *, char **), long cut)
{
    char *map = NULL;
    make(text, &map);
    PMIX_INFO_LOAD(info, key, map, PMIX_REGEX);
    info->value.data.bo.size -= (size_t)cut;
    free(map);
}

/* One of those in PMIX_ALLOC_NETWORK; false: it is none. */
static bool load_network(pmix_info_t *info, const char *word)
{
    static const struct {
        const char *word, *key;
        pmix_data_type_t type;
    } all[] = {{"key", PMIX_ALLOC_FABRIC_SEC_KEY, PMIX_BOOL},
               {"id=", PMIX_ALLOC_FABRIC_ID, PMIX_STRING},
               {"plane=", PMIX_ALLOC_FABRIC_PLANE, PMIX_STRING},
               {"type=", PMIX_ALLOC_FABRIC_TYPE, PMIX_STRING},
               {"endpts=", PMIX_ALLOC_FABRIC_ENDPTS, PMIX_SIZE},
               {"nodendpts=", PMIX_ALLOC_FABRIC_ENDPTS_NODE, PMIX_SIZE},
               {"qos=", PMIX_ALLOC_FABRIC_QOS, PMIX_STRING},
               {"bw=", PMIX_ALLOC_BANDWIDTH, PMIX_FLOAT}};
    const bool required = word[0] == '!';
    word += required;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const char *text = word + strlen(all[i].word);
        const size_t number = strtoul(text, NULL, 10);
        const float bandwidth = strtof(text, NULL);
        if (strncmp(word, all[i].word, strlen(all[i].word)) != 0)
            continue;
        PMIX_INFO_LOAD(info, all[i].key,
                       all[i].type == PMIX_STRING  ? (const void *)text
                       : all[i].type == PMIX_SIZE  ? (const void *)&number
                       : all[i].type == PMIX_FLOAT ? (const void *)&bandwidth
                                                   : NULL,
                       all[i].type);
        if (required)
            PMIX_INFO_REQUIRED(info);
        return true;
    }
    return false;
}

static bool load_word(pmix_info_t *info, char *word, const char *cut)
{
    pmix_proc_t parent;
    if (strncmp(word, "nodes=", 6) == 0)
        load_map(info, PMIX_NODE_MAP, word + 6, PMIx_generate_regex, cut == NULL ? 0 : atol(cut));
    else if (strncmp(word, "ranks=", 6) == 0)
        load_map(info, PMIX_PROC_MAP, word + 6, PMIx_generate_ppn, 0);
    else if (strncmp(word, "nodemap=", 8) == 0)
        PMIX_INFO_LOAD(info, PMIX_NODE_MAP, word + 8, PMIX_STRING);
    else if (strncmp(word, "procmap=", 8) == 0)
        PMIX_INFO_LOAD(info, PMIX_PROC_MAP, word + 8, PMIX_STRING);
    else if (strcmp(word, "envars") == 0)
        PMIX_INFO_LOAD(info, PMIX_SETUP_APP_ENVARS, NULL, PMIX_BOOL);
    else if (strcmp(word, "others") == 0)
        PMIX_INFO_LOAD(info, PMIX_SETUP_APP_NONENVARS, NULL, PMIX_BOOL);
    else if (strcmp(word, "all") == 0)
        PMIX_INFO_LOAD(info, PMIX_SETUP_APP_ALL, NULL, PMIX_BOOL);
    else if (strncmp(word, "parent=", 7) == 0) {
        PMIX_LOAD_PROCID(&parent, word + 7, 0);
        PMIX_INFO_LOAD(info, PMIX_PARENT_ID, &parent, PMIX_PROC);
    } else
        return false;
    return true;
}

static void set_up(const char *job, char *words)
{
    pmix_info_t infos[MAX_INFOS], *network;
    const char *cut = strstr(words, "cutmap=");
    size_t n = 0, n_network = 0;
    PMIX_INFO_CREATE(network, MAX_INFOS);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
        n_network += load_network(&network[n_network], word);
        PMIX_INFO_CONSTRUCT(&infos[n]);
        n += load_word(&infos[n], word, cut == NULL ? NULL : cut + 7);
    }
    if (n_network > 0) {
        PMIX_LOAD_KEY(infos[n].key, PMIX_ALLOC_FABRIC);
        infos[n].flags = 0;
        infos[n].value.type = PMIX_DATA_ARRAY;
        pmix_data_array_t *array = malloc(sizeof(*array)); /* 5.0's macro makes none of no elements */
        *array = (pmix_data_array_t){.type = PMIX_INFO, .size = n_network, .array = network};
        infos[n].value.data.darray = array;
        n++;
    }
    answered = false;
    pmix_status_t rc = PMIx_server_setup_application(job, infos, n, on_setup, NULL);
    pthread_mutex_lock(&lock);
    while (rc == PMIX_SUCCESS && !answered)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (rc != PMIX_SUCCESS)
        starter_say(rc);
    for (size_t i = 0; i < n; i++)
        PMIX_INFO_DESTRUCT(&infos[i]);
    if (n_network == 0)
        PMIX_INFO_FREE(network, MAX_INFOS);
}

/* ---- a node ----------------------------------------------------------------------------------------- */

/* flip=N: one byte changed; cut=N: so many less; empty: none; text: a string in its place. */
static void damage(pmix_value_t *value, const char *word)
{
    pmix_byte_object_t *bytes = &value->data.bo;
    if (strncmp(word, "flip=", 5) == 0)
        bytes->bytes[strtoul(word + 5, NULL, 10) % bytes->size] ^= 1;
    else if (strncmp(word, "cut=", 4) == 0)
        bytes->size -= strtoul(word + 4, NULL, 10);
    else if (strcmp(word, "empty") == 0)
        bytes->size = 0;
    else if (strcmp(word, "text") == 0) {
        PMIX_VALUE_DESTRUCT(value);
        PMIX_VALUE_LOAD(value, "text", PMIX_STRING);
    }
}

static void set_up_here(const char *job, const char *word)
{
    pmix_info_t *infos;
    PMIX_INFO_CREATE(infos, n_kept + 1);
    for (size_t i = 0; i < n_kept; i++) {
        PMIX_INFO_XFER(&infos[i], &kept[i]);
        if (infos[i].value.type == PMIX_BYTE_OBJECT)
            damage(&infos[i].value, word);
    }
    starter_say(PMIx_server_setup_local_support(job, infos, n_kept, NULL, NULL));
    PMIX_INFO_FREE(infos, n_kept + 1);
}

static void register_job(const char *job, const char *nodes, const char *ranks)
{
    pmix_info_t infos[3];
    uint32_t size = 1;
    for (const char *at = ranks; *at != '\0'; at++)
        size += *at == ',' || *at == ';';
    PMIX_INFO_CONSTRUCT(&infos[0]);
    PMIX_INFO_CONSTRUCT(&infos[1]);
    load_map(&infos[0], PMIX_NODE_MAP, nodes, PMIx_generate_regex, 0);
    load_map(&infos[1], PMIX_PROC_MAP, ranks, PMIx_generate_ppn, 0);
    PMIX_INFO_LOAD(&infos[2], PMIX_JOB_SIZE, &size, PMIX_UINT32);
    starter_say(PMIx_server_register_nspace(job, 1, infos, 3, NULL, NULL));
}

static void fork_of(const char *job, const char *rank, const char *before)
{
    pmix_proc_t proc;
    char **env = NULL;
    pmix_status_t rc = PMIX_SUCCESS;
    PMIX_LOAD_PROCID(&proc, job, (pmix_rank_t)atol(rank));
    if (before[0] != '\0')
        PMIX_ARGV_APPEND(rc, env, before);
    if (rc == PMIX_SUCCESS)
        rc = PMIx_server_setup_fork(&proc, &env);
    starter_say(rc);
    for (size_t i = 0; env != NULL && env[i] != NULL; i++)
        if (strncmp(env[i], "PMIX_", 5) != 0 || strncmp(env[i], "PMIX_RANK=", 10) == 0)
            printf(" %s", env[i]);
    PMIX_ARGV_FREE(env);
}

/* It ends with its input, which is this program's. */
static void run_as(const char *job, const char *rank, const char *program, const char *file)
{
    pmix_proc_t proc;
    char **env = NULL;
    PMIX_LOAD_PROCID(&proc, job, (pmix_rank_t)atol(rank));
    pmix_status_t rc;
    for (char **one = environ; *one != NULL; one++)
        PMIX_ARGV_APPEND(rc, env, *one);
    rc = PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, NULL, NULL);
    if (rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED)
        rc = PMIx_server_setup_fork(&proc, &env);
    int ends[2];
    if (rc == PMIX_SUCCESS && pipe2(ends, O_CLOEXEC) == 0 && fork() == 0) {
        dup2(ends[0], STDIN_FILENO);
        execle(program, program, file, NULL, env);
        _exit(1);
    }
    starter_say(rc);
    PMIX_ARGV_FREE(env);
}

static void get_of(const char *job, const char *rank, const char *key)
{
    pmix_value_t *value = NULL;
    pmix_info_t infos[3];
    pmix_proc_t proc;
    const bool node = rank[0] == '@', wildcard = node || strcmp(rank, "job") == 0;
    PMIX_LOAD_PROCID(&proc, job, wildcard ? PMIX_RANK_WILDCARD : (pmix_rank_t)atol(rank));
    PMIX_INFO_LOAD(&infos[0], PMIX_OPTIONAL, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&infos[1], PMIX_HOSTNAME, rank + node, PMIX_STRING);
    PMIX_INFO_LOAD(&infos[2], PMIX_NODE_INFO, NULL, PMIX_BOOL);
    pmix_status_t rc = PMIx_Get(&proc, key, infos, node ? 3 : 1, &value);
    if (rc != PMIX_SUCCESS)
        starter_say(rc);
    else
        print_value(value);
}

static void keep_in(const char *path)
{
    FILE *out = fopen(path, "wb");
    for (size_t i = 0; out != NULL && i < n_kept; i++)
        if (kept[i].value.type == PMIX_BYTE_OBJECT)
            fwrite(kept[i].value.data.bo.bytes, 1, kept[i].value.data.bo.size, out);
    starter_say(out != NULL && fclose(out) == 0 ? PMIX_SUCCESS : PMIX_ERROR);
}

/* What another starter has written with `blob`. */
static void keep_from(const char *path)
{
    static char bytes[1u << 20];
    FILE *in = fopen(path, "rb");
    const size_t n = in == NULL ? 0 : fread(bytes, 1, sizeof(bytes), in);
    pmix_byte_object_t object = {.bytes = bytes, .size = n};
    if (in != NULL)
        fclose(in);
    PMIX_INFO_LOAD(&kept[n_kept++], "fabricd.launch", &object, PMIX_BYTE_OBJECT);
    starter_say(n > 0 ? PMIX_SUCCESS : PMIX_ERROR);
}

/* ---- all -------------------------------------------------------------------------------------------- */

static void obey(char *line)
{
    char what[16] = "", first[256] = "", second[512] = "", third[512] = "", fourth[512] = "";
    int rest = 0;
    sscanf(line, "%15s %255s%n %511s %511s %511s", what, first, &rest, second, third, fourth);
    if (strcmp(what, "register") == 0)
        register_job(first, second, third);
    else if (strcmp(what, "app") == 0)
        set_up(first, line + rest);
    else if (strcmp(what, "local") == 0)
        set_up_here(first, second);
    else if (strcmp(what, "blob") == 0)
        keep_in(first);
    else if (strcmp(what, "keep") == 0)
        keep_from(first);
    else if (strcmp(what, "fork") == 0)
        fork_of(first, second, third);
    else if (strcmp(what, "run") == 0)
        run_as(first, second, third, fourth);
    else if (strcmp(what, "get") == 0)
        get_of(first, second, third);
    else if (strcmp(what, "end") == 0)
        PMIx_server_deregister_nspace(first, NULL, NULL);
    else if (strcmp(what, "drop") == 0)
        n_kept = 0;
    putchar('\n');
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static pmix_server_module_t functions;
    static char line[1u << 20];
    pmix_info_t info;
    if (argc != 2)
        return 2;
    PMIX_INFO_LOAD(&info, PMIX_HOSTNAME, argv[1], PMIX_STRING);
    if (PMIx_server_init(&functions, &info, 1) != PMIX_SUCCESS)
        return 1;
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        obey(line);
    }
    return PMIx_server_finalize() == PMIX_SUCCESS ? 0 : 1;
}
