/*
 * stock_scheduler.c - a scheduler that knows only the stock PMIx library: it registers fabrics in its own
 * process.
 *
 *   stock_scheduler [plain] [host]
 *
 * plain: a PMIx server that is no scheduler; host: with a fabric function.
 *
 * Prints its URI, then reads commands, a line each; SLOT is 0..15:
 *
 *   register SLOT [KEY=VALUE...]  PMIx_Fabric_register with directives: plane=, vendor=, identifier=, index=,
 *                                 a key of the standard itself (true); with a ! before it required
 *   register_nb SLOT              PMIx_Fabric_register_nb with a callback of its own
 *   update SLOT, deregister SLOT  the blocking calls
 *   show SLOT                     the info array
 *   move SLOT TO                  the object is copied elsewhere, and its old place overwritten
 *   matrix SLOT FILE              the matrix through the object's pointer, as it is in memory
 *   held SLOT FILE                ... through the pointer that the last register or update gave
 *   get KEY, query KEY            PMIx_Get of the own namespace, PMIx_Query_info: a string, or the status
 *   listen [MS]                   handlers of the events; the one of PENDING needs MS milliseconds to let go
 *   inside                        from now on the handler of UPDATED lives an object's life itself
 *   cycle N [KEEP]                N times register, read, update, deregister; KEEP: one object stays
 *   threads T N                   the same on T threads at once
 *   quit
 */
#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/integration/stock_status.h"

#define SLOTS       16
#define MAX_THREADS 32

/* A place for an object; its content can be moved to another place. */
static pmix_fabric_t slots[SLOTS];
static const uint16_t *held[SLOTS];

/* ---- output ----------------------------------------------------------------------------------------- */

static const pmix_value_t *value_of(const pmix_fabric_t *fabric, const char *key)
{
    for (size_t i = 0; i < fabric->ninfo; i++)
        if (PMIX_CHECK_KEY(&fabric->info[i], key))
            return &fabric->info[i].value;
    return NULL;
}

static uint64_t generation_of(const pmix_fabric_t *fabric)
{
    const pmix_value_t *value = value_of(fabric, "pmixfab.generation");
    return value == NULL ? 0 : value->data.uint64;
}

static const uint16_t *matrix_of(const pmix_fabric_t *fabric)
{
    const pmix_value_t *value = value_of(fabric, PMIX_FABRIC_COST_MATRIX);
    return value == NULL || value->type != PMIX_POINTER ? NULL : value->data.ptr;
}

static size_t devices_of(const pmix_fabric_t *fabric)
{
    const pmix_value_t *value = value_of(fabric, PMIX_FABRIC_NUM_DEVICES);
    return value == NULL ? 0 : value->data.size;
}

static void result(const char *what, pmix_status_t rc, const pmix_fabric_t *fabric)
{
    const pmix_value_t *plane = value_of(fabric, PMIX_FABRIC_PLANE);
    printf("%s %s %d index %zu info %zu generation %lu devices %zu plane %s\n", what, stock_status(rc), rc,
           fabric->index, fabric->ninfo, (unsigned long)generation_of(fabric), devices_of(fabric),
           plane == NULL ? "-" : plane->data.string);
}

static void show(const pmix_fabric_t *fabric)
{
    for (size_t i = 0; i < fabric->ninfo; i++) {
        const pmix_value_t *value = &fabric->info[i].value;
        printf("%s type %u", fabric->info[i].key, value->type);
        if (value->type == PMIX_STRING)
            printf(" %s", value->data.string);
        else if (value->type == PMIX_SIZE)
            printf(" %zu", value->data.size);
        else if (value->type == PMIX_UINT64)
            printf(" %lu", (unsigned long)value->data.uint64);
        else if (value->type == PMIX_UINT32)
            printf(" %u", value->data.uint32);
        else if (value->type == PMIX_DATA_ARRAY && value->data.darray->type == PMIX_UINT32)
            for (size_t k = 0; k < value->data.darray->size; k++)
                printf(" %u", ((const uint32_t *)value->data.darray->array)[k]);
        printf("\n");
    }
    printf("shown\n");
}

static unsigned live_once(void);

/* ---- events ----------------------------------------------------------------------------------------- */

struct letting_go {
    pmix_event_notification_cbfunc_fn_t cbfunc;
    void *cbdata;
};
static unsigned needs_ms;
static bool inside; /* the handler calls, too */

/* Handlers and commands look at the objects one after the other. */
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;

static void print_event(const char *who, pmix_status_t status, const pmix_info_t *info, size_t n)
{
    pthread_mutex_lock(&looking);
    printf("event %s %s", who, status == PMIX_FABRIC_UPDATED ? "UPDATED" : "PENDING");
    for (size_t i = 0; i < n; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_FABRIC_INDEX))
            printf(" index %zu", info[i].value.data.size);
        else if (PMIX_CHECK_KEY(&info[i], PMIX_FABRIC_PLANE))
            printf(" plane %s", info[i].value.data.string);
        else if (PMIX_CHECK_KEY(&info[i], "pmixfab.generation"))
            printf(" generation %lu", (unsigned long)info[i].value.data.uint64);
    }
    printf(" shows %lu\n", (unsigned long)generation_of(&slots[0]));
    pthread_mutex_unlock(&looking);
}

/* What a scheduler does that must first bring its own threads to rest. */
static void *let_go(void *arg)
{
    struct letting_go *work = arg;
    usleep(needs_ms * 1000);
    pthread_mutex_lock(&looking);
    printf("let go shows %lu\n", (unsigned long)generation_of(&slots[0]));
    pthread_mutex_unlock(&looking);
    work->cbfunc(PMIX_SUCCESS, NULL, 0, NULL, NULL, work->cbdata);
    free(work);
    return NULL;
}

static void on_pending(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                       size_t n, pmix_info_t *results, size_t nresults,
                       pmix_event_notification_cbfunc_fn_t cbfunc, void *cbdata)
{
    (void)handler, (void)source, (void)results, (void)nresults;
    struct letting_go *work = malloc(sizeof(*work));
    pthread_t thread;
    print_event("first", status, info, n);
    *work = (struct letting_go){cbfunc, cbdata};
    pthread_create(&thread, NULL, let_go, work);
    pthread_detach(thread);
}

static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                     size_t n, pmix_info_t *results, size_t nresults,
                     pmix_event_notification_cbfunc_fn_t cbfunc, void *cbdata)
{
    (void)handler, (void)source, (void)results, (void)nresults;
    print_event("second", status, info, n);
    if (inside && status == PMIX_FABRIC_UPDATED)
        printf("inside wrong %u\n", live_once());
    cbfunc(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void do_listen(unsigned ms)
{
    pmix_status_t pending = PMIX_FABRIC_UPDATE_PENDING;
    pmix_status_t both[] = {PMIX_FABRIC_UPDATE_PENDING, PMIX_FABRIC_UPDATED};
    needs_ms = ms;
    if (PMIx_Register_event_handler(&pending, 1, NULL, 0, on_pending, NULL, NULL) < 0 ||
        PMIx_Register_event_handler(both, 2, NULL, 0, on_event, NULL, NULL) < 0)
        printf("not ");
    printf("listening\n");
}

/* ---- calls ------------------------------------------------------------------------------------------ */

static size_t parse_directives(char **words, size_t n, pmix_info_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        char *value = strchr(words[i], '=');
        if (value == NULL)
            continue;
        *value++ = '\0';
        const bool required = words[i][0] == '!', yes = true;
        const char *key = words[i] + required;
        size_t index = strtoul(value, NULL, 10);
        if (strcmp(key, "plane") == 0)
            PMIX_INFO_LOAD(&out[count], PMIX_FABRIC_PLANE, value, PMIX_STRING);
        else if (strcmp(key, "vendor") == 0)
            PMIX_INFO_LOAD(&out[count], PMIX_FABRIC_VENDOR, value, PMIX_STRING);
        else if (strcmp(key, "identifier") == 0)
            PMIX_INFO_LOAD(&out[count], PMIX_FABRIC_IDENTIFIER, value, PMIX_STRING);
        else if (strcmp(key, "index") == 0)
            PMIX_INFO_LOAD(&out[count], PMIX_FABRIC_INDEX, &index, PMIX_SIZE);
        else if (strchr(key, '.') != NULL)
            PMIX_INFO_LOAD(&out[count], key, &yes, PMIX_BOOL);
        else /* of a type that it cannot have */
            PMIX_INFO_LOAD(&out[count], PMIX_FABRIC_PLANE, &index, PMIX_SIZE);
        if (required)
            PMIX_INFO_REQUIRED(&out[count]);
        count++;
    }
    return count;
}

static void do_register(size_t slot, char **words, size_t n)
{
    pmix_info_t directives[8];
    size_t count = parse_directives(words, n > 8 ? 8 : n, directives);
    PMIX_FABRIC_CONSTRUCT(&slots[slot]);
    pmix_status_t rc = PMIx_Fabric_register(&slots[slot], count > 0 ? directives : NULL, count);
    held[slot] = matrix_of(&slots[slot]);
    result("registered", rc, &slots[slot]);
    for (size_t i = 0; i < count; i++)
        PMIX_INFO_DESTRUCT(&directives[i]);
}

static void never(pmix_status_t status, void *cbdata)
{
    (void)cbdata;
    printf("called back %s\n", stock_status(status));
}

static void do_register_nb(size_t slot)
{
    int somewhere = 0;
    PMIX_FABRIC_CONSTRUCT(&slots[slot]);
    pmix_status_t rc = PMIx_Fabric_register_nb(&slots[slot], NULL, 0, never, &somewhere);
    held[slot] = matrix_of(&slots[slot]);
    result("registered", rc, &slots[slot]);
}

static void do_update(size_t slot)
{
    pmix_status_t rc = PMIx_Fabric_update(&slots[slot]);
    if (rc == PMIX_OPERATION_SUCCEEDED || rc == PMIX_SUCCESS)
        held[slot] = matrix_of(&slots[slot]);
    result("updated", rc, &slots[slot]);
}

static void do_move(size_t slot, size_t to)
{
    slots[to] = slots[slot];
    held[to] = held[slot];
    memset(&slots[slot], 0xa5, sizeof(slots[slot]));
    printf("moved\n");
}

static void do_matrix(const uint16_t *cells, size_t n, const char *path)
{
    FILE *out = path == NULL ? NULL : fopen(path, "wb");
    bool good = cells != NULL && out != NULL && fwrite(cells, 2, n * n, out) == n * n;
    if (out != NULL && fclose(out) != 0)
        good = false;
    printf("%s\n", good ? "written" : "no matrix");
}

/* ---- again and again -------------------------------------------------------------------------------- */

static long resident_kib(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    long kib = -1;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return kib;
}

/* What the blocking update returns: from 7 on not what the component does. */
#define UPDATED (PMIX_VERSION_MAJOR >= 7 ? PMIX_SUCCESS : PMIX_OPERATION_SUCCEEDED)

/* From 7 on the library's list of objects is not protected from other threads. */
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;

static pmix_status_t listed(pmix_status_t (*call)(pmix_fabric_t *), pmix_fabric_t *fabric)
{
    if (PMIX_VERSION_MAJOR >= 7)
        pthread_mutex_lock(&listing);
    pmix_status_t rc = call(fabric);
    if (PMIX_VERSION_MAJOR >= 7)
        pthread_mutex_unlock(&listing);
    return rc;
}

static pmix_status_t register_default(pmix_fabric_t *fabric)
{
    return PMIx_Fabric_register(fabric, NULL, 0);
}

/* One life of an object; the number of what went wrong in it. */
static unsigned live_once(void)
{
    pmix_fabric_t fabric;
    unsigned wrong = 0;
    PMIX_FABRIC_CONSTRUCT(&fabric);
    if (listed(register_default, &fabric) != PMIX_SUCCESS)
        return 1;
    const uint16_t *cells = matrix_of(&fabric);
    size_t n = devices_of(&fabric);
    wrong += cells == NULL || cells[0] != 0 || cells[n * n - 1] != 0;
    wrong += PMIx_Fabric_update(&fabric) != UPDATED;
    wrong += matrix_of(&fabric) == NULL || matrix_of(&fabric)[0] != 0;
    wrong +=
        listed(PMIx_Fabric_deregister, &fabric) != PMIX_SUCCESS || fabric.info != NULL || fabric.ninfo != 0;
    return wrong;
}

static void do_cycle(unsigned n, bool keep)
{
    unsigned wrong = 0;
    pmix_fabric_t kept;
    PMIX_FABRIC_CONSTRUCT(&kept);
    if (keep)
        wrong += PMIx_Fabric_register(&kept, NULL, 0) != PMIX_SUCCESS;
    for (unsigned i = 0; i < n / 10; i++) /* what is allocated once and for all */
        wrong += live_once();
    long before = resident_kib();
    for (unsigned i = 0; i < n; i++)
        wrong += live_once();
    printf("cycled wrong %u grown %ld KiB\n", wrong, resident_kib() - before);
    if (keep)
        PMIx_Fabric_deregister(&kept);
}

static void *live_often(void *arg)
{
    unsigned *n = arg, wrong = 0;
    for (unsigned i = 0; i < *n; i++)
        wrong += live_once();
    *n = wrong;
    return NULL;
}

static void do_threads(unsigned n_threads, unsigned n)
{
    pthread_t threads[MAX_THREADS];
    unsigned work[MAX_THREADS], wrong = 0;
    if (n_threads > MAX_THREADS)
        n_threads = MAX_THREADS;
    for (unsigned i = 0; i < n_threads; i++) {
        work[i] = n;
        pthread_create(&threads[i], NULL, live_often, &work[i]);
    }
    for (unsigned i = 0; i < n_threads; i++) {
        pthread_join(threads[i], NULL);
        wrong += work[i];
    }
    printf("threads wrong %u\n", wrong);
}

/* ---- the server ------------------------------------------------------------------------------------- */

/* The commands that only look. */
static bool look(char **words, size_t place)
{
    const pmix_fabric_t *fabric = &slots[place];
    bool known = true;
    pthread_mutex_lock(&looking);
    if (strcmp(words[0], "show") == 0)
        show(fabric);
    else if (strcmp(words[0], "matrix") == 0)
        do_matrix(matrix_of(fabric), devices_of(fabric), words[2]);
    else if (strcmp(words[0], "held") == 0)
        do_matrix(held[place], devices_of(fabric), words[2]);
    else
        known = false;
    pthread_mutex_unlock(&looking);
    return known;
}

static void print_text(pmix_status_t rc, const pmix_value_t *value)
{
    bool text = rc == PMIX_SUCCESS && value != NULL && value->type == PMIX_STRING;
    printf("told %s\n", text ? value->data.string : stock_status(rc));
}

static void do_get(const char *key)
{
    pmix_value_t *value = NULL;
    pmix_proc_t own; /* without a name: the own namespace */
    PMIX_PROC_CONSTRUCT(&own);
    own.rank = PMIX_RANK_WILDCARD;
    pmix_status_t rc = PMIx_Get(&own, key, NULL, 0, &value);
    print_text(rc, value);
    if (value != NULL)
        PMIX_VALUE_RELEASE(value);
}

static void do_query(const char *key)
{
    pmix_info_t *infos = NULL;
    size_t n = 0;
    pmix_query_t query;
    PMIX_QUERY_CONSTRUCT(&query);
    pmix_status_t rc = PMIX_SUCCESS;
    PMIX_ARGV_APPEND(rc, query.keys, key);
    if (rc == PMIX_SUCCESS)
        rc = PMIx_Query_info(&query, 1, &infos, &n);
    print_text(rc, infos != NULL && n > 0 ? &infos[0].value : NULL);
    if (infos != NULL)
        PMIX_INFO_FREE(infos, n);
    PMIX_QUERY_DESTRUCT(&query);
}

static void command(char *line)
{
    char *words[12] = {NULL}, *rest = NULL;
    size_t n = 0;
    for (char *word = strtok_r(line, " \n", &rest); word != NULL && n < 11;
         word = strtok_r(NULL, " \n", &rest))
        words[n++] = word;
    size_t slot = n > 1 ? strtoul(words[1], NULL, 10) : 0, other = n > 2 ? strtoul(words[2], NULL, 10) : 0;
    size_t place = slot % SLOTS;
    if (n == 0 || look(words, place))
        return;
    if (strcmp(words[0], "register") == 0)
        do_register(place, words + 2, n > 2 ? n - 2 : 0);
    else if (strcmp(words[0], "register_nb") == 0)
        do_register_nb(place);
    else if (strcmp(words[0], "update") == 0)
        do_update(place);
    else if (strcmp(words[0], "deregister") == 0)
        result("deregistered", PMIx_Fabric_deregister(&slots[place]), &slots[place]);
    else if (strcmp(words[0], "move") == 0)
        do_move(place, other % SLOTS);
    else if (strcmp(words[0], "get") == 0 && n > 1)
        do_get(words[1]);
    else if (strcmp(words[0], "query") == 0 && n > 1)
        do_query(words[1]);
    else if (strcmp(words[0], "listen") == 0)
        do_listen((unsigned)slot);
    else if (strcmp(words[0], "inside") == 0)
        inside = printf("inside it is\n") > 0;
    else if (strcmp(words[0], "cycle") == 0)
        do_cycle((unsigned)slot, n > 2);
    else if (strcmp(words[0], "threads") == 0)
        do_threads((unsigned)slot, (unsigned)other);
    else
        printf("what?\n");
}

/* The host's own answer to everything: one key, by which it is known. */
static pmix_status_t host_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                                 const pmix_info_t directives[], size_t n, pmix_info_cbfunc_t cbfunc,
                                 void *cbdata)
{
    static pmix_info_t info;
    (void)requestor, (void)op, (void)directives, (void)n;
    PMIX_INFO_LOAD(&info, PMIX_FABRIC_VENDOR, "the host", PMIX_STRING);
    cbfunc(PMIX_SUCCESS, &info, 1, cbdata, NULL, NULL);
    return PMIX_SUCCESS;
}

static void tool_connected(pmix_info_t *info, size_t n, pmix_tool_connection_cbfunc_t cbfunc, void *cbdata)
{
    static unsigned last;
    pmix_proc_t proc;
    (void)info, (void)n;
    PMIX_PROC_CONSTRUCT(&proc);
    snprintf(proc.nspace, sizeof(proc.nspace), "tool.%u", ++last);
    proc.rank = 0;
    cbfunc(PMIX_SUCCESS, &proc, cbdata);
}

static pmix_server_module_t module = {.tool_connected = tool_connected};

static int start(bool scheduler, const char *dir)
{
    pmix_info_t info[5];
    bool yes = true;
    char report[1024], uri[512] = "";
    snprintf(report, sizeof(report), "%s/uri", dir);
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TOOL_SUPPORT, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_SERVER_TMPDIR, dir, PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_SYSTEM_TMPDIR, dir, PMIX_STRING);
    PMIX_INFO_LOAD(&info[3], PMIX_TCP_REPORT_URI, report, PMIX_STRING);
    PMIX_INFO_LOAD(&info[4], PMIX_SERVER_SCHEDULER, &yes, PMIX_BOOL);
    pmix_status_t rc = PMIx_server_init(&module, info, scheduler ? 5 : 4);
    if (rc != PMIX_SUCCESS) {
        fprintf(stderr, "PMIx_server_init: %s\n", stock_status(rc));
        return 1;
    }
    FILE *file = fopen(report, "re");
    if (file == NULL || fgets(uri, sizeof(uri), file) == NULL)
        return 1;
    fclose(file);
    printf("uri %s", uri);
    return 0;
}

int main(int argc, char **argv)
{
    char line[4096];
    bool scheduler = true;
    const char *dir = getenv("TMPDIR");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "plain") == 0)
            scheduler = false;
        else if (strcmp(argv[i], "host") == 0)
            module.fabric = host_fabric;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (start(scheduler, dir == NULL ? "/tmp" : dir) != 0)
        return 1;
    while (fgets(line, sizeof(line), stdin) != NULL && strncmp(line, "quit", 4) != 0)
        command(line);
    PMIx_server_finalize();
    printf("ended\n");
    return 0;
}
