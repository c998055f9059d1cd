/* SPDX-License-Identifier: MIT */
/* text.c - a text that grows. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

void text_add(struct text *t, const char *format, ...)
{
    va_list list, again;
    int n;

    va_start(list, format);
    va_copy(again, list);
    n = vsnprintf(t->data ? t->data + t->size : NULL, t->room - t->size, format, list);
    va_end(list);
    T_CMP(n, >=, 0);
    if (t->size + (size_t)n >= t->room) {
        t->room = (t->size + (size_t)n) * 2 + 1024;
        t->data = realloc(t->data, t->room);
        T_CHECK(t->data);
        (void)vsnprintf(t->data + t->size, t->room - t->size, format, again);
    }
    va_end(again);
    t->size += (size_t)n;
}

void text_free(struct text *t)
{
    free(t->data);
    *t = (struct text){ 0 };
}

int text_same(const struct text *a, const struct text *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

void text_print_difference(const struct text *a, const struct text *b)
{
    const char *left = a->data ? a->data : "", *right = b->data ? b->data : "";
    size_t i = 0, line = 0;

    while (left[i] != '\0' && left[i] == right[i]) {
        if (left[i++] == '\n')
            line = i;
    }
    (void)printf("- %.*s\n+ %.*s\n", (int)strcspn(left + line, "\n"), left + line,
                 (int)strcspn(right + line, "\n"), right + line);
}
