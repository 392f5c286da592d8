/* large_pages.h - memory of many MB: to get it in small pages takes as long as to compute what goes there. */
#ifndef FAB_TOPO_BASE_LARGE_PAGES_H
#define FAB_TOPO_BASE_LARGE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Ask the kernel for large pages, where it is worth it. The memory is new; it is released as ever. */
static inline void fab_large_pages(void *memory, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)memory;
    uintptr_t first = (begin + page - 1) / page * page, end = (begin + size) / page * page;
    if (size >= (size_t)4 << 20)
        (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
}

#endif
