/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLI_DUMP_INT_H
#define SL_CLI_DUMP_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "io/io.h"

/* What the files of the dump command share. */
struct dump {
    struct io *io;
    bool is_json;
    bool only_verifies; /* print nothing but problems and the sum */
    bool shows_records;
    const char *path; /* of the file that is being read */
    int64_t files;
    int64_t batches;
    int64_t records;
    int64_t bytes;
    int64_t problems;
    int64_t progress_ns;
    /* the line that is being put together */
    struct buf line;
    bool is_first_field;
};

/*
 * One line of output: a kind and fields, as "kind name=value ..." or as a JSON object. Nothing is
 * printed when only verifying. `row_str` takes any bytes; null is shown as null.
 */
void row_begin(struct dump *d, const char *kind);
void row_int(struct dump *d, const char *name, int64_t value);
void row_str(struct dump *d, const char *name, struct str value);
void row_end(struct dump *d);

/* One line on standard error that names the file; counted. */
void dump_problem(struct dump *d, const char *fmt, ...) printf_like(2, 3);

/* Each reads and checks one file. `base`: the offset of its name. */
void dump_segment(struct dump *d, int64_t base);
void dump_index(struct dump *d, int64_t base);
void dump_timeindex(struct dump *d, int64_t base);
void dump_txnindex(struct dump *d, int64_t base);

#endif
