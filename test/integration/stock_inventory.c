/*
 * stock_inventory.c - a PMIx server that knows only the stock library: a node's, which collects its
 * inventory, or the scheduler's, which delivers what nodes have collected.
 *
 *   stock_inventory HOST [scheduler]
 *
 * Prints "ready", then reads commands, a line each:
 *
 *   collect FILE [SECONDS]   PMIx_server_collect_inventory, with PMIX_TIMEOUT; what comes goes to FILE:
 *                            "collected STATUS INFOS BYTES MILLISECONDS"
 *   deliver FILE...          PMIx_server_deliver_inventory with each file under the key: "delivered STATUS"
 *   wait FILE...             ... the blocking call
 *   nested FILE...           ... each in an array of its own, these in an array with things of other people
 *   array FILE...            ... all as one array of byte objects
 *   strange                  ... of wrong types, empty and null
 *   ignore, reap             from now on SIGCHLD is ignored; or a handler waits for every child
 *   children                 "children N descriptors N reaped N"
 *   quit
 */
#include <dirent.h>
#include <errno.h>
#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/integration/stock_status.h"

#define KEY       "pmixfab.inventory"
#define MAX_FILES 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool done;
static pmix_status_t status;
static size_t n_infos, n_bytes;
static const char *path; /* where what is collected goes */

static void start_call(void)
{
    done = false;
}

static void end_call(pmix_status_t rc)
{
    pthread_mutex_lock(&lock);
    status = rc;
    done = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_call(void)
{
    pthread_mutex_lock(&lock);
    while (!done)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* ---- collect ------------------------------------------------------------------------------------ */

static void write_file(const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}

static void on_collected(pmix_status_t rc, pmix_info_t *info, size_t n, void *cbdata,
                         pmix_release_cbfunc_t release, void *release_data)
{
    (void)cbdata;
    n_infos = n;
    n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (!PMIX_CHECK_KEY(&info[i], KEY) || info[i].value.type != PMIX_BYTE_OBJECT)
            continue;
        n_bytes += info[i].value.data.bo.size;
        write_file(info[i].value.data.bo.bytes, info[i].value.data.bo.size);
    }
    if (release != NULL)
        release(release_data);
    end_call(rc);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void collect(char *words)
{
    pmix_info_t directives[2];
    char *rest = NULL;
    path = strtok_r(words, " ", &rest);
    const char *seconds = strtok_r(NULL, " ", &rest);
    int timeout = seconds == NULL ? 0 : (int)strtol(seconds, NULL, 10);
    double start = now();
    PMIX_INFO_LOAD(&directives[0], "other.people", "theirs", PMIX_STRING);
    PMIX_INFO_LOAD(&directives[1], PMIX_TIMEOUT, &timeout, PMIX_INT);
    start_call();
    pmix_status_t rc = PMIx_server_collect_inventory(directives, seconds == NULL ? 1 : 2, on_collected, NULL);
    if (rc == PMIX_SUCCESS) {
        wait_call();
        rc = status;
    }
    PMIX_INFO_DESTRUCT(&directives[0]);
    printf("collected %s %zu %zu %.0f\n", stock_status(rc), n_infos, n_bytes, now() - start);
}

/* ---- deliver ------------------------------------------------------------------------------------ */

static pmix_byte_object_t read_file(const char *name)
{
    pmix_byte_object_t object = {.bytes = malloc(1 << 20)};
    FILE *file = fopen(name, "rb");
    if (file == NULL || object.bytes == NULL) {
        perror(name);
        exit(2);
    }
    object.size = fread(object.bytes, 1, 1 << 20, file);
    fclose(file);
    return object;
}

static void on_delivered(pmix_status_t rc, void *cbdata)
{
    (void)cbdata;
    end_call(rc);
}

/* The infos are freed as soon as the library calls back. */
static void deliver_infos(pmix_info_t *infos, size_t n, bool blocking)
{
    start_call();
    pmix_status_t rc = PMIx_server_deliver_inventory(infos, n, NULL, 0, blocking ? NULL : on_delivered, NULL);
    if (rc == PMIX_SUCCESS && !blocking) {
        wait_call();
        rc = status;
    }
    PMIX_INFO_FREE(infos, n);
    printf("delivered %s\n", stock_status(rc));
}

static size_t read_files(char *words, pmix_byte_object_t *objects)
{
    char *rest = NULL;
    size_t n = 0;
    for (char *word = strtok_r(words, " ", &rest); word != NULL && n < MAX_FILES;
         word = strtok_r(NULL, " ", &rest))
        objects[n++] = read_file(word);
    return n;
}

static void put_array(pmix_value_t *value, pmix_data_type_t type, void *array, size_t n)
{
    value->type = PMIX_DATA_ARRAY;
    value->data.darray = calloc(1, sizeof(*value->data.darray));
    value->data.darray->type = type;
    value->data.darray->array = array;
    value->data.darray->size = n;
}

static pmix_info_t *one_info(const char *key)
{
    pmix_info_t *info;
    PMIX_INFO_CREATE(info, 1);
    PMIX_LOAD_KEY(info->key, key);
    return info;
}

static void deliver(char *words, const char *how)
{
    pmix_byte_object_t objects[MAX_FILES];
    size_t n = read_files(words, objects);
    pmix_info_t *infos;
    if (strcmp(how, "array") == 0) {
        infos = one_info(KEY);
        pmix_byte_object_t *array = calloc(n + 1, sizeof(*array));
        memcpy(array, objects, n * sizeof(*array));
        put_array(&infos->value, PMIX_BYTE_OBJECT, array, n);
        deliver_infos(infos, 1, false);
        return;
    }
    PMIX_INFO_CREATE(infos, n + 1);
    PMIX_INFO_LOAD(&infos[n], "other.people", "theirs", PMIX_STRING);
    for (size_t i = 0; i < n; i++) {
        pmix_info_t *info = strcmp(how, "nested") == 0 ? one_info(KEY) : &infos[i];
        PMIX_LOAD_KEY(info->key, KEY);
        info->value.type = PMIX_BYTE_OBJECT;
        info->value.data.bo = objects[i];
        if (info != &infos[i]) {
            PMIX_LOAD_KEY(infos[i].key, "of.a.node");
            put_array(&infos[i].value, PMIX_INFO, info, 1);
        }
    }
    if (strcmp(how, "nested") == 0) {
        pmix_info_t *outer = one_info("of.all.nodes");
        put_array(&outer->value, PMIX_INFO, infos, n + 1);
        deliver_infos(outer, 1, false);
    } else {
        deliver_infos(infos, n + 1, strcmp(how, "wait") == 0);
    }
}

/* Nothing of this is an inventory. It stays: some of these the library itself does not free. */
static pmix_info_t *volatile strange;

static void deliver_strange(void)
{
    pmix_info_t *infos;
    PMIX_INFO_CREATE(infos, 6);
    strange = infos;
    for (size_t i = 0; i < 6; i++)
        PMIX_LOAD_KEY(infos[i].key, KEY);
    infos[0].value.type = PMIX_BYTE_OBJECT; /* null */
    infos[1].value.type = PMIX_STRING;
    infos[1].value.data.string = strdup("text");
    infos[2].value.type = PMIX_DATA_ARRAY; /* null */
    put_array(&infos[3].value, PMIX_BYTE_OBJECT, NULL, 3);
    put_array(&infos[4].value, PMIX_UINT32, calloc(4, 4), 4);
    PMIX_LOAD_KEY(infos[5].key, "of.a.node");
    put_array(&infos[5].value, PMIX_INFO, NULL, 2);
    start_call();
    pmix_status_t rc = PMIx_server_deliver_inventory(infos, 6, NULL, 0, on_delivered, NULL);
    if (rc == PMIX_SUCCESS) {
        wait_call();
        rc = status;
    }
    printf("delivered %s\n", stock_status(rc));
}

/* ---- this process ------------------------------------------------------------------------------- */

static volatile sig_atomic_t reaped;

static void reap_all(int signo)
{
    int before = errno; /* NOLINT(bugprone-signal-handler): put back below */
    (void)signo;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        reaped++;
    errno = before;
}

/* Not those of event loops and watches (anon_inode:), which threads open and close when they come to it. */
static unsigned descriptors(void)
{
    unsigned n = 0;
    DIR *dir = opendir("/proc/self/fd");
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        char what[32];
        const ssize_t size = readlinkat(dirfd(dir), entry->d_name, what, sizeof(what) - 1);
        what[size < 0 ? 0 : size] = '\0';
        n += entry->d_name[0] != '.' && strncmp(what, "anon_inode:", strlen("anon_inode:")) != 0;
    }
    if (dir != NULL)
        closedir(dir);
    return n;
}

/* Children of this process in any state, zombies included. */
static unsigned children(void)
{
    siginfo_t info;
    unsigned n = 0;
    char name[64];
    int pid;
    /* Each thread has its own list; the progress thread's children are in its one. */
    DIR *dir = opendir("/proc/self/task");
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        snprintf(name, sizeof(name), "/proc/self/task/%.20s/children", entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(name, "r");
        while (file != NULL && fscanf(file, "%d", &pid) == 1)
            n++;
        if (file != NULL)
            fclose(file);
    }
    if (dir != NULL)
        closedir(dir);
    if (n == 0 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        n++; /* the lists are not there, but somebody is */
    return n;
}

static void obey(char *line)
{
    char *words = NULL;
    const char *command = strtok_r(line, " ", &words);
    if (command == NULL)
        return;
    if (strcmp(command, "collect") == 0)
        collect(words);
    else if (strcmp(command, "strange") == 0)
        deliver_strange();
    else if (strcmp(command, "ignore") == 0)
        printf("ignored %d\n", signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    else if (strcmp(command, "reap") == 0)
        printf("reaping %d\n", signal(SIGCHLD, reap_all) != SIG_ERR);
    else if (strcmp(command, "children") == 0)
        printf("children %u descriptors %u reaped %d\n", children(), descriptors(), (int)reaped);
    else
        deliver(words, command);
}

int main(int argc, char **argv)
{
    pmix_server_module_t module = {0};
    pmix_info_t infos[2];
    size_t n = 1;
    char *line = NULL;
    size_t room = 0;
    if (argc < 2)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    PMIX_INFO_LOAD(&infos[0], PMIX_HOSTNAME, argv[1], PMIX_STRING);
    if (argc > 2) {
        PMIX_INFO_LOAD(&infos[1], PMIX_SERVER_SCHEDULER, NULL, PMIX_BOOL);
        n = 2;
    }
    pmix_status_t rc = PMIx_server_init(&module, infos, n);
    PMIX_INFO_DESTRUCT(&infos[0]);
    if (rc != PMIX_SUCCESS) {
        fprintf(stderr, "PMIx_server_init: %s\n", stock_status(rc));
        return 1;
    }
    printf("ready\n");
    while (getline(&line, &room, stdin) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "quit") == 0)
            break;
        obey(line);
    }
    free(line);
    double start = now();
    PMIx_server_finalize();
    printf("ended %.0f\n", now() - start);
    return 0;
}
