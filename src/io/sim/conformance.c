/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated world behind io/conformance_test.c: one world with one machine and one process,
 * which the test uses from outside. Choices are drawn from a fixed seed; segments stay
 * whole (the suite counts on small messages); nothing fails, since the suite is about what io.h
 * promises.
 */
#include "io/conformance.h"

#include "base/assert.h"
#include "io/sim/sim.h"

static struct sim_world *world;

struct io *conformance_begin(void)
{
    struct sim_options options = {.net_chunk_ppm = 0, .disk_short_ppm = 100000};
    struct io *io;
    enum err err;

    assert(!world);
    world = sim_world_new(1, &options);
    io = sim_process_start(sim_host_new(world, "conformance"), NULL, NULL, NULL);
    err = io_dir_make(io, conformance_dir());
    assert(!err);
    return io;
}

const char *conformance_dir(void)
{
    return "/conformance";
}

void conformance_run(struct io *io)
{
    io_run(io);
}

int conformance_foreign_new(struct io *io)
{
    int fd = sim_foreign_new(io);

    sim_foreign_set(io, fd, IO_WRITABLE);
    return fd;
}

void conformance_foreign_set(struct io *io, int fd, unsigned ready)
{
    sim_foreign_set(io, fd, ready);
}

void conformance_foreign_close(struct io *io, int fd)
{
    sim_foreign_close(io, fd);
}

void conformance_end(struct io *io)
{
    io_free(io);
    sim_world_free(world);
    world = NULL;
}
