/* restore_main.c - fabricd --restore FILE. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "fabricd/main/fabricd_main.h"
#include "fabricd/process/process.h"
#include "fabricd/store/store.h"

/* The store keeps its owner, whichever user runs this. The backup is opened before this process changes to
 * the owner. */
int restore_run(const struct config *config)
{
    char kept[PATH_MAX];
    struct fab_err err = {""};
    int fd = open(config->restore, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = fd < 0 ? fab_fail(&err, PMIXFAB_ERR_IO, "%s: cannot be restored: %s", config->restore,
                               strerror(errno))
                    : process_become_owner(config->store, &err);
    if (rc == PMIXFAB_OK)
        rc = store_restore(config->store, config->restore, fd, kept, sizeof(kept), &err);
    if (rc == PMIXFAB_OK)
        log_warning("store: %s is restored from %s%s%s", config->store, config->restore,
                    kept[0] != '\0' ? "; the old store is kept as " : "", kept);
    else
        log_error("%s", err.text);
    if (fd >= 0)
        close(fd);
    return rc == PMIXFAB_OK ? 0 : 1;
}
