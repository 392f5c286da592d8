/* version.h - the version of this process's PMIx library as a number. */
#ifndef FAB_PMIX_ANSWERS_VERSION_H
#define FAB_PMIX_ANSWERS_VERSION_H

#include <pmix.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FAB_PMIX_VERSION(major, minor, release) (1000000L * (major) + 1000L * (minor) + (release))

/*
 * Return the version, or 0 if its text is not understood. The only library function that is called is
 * PMIx_Get_version().
 */
static inline long fab_running_version(void)
{
    long major = 0, minor = 0, release = 0;
    const char *version = PMIx_Get_version(); /* "OpenPMIx 4.2.2, repo rev: ..." */
    const char *number = version == NULL ? NULL : strpbrk(version, "0123456789");
    if (number == NULL || sscanf(number, "%ld.%ld.%ld", &major, &minor, &release) != 3)
        return 0;
    return FAB_PMIX_VERSION(major, minor, release);
}

/*
 * Return whether the library is 5.0 before 5.0.7. Such a library shares only its own arrays with the
 * processes of a job. If there is another array, no process of the job starts.
 */
static inline bool fab_running_refuses_arrays(void)
{
    const long version = fab_running_version();
    return version >= FAB_PMIX_VERSION(5, 0, 0) && version < FAB_PMIX_VERSION(5, 0, 7);
}

#endif
