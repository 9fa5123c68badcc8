/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_CONFIG_CONFIG_INT_H
#define SL_CONFIG_CONFIG_INT_H

#include "config/config.h"

/* Shared by the files of this module. */

enum config_honour {
    CONFIG_HONOUR_YES = 0,
    CONFIG_HONOUR_NO = 1,
    CONFIG_HONOUR_ONLY = 2,
    CONFIG_HONOUR_GONE = 3,
    CONFIG_HONOUR_HIDDEN = 4,
};

/* A row of keys.def. */
struct config_def {
    const char *name;
    const char *initial; /* the default; NULL: null */
    const char *values;  /* NULL: any of the type */
    const char *help;
    enum config_key synonym;
    enum config_type type;
    enum config_scope scope;
    enum config_honour honour;
};

extern const struct config_def config__defs[CONFIG_KEY_COUNT];

/* A value as a number: `i` for booleans and whole numbers, `f` for doubles. */
struct config_number {
    int64_t i;
    double f;
};

/* Layers of broker values, the strongest first. */
enum config_layer {
    CONFIG_LAYER_BROKER = 0,
    CONFIG_LAYER_DEFAULT = 1,
    CONFIG_LAYER_STATIC = 2,
    CONFIG_LAYER_COUNT = 3,
};

struct config {
    char *layers[CONFIG_LAYER_COUNT][CONFIG_KEY_COUNT]; /* NULL: not set there */
    struct config_number numbers[CONFIG_KEY_COUNT];     /* effective, in the unit of the key */
    struct config_overrides ignored; /* names outside keys.def that are known to have no effect */
};

/* Where the value of a key comes from. */
struct config_found {
    const char *text;     /* NULL: null */
    enum config_key from; /* the key itself or a synonym, which may be in another unit */
    enum config_source source;
};

struct config_found config__effective(const struct config *c, enum config_key key);
/* The text of a found value in the unit of `key`: borrowed, or in the arena if converted. */
const char *config__text_in_unit(const struct config_found *found, enum config_key key,
                                 struct arena *a);
enum config_source config__layer_source(enum config_layer layer);

/* Without blanks at both ends. */
struct str config__trim(struct str s);
/* Whether `text` is a value of the key; *out may be NULL. ERR_INVALID_CONFIG with a message. */
must_use enum err config__check(enum config_key key, struct str text, struct config_number *out,
                                char **message);
/* The same for a value that comes from a client, which is also bounded in size. */
must_use enum err config__check_size(enum config_key key, struct str text, char **message);
must_use enum err config__check_client(enum config_key key, struct str text, char **message);
/* Whether a list of partition:broker, or *, names this one. */
bool config__list_has_replica(struct str list, int32_t partition, int32_t broker);
/* The number of a text that was checked before; 0 for NULL. */
struct config_number config__number(enum config_key key, const char *text);
/* Sets *message for a name that does not exist among the keys of topics or of brokers. */
enum err config__unknown(struct str name, bool is_topic, char **message);

/*
 * Java's properties syntax. Start with rest = the whole text. ERR_EOF: no more; ERR_MALFORMED: a
 * bad escape or a NUL byte, at line entry_line. Key and value live in buffer until the next call.
 */
struct config_properties {
    struct str rest;
    int32_t line;       /* lines read so far */
    int32_t entry_line; /* first line of the last entry, from 1 */
    char *buffer;
};

void config__properties_init(struct config_properties *p, struct str text);
void config__properties_fini(struct config_properties *p);
must_use enum err config__properties_next(struct config_properties *p, struct str *key,
                                          struct str *value);

#endif
