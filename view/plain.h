/* SPDX-License-Identifier: MIT */
/* plain.h - texts of any bytes, as a terminal and a line of a file can have them. */
#ifndef GPV_PLAIN_H
#define GPV_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes of the character with which a text begins (RFC 3629), which *ret gets; 0: the text begins
 * with no character. */
size_t gpv_character(const char *text, uint32_t *ret);

/* Whether a terminal obeys the character: control characters, and those that end a line or turn
 * the direction of text. */
bool gpv_steers(uint32_t character);

enum { GPV_ESCAPE = 16 };
/* The text in place of such a character: "\n", "\x1b", "\u202e". */
char *gpv_escape(uint32_t character, char ret[GPV_ESCAPE]);

/* Writes a text on one line: "\n", "\x1b", "\u202e" for characters that steer, and U+FFFD for
 * bytes that are no character.  The character `twice` is written twice; 0: none.  [V5] */
void gpv_put_plain(FILE *f, const char *text, char twice);

#endif
