/* SPDX-License-Identifier: MIT */
/* placeholders.c - replaces names in braces. */
#include "queue/agent/placeholders.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[GPQ_PLACEHOLDERS] = { [GPQ_PLACEHOLDER_GPU] = "gpu",
                                                     [GPQ_PLACEHOLDER_GPUS] = "gpus",
                                                     [GPQ_PLACEHOLDER_PORT] = "port",
                                                     [GPQ_PLACEHOLDER_TASK] = "task",
                                                     [GPQ_PLACEHOLDER_OUT] = "out" };

/* A name in braces. */
struct group {
    enum gpq_placeholder name;
    bool doubled;
    size_t size; /* bytes; 0 = there is none */
};

static struct group group_at(const char *text)
{
    struct group g = { 0 };
    if (text[0] != '{')
        return g;
    g.doubled = text[1] == '{';
    const char *name = text + 1 + g.doubled;
    for (unsigned i = 0; i < GPQ_PLACEHOLDERS; i++) {
        size_t n = strlen(names[i]);
        if (strncmp(name, names[i], n) != 0 || name[n] != '}' || (g.doubled && name[n + 1] != '}'))
            continue;
        g.name = (enum gpq_placeholder)i;
        g.size = n + 2 + 2 * (size_t)g.doubled;
        break;
    }
    return g;
}

/* The next name that is to be replaced, from *at on, which then is behind it.  False: there is no
 * further one.  *ret_from is its first byte. */
static bool next_group(const char **at, const char *text, const char **ret_from, struct group *ret)
{
    for (const char *p = *at; *p; p++) {
        struct group g = group_at(p);
        if (g.size == 0)
            continue;
        if (p > text && p[-1] == '$') {
            p += g.size - 1;
            continue;
        }
        *ret_from = p;
        *ret = g;
        *at = p + g.size;
        return true;
    }
    return false;
}

bool gpq_placeholders_use(char *const *texts, enum gpq_placeholder name)
{
    for (; *texts; texts++) {
        const char *at = *texts, *from;
        struct group g;
        while (next_group(&at, *texts, &from, &g))
            if (!g.doubled && g.name == name)
                return true;
    }
    return false;
}

static size_t put(char *to, size_t used, const char *text, size_t size)
{
    if (to)
        memcpy(to + used, text, size);
    return used + size;
}

/* Writes the text with its NUL byte, unless `to` is NULL.  Returns its bytes. */
static size_t write_text(char *to, const char *text, const struct gpq_placeholders *values)
{
    const char *at = text, *done = text, *from;
    struct group g;
    size_t used = 0;
    while (next_group(&at, text, &from, &g)) {
        used = put(to, used, done, (size_t)(from - done));
        used = g.doubled ? put(to, used, from + 1, g.size - 2)
                         : put(to, used, values->value[g.name], strlen(values->value[g.name]));
        done = at;
    }
    return put(to, used, done, strlen(done) + 1);
}

char **gpq_placeholders_replace(char *const *texts, const struct gpq_placeholders *values)
{
    size_t n = 0, size = 0;
    for (; texts[n]; n++)
        size += write_text(NULL, texts[n], values);
    char **ret = malloc((n + 1) * sizeof(*ret) + size);
    if (!ret)
        return NULL;
    char *to = (char *)(ret + n + 1);
    for (size_t i = 0; i < n; i++) {
        ret[i] = to;
        to += write_text(to, texts[i], values);
    }
    ret[n] = NULL;
    return ret;
}
