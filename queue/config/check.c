/* SPDX-License-Identifier: MIT */
/* check.c - the table of keys, and what their values must be. */
#include "queue/config/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/config/split.h"
#include "queue/config/values.h"

/* Bytes of a name that are compared, and changes to a name that is still near. */
enum { NAME = 32, NEAR = 2 };

#define ROW(id, section, name, kind, least, most, value, variable, by, help) \
    { GPQ_SECTION_##section, name, GPQ_KIND_##kind, least, most, value, variable, by, help },
const struct gpq_key_row gpq_keys[GPQ_KEYS] = { GPQ_KEY_MAP(ROW) };
#undef ROW

const char *gpq_kind_text(enum gpq_key_kind kind)
{
#define KIND(name, text) text,
    static const char *const texts[GPQ_KINDS] = { GPQ_KIND_MAP(KIND) };
#undef KIND
    return texts[kind];
}

static int check_words(const char *value, struct gpq_error *e)
{
    char **words;
    int n = gpq_split_words(value, &words, e);
    if (n < 0)
        return n;
    free(words);
    return 0;
}

int gpq_key_check(enum gpq_key key, const char *value, struct gpq_error *e)
{
    const struct gpq_key_row *row = &gpq_keys[key];
    uint64_t number;
    uint32_t small, share;
    bool yes;
    switch (row->kind) {
    case GPQ_KIND_NUMBER:
        return gpq_value_number(value, row->least, row->most, &number, e);
    case GPQ_KIND_DURATION:
        return gpq_value_duration(value, &number, e);
    case GPQ_KIND_SIZE:
        return gpq_value_size(value, &number, e);
    case GPQ_KIND_BOOL:
        return gpq_value_bool(value, &yes, e);
    case GPQ_KIND_GPUS:
        return gpq_value_gpus(value, &small, &share, e);
    case GPQ_KIND_COMPUTE:
        return gpq_value_compute(value, &small, e);
    case GPQ_KIND_WORDS:
        return check_words(value, e);
    case GPQ_KIND_ENV:
        if (!strcmp(value, "whole") || !strcmp(value, "clean"))
            return 0;
        return gpq_fail(e, GPQ_EINVAL, "'%.60s': expected whole or clean", value);
    default:
        return *value ? 0 : gpq_fail(e, GPQ_EINVAL, "is empty");
    }
}

enum gpq_key gpq_key_find(enum gpq_section_kind section, const char *name)
{
    for (int i = 0; i < GPQ_KEYS; i++)
        if (gpq_keys[i].section == section && !strcmp(gpq_keys[i].name, name))
            return (enum gpq_key)i;
    return GPQ_KEYS;
}

/* ---- Names that are near ---- */

/* How many characters must be added, removed or replaced to make one name of the other; only the
 * first NAME bytes count. */
static size_t distance(const char *a, const char *b)
{
    size_t row[NAME + 1], m = strnlen(a, NAME), n = strnlen(b, NAME);
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            best = best < row[j] + 1 ? best : row[j] + 1;
            row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
        }
    }
    return row[n];
}

static bool is_near(const char *name, const char *key)
{
    size_t n = strlen(name);
    return distance(name, key) <= NEAR || (n > 2 && !strncmp(key, name, n));
}

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size,
                                                         const char *format, ...)
{
    size_t used = strlen(text);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text + used, size - used, format, list);
    va_end(list);
}

/* Appends the names that are near, or all.  Returns how many. */
static int append_names(enum gpq_section_kind section, const char *near, char *text, size_t size)
{
    int n = 0;
    for (int i = 0; i < GPQ_KEYS; i++)
        if (gpq_keys[i].section == section && (!near || is_near(near, gpq_keys[i].name)))
            append(text, size, "%s%s", n++ == 0 ? "" : near ? " or " : ", ", gpq_keys[i].name);
    return n;
}

void gpq_key_suggest(enum gpq_section_kind section, const char *name, char *text, size_t size)
{
    text[0] = '\0';
    append(text, size, "did you mean ");
    if (append_names(section, name, text, size) != 0) {
        append(text, size, "?");
        return;
    }
    text[0] = '\0';
    append(text, size, "the keys are ");
    (void)append_names(section, NULL, text, size);
}
