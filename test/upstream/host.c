/*
 * host.c - a PMIx server with the few functions that its library needs to show its faults.
 *
 *   host NSPACE [KEY=TEXT | KEY#NUMBER | KEY!]...      (attributes for PMIx_server_init)
 *
 * Prints "ready", takes one command a line, and prints a line for each, and one for each call of its
 * functions. It ends when its input does, without finalize. With UPSTREAM_TOOL in its environment it is a
 * tool, too. Which answers its functions give: the keys below "answers".
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pmix.h>
#include <pmix_server.h>
#include <pmix_tool.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <src/include/pmix_config.h>

#include <src/mca/pnet/pnet.h>

#include "test/upstream/lines.h"

#define BIG (1u << 20)

static bool fabric_refuses, quiet;
static pmix_proc_t self;

/* ---- answers ---------------------------------------------------------------------------------------- */

static void release(void *cbdata)
{
    pmix_info_t *info = cbdata;
    PMIX_INFO_FREE(info, 2);
}

static pmix_info_t *two_infos(void)
{
    pmix_info_t *info;
    size_t index = 7;
    PMIX_INFO_CREATE(info, 2);
    PMIX_INFO_LOAD(&info[0], PMIX_FABRIC_INDEX, &index, PMIX_SIZE);
    PMIX_INFO_LOAD(&info[1], PMIX_FABRIC_VENDOR, "vendor", PMIX_STRING);
    return info;
}

static void tool_connected(pmix_info_t *info, size_t n, pmix_tool_connection_cbfunc_t cbfunc, void *cbdata)
{
    static unsigned last;
    pmix_proc_t tool;
    unsigned uid = 0;
    snprintf(tool.nspace, sizeof(tool.nspace), "tool%u", ++last);
    tool.rank = 0;
    for (size_t i = 0; i < n; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_NSPACE))
            snprintf(tool.nspace, sizeof(tool.nspace), "%s", info[i].value.data.string);
        else if (PMIX_CHECK_KEY(&info[i], PMIX_RANK))
            tool.rank = info[i].value.data.rank;
        else if (PMIX_CHECK_KEY(&info[i], PMIX_USERID))
            uid = info[i].value.data.uint32;
    }
    if (!quiet)
        say("connected %s uid %u", tool.nspace, uid);
    cbfunc(PMIX_SUCCESS, &tool, cbdata);
}

static pmix_status_t client_connected(const pmix_proc_t *proc, void *object, pmix_info_t *info, size_t n,
                                      pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)object, (void)info, (void)n, (void)cbfunc, (void)cbdata;
    say("client %s %u", proc->nspace, proc->rank);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t client_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t cbfunc,
                                      void *cbdata)
{
    (void)proc, (void)object, (void)cbfunc, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

/* Of the key "hold" there is no answer, "refuse" is refused at once, and "fail" later; "big" is a MiB. */
static pmix_status_t answer_query(pmix_proc_t *requestor, pmix_query_t *queries, size_t n,
                                  pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    static unsigned changes;
    (void)requestor;
    const char *key = n == 0 || queries->keys == NULL ? NULL : queries->keys[0];
    if (!quiet) {
        const pmix_info_t *first = key == NULL || queries->nqual == 0 ? NULL : queries->qualifiers;
        say("query %s %s %s", key == NULL ? "-" : key, first == NULL ? "-" : first->key,
            first == NULL || first->value.type != PMIX_STRING ? "-" : first->value.data.string);
    }
    if (key == NULL || strcmp(key, "refuse") == 0)
        return PMIX_ERR_NOT_FOUND;
    if (strcmp(key, "hold") == 0)
        return PMIX_SUCCESS;
    if (strcmp(key, "fail") == 0) {
        cbfunc(PMIX_ERR_NOT_FOUND, NULL, 0, cbdata, NULL, NULL);
        return PMIX_SUCCESS;
    }
    pmix_info_t *info = two_infos();
    if (strcmp(key, "big") == 0) {
        char *text = malloc(BIG);
        memset(text, 'x', BIG - 1);
        text[BIG - 1] = '\0';
        PMIX_INFO_LOAD(&info[0], key, text, PMIX_STRING);
        free(text);
    } else if (strcmp(key, PMIX_FABRIC_NUM_DEVICES) == 0) {
        uint32_t number = ++changes;
        PMIX_INFO_LOAD(&info[0], key, &number, PMIX_UINT32);
    }
    cbfunc(PMIX_SUCCESS, info, 2, cbdata, release, info);
    return PMIX_SUCCESS;
}

static pmix_status_t answer_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t n,
                                   pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    (void)proc, (void)info, (void)n;
    say("lookup %zu", keys == NULL || keys[0] == NULL ? 0 : strlen(keys[0]));
    if (keys == NULL || keys[0] == NULL || strcmp(keys[0], "hold") != 0)
        cbfunc(PMIX_ERR_NOT_FOUND, NULL, 0, cbdata);
    return PMIX_SUCCESS;
}

static pmix_status_t answer_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                                   const pmix_info_t directives[], size_t n, pmix_info_cbfunc_t cbfunc,
                                   void *cbdata)
{
    (void)requestor;
    if (!quiet)
        say("fabric %d directives %zu %s", (int)op, n, n == 0 || directives == NULL ? "-" : directives->key);
    if (fabric_refuses) {
        cbfunc(PMIX_ERR_NOT_FOUND, NULL, 0, cbdata, NULL, NULL);
        return PMIX_SUCCESS;
    }
    pmix_info_t *info = two_infos();
    cbfunc(PMIX_SUCCESS, info, 2, cbdata, release, info);
    return PMIX_SUCCESS;
}

static pmix_status_t answer_connect(const pmix_proc_t procs[], size_t n, const pmix_info_t info[], size_t m,
                                    pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)procs, (void)info, (void)m, (void)cbfunc, (void)cbdata;
    say("connect %zu", n);
    cbfunc(PMIX_SUCCESS, cbdata);
    return PMIX_SUCCESS;
}

static pmix_status_t answer_fence(const pmix_proc_t procs[], size_t n, const pmix_info_t info[], size_t m,
                                  char *data, size_t ndata, pmix_modex_cbfunc_t cbfunc, void *cbdata)
{
    (void)procs, (void)info, (void)m;
    say("fence %zu", n);
    cbfunc(PMIX_SUCCESS, data, ndata, cbdata, NULL, NULL);
    return PMIX_SUCCESS;
}

static pmix_status_t answer_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t n,
                                  pmix_modex_cbfunc_t cbfunc, void *cbdata)
{
    (void)info, (void)n, (void)cbfunc, (void)cbdata;
    say("modex %s %u", proc->nspace, proc->rank);
    return PMIX_ERR_NOT_FOUND;
}

static void answer_log(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
                       const pmix_info_t directives[], size_t n, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)client, (void)data, (void)directives, (void)n;
    say("log %zu", ndata);
    cbfunc(PMIX_SUCCESS, cbdata);
}

static pmix_status_t answer_notify(pmix_status_t code, const pmix_proc_t *source, pmix_data_range_t range,
                                   pmix_info_t info[], size_t n, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)source, (void)range, (void)info, (void)n, (void)cbfunc, (void)cbdata;
    say("notify %d", (int)code);
    return PMIX_ERR_NOT_SUPPORTED;
}

static pmix_status_t answer_job_control(const pmix_proc_t *requestor, const pmix_proc_t targets[], size_t n,
                                        const pmix_info_t directives[], size_t ndirs,
                                        pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    (void)requestor, (void)targets, (void)n, (void)directives;
    say("job-control %zu", ndirs);
    cbfunc(PMIX_SUCCESS, NULL, 0, cbdata, NULL, NULL);
    return PMIX_SUCCESS;
}

static pmix_server_module_t module = {.client_connected2 = client_connected,
                                      .client_finalized = client_finalized,
                                      .tool_connected = tool_connected,
                                      .query = answer_query,
                                      .lookup = answer_lookup,
                                      .fabric = answer_fabric,
                                      .connect = answer_connect,
                                      .fence_nb = answer_fence,
                                      .direct_modex = answer_modex,
                                      .log = answer_log,
                                      .job_control = answer_job_control,
                                      .notify_event = answer_notify};

/* ---- events ------------------------------------------------------------------------------------------ */

static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                     size_t n, pmix_info_t *results, size_t nresults,
                     pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    (void)handler, (void)info, (void)n, (void)results, (void)nresults;
    say("event %d %s", (int)status, source == NULL ? "-" : source->nspace);
    if (done != NULL)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void on_status(pmix_status_t status, void *cbdata)
{
    say("%s %d", (const char *)cbdata, (int)status);
}

static void do_event(char **words)
{
    pmix_status_t rc =
        PMIx_Notify_event(atoi(words[1]), &self, PMIX_RANGE_LOCAL, NULL, 0, on_status, "raised");
    if (rc != PMIX_SUCCESS)
        say("raised %d", (int)rc);
}

/* On the library's thread, so that the notification is read after its source is gone. */
static void raise_with_source(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                              pmix_release_cbfunc_t done, void *done_data)
{
    const char *code = cbdata;
    pmix_proc_t source;
    (void)status, (void)info, (void)n;
    PMIX_LOAD_PROCID(&source, "right", 1);
    pmix_status_t rc = PMIx_Notify_event(atoi(code), &source, PMIX_RANGE_LOCAL, NULL, 0, on_status, "raised");
    PMIX_LOAD_PROCID(&source, "overwritten", 2);
    if (done != NULL)
        done(done_data);
    if (rc != PMIX_SUCCESS)
        say("raised %d", (int)rc);
}

static void do_event_source(char **words)
{
    static char code[16];
    static pmix_query_t query;
    snprintf(code, sizeof(code), "%s", words[1]);
    PMIX_QUERY_CONSTRUCT(&query);
    pmix_status_t rc;
    PMIX_ARGV_APPEND(rc, query.keys, "source");
    rc = PMIx_Query_info_nb(&query, 1, raise_with_source, code);
    if (rc != PMIX_SUCCESS)
        say("raised %d", (int)rc);
}

/* ---- components --------------------------------------------------------------------------------------- */

/* Both calls are those of the framework: a component that is chosen is called by it. */
static pmix_status_t register_at_once(pmix_fabric_t *fabric, const pmix_info_t directives[], size_t n,
                                      pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)directives, (void)n, (void)cbfunc, (void)cbdata;
    fabric->info = two_infos();
    fabric->ninfo = 2;
    say("component at once");
    return PMIX_OPERATION_SUCCEEDED;
}

static struct later {
    pmix_op_cbfunc_t cbfunc;
    void *cbdata;
} later;

static void *complete_later(void *unused)
{
    (void)unused;
    sleep(3);
    later.cbfunc(PMIX_SUCCESS, later.cbdata);
    return NULL;
}

static pmix_status_t register_later(pmix_fabric_t *fabric, const pmix_info_t directives[], size_t n,
                                    pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    pthread_t thread;
    (void)directives, (void)n;
    fabric->info = two_infos();
    fabric->ninfo = 2;
    later = (struct later){cbfunc, cbdata};
    say("component later");
    pthread_create(&thread, NULL, complete_later, NULL);
    pthread_detach(thread);
    return PMIX_SUCCESS;
}

static void do_component(char **words)
{
    pmix_pnet.register_fabric = strcmp(words[1], "later") == 0 ? register_later : register_at_once;
    say("component %s", words[1]);
}

/* ---- jobs --------------------------------------------------------------------------------------------- */

/* An array of this many infos with this key, as launchers describe nodes and applications. */
static void load_array(pmix_info_t *info, const char *key, size_t n)
{
    PMIX_LOAD_KEY(info->key, key);
    info->value.type = PMIX_DATA_ARRAY;
    PMIX_DATA_ARRAY_CREATE(info->value.data.darray, n, PMIX_INFO);
    pmix_info_t *infos = info->value.data.darray->array;
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof(name), "upstream.%zu", i);
        PMIX_INFO_LOAD(&infos[i], name, "value", PMIX_STRING);
    }
}

/* "NODE:KEY=VALUE": an array of a node, which has one key. */
static void load_node(pmix_info_t *info, char *word)
{
    char *key = strchr(word, ':');
    *key++ = '\0';
    PMIX_LOAD_KEY(info->key, PMIX_NODE_INFO_ARRAY);
    info->value.type = PMIX_DATA_ARRAY;
    PMIX_DATA_ARRAY_CREATE(info->value.data.darray, 2, PMIX_INFO);
    pmix_info_t *infos = info->value.data.darray->array;
    PMIX_INFO_LOAD(&infos[0], PMIX_HOSTNAME, word, PMIX_STRING);
    load_word(&infos[1], key);
}

/* job NSPACE NODES RANKS LOCAL [KEY=TEXT | KEY[N | NODE:KEY=TEXT]... */
static void do_job(char **words)
{
    pmix_info_t *infos;
    char *nodes = NULL, *ranks = NULL;
    uint32_t size = 1;
    size_t n = 3;
    for (const char *at = words[3]; *at != '\0'; at++)
        size += *at == ',' || *at == ';';
    PMIX_INFO_CREATE(infos, MOST_WORDS + 3);
    PMIx_generate_regex(words[2], &nodes);
    PMIx_generate_ppn(words[3], &ranks);
    PMIX_INFO_LOAD(&infos[0], PMIX_JOB_SIZE, &size, PMIX_UINT32);
    PMIX_INFO_LOAD(&infos[1], PMIX_NODE_MAP, nodes, PMIX_STRING);
    PMIX_INFO_LOAD(&infos[2], PMIX_PROC_MAP, ranks, PMIX_STRING);
    for (char **word = &words[5]; *word != NULL; word++) {
        char *bracket = strchr(*word, '[');
        if (bracket != NULL) {
            *bracket = '\0';
            load_array(&infos[n++], *word, strtoul(bracket + 1, NULL, 10));
        } else if (strchr(*word, ':') != NULL) {
            load_node(&infos[n++], *word);
        } else {
            load_word(&infos[n++], *word);
        }
    }
    pmix_status_t rc = PMIx_server_register_nspace(words[1], atoi(words[4]), infos, n, NULL, NULL);
    say("job %d", rc == PMIX_OPERATION_SUCCEEDED ? 0 : (int)rc);
    PMIX_INFO_FREE(infos, MOST_WORDS + 3);
    free(nodes);
    free(ranks);
}

static void do_client(char **words)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, words[1], (pmix_rank_t)atol(words[2]));
    pmix_status_t rc =
        PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, on_status, "registered");
    if (rc != PMIX_SUCCESS)
        say("registered %d", (int)rc);
}

/* The variables of the environment that a process of the job gets: "env NAME=VALUE", and "." at the end. */
static void do_environment(char **words)
{
    pmix_proc_t proc;
    char **env = NULL;
    PMIX_LOAD_PROCID(&proc, words[1], (pmix_rank_t)atol(words[2]));
    pmix_status_t rc = PMIx_server_setup_fork(&proc, &env);
    for (size_t i = 0; rc == PMIX_SUCCESS && env != NULL && env[i] != NULL; i++)
        say("env %s", env[i]);
    say(". %d", (int)rc);
}

static void do_forget(char **words)
{
    pmix_proc_t proc;
    if (words[2] == NULL) {
        PMIx_server_deregister_nspace(words[1], on_status, "forgotten");
        return;
    }
    PMIX_LOAD_PROCID(&proc, words[1], (pmix_rank_t)atol(words[2]));
    PMIx_server_deregister_client(&proc, on_status, "forgotten");
}

/* ---- the other server, and this one ------------------------------------------------------------------ */

static void do_attach(char **words)
{
    pmix_proc_t me, server;
    pmix_info_t info[2];
    bool yes = true;
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_URI, words[1], PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_PRIMARY_SERVER, &yes, PMIX_BOOL);
    PMIX_LOAD_PROCID(&me, self.nspace, self.rank);
    say("attached %d", (int)PMIx_tool_attach_to_server(&me, &server, info, 2));
}

static void on_answer(pmix_status_t status, pmix_pdata_t data[], size_t n, void *cbdata)
{
    (void)data, (void)cbdata;
    say("answered %d %zu", (int)status, n);
}

static void do_ask(char **words)
{
    char *keys[] = {words[1], NULL};
    say("asked %d", (int)PMIx_Lookup_nb(keys, NULL, 0, on_answer, NULL));
}

/* Connected sockets of this process: how many have TCP_NODELAY, and how many not. */
static void do_sockets(char **words)
{
    unsigned with = 0, without = 0;
    (void)words;
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof(peer);
        int on = 0;
        socklen_t on_size = sizeof(on);
        if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && peer.ss_family == AF_INET &&
            getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &on_size) == 0) {
            with += on != 0;
            without += on == 0;
        }
    }
    say("sockets %u %u", with, without);
}

static void do_attributes(char **words)
{
    static char *attributes[] = {"PMIX_FABRIC_VENDOR", NULL};
    (void)words;
    say("attributes %d", (int)PMIx_Register_attributes("PMIx_Query_info", attributes));
}

static void do_finalize(char **words)
{
    (void)words;
    say("finalized %d", (int)PMIx_server_finalize());
}

static void do_heap(char **words)
{
    (void)words;
    say_heap();
}

static void do_quiet(char **words)
{
    (void)words;
    quiet = true;
    say("quiet");
}

static void do_refuse(char **words)
{
    (void)words;
    fabric_refuses = true;
    say("refuses");
}

/* ---- the program ------------------------------------------------------------------------------------- */

static const struct command {
    const char *name;
    void (*fn)(char **words);
    int words;
} commands[] = {
    {"event", do_event, 2},
    {"event-source", do_event_source, 2},
    {"component", do_component, 2},
    {"job", do_job, 5},
    {"client", do_client, 3},
    {"environment", do_environment, 3},
    {"forget", do_forget, 2},
    {"attach", do_attach, 2},
    {"ask", do_ask, 2},
    {"sockets", do_sockets, 1},
    {"heap", do_heap, 1},
    {"quiet", do_quiet, 1},
    {"refuse", do_refuse, 1},
    {"attributes", do_attributes, 1},

    {"finalize", do_finalize, 1},
};

static int start(int argc, char **argv)
{
    pmix_info_t *info;
    bool yes = true;
    size_t n = 4;
    pmix_rank_t rank = 0;
    PMIX_INFO_CREATE(info, (size_t)argc + 4);
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TOOL_SUPPORT, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_SERVER_NSPACE, argv[1], PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_SERVER_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&info[3], PMIX_HOSTNAME, "here", PMIX_STRING);
    for (int i = 2; i < argc; i++)
        load_word(&info[n++], argv[i]);
    pmix_status_t rc = PMIx_server_init(&module, info, n);
    PMIX_LOAD_PROCID(&self, argv[1], 0);
    PMIX_INFO_FREE(info, (size_t)argc + 4);
    say("init %d", (int)rc);
    return rc == PMIX_SUCCESS ? 0 : 1;
}

int main(int argc, char **argv)
{
    static char line[65536];
    char *words[MOST_WORDS + 1];
    int n;
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2 || start(argc, argv) != 0)
        return 1;
    PMIx_Register_event_handler(NULL, 0, NULL, 0, on_event, NULL, NULL);
    say("ready");
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
