/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process takes of the machine, from /proc/self (proc(5)) and getrlimit. These files are
 * made when they are read, so reading them waits for no disk.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/real/real_int.h"

/* Places behind the name of the program in /proc/self/stat, counted from the state. */
#define STAT_THREADS 17
#define STAT_START_TICKS 19
#define STAT_VIRTUAL_BYTES 20
#define STAT_RESIDENT_PAGES 21

static bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* When the process began, from ticks since the machine did. */
static int64_t start_ms(int64_t ticks)
{
    struct timespec up = {0};
    int64_t ran_ms;

    clock_gettime(CLOCK_BOOTTIME, &up);
    ran_ms = (int64_t)up.tv_sec * 1000 + up.tv_nsec / 1000000 - ticks * 1000 / sysconf(_SC_CLK_TCK);
    return clock_wall_ms() - ran_ms;
}

/* The name of the program may hold blanks and brackets: what counts begins behind the last one. */
static void read_stat(struct io_usage *out)
{
    char text[1024];
    int64_t v[STAT_RESIDENT_PAGES + 1] = {0};
    char *at;
    int i = 0;

    if (!read_text("/proc/self/stat", text, sizeof(text)) || !(at = strrchr(text, ')')))
        return;
    for (at++; i <= STAT_RESIDENT_PAGES && *at; i++) {
        v[i] = strtoll(at + 1, NULL, 10);
        at += 1 + strcspn(at + 1, " ");
    }
    out->threads = v[STAT_THREADS];
    out->start_ms = start_ms(v[STAT_START_TICKS]);
    out->virtual_bytes = v[STAT_VIRTUAL_BYTES];
    out->resident_bytes = v[STAT_RESIDENT_PAGES] * sysconf(_SC_PAGESIZE);
}

/* Linux 6.2 gives the number as the size of the directory; before, its entries are counted. */
static int64_t count_open_files(void)
{
    struct stat st;
    int64_t n = 0;
    DIR *dir;

    if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
        return st.st_size;
    dir = opendir("/proc/self/fd");
    if (!dir)
        return 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 3; /* "." and ".." and our own. */
}

void io_usage_read(struct io *io, struct io_usage *out)
{
    struct rlimit files;

    *out = (struct io_usage){.cpu_ns = io_cpu_ns(io), .open_files = count_open_files()};
    read_stat(out);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        out->open_files_max = (int64_t)files.rlim_cur;
}
