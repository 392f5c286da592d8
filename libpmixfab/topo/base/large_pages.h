/* large_pages.h - huge pages for arrays of many MB, where page faults take as long as the computation. */
#ifndef FAB_TOPO_BASE_LARGE_PAGES_H
#define FAB_TOPO_BASE_LARGE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Ask the kernel for huge pages if the size is worth it. The memory must be new; free it as usual. */
static inline void fab_large_pages(void *memory, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)memory;
    uintptr_t first = (begin + page - 1) / page * page, end = (begin + size) / page * page;
    if (size >= (size_t)4 << 20)
        (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
}

#endif
