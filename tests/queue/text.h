/* SPDX-License-Identifier: MIT */
/* text.h - a text that grows. */
#ifndef T_TEXT_H
#define T_TEXT_H

#include <stddef.h>

struct text {
    char *data; /* NULL while it is empty */
    size_t size, room;
};

void text_add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_free(struct text *t);
/* 1: both have the same bytes. */
int text_same(const struct text *a, const struct text *b);
/* Prints the first line in which they differ. */
void text_print_difference(const struct text *a, const struct text *b);

#endif
