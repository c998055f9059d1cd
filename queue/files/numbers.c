/* SPDX-License-Identifier: MIT */
/* numbers.c - names made of numbers. */
#include "queue/files/numbers.h"

const char *gpq_decimal_read(const char *text, uint64_t *ret)
{
    const char *at = text;
    uint64_t n = 0;

    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (n > (UINT64_MAX - digit) / 10)
            return NULL;
        n = 10 * n + digit;
    }
    if (at == text || (*text == '0' && at - text > 1))
        return NULL;
    *ret = n;
    return at;
}

bool gpq_numbers_read(const char *text, const char *separators, uint32_t *ret, size_t count,
                      const char **ret_rest)
{
    for (size_t i = 0; i < count; i++) {
        if (i && *text++ != separators[i - 1])
            return false;
        uint64_t n = 0;
        text = gpq_decimal_read(text, &n);
        if (!text || n == 0 || n > UINT32_MAX)
            return false;
        ret[i] = (uint32_t)n;
    }
    if (ret_rest)
        *ret_rest = text;
    return ret_rest || !*text;
}
