/* SPDX-License-Identifier: MIT */
/* numbers.c - names made of numbers. */
#include "queue/files/numbers.h"

/* Returns the text behind the number, or NULL. */
static const char *read_number(const char *text, uint32_t *ret)
{
    uint64_t value = 0;

    if (*text < '1' || *text > '9')
        return NULL;
    for (; *text >= '0' && *text <= '9'; text++) {
        value = 10 * value + (uint64_t)(*text - '0');
        if (value > UINT32_MAX)
            return NULL;
    }
    *ret = (uint32_t)value;
    return text;
}

bool gpq_numbers_read(const char *text, const char *separators, uint32_t *ret, size_t count,
                      const char **ret_rest)
{
    for (size_t i = 0; i < count; i++) {
        if (i && *text++ != separators[i - 1])
            return false;
        text = read_number(text, &ret[i]);
        if (!text)
            return false;
    }
    if (ret_rest)
        *ret_rest = text;
    return ret_rest || !*text;
}
