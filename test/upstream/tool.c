/*
 * tool.c - a caller with the stock library: a tool, or a process of a job.
 *
 *   tool URI | client
 *
 * Prints "init STATUS NSPACE RANK", takes one command a line, and prints a line for each. It ends when its
 * input does, without finalize.
 */
#include <dlfcn.h>
#include <pmix.h>
#include <pmix_server.h>
#include <pmix_tool.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "test/upstream/lines.h"

static pmix_proc_t self;
static pmix_fabric_t fabric;

/* Infos from the words from a number on. */
static pmix_info_t *load_words(char **words, size_t *n)
{
    pmix_info_t *info;
    *n = 0;
    while (words[*n] != NULL)
        ++*n;
    PMIX_INFO_CREATE(info, *n);
    for (size_t i = 0; i < *n; i++)
        load_word(&info[i], words[i]);
    return info;
}

/* ---- facts ------------------------------------------------------------------------------------------- */

/* get KEY NSPACE RANK [QUALIFIER...]; NSPACE "-": no process, "=": the caller's; RANK -2: the wildcard */
static void do_get(char **words)
{
    pmix_proc_t proc;
    pmix_value_t *value = NULL;
    size_t n;
    pmix_info_t *info = load_words(&words[4], &n);
    PMIX_LOAD_PROCID(&proc, words[2][0] == '=' ? self.nspace : words[2], (pmix_rank_t)atol(words[3]));
    pmix_status_t rc = PMIx_Get(words[2][0] == '-' ? NULL : &proc, words[1], info, n, &value);
    say_value("got", rc, value);
}

/* query KEY [QUALIFIER...] */
static void do_query(char **words)
{
    pmix_query_t *query;
    pmix_info_t *results = NULL;
    size_t nresults = 0, n;
    pmix_status_t rc;
    PMIX_QUERY_CREATE(query, 1);
    PMIX_ARGV_APPEND(rc, query->keys, words[1]);
    query->qualifiers = load_words(&words[2], &n);
    query->nqual = n;
    rc = PMIx_Query_info(query, 1, &results, &nresults);
    if (nresults > 0)
        say_value("answer", rc, &results[0].value);
    else
        say("answer %d -", (int)rc);
    PMIX_QUERY_FREE(query, 1);
    PMIX_INFO_FREE(results, nresults);
}

/* queries KEY N: whether they succeed is not looked at */
static void do_queries(char **words)
{
    for (long i = atol(words[2]); i > 0; i--) {
        pmix_query_t *query;
        pmix_info_t *results = NULL;
        size_t nresults = 0;
        pmix_status_t rc;
        PMIX_QUERY_CREATE(query, 1);
        PMIX_ARGV_APPEND(rc, query->keys, words[1]);
        if (rc == PMIX_SUCCESS)
            (void)PMIx_Query_info(query, 1, &results, &nresults);
        PMIX_QUERY_FREE(query, 1);
        PMIX_INFO_FREE(results, nresults);
    }
    say("queries 0");
}

static void on_found(pmix_status_t status, pmix_pdata_t data[], size_t n, void *cbdata)
{
    static unsigned called;
    (void)data, (void)cbdata;
    say("found %d %zu call %u", (int)status, n, ++called);
}

static void do_lookup(char **words)
{
    char *keys[] = {words[1], NULL};
    say("lookup %d", (int)PMIx_Lookup_nb(keys, NULL, 0, on_found, NULL));
}

static void do_put(char **words)
{
    pmix_value_t value;
    PMIX_VALUE_LOAD(&value, words[2], PMIX_STRING);
    pmix_status_t rc = PMIx_Put(PMIX_GLOBAL, words[1], &value);
    say("put %d %d", (int)rc, (int)PMIx_Commit());
}

/* ---- the fabric ---------------------------------------------------------------------------------------- */

static void do_register(char **words)
{
    size_t n;
    pmix_info_t *info = load_words(&words[1], &n);
    PMIX_FABRIC_CONSTRUCT(&fabric);
    pmix_status_t rc = PMIx_Fabric_register(&fabric, info, n);
    say("fabric %d index %zu infos %zu", (int)rc, fabric.index, fabric.ninfo);
}

static void on_registered(pmix_status_t status, void *cbdata)
{
    (void)cbdata;
    say("registered %d", (int)status);
}

static void do_register_nb(char **words)
{
    (void)words;
    PMIX_FABRIC_CONSTRUCT(&fabric);
    pmix_status_t rc = PMIx_Fabric_register_nb(&fabric, NULL, 0, on_registered, NULL);
    if (rc != PMIX_SUCCESS)
        say("registered %d", (int)rc);
}

/* update INDEX N */
static void do_update(char **words)
{
    pmix_status_t rc = PMIX_SUCCESS;
    for (long i = atol(words[2]); i > 0 && rc == PMIX_SUCCESS; i--) {
        fabric.index = strtoul(words[1], NULL, 10);
        rc = PMIx_Fabric_update(&fabric);
    }
    say("update %d infos %zu", (int)rc, fabric.ninfo);
}

/* ---- others -------------------------------------------------------------------------------------------- */

static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                     size_t n, pmix_info_t *results, size_t nresults,
                     pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)handler, (void)info, (void)n, (void)results, (void)nresults;
    say("event %d %s %u", (int)status, source == NULL ? "-" : source->nspace,
        source == NULL ? 0 : (unsigned)source->rank);
    if (done != NULL)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void do_listen(char **words)
{
    pmix_status_t code = (pmix_status_t)atoi(words[1]);
    say("listen %d", (int)PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL));
}

static void do_log(char **words)
{
    pmix_info_t info;
    (void)words;
    PMIX_INFO_LOAD(&info, PMIX_LOG_STDERR, "a line\n", PMIX_STRING);
    say("log %d", (int)PMIx_Log(&info, 1, NULL, 0));
}

static void on_connected(pmix_status_t status, void *cbdata)
{
    (void)cbdata;
    say("connected %d", (int)status);
}

/* connect N TIMEOUT: ranks 0 to N - 1 of the caller's job */
static void do_connect(char **words)
{
    static pmix_proc_t procs[8];
    static pmix_info_t info;
    const size_t n = strtoul(words[1], NULL, 10) % 8;
    int timeout = atoi(words[2]);
    for (size_t i = 0; i < n; i++)
        PMIX_LOAD_PROCID(&procs[i], self.nspace, (pmix_rank_t)i);
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &timeout, PMIX_INT);
    say("connect %d", (int)PMIx_Connect_nb(procs, n, &info, 1, on_connected, NULL));
}

static void do_attach(char **words)
{
    pmix_proc_t server;
    pmix_info_t info[2];
    bool yes = true;
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_URI, words[1], PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_PRIMARY_SERVER, &yes, PMIX_BOOL);
    say("attached %d", (int)PMIx_tool_attach_to_server(&self, &server, info, 2));
}

static void do_heap(char **words)
{
    (void)words;
    say_heap();
}

/* PMIX_COORD_CREATE of a pointer that was not set; 2 dimensions of 3 views. */
static void do_coordinates(char **words)
{
    pmix_coord_t *coordinates;
    (void)words;
    memset(&coordinates, 0x41, sizeof(coordinates)); /* as the stack leaves it */
    PMIX_COORD_CREATE(coordinates, 3, 2);
    say("coordinates %s", coordinates == NULL ? "none" : "made");
}

/* The lines that pattrs writes of an attribute whose description is one long line. */
static void do_print_attribute(char **words)
{
    static char text[1500];
    char *description[] = {text, NULL}, **lines = NULL;
    pmix_regattr_t attribute = {.type = PMIX_STRING, .description = description};
    void (*print)(char ***lines, char *function, pmix_regattr_t *attributes, size_t n);
    size_t longest = 0;
    (void)words;
    *(void **)&print = dlsym(RTLD_DEFAULT, "pmix_attributes_print_attrs");
    if (print == NULL) {
        say("longest none");
        return;
    }
    memset(text, 'x', sizeof(text) - 1);
    attribute.name = "PMIX_FABRIC_VENDOR";
    PMIX_LOAD_KEY(attribute.string, PMIX_FABRIC_VENDOR);
    print(&lines, "PMIx_Query_info", &attribute, 1);
    for (size_t i = 0; lines != NULL && lines[i] != NULL; i++)
        longest = strlen(lines[i]) > longest ? strlen(lines[i]) : longest;
    say("longest %zu", longest);
}

static bool is_client;

static void do_finalize(char **words)
{
    (void)words;
    say("finalized %d", (int)(is_client ? PMIx_Finalize(NULL, 0) : PMIx_tool_finalize()));
}

/* ---- the program --------------------------------------------------------------------------------------- */

static const struct command {
    const char *name;
    void (*fn)(char **words);
    int words;
} commands[] = {
    {"get", do_get, 4},           {"query", do_query, 2},
    {"queries", do_queries, 3},   {"lookup", do_lookup, 2},
    {"put", do_put, 3},           {"register", do_register, 1},
    {"update", do_update, 3},     {"register_nb", do_register_nb, 1},
    {"listen", do_listen, 2},     {"log", do_log, 1},
    {"connect", do_connect, 3},   {"attach", do_attach, 2},
    {"heap", do_heap, 1},         {"coordinates", do_coordinates, 1},
    {"finalize", do_finalize, 1}, {"print-attribute", do_print_attribute, 1},
};

static pmix_status_t start(int argc, char **argv)
{
    pmix_info_t info;
    is_client = argc == 2 && strcmp(argv[1], "client") == 0;
    if (is_client)
        return PMIx_Init(&self, NULL, 0);
    PMIX_INFO_LOAD(&info, PMIX_SERVER_URI, argv[1], PMIX_STRING);
    return PMIx_tool_init(&self, &info, 1);
}

int main(int argc, char **argv)
{
    static char line[65536];
    char *words[MOST_WORDS + 1];
    int n;
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return 2;
    const pmix_status_t rc = start(argc, argv);
    say("init %d %s %u", (int)rc, self.nspace, (unsigned)self.rank);
    while ((n = read_words(line, sizeof(line), words)) >= 0) {
        const struct command *found = NULL;
        for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
            if (n >= commands[i].words && strcmp(words[0], commands[i].name) == 0)
                found = &commands[i];
        if (found == NULL)
            _exit(2);
        found->fn(words);
    }
    _exit(0);
}
