/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_TESTS_SIM_ATTEMPT_H
#define SL_TESTS_SIM_ATTEMPT_H

#include "run.h"

/*
 * One run of a seed, in a child of its own, by the seed or by a list of choices; and what came of
 * it. A list with its seed describes a run completely.
 */
struct trial {
    uint64_t seed;
    int fault;                   /* planted; 0: none */
    const struct sim_list *list; /* instead of the seed's own choices; NULL */
    bool tells;                  /* the story, on standard output */
    bool traces;                 /* and its last events */
};

struct outcome {
    struct counts counts;
    int64_t lines; /* of the story, told or not */
    char violation[300];
};

/* False, and why, if something is wrong. */
bool attempt(const struct trial *o, struct outcome *out);
/* The same, and fills an empty list with the choices that were made; false when they are too many.
 */
bool attempt_record(const struct trial *o, struct outcome *out, struct sim_list *list);

void list_fini(struct sim_list *list);
/* What choices of a kind are about, in a word. */
const char *choice_kind_name(int kind);
/*
 * Text: a line that names seed and fault, then one for each choice that is not 0 with its kind, its
 * number among those of its kind, and its value.
 */
bool list_write(const struct sim_list *list, const struct trial *o, const char *path);
bool list_read(struct sim_list *list, struct trial *o, const char *path);

#endif
