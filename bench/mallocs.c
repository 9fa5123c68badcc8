/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts allocations of a program that it is loaded into (bench/cost does). The counters are in a
 * file that is mapped, so that they can be read at any time: calls, then bytes.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic uint64_t unmapped[2];
static _Atomic uint64_t *counters = unmapped;

__attribute__((constructor)) static void map_counters(void)
{
    const char *path = getenv("MALLOCS_FILE");
    int fd = path ? open(path, O_RDWR | O_CREAT, 0644) : -1;
    void *p = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof(unmapped)) == 0)
        p = mmap(NULL, sizeof(unmapped), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p != MAP_FAILED)
        counters = p;
    if (fd >= 0)
        close(fd);
}

static void count(size_t n)
{
    atomic_fetch_add_explicit(&counters[0], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters[1], n, memory_order_relaxed);
}

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

void *malloc(size_t n)
{
    count(n);
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    count(n * size);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    count(n);
    return __libc_realloc(p, n);
}
