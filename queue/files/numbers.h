/* SPDX-License-Identifier: MIT */
/*
 * numbers.h - names made of numbers, such as "12.44" of a task and "12.44.2" of its attempt.
 */
#ifndef GPQ_FILES_NUMBERS_H
#define GPQ_FILES_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads `count` decimal numbers, from 1 to 2^32 - 1 and without leading zeros, that `separators`
 * divide in this order: "/." for "12/44.2".  Sets *ret_rest behind them; NULL: nothing may follow.
 */
bool gpq_numbers_read(const char *text, const char *separators, uint32_t *ret, size_t count,
                      const char **ret_rest);

/*
 * Reads a decimal number up to 2^64 - 1 without leading zeros.  Returns the text behind it; NULL:
 * there is none.
 */
const char *gpq_decimal_read(const char *text, uint64_t *ret);

#endif
