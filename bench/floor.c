/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least that a broker's work costs on this machine: each thing that has to be done to bytes,
 * with bare system calls and nothing around them. What the broker costs above the sum is ours.
 * CPU seconds of this process per GB; a child is the peer at the other end of the loopback.
 *
 *   make bench-floor
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "record/record.h"

#define PIECE ((size_t)1000000) /* a batch as clients make it */
#define TOTAL ((size_t)1000000000)
#define RESERVED ((off_t)64 * 1024 * 1024)
#define SYNC_EVERY (4 * PIECE)
#define ROUNDS 3

static uint8_t piece[PIECE];
static volatile uint32_t sum; /* so that the compiler cannot know that nobody asks */

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- the loopback ----------------------------------------------------------------------- */

/* A connected pair; the child has the other end and goes on until it is closed. */
static int connect_child(void (*child)(int fd), pid_t *pid)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(addr);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int fd;

    assert(bind(listener, (struct sockaddr *)&addr, size) == 0 && listen(listener, 1) == 0);
    getsockname(listener, (struct sockaddr *)&addr, &size);
    *pid = fork();
    if (*pid == 0) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        assert(connect(fd, (struct sockaddr *)&addr, size) == 0);
        child(fd);
        _exit(0);
    }
    fd = accept(listener, NULL, NULL);
    close(listener);
    return fd;
}

static void write_for_ever(int fd)
{
    while (send(fd, piece, PIECE, MSG_NOSIGNAL) > 0)
        continue;
}

static void read_for_ever(int fd)
{
    while (recv(fd, piece, PIECE, 0) > 0)
        continue;
}

static double receive(void)
{
    pid_t pid;
    int fd = connect_child(write_for_ever, &pid);
    double began = cpu_s();

    for (size_t n = 0; n < TOTAL;)
        n += (size_t)recv(fd, piece, PIECE, 0);
    double took = cpu_s() - began;
    close(fd);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return took;
}

static double give(void)
{
    pid_t pid;
    int fd = connect_child(read_for_ever, &pid);
    double began = cpu_s();

    for (size_t n = 0; n < TOTAL;)
        n += (size_t)send(fd, piece, PIECE, 0);
    double took = cpu_s() - began;
    close(fd);
    waitpid(pid, NULL, 0);
    return took;
}

/* ---- memory and files ------------------------------------------------------------------- */

static double checksum(void)
{
    double began = cpu_s();

    for (size_t n = 0; n < TOTAL; n += PIECE)
        sum += crc32c(piece, PIECE);
    return cpu_s() - began;
}

/* In the current directory, so that the disk can be chosen; nameless at once. */
static int new_file(void)
{
    char path[] = "bench-floor-XXXXXX";
    int fd = mkstemp(path);

    assert(fd >= 0);
    unlink(path);
    return fd;
}

static double append(bool sync)
{
    int fd = new_file();
    off_t reserved = 0;
    double began = cpu_s();

    for (size_t n = 0; n < TOTAL; n += PIECE) {
        if ((off_t)(n + PIECE) > reserved) {
            assert(fallocate(fd, FALLOC_FL_KEEP_SIZE, reserved, RESERVED) == 0);
            reserved += RESERVED;
        }
        assert(pwrite(fd, piece, PIECE, (off_t)n) == (ssize_t)PIECE);
        if (sync && n % SYNC_EVERY == 0)
            assert(fdatasync(fd) == 0);
    }
    double took = cpu_s() - began;
    close(fd);
    return took;
}

static double append_cached(void)
{
    return append(false);
}

static double append_synced(void)
{
    return append(true);
}

static double read_cached(void)
{
    int fd = new_file();

    for (size_t n = 0; n < TOTAL; n += PIECE)
        assert(pwrite(fd, piece, PIECE, (off_t)n) == (ssize_t)PIECE);
    double began = cpu_s();
    for (size_t n = 0; n < TOTAL; n += 131072)
        assert(pread(fd, piece, 131072, (off_t)n) > 0);
    double took = cpu_s() - began;
    close(fd);
    return took;
}

/* ---- the table -------------------------------------------------------------------------- */

static const struct row {
    const char *what;
    double (*run)(void);
} rows[] = {
    {"receive from the loopback", receive},
    {"CRC-32C", checksum},
    {"append to reserved space, page cache", append_cached},
    {"the same, synced every 4 MB", append_synced},
    {"read from the page cache, 128 KiB", read_cached},
    {"send to the loopback", give},
};

int main(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double best = 1e9;

        for (int round = 0; round < ROUNDS; round++) {
            double took = rows[i].run();

            best = took < best ? took : best;
        }
        printf("%-40s %.3f CPU-s/GB\n", rows[i].what, best);
    }
    return 0;
}
