/* SPDX-License-Identifier: MIT */
/* pages.h - pages of made-up nights, and texts in them. */
#ifndef T_PAGES_H
#define T_PAGES_H

#include "rows.h"

#define MINUTE INT64_C(60000000000)

/* The page of a night, and the part of a page from the begin of a section to its end; the caller
 * frees each. */
char *t_page_of(struct gpv_night *n, unsigned reload);
char *t_section(const char *page, const char *id);
/* Whether a page has a text; a text with two times, in minutes of the night.  Prints it if not. */
bool t_has(const char *page, const char *part);
__attribute__((format(printf, 2, 0))) bool t_has_times(const char *page, const char *format,
                                                       int first, int second);

#endif
