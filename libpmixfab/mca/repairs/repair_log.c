#include <pthread.h>
#include <time.h>

#include "mca/repairs/repair.h"
#include "topo/base/library_log.h"

#define TELL_S   60
#define MOST_LOG 16

void fab_repair_log(const char *line)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        const char *line;
        time_t told;
    } said[MOST_LOG];
    struct timespec now;
    bool tell = false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MOST_LOG; i++) {
        if (said[i].line != NULL && said[i].line != line)
            continue;
        tell = said[i].line == NULL || now.tv_sec - said[i].told >= TELL_S;
        if (tell) {
            said[i].line = line;
            said[i].told = now.tv_sec;
        }
        break;
    }
    pthread_mutex_unlock(&lock);
    if (tell)
        fab_log(PMIXFAB_LOG_WARNING, "%s", line);
}
