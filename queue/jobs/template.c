/* SPDX-License-Identifier: MIT */
/*
 * template.c - names in braces, which values replace.
 *
 * find() and meaning_of() are the grammar, and spell() is the inverse of meaning_of().
 */
#include "queue/jobs/template.h"

#include <stdlib.h>
#include <string.h>

#include "queue/store.h"

/* In a filled text, this byte and the next ones are names of the start: UTF-8 has none of them. */
#define MARK 0xf8U

static const char *const start_names[GPQ_STARTS] = {
    [GPQ_START_GPU] = "gpu",   [GPQ_START_GPUS] = "gpus", [GPQ_START_PORT] = "port",
    [GPQ_START_TASK] = "task", [GPQ_START_OUT] = "out",
};

enum gpq_start gpq_start_named(const char *name, size_t size)
{
    for (enum gpq_start i = 0; i < GPQ_STARTS; i++)
        if (strlen(start_names[i]) == size && !memcmp(start_names[i], name, size))
            return i;
    return GPQ_STARTS;
}

/* ---- The grammar ---- */

/* A name and the braces around it. */
struct place {
    const char *from, *to;
    const char *name;
    size_t size, open, close; /* of the name, and of the runs of braces */
    bool dollar;              /* directly before it */
};

static bool is_name(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && ((c >= '0' && c <= '9') || c == '-'));
}

/* Finds the first place that begins at `text` or behind it. */
static bool find(const char *begin, const char *text, struct place *ret)
{
    for (const char *at = strchr(text, '{'); at; at = strchr(at, '{')) {
        struct place p = { .from = at, .dollar = at > begin && at[-1] == '$' };
        p.open = strspn(at, "{");
        p.name = at + p.open;
        while (is_name(p.name[p.size], p.size == 0))
            p.size++;
        at = p.name + p.size;
        p.close = strspn(at, "}");
        if (p.close == 0)
            continue;
        p.to = at + p.close;
        *ret = p;
        return true;
    }
    return false;
}

/* What a place with a known name is: braces that are text, and the value or the name itself. */
struct meaning {
    size_t before, after;
    bool is_value;
};

static size_t lesser(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Directly behind a dollar, one pair of braces and two have each other's meaning. */
static size_t turned(size_t pairs, bool dollar, bool outermost)
{
    return dollar && outermost && (pairs == 1 || pairs == 2) ? 3 - pairs : pairs;
}

static struct meaning meaning_of(const struct place *p)
{
    size_t n = lesser(p->open, p->close), pairs = turned(n, p->dollar, p->open == n);

    return (struct meaning){ .before = p->open - n + pairs / 2,
                             .after = p->close - n + pairs / 2,
                             .is_value = pairs % 2 };
}

/* Sets the runs of braces that have this meaning.  A name alone in no pair stays as it is. */
static void spell(const struct meaning *m, bool dollar, size_t *ret_open, size_t *ret_close)
{
    size_t both = lesser(m->before, m->after);
    size_t n = turned(2 * both + m->is_value, dollar, m->before == both);

    *ret_open = m->before - both + n;
    *ret_close = m->after - both + n;
}

/* ---- Reading ---- */

bool gpq_template_read(const char *text, bool any_name, struct gpq_texts *ret)
{
    const char *done = text;
    struct place p;

    for (const char *at = text; find(text, at, &p); at = p.to) {
        if (!any_name && gpq_start_named(p.name, p.size) == GPQ_STARTS)
            continue;
        struct meaning m = meaning_of(&p);
        if (!gpq_texts_add(ret, done, (size_t)(p.from - done)) ||
            !gpq_texts_fill(ret, '{', m.before) || (m.is_value && !gpq_texts_end(ret)) ||
            !gpq_texts_add(ret, p.name, p.size) || (m.is_value && !gpq_texts_end(ret)) ||
            !gpq_texts_fill(ret, '}', m.after))
            return false;
        done = p.to;
    }
    return gpq_texts_put(ret, done);
}

/* ---- Filling ---- */

int gpq_template_fill(const struct gpq_texts *parts, const char *const *values, size_t most,
                      struct gpq_texts *out, bool *ret_starts)
{
    for (size_t i = 0; i < parts->n; i++) {
        const char *text = gpq_texts_get(parts, i);
        size_t size = gpq_texts_size(parts, i);
        char mark;
        if (i % 2) {
            const char *value = values[i / 2];
            if (!value) {
                mark = (char)(MARK + gpq_start_named(text, size));
                *ret_starts = true;
            }
            text = value ? value : &mark;
            size = value ? strlen(value) : 1;
        }
        if (size > most - gpq_texts_open(out)) {
            gpq_texts_undo(out);
            return GPQ_EINVAL;
        }
        if (!gpq_texts_add(out, text, size))
            return GPQ_ENOMEM;
    }
    return gpq_texts_end(out) ? 0 : GPQ_ENOMEM;
}

/* Whether the byte stands for a name of the start; then *ret is the name. */
static bool is_mark(char c, const char **ret)
{
    unsigned i = (unsigned char)c - MARK;

    if (i >= GPQ_STARTS)
        return false;
    *ret = start_names[i];
    return true;
}

bool gpq_template_write(const char *filled, struct gpq_texts *out)
{
    for (const char *at = filled; *at;) {
        size_t plain = 0, size = 0, open, close;
        const char *name;
        while (at[plain] && at[plain] != '{' && !is_mark(at[plain], &name))
            plain++;
        bool dollar = plain > 0 && at[plain - 1] == '$';
        if (!gpq_texts_add(out, at, plain))
            return false;
        at += plain;
        struct meaning m = { .before = strspn(at, "{") };
        at += m.before;
        m.is_value = is_mark(*at, &name);
        if (m.is_value) {
            at++;
            size = strlen(name);
        } else {
            name = at;
            while (is_name(name[size], size == 0))
                size++;
            at += size;
        }
        m.after = strspn(at, "}");
        open = m.before;
        close = m.after;
        if (m.is_value || gpq_start_named(name, size) != GPQ_STARTS)
            spell(&m, dollar, &open, &close);
        if (!gpq_texts_fill(out, '{', open) || !gpq_texts_add(out, name, size) ||
            !gpq_texts_fill(out, '}', close))
            return false;
        at += m.after;
    }
    return gpq_texts_end(out);
}

/* ---- The start ---- */

uint32_t gpq_template_starts(const char *text)
{
    uint32_t mask = 0;
    struct place p;

    for (const char *at = text; find(text, at, &p); at = p.to) {
        enum gpq_start start = gpq_start_named(p.name, p.size);
        if (start != GPQ_STARTS && meaning_of(&p).is_value)
            mask |= 1U << start;
    }
    return mask;
}

char *gpq_template_start(const char *text, const char *const values[GPQ_STARTS])
{
    struct gpq_texts out = { 0 };
    const char *done = text;
    struct place p;
    bool ok = true;

    for (const char *at = text; ok && find(text, at, &p); at = p.to) {
        enum gpq_start start = gpq_start_named(p.name, p.size);
        if (start == GPQ_STARTS)
            continue;
        struct meaning m = meaning_of(&p);
        if (m.is_value && !values[start])
            continue;
        const char *value = m.is_value ? values[start] : start_names[start];
        ok = gpq_texts_add(&out, done, (size_t)(p.from - done)) &&
             gpq_texts_fill(&out, '{', m.before) && gpq_texts_add(&out, value, strlen(value)) &&
             gpq_texts_fill(&out, '}', m.after);
        done = p.to;
    }
    if (ok && gpq_texts_put(&out, done)) {
        free(out.at);
        return out.data;
    }
    gpq_texts_free(&out);
    return NULL;
}
