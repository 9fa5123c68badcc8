/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_KEEPER_WATCHES_INT_H
#define SL_KEEPER_WATCHES_INT_H

#include "keeper/keeper.h"

/*
 * The watches of one session by path, for a tree that is elsewhere: the service tells a path and
 * what happened, here is who waits for it. Plain data, one thread. A zeroed table is empty.
 */
struct watch_place; /* a path, and who watches it */

struct watch_table {
    struct watch_place *by_path;
};

/* Takes a watch in, not yet armed: nothing fires it. */
void watches_add(struct watch_table *t, struct keeper_watch *w, const char *path);
/* The read that was to arm it has succeeded: `of_children`, or else of the node and its data. */
void watches_arm(struct keeper_watch *w, bool of_children);
/* Of one that is in the table, or was fired and is on its way to its owner. */
void watches_remove(struct watch_table *t, struct keeper_watch *w);
/*
 * Moves the armed watches that the event concerns to the list (by _node), with their event set: of
 * a deletion those of the node and then those of its children.
 */
void watches_fire(struct watch_table *t, const char *path, enum keeper_event_kind kind,
                  struct list *fired);
/* All of them are their owners' again. */
void watches_drop(struct watch_table *t);

#endif
