/*
 * stock_chapter.c - asks a server everything that the standard's chapter on fabrics has, and prints it as
 * JSON.
 *
 *   stock_chapter URI register [DIRECTIVE...]
 *   stock_chapter URI register_nb [DIRECTIVE...]   the non-blocking forms: register, update, deregister
 *   stock_chapter URI update INDEX                 of an object with that index
 *   stock_chapter URI query KEY[,KEY...] [QUALIFIER...]
 *   stock_chapter URI get [WHO/]KEY [QUALIFIER...] [then ...]   one after the other: an array
 *   stock_chapter URI flood N [left]               N requests at once, of all kinds: the number of answers
 *
 * URI: of the server whose tool it is; "client": it is one of the server that has started it.
 * WHO is NSPACE:RANK; no NSPACE: the own one; RANK: any, undef. "left": go away without waiting for answers.
 * A directive or qualifier is [COUNT*][!]KEY=T:VALUE, required with the mark, with T one of s string, S
 * string of VALUE times x, z size, u uint32, i int, b bool, n nothing at all. Knows only the stock PMIx
 * library. Status 0, or 1 with the name of the error on standard error.
 */
#include <pmix_tool.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/integration/stock_json.h"
#include "test/integration/stock_status.h"

static int fail(const char *what, pmix_status_t rc)
{
    fprintf(stderr, "%s: %s (%d)\n", what, stock_status(rc), rc);
    return 1;
}

/* ---- what is asked ----------------------------------------------------------------------------------- */

static void load_value(pmix_info_t *info, const char *key, char type, const char *text)
{
    size_t size = strtoul(text, NULL, 10);
    uint32_t small = (uint32_t)size;
    int number = atoi(text);
    bool flag = atoi(text) != 0;
    char *longer;
    switch (type) {
    case 's':
        PMIX_INFO_LOAD(info, key, text, PMIX_STRING);
        break;
    case 'S':
        longer = calloc(size + 1, 1);
        memset(longer, 'x', size);
        PMIX_INFO_LOAD(info, key, longer, PMIX_STRING);
        free(longer);
        break;
    case 'z':
        PMIX_INFO_LOAD(info, key, &size, PMIX_SIZE);
        break;
    case 'u':
        PMIX_INFO_LOAD(info, key, &small, PMIX_UINT32);
        break;
    case 'i':
        PMIX_INFO_LOAD(info, key, &number, PMIX_INT);
        break;
    case 'b':
        PMIX_INFO_LOAD(info, key, &flag, PMIX_BOOL);
        break;
    default: /* a string that is not there */
        PMIX_INFO_CONSTRUCT(info);
        PMIX_LOAD_KEY(info->key, key);
        info->value.type = PMIX_STRING;
    }
}

static void load(pmix_info_t *info, const char *key, char type, const char *text)
{
    load_value(info, key[0] == '!' ? key + 1 : key, type, text);
    if (key[0] == '!')
        PMIX_INFO_REQUIRED(info);
}

/* The infos that the arguments say, with `more` free places at the end; *n without those. */
static pmix_info_t *parse(char **args, int n_args, size_t more, size_t *n)
{
    size_t total = more + 1;
    pmix_info_t *info;
    *n = 0;
    for (int i = 0; i < n_args; i++)
        total += strchr(args[i], '*') != NULL ? strtoul(args[i], NULL, 10) : 1;
    PMIX_INFO_CREATE(info, total);
    for (int i = 0; i < n_args; i++) {
        char *star = strchr(args[i], '*'), *equals = strchr(args[i], '=');
        size_t times = star != NULL ? strtoul(args[i], NULL, 10) : 1;
        if (equals == NULL || equals[1] == '\0' || equals[2] != ':')
            exit(2);
        *equals = '\0';
        for (size_t k = 0; k < times; k++)
            load(&info[(*n)++], star != NULL ? star + 1 : args[i], equals[1], equals + 3);
        *equals = '=';
    }
    return info;
}

static int do_register(char **args, int n_args)
{
    size_t n;
    pmix_info_t *directives = parse(args, n_args, 0, &n);
    pmix_fabric_t fabric;
    PMIX_FABRIC_CONSTRUCT(&fabric);
    pmix_status_t rc = PMIx_Fabric_register(&fabric, n > 0 ? directives : NULL, n);
    if (rc != PMIX_SUCCESS)
        return fail("register", rc);
    print_infos(fabric.info, fabric.ninfo);
    printf("\n");
    rc = PMIx_Fabric_deregister(&fabric);
    fprintf(stderr, "deregister: %s\n", stock_status(rc));
    return rc == PMIX_SUCCESS ? 0 : 1;
}

static int do_update(const char *index)
{
    pmix_fabric_t fabric;
    PMIX_FABRIC_CONSTRUCT(&fabric);
    fabric.index = strtoul(index, NULL, 10);
    pmix_status_t rc = PMIx_Fabric_update(&fabric);
    if (rc != PMIX_SUCCESS)
        return fail("update", rc);
    print_infos(fabric.info, fabric.ninfo);
    printf("\n");
    return 0;
}

/* The callbacks of one object's calls, one after the other. */
static atomic_int calls_back, last_status;

static void on_done(pmix_status_t status, void *cbdata)
{
    (void)cbdata;
    atomic_store(&last_status, status);
    atomic_fetch_add(&calls_back, 1);
}

/* What a non-blocking call comes to: its own status, or that of its callback, which is the nth. */
static pmix_status_t outcome(pmix_status_t rc, int nth)
{
    if (rc != PMIX_SUCCESS)
        return rc;
    while (atomic_load(&calls_back) < nth)
        usleep(100);
    return atomic_load(&last_status);
}

static int do_register_nb(char **args, int n_args)
{
    size_t n;
    pmix_info_t *directives = parse(args, n_args, 0, &n);
    pmix_fabric_t fabric;
    PMIX_FABRIC_CONSTRUCT(&fabric);
    pmix_status_t rc =
        outcome(PMIx_Fabric_register_nb(&fabric, n > 0 ? directives : NULL, n, on_done, NULL), 1);
    if (rc != PMIX_SUCCESS)
        return fail("register", rc);
    printf("{\"register\": ");
    print_infos(fabric.info, fabric.ninfo);
    PMIX_INFO_FREE(fabric.info, fabric.ninfo);
    rc = outcome(PMIx_Fabric_update_nb(&fabric, on_done, NULL), 2);
    if (rc != PMIX_SUCCESS)
        return fail("update", rc);
    printf(", \"update\": ");
    print_infos(fabric.info, fabric.ninfo);
    rc = PMIx_Fabric_deregister_nb(&fabric, on_done, NULL);
    printf(", \"deregister\": \"%s\", \"called back\": %d}\n", stock_status(rc), calls_back);
    return 0;
}

static pmix_query_t *make_query(char *keys, char **args, int n_args)
{
    pmix_query_t *query;
    bool yes = true;
    pmix_status_t rc = PMIX_SUCCESS;
    PMIX_QUERY_CREATE(query, 1);
    for (char *key = strtok(keys, ","); key != NULL; key = strtok(NULL, ",")) {
        char *star = strchr(key, '*');
        unsigned long times = star != NULL ? strtoul(key, NULL, 10) : 1;
        for (unsigned long k = 0; k < times; k++)
            PMIX_ARGV_APPEND(rc, query->keys, star != NULL ? star + 1 : key);
    }
    (void)rc;
    query->qualifiers = parse(args, n_args, 1, &query->nqual);
    /* without it the library answers from what it was told before */
    PMIX_INFO_LOAD(&query->qualifiers[query->nqual], PMIX_QUERY_REFRESH_CACHE, &yes, PMIX_BOOL);
    query->nqual++;
    return query;
}

static int do_query(char **args, int n_args)
{
    pmix_info_t *results = NULL;
    size_t n = 0;
    pmix_status_t rc = PMIx_Query_info(make_query(args[0], args + 1, n_args - 1), 1, &results, &n);
    if (rc != PMIX_SUCCESS)
        return fail("query", rc);
    print_infos(results, n);
    printf("\n");
    return 0;
}

/* "NSPACE:RANK/KEY": the data of that process; "KEY": of nobody in particular. Returns the key. */
static const char *parse_who(const char *arg, pmix_proc_t *proc)
{
    char nspace[PMIX_MAX_NSLEN + 1];
    const char *colon = strrchr(arg, ':'), *slash = colon == NULL ? NULL : strchr(colon, '/');
    if (slash == NULL)
        return arg;
    snprintf(nspace, sizeof(nspace), "%.*s", (int)(colon - arg), arg);
    PMIX_LOAD_PROCID(proc, nspace, (pmix_rank_t)strtoul(colon + 1, NULL, 10));
    if (strncmp(colon, ":any/", 5) == 0)
        proc->rank = PMIX_RANK_WILDCARD;
    else if (strncmp(colon, ":undef/", 7) == 0)
        proc->rank = PMIX_RANK_UNDEF;
    return slash + 1;
}

static int get_one(const char *before, char **args, int n_args)
{
    size_t n;
    uint32_t seconds = 3;
    pmix_proc_t proc;
    pmix_value_t *value = NULL;
    pmix_info_t *info = parse(args + 1, n_args - 1, 1, &n);
    const char *key = parse_who(args[0], &proc);
    PMIX_INFO_LOAD(&info[n], PMIX_TIMEOUT, &seconds, PMIX_UINT32);
    n++;
    pmix_status_t rc = PMIx_Get(key == args[0] ? NULL : &proc, key, info, n, &value);
    if (rc != PMIX_SUCCESS)
        return fail("get", rc);
    printf("%s", before);
    print_value(value);
    return 0;
}

static int do_get(char **args, int n_args)
{
    int status = 0;
    for (int i = 0, end; status == 0 && i < n_args; i = end + 1) {
        for (end = i; end < n_args && strcmp(args[end], "then") != 0; end++)
            ;
        status = get_one(i > 0 ? ", " : "[", args + i, end - i);
    }
    printf("%s", status == 0 ? "]\n" : "");
    return status;
}

/* ---- many at once ------------------------------------------------------------------------------------ */

static atomic_uint answers, good, twice;

struct pending {
    pmix_fabric_t fabric;
    pmix_query_t *query;
    atomic_uint answers;
};

static void count_answer(struct pending *pending, pmix_status_t status)
{
    if (atomic_fetch_add(&pending->answers, 1) > 0)
        atomic_fetch_add(&twice, 1);
    if (status == PMIX_SUCCESS)
        atomic_fetch_add(&good, 1);
    atomic_fetch_add(&answers, 1);
}

static void on_fabric(pmix_status_t status, void *cbdata)
{
    count_answer(cbdata, status);
}

static void on_query(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                     pmix_release_cbfunc_t release, void *release_data)
{
    (void)info, (void)n;
    if (release != NULL)
        release(release_data);
    count_answer(cbdata, status);
}

static pmix_status_t ask(struct pending *pending, unsigned i)
{
    char key[] = PMIX_FABRIC_GROUPS, of_node[] = PMIX_FABRIC_DEVICES, host[] = PMIX_HOSTNAME "=s:node0001";
    char *args[] = {host};
    PMIX_FABRIC_CONSTRUCT(&pending->fabric);
    switch (i % 4) {
    case 0:
        return PMIx_Fabric_register_nb(&pending->fabric, NULL, 0, on_fabric, pending);
    case 1:
        return PMIx_Fabric_update_nb(&pending->fabric, on_fabric, pending);
    case 2:
        pending->query = make_query(key, NULL, 0);
        break;
    default:
        pending->query = make_query(of_node, args, 1);
    }
    return PMIx_Query_info_nb(pending->query, 1, on_query, pending);
}

static int do_flood(unsigned n, bool wait)
{
    struct pending *all = calloc(n, sizeof(*all));
    for (unsigned i = 0; i < n; i++) {
        pmix_status_t rc = ask(&all[i], i);
        if (rc != PMIX_SUCCESS)
            return fail("flood", rc);
    }
    if (!wait) {
        printf("left\n");
        fflush(stdout);
        _exit(0);
    }
    for (int ms = 0; atomic_load(&answers) < n && ms < 40000; ms++) /* less than the test waits for it */
        usleep(1000);
    usleep(50000); /* for an answer too many */
    printf("{\"answers\": %u, \"good\": %u, \"twice\": %u}\n", answers, good, twice);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4 && !(argc == 3 && strncmp(argv[2], "register", 8) == 0)) {
        fprintf(stderr, "usage: stock_chapter URI register|update|query|get|flood ...\n");
        return 2;
    }
    pmix_proc_t self;
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_SERVER_URI, argv[1], PMIX_STRING);
    const bool is_client = strcmp(argv[1], "client") == 0;
    pmix_status_t rc = is_client ? PMIx_Init(&self, NULL, 0) : PMIx_tool_init(&self, &info, 1);
    if (rc != PMIX_SUCCESS)
        return fail("connect", rc);
    int status = 2;
    if (strcmp(argv[2], "register") == 0)
        status = do_register(argv + 3, argc - 3);
    else if (strcmp(argv[2], "register_nb") == 0)
        status = do_register_nb(argv + 3, argc - 3);
    else if (strcmp(argv[2], "update") == 0)
        status = do_update(argv[3]);
    else if (strcmp(argv[2], "query") == 0)
        status = do_query(argv + 3, argc - 3);
    else if (strcmp(argv[2], "get") == 0)
        status = do_get(argv + 3, argc - 3);
    else if (strcmp(argv[2], "flood") == 0)
        status = do_flood((unsigned)atoi(argv[3]), argc < 5);
    fflush(stdout);
    if (is_client)
        PMIx_Finalize(NULL, 0);
    else
        PMIx_tool_finalize();
    return status;
}
