/* SPDX-License-Identifier: MIT */
/* words.h - the words of a line of a decision log: "@3ms sent s=1 t=3 c=0". */
#ifndef GPV_READ_WORDS_H
#define GPV_READ_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpv_word {
    const char *at;
    size_t size;
};

/* The rest of a line; each function is total. */
struct gpv_words {
    const char *at, *end;
};

/* The next word; of size 0 at the end. */
struct gpv_word gpv_word_next(struct gpv_words *w);
/* The rest of the line, without the blanks before it. */
struct gpv_word gpv_word_rest(struct gpv_words *w);
bool gpv_word_is(struct gpv_word w, const char *text);
/* The value of the first word "key=value"; false: there is none. */
bool gpv_word_of(const struct gpv_words *w, const char *key, struct gpv_word *ret);

/* False if the word is no number from 0 to `most`. */
bool gpv_word_number(struct gpv_word w, uint64_t most, uint64_t *ret);
/* "1075ms", in ns; not "never". */
bool gpv_word_time(struct gpv_word w, int64_t *ret);
/* "24GiB", in bytes; not "all". */
bool gpv_word_bytes(struct gpv_word w, uint64_t *ret);

#endif
