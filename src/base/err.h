/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_ERR_H
#define SL_BASE_ERR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

/*
 * One list of errors for the whole program (err.def). A function that can fail returns enum err;
 * there is no translation between layers: a Kafka code travels unchanged from where it is decided
 * to the response, and an internal code becomes its wire code in err_wire() alone. Any thread.
 */
enum err {
#define ERR(name, number, retriable, wire, text) ERR_##name = (number),
#include "base/err.def"
#undef ERR
};

/* The symbol without its prefix, as Kafka spells it; "?" for a number that is not in the list. */
const char *err_name(enum err err);
/* One phrase for people. */
const char *err_text(enum err err);
/* The code that a client gets for this error. */
int16_t err_wire(enum err err);
/* Whether clients may send the same request again and expect another answer. */
bool err_is_retriable(enum err err);
/* The code of a response as an error of ours: unknown numbers become UNKNOWN_SERVER_ERROR. */
enum err err_from_wire(int16_t code);

#endif
