/* SPDX-License-Identifier: MIT */
/*
 * json.h - owns how a string becomes JSON.
 */
#ifndef TRANSCRIBE_JSON_H
#define TRANSCRIBE_JSON_H

#include <stddef.h>
#include <stdio.h>

/*
 * Writes `n` bytes as a JSON string, quotes included.  What is not UTF-8 (file names
 * may be anything) becomes U+FFFD, one for each byte, so that the line stays valid JSON.
 */
void json_string(FILE *f, const char *bytes, size_t n);

/* Writes `, "key": "text"`. */
void json_field(FILE *f, const char *key, const char *text);

#endif
