/* SPDX-License-Identifier: MIT */
/*
 * json.h - writes JSON (RFC 8259) to a stream.
 *
 * Texts may have any bytes [V5].  Bytes that are no UTF-8 become U+FFFD; characters that steer a
 * terminal, and <, > and &, are written as \uXXXX, so that a document may stand in a page of HTML.
 */
#ifndef GPV_JSON_H
#define GPV_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct gpv_json {
    FILE *f;      /* its error flag is for the caller to check */
    bool follows; /* something stands before in this object or array */
    size_t size;  /* bytes that were written */
};

/* Each value is preceded by its key in an object; key NULL in an array.  Keys are plain names. */
void gpv_json_open(struct gpv_json *j, const char *key, char bracket);
void gpv_json_close(struct gpv_json *j, char bracket);
void gpv_json_text(struct gpv_json *j, const char *key, const char *text); /* "": null */
void gpv_json_number(struct gpv_json *j, const char *key, int64_t number);
/* Up to 6 digits behind the point; null where it is not finite. */
void gpv_json_decimal(struct gpv_json *j, const char *key, double number);
void gpv_json_bool(struct gpv_json *j, const char *key, bool truth);
void gpv_json_null(struct gpv_json *j, const char *key);
/* Ns since 1970, or a length in ns; null where it is below `least`. */
void gpv_json_time(struct gpv_json *j, const char *key, int64_t ns, int64_t least);
/* The next value begins a line: a large document stays readable. */
void gpv_json_line(struct gpv_json *j);

#endif
