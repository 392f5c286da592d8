/*
 * ctl_text.h - strings as they may be shown, and as CSV takes them.
 */
#ifndef FABRICCTL_CORE_CTL_TEXT_H
#define FABRICCTL_CORE_CTL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Replace by '?', in place, what does not belong on a terminal or is not text (topo/base/text.h). The result
 * is valid UTF-8.
 */
void ctl_clean(char *text);

/* A cleaned copy; NULL without memory. */
char *ctl_clean_copy(const char *text);

/* One field of RFC 4180: in quotes where it needs them. What a spreadsheet would run as a formula, and is no
 * number, gets a ' before it, as spreadsheets mark a text. */
void ctl_csv_field(FILE *out, const char *text);

/*
 * The names with `separator` between them; NULL: in the short form that schedulers use,
 * "node[0001-0004,7],login1". Runs are of names with one prefix and numbers of one width. Free with free();
 * NULL without memory.
 */
char *ctl_join_names(const char *const *names, size_t n, const char *separator);

/* A GUID, which a host or a switch without a name goes by? */
bool ctl_guid_name(const char *name);

/* Microseconds since 1970 as ISO 8601 in UTC, to the microsecond; "" for what is no date. */
#define CTL_TIME_SIZE 40
const char *ctl_time(int64_t microseconds, char buf[static CTL_TIME_SIZE]);

/* A time of the daemon's for people: to the second unless `longer`, "-" for none. */
const char *ctl_shown_time(const char *time, bool longer, char buf[static CTL_TIME_SIZE]);

/* In place: "2026-11-20T08:00:00.123456Z" becomes "2026-11-20T08:00:00Z"; anything else stays. */
void ctl_cut_to_seconds(char *text);

#endif
