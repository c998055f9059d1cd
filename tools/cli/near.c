/* SPDX-License-Identifier: MIT */
/* near.c - names that resemble a misspelt one. */
#include "tools/cli/near.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Longer words resemble nothing. */
enum { WORD = 40 };

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The first letter is rarely wrong: gpus is not cpus. */
static size_t replaced(const char *a, const char *b, size_t i, size_t j)
{
    return lower(a[i - 1]) == lower(b[j - 1]) ? 0 : i == 1 && j == 1 ? 2 : 1;
}

/* How many letters must be added, removed, replaced or swapped with a neighbour. */
static size_t changes(const char *a, const char *b)
{
    size_t rows[3][WORD + 1], m = strlen(a), n = strlen(b);
    size_t *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= n; j++)
        last[j] = j;
    for (size_t i = 1; i <= m; i++) {
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            row[j] = least(least(row[j - 1], last[j]) + 1, last[j - 1] + replaced(a, b, i, j));
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return last[n];
}

void near_add(struct near *near, const char *name)
{
    size_t n = strlen(near->word), length = strlen(name);

    if (n < 2 || n > WORD || length > WORD)
        return;
    size_t most = n < 6 ? 1 : 2, count = changes(near->word, name);
    if (strncasecmp(name, near->word, n) == 0)
        count = least(count, 1);
    if (count > most || (near->n > 0 && count > near->changes))
        return;
    if (near->n == 0 || count < near->changes)
        near->n = 0;
    near->changes = count;
    if (near->n < NEAR_MOST)
        near->name[near->n++] = name;
}

char *near_text(const struct near *near, const char *dashes, char *ret, size_t size)
{
    size_t used = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < near->n && used < size; i++)
        used += (size_t)snprintf(ret + used, size - used, "%s%s%s%s",
                                 i == 0             ? ": did you mean "
                                 : i + 1 == near->n ? " or "
                                                    : ", ",
                                 dashes, near->name[i], i + 1 == near->n ? "?" : "");
    return ret;
}
