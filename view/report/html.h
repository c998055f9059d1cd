/* SPDX-License-Identifier: MIT */
/*
 * html.h - the one way in which a report writes text.
 *
 * Markup stands in formats, which are constants.  Texts of a night are arguments, and each
 * argument of %s is escaped, so that it reads the same between tags and in quotes: no file but
 * html.c writes to a page.                                                                  [V5]
 */
#ifndef GPV_HTML_H
#define GPV_HTML_H

#include <stddef.h>
#include <stdio.h>

/* As fprintf, with %s, %.*s, %d, %u, %lld, %llu, %zu, %.1f and %% only.  The precision of %.*s
 * counts characters; a text that is cut there ends in "…". */
__attribute__((format(printf, 2, 3))) void gpv_html(FILE *f, const char *format, ...);

/* Characters of a text as it is shown: a control character counts as its escape. */
size_t gpv_html_width(const char *text);

/* A string of the data of a page, with its quotes, as JSON: the same characters as %.*s shows.  No
 * text ends the element in which it stands. */
void gpv_html_string(FILE *f, const char *text, int most);

/* A constant part of the page: style, script. */
void gpv_html_constant(FILE *f, const unsigned char *text, size_t size);

#endif
