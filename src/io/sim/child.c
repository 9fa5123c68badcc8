/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run that crashes processes leaves their threads and memory behind, so it happens in a child,
 * which takes all of that with it. The result comes back through a page that both share.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "io/sim/sim.h"

#define CHILD_SECONDS_MAX 60

/* ThreadSanitizer asks here. It would wait a second at each exit for the threads of the dead. */
const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
    return "atexit_sleep_ms=0";
}

static _Noreturn void child(int (*fn)(void *, void *), void *arg, void *shared)
{
    int status;

    alarm(CHILD_SECONDS_MAX);
    status = fn(arg, shared);
    fflush(NULL);
    _exit(status);
}

int sim_in_child(int (*fn)(void *arg, void *result), void *arg, void *result, size_t n)
{
    size_t size = n > 0 ? n : 1;
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    pid_t pid;

    assert(shared != MAP_FAILED);
    fflush(NULL); /* Or the child would print what the parent has buffered once more. */
    pid = fork();
    assert(pid >= 0);
    if (pid == 0)
        child(fn, arg, shared);
    while (waitpid(pid, &status, 0) < 0)
        assert(errno == EINTR);
    if (result && n > 0)
        memcpy(result, shared, n);
    munmap(shared, size);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
