/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of partition directories and of the files in them, as Kafka spells them, and two helpers
 * for walking text files.
 *
 * A topic may contain dashes and dots, so only the last dash of a directory's name separates, and
 * only the last dot before a "-delete", "-stray" or "-future". Files are recognised by all that
 * stands after the first dot: a stem of twenty digits holds none.
 */
#include "base/alloc.h"
#include "base/limits.h"
#include "log/files_int.h"

#define DOOMED_SUFFIX "-delete"
#define STRAY_SUFFIX "-stray"

static bool is_topic_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

bool is_topic_name(struct str s)
{
    if (s.n < 1 || s.n > TOPIC_NAME_BYTES_MAX || str_eq_c(s, ".") || str_eq_c(s, ".."))
        return false;
    for (int32_t i = 0; i < s.n; i++) {
        if (!is_topic_char(s.p[i]))
            return false;
    }
    return true;
}

bool name_ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name);
    size_t k = strlen(suffix);

    return n >= k && memcmp(name + n - k, suffix, k) == 0;
}

char *partition_dir_name(const char *topic, int32_t partition)
{
    return xasprintf("%s-%d", topic, partition);
}

bool partition_dir_parse(const char *name, char **topic, int32_t *partition)
{
    const char *dash = strrchr(name, '-');
    struct str left;
    int64_t number;

    *topic = NULL;
    *partition = -1;
    if (!dash || dash[1] < '0' || dash[1] > '9' || (dash[1] == '0' && dash[2] != '\0'))
        return false; /* "t-07" would be opened as "t-7". */
    left = (struct str){.p = name, .n = (int32_t)(dash - name)};
    if (!is_topic_name(left) || str_to_i64(str_of(dash + 1), &number) || number > INT32_MAX)
        return false;
    *topic = str_dup(left);
    *partition = (int32_t)number;
    return true;
}

/* Cut to what a file system allows for a name. */
static char *renamed(const char *topic, int32_t partition, struct uuid random, const char *suffix)
{
    char hex[33];
    int tail = 1 + 32 + (int)strlen(suffix);
    char *live = partition_dir_name(topic, partition);
    char *name;

    for (int i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", random.b[i]);
    name = xasprintf("%.*s.%s%s", PARTITION_DIR_BYTES_MAX - tail, live, hex, suffix);
    free(live);
    return name;
}

char *partition_dir_doomed_name(const char *topic, int32_t partition, struct uuid random)
{
    return renamed(topic, partition, random, DOOMED_SUFFIX);
}

char *partition_dir_stray_name(const char *topic, int32_t partition, struct uuid random)
{
    return renamed(topic, partition, random, STRAY_SUFFIX);
}

bool partition_dir_is_doomed(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && name_ends_with(name, DOOMED_SUFFIX) &&
           strlen(dot) == 1 + 32 + sizeof(DOOMED_SUFFIX) - 1;
}

char *offset_path(const char *dir, int64_t offset, const char *suffix)
{
    return xasprintf("%s/%020lld%s", dir, (long long)offset, suffix);
}

bool offset_name_parse(const char *name, const char *suffix, int64_t *offset)
{
    const char *dot = strchr(name, '.');

    if (!dot || dot - name != OFFSET_NAME_DIGITS || strcmp(dot, suffix) != 0)
        return false;
    for (const char *p = name; p < dot; p++) {
        if (*p < '0' || *p > '9')
            return false;
    }
    return str_to_i64((struct str){.p = name, .n = OFFSET_NAME_DIGITS}, offset) == ERR_NONE;
}

bool text_next_line(struct str *rest, struct str *line)
{
    const char *end;

    if (rest->n <= 0)
        return false;
    end = memchr(rest->p, '\n', (size_t)rest->n);
    line->p = rest->p;
    line->n = end ? (int32_t)(end - rest->p) : rest->n;
    rest->p += line->n + (end ? 1 : 0);
    rest->n -= line->n + (end ? 1 : 0);
    if (line->n > 0 && line->p[line->n - 1] == '\r')
        line->n--;
    return true;
}

bool text_next_word(struct str *rest, struct str *word)
{
    while (rest->n > 0 && (*rest->p == ' ' || *rest->p == '\t')) {
        rest->p++;
        rest->n--;
    }
    word->p = rest->p;
    word->n = 0;
    while (word->n < rest->n && rest->p[word->n] != ' ' && rest->p[word->n] != '\t')
        word->n++;
    rest->p += word->n;
    rest->n -= word->n;
    return word->n > 0;
}

enum err text_parse_entries(struct str text, enum err (*entry)(void *ctx, struct str line),
                            void *ctx)
{
    struct str line;
    int64_t version, count;
    int64_t lines = 0;

    if (!text_next_line(&text, &line))
        return ERR_NONE;
    if (str_to_i64(line, &version))
        return ERR_CORRUPT;
    if (version != TEXT_ENTRIES_VERSION)
        return ERR_BAD_VERSION;
    if (!text_next_line(&text, &line))
        return ERR_NONE;
    if (str_to_i64(line, &count))
        return ERR_CORRUPT;
    for (; text_next_line(&text, &line); lines++) {
        enum err err = entry(ctx, line);
        if (err)
            return err;
    }
    return lines == count ? ERR_NONE : ERR_CORRUPT;
}
