/* boot.h - which boot of the host it is. One thread at a time. */
#ifndef FABRICD_BASE_BOOT_H
#define FABRICD_BASE_BOOT_H

#define BOOT_ID_MAX  40
#define BOOT_UNKNOWN "unknown"

/* As the kernel names it; always the same. BOOT_UNKNOWN: it does not. */
const char *boot_id(void);

#endif
