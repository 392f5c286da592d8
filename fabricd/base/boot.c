#include "fabricd/base/boot.h"

#include <stdio.h>

const char *boot_id(void)
{
    static char boot[BOOT_ID_MAX]; /* it stays the same for as long as we live */
    if (boot[0] == '\0') {
        FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
        if (f == NULL || fscanf(f, "%39s", boot) != 1)
            snprintf(boot, sizeof(boot), BOOT_UNKNOWN);
        if (f != NULL)
            fclose(f);
    }
    return boot;
}
