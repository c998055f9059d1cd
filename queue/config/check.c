/* SPDX-License-Identifier: MIT */
/* check.c - the table of keys, and what their values must be. */
#include "queue/config/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/config/split.h"
#include "queue/config/values.h"
#include "tools/cli/near.h"

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

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size,
                                                         const char *format, ...)
{
    size_t used = strlen(text);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text + used, size - used, format, list);
    va_end(list);
}

void gpq_key_suggest(enum gpq_section_kind section, const char *name, char *text, size_t size)
{
    struct near near = { .word = name };
    int n = 0;
    for (int i = 0; i < GPQ_KEYS; i++)
        if (gpq_keys[i].section == section)
            near_add(&near, gpq_keys[i].name);
    near_text(&near, "", text, size);
    for (int i = 0; near.n == 0 && i < GPQ_KEYS; i++)
        if (gpq_keys[i].section == section)
            append(text, size, "%s%s", n++ == 0 ? "; the keys are " : ", ", gpq_keys[i].name);
}
