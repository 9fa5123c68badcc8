/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLI_CLI_H
#define SL_CLI_CLI_H

#include <stdio.h>

#include "base/attr.h"

/*
 * The program's commands. Each is one file with one function: it gets its arguments behind its own
 * name and returns the exit status (0 done, 1 failed, 2 wrong usage). What it says on standard
 * error is one line with cause and cure; standard output is for results.
 */
#define STRANDLINE_VERSION "0.1.0"

struct command {
    const char *name;
    const char *summary; /* one line, for the list */
    int (*run)(int argc, char **argv);
};

#define EXIT_USAGE 2

int serve_run(int argc, char **argv);
int topics_run(int argc, char **argv);
int configs_run(int argc, char **argv);
int groups_run(int argc, char **argv);
int cluster_run(int argc, char **argv);
int leaders_run(int argc, char **argv);
int reassign_run(int argc, char **argv);
int produce_run(int argc, char **argv);
int consume_run(int argc, char **argv);
int dump_run(int argc, char **argv);

/* Prints "strandline COMMAND: text" to standard error; returns 1. */
int cli_fail(const char *command, const char *fmt, ...) printf_like(2, 3);

#endif
