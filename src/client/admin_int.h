/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CLIENT_ADMIN_INT_H
#define SL_CLIENT_ADMIN_INT_H

#include "client/admin.h"

/* ---- admin.c: the machine ----------------------------------------------------------------- */

/* The last version that asks for one coordinator; later ones take and give lists. */
#define FIND_COORDINATOR_VERSION_ONE_MAX 3

/* Empties the operation and returns its request, a message of `schema` with its defaults. */
void *admin__begin(struct client *c, struct admin_op *op, const struct schema *schema);
/* With op->_seeking set, the target is of no account: the coordinator is found and asked. */
void admin__submit(struct admin_op *op, enum api_key key, int32_t target, bool may_repeat);
int32_t admin__time_left_ms(const struct admin_op *op);
/* Room for `count` results, zeroed, which become those of the operation. */
struct admin_result *admin__results_new(struct admin_op *op, int64_t count);

/* ---- admin_groups.c ----------------------------------------------------------------------- */

/* Turns the response of one of its calls into results. */
void admin__collect_groups(struct admin_op *op);

/* ---- admin_moves.c ------------------------------------------------------------------------ */

/* The same, of elections, reassignments and log directories. */
void admin__collect_moves(struct admin_op *op);

#endif
