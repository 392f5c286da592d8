#include "fabricd-pmix/pmix_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "pmix/answers/plane_memory.h"

/* The file is a ring of notes. The oldest note is overwritten first. */
struct memory_ring {
    uint64_t n; /* number of notes ever made */
    struct memory_note {
        struct plane_memory_key who;
        uint64_t meant;
    } notes[PLANE_MEMORY_MAX];
};

static struct memory_ring *ring; /* NULL: there is none */

/* Runs on the library's thread. */
static void memory_on_note(const struct plane_memory_key *who, uint32_t meant)
{
    if (ring == NULL)
        return;
    ring->notes[ring->n % PLANE_MEMORY_MAX] = (struct memory_note){*who, meant};
    ring->n++;
}

static struct memory_ring *memory_map(const char *path)
{
    struct stat st;
    void *map = MAP_FAILED;
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        ((size_t)st.st_size == sizeof(struct memory_ring) || ftruncate(fd, 0) == 0) &&
        (errno = posix_fallocate(fd, 0, sizeof(struct memory_ring))) == 0) /* no hole: a write cannot fail */
        map = mmap(NULL, sizeof(struct memory_ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return map == MAP_FAILED ? NULL : map;
}

void pmix_memory_open(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/planes-given", folder);
    ring = memory_map(path);
    plane_memory_on_note(memory_on_note);
    if (ring == NULL) {
        log_warning("%s: cannot be created: %s: the next server cannot continue with the planes that clients "
                    "were given",
                    path, strerror(errno));
        return;
    }
    const uint64_t first = ring->n > PLANE_MEMORY_MAX ? ring->n - PLANE_MEMORY_MAX : 0;
    for (uint64_t i = first; i < ring->n; i++) {
        const struct memory_note *note = &ring->notes[i % PLANE_MEMORY_MAX];
        plane_memory_set(&note->who, (uint32_t)note->meant);
    }
}
