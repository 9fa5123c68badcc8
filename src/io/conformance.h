/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_IO_CONFORMANCE_H
#define SL_IO_CONFORMANCE_H

#include "io/io.h"

/*
 * What io/conformance_test.c asks of an implementation beside io.h itself; each implementation has
 * a conformance.c. One process and one directory exist at a time. All of it is for the test's main
 * thread, off-loop.
 *
 * The suite reaches the network as "127.0.0.1" and "localhost" only, with ports that io_listen
 * chose, and touches files below the directory only. It expects that a connection buffers less
 * than 32 MiB, and that the directory can hold 64 MiB.
 */

/* A new process with no loops yet, and an empty directory. */
struct io *conformance_begin(void);
/* The directory, without a slash at its end; valid until conformance_end. */
const char *conformance_dir(void);
/* io_run, and whatever makes time pass: returns when io_stop has ended every loop. */
void conformance_run(struct io *io);
/* Frees the process and removes the directory with all that is in it. */
void conformance_end(struct io *io);

/*
 * A descriptor for io_watch, as a library would bring it, ready for IO_WRITABLE. Set makes it
 * ready for exactly `ready`, which is not nothing. These three may also be called on a loop.
 */
int conformance_foreign_new(struct io *io);
void conformance_foreign_set(struct io *io, int fd, unsigned ready);
void conformance_foreign_close(struct io *io, int fd);

#endif
