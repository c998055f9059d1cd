/* SPDX-License-Identifier: MIT */
/*
 * json.h - owns the way from strings to JSON.
 */
#ifndef TRANSCRIBE_JSON_H
#define TRANSCRIBE_JSON_H

#include <stddef.h>
#include <stdio.h>

/*
 * Writes `n` bytes as a JSON string with its quotes.  Each byte that is not UTF-8 becomes U+FFFD:
 * file names may hold any bytes, and the line must stay valid JSON.
 */
void json_string(FILE *f, const char *bytes, size_t n);

/* Writes `, "key": "text"`. */
void json_field(FILE *f, const char *key, const char *text);

#endif
