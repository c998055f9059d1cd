/* SPDX-License-Identifier: MIT */
/* split.c - the words of a command. */
#include "queue/config/split.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Copies the text in quotes from behind the opening one.  Returns the text behind the closing one,
 * or NULL: there is none. */
static const char *read_quoted(const char *at, char quote, char **to)
{
    for (; *at != quote; at++) {
        if (quote == '"' && *at == '\\' && (at[1] == '"' || at[1] == '\\'))
            at++;
        if (!*at)
            return NULL;
        *(*to)++ = *at;
    }
    return at + 1;
}

/* Copies one word and its NUL byte.  Returns the text behind it, or NULL. */
static const char *read_word(const char *at, char **to)
{
    while (at && *at && *at != ' ' && *at != '\t') {
        if (*at == '\'' || *at == '"') {
            at = read_quoted(at + 1, *at, to);
            continue;
        }
        at += *at == '\\';
        if (!*at)
            return NULL;
        *(*to)++ = *at++;
    }
    *(*to)++ = '\0';
    return at;
}

int gpq_split_words(const char *text, char ***ret, struct gpq_error *e)
{
    size_t size = strlen(text), most = size / 2 + 2, n = 0; /* a word has a blank before it */
    char **words = malloc(most * sizeof(*words) + size + 2);
    if (!words)
        return gpq_fail(e, GPQ_ENOMEM, "no memory for %zu bytes", size);
    char *to = (char *)(words + most);
    for (const char *at = text; (at += strspn(at, " \t")), *at;) {
        words[n++] = to;
        at = read_word(at, &to);
        if (at)
            continue;
        free(words);
        return gpq_fail(e, GPQ_EINVAL, "has a quote that is left open, or ends with a backslash");
    }
    words[n] = NULL;
    *ret = words;
    return (int)n;
}
