/* SPDX-License-Identifier: MIT */
/* words.c - the words of a line of a decision log. */
#include "view/read/words.h"

#include <string.h>

struct gpv_word gpv_word_rest(struct gpv_words *w)
{
    while (w->at < w->end && *w->at == ' ')
        w->at++;
    return (struct gpv_word){ w->at, (size_t)(w->end - w->at) };
}

struct gpv_word gpv_word_next(struct gpv_words *w)
{
    struct gpv_word word = gpv_word_rest(w);
    const char *blank = word.size ? memchr(word.at, ' ', word.size) : NULL;

    word.size = blank ? (size_t)(blank - word.at) : word.size;
    w->at = word.at + word.size;
    return word;
}

bool gpv_word_is(struct gpv_word w, const char *text)
{
    return w.size == strlen(text) && memcmp(w.at, text, w.size) == 0;
}

bool gpv_word_of(const struct gpv_words *w, const char *key, struct gpv_word *ret)
{
    const size_t size = strlen(key);
    struct gpv_words rest = *w;

    for (struct gpv_word word = gpv_word_next(&rest); word.size; word = gpv_word_next(&rest))
        if (word.size > size && word.at[size] == '=' && memcmp(word.at, key, size) == 0) {
            *ret = (struct gpv_word){ word.at + size + 1, word.size - size - 1 };
            return true;
        }
    return false;
}

/* The digits at its beginning; *w is what follows them. */
static bool take_digits(struct gpv_word *w, uint64_t *ret)
{
    const size_t size = w->size;

    for (*ret = 0; w->size && *w->at >= '0' && *w->at <= '9'; w->at++, w->size--) {
        const uint64_t digit = (uint64_t)(*w->at - '0');
        if (*ret > (UINT64_MAX - digit) / 10)
            return false;
        *ret = *ret * 10 + digit;
    }
    return w->size < size;
}

bool gpv_word_number(struct gpv_word w, uint64_t most, uint64_t *ret)
{
    return take_digits(&w, ret) && w.size == 0 && *ret <= most;
}

struct unit {
    const char *name;
    uint64_t size;
};

static bool amount(struct gpv_word w, const struct unit *unit, size_t n, uint64_t most,
                   uint64_t *ret)
{
    if (!take_digits(&w, ret))
        return false;
    for (size_t i = 0; i < n; i++)
        if (gpv_word_is(w, unit[i].name) && *ret <= most / unit[i].size) {
            *ret *= unit[i].size;
            return true;
        }
    return false;
}

bool gpv_word_time(struct gpv_word w, int64_t *ret)
{
    static const struct unit units[] = {
        { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 }
    };
    uint64_t ns;

    if (!amount(w, units, sizeof(units) / sizeof(*units), INT64_MAX / 4, &ns))
        return false;
    *ret = (int64_t)ns;
    return true;
}

bool gpv_word_bytes(struct gpv_word w, uint64_t *ret)
{
    static const struct unit units[] = {
        { "", 1 }, { "KiB", 1u << 10 }, { "MiB", 1u << 20 }, { "GiB", 1u << 30 }
    };

    return amount(w, units, sizeof(units) / sizeof(*units), UINT64_MAX, ret);
}
