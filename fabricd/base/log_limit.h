/* log_limit.h - how often the log has what others can cause again and again: equal lines once a minute. */
#ifndef FABRICD_BASE_LOG_LIMIT_H
#define FABRICD_BASE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* The lines of the last minute. Begins as zeros. */
struct log_limit {
    struct limited_line *all;
};

/* Was this line not logged within a minute? now: monotonic milliseconds. *unsaid: how often it was kept back
 * since it was logged last. */
bool log_limit_may_at(struct log_limit *limit, const char *line, int64_t now, unsigned *unsaid);

/* The same now. `what` need not be the line itself. again: "", or how often it was kept back since, to follow
 * the line. */
#define LOG_LIMIT_AGAIN 64
bool log_limit_may(struct log_limit *limit, const char *what, char again[LOG_LIMIT_AGAIN]);

void log_limit_clear(struct log_limit *limit);

#endif
