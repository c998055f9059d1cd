/* SPDX-License-Identifier: MIT */
/*
 * view_night.h - checks that hold for the night of any bytes.
 *
 * Each index of it is one of its lists.  Written as lines and read again, it is the same night,
 * without an unknown line.                                                              [V5] [V9]
 */
#ifndef T_FUZZ_VIEW_NIGHT_H
#define T_FUZZ_VIEW_NIGHT_H

#include "fuzz.h"

#include "view/line.h"

static void check_span(const struct gpv_night *n, int64_t since, int64_t until)
{
    FUZZ_CHECK(since >= 0 && (until == 0 || until >= since));
    FUZZ_CHECK(gpv_until(n, until) <= n->to);
}

static void check_attempt(const struct gpv_night *n, const struct gpv_attempt *a)
{
    struct gpv_set set = gpv_set(n, a->set);

    check_span(n, a->started, a->ended);
    FUZZ_CHECK(a->outcome < GPV_OUTCOMES);
    FUZZ_CHECK(a->shape == GPV_NONE16 || a->shape < n->shapes.n);
    FUZZ_CHECK(gpv_class_of(n, a) == GPV_NONE || gpv_class_of(n, a) < n->classes.n);
    for (uint32_t i = 0; i < set.n; i++)
        FUZZ_CHECK(set.gpu[i] < n->gpus.n && (i == 0 || set.gpu[i - 1] < set.gpu[i]));
    (void)strlen(gpv_text(n, a->text));
    (void)strlen(gpv_name_of(n, a->task));
}

static void check_attempts(const struct gpv_night *n)
{
    for (size_t i = 0; i < n->attempts.n; i++) {
        check_attempt(n, &n->attempts.row[i]);
        FUZZ_CHECK(i == 0 || n->attempts.row[i - 1].started <= n->attempts.row[i].started);
    }
}

static void check_tenancies(const struct gpv_night *n)
{
    for (size_t i = 0; i < n->tenancies.n; i++) {
        const struct gpv_tenancy *t = &n->tenancies.row[i];

        check_span(n, t->since, t->until);
        FUZZ_CHECK(t->gpu < n->gpus.n && t->kind > 0 && t->kind < GPV_TENANCIES);
        FUZZ_CHECK(t->class == GPV_NONE || t->class < n->classes.n);
        FUZZ_CHECK(i == 0 || t[-1].since <= t->since);
    }
}

static void check_outs(const struct gpv_night *n)
{
    for (size_t i = 0; i < n->outs.n; i++) {
        const struct gpv_out *o = &n->outs.row[i];

        check_span(n, o->since, o->until);
        FUZZ_CHECK(o->gpu < n->gpus.n && o->kind > 0 && o->kind < GPV_OUTS);
        FUZZ_CHECK(i == 0 || o[-1].since <= o->since);
    }
}

static void check_reasons(const struct gpv_night *n)
{
    for (size_t i = 0; i < n->reasons.n; i++) {
        const struct gpv_reason *r = &n->reasons.row[i];

        check_span(n, r->since, r->until);
        FUZZ_CHECK(r->shape < n->shapes.n);
        FUZZ_CHECK(i == 0 || r[-1].since <= r->since);
    }
}

static void check_lives(const struct gpv_night *n)
{
    for (size_t i = 0; i < n->lives.n; i++) {
        const struct gpv_life *l = &n->lives.row[i];

        check_span(n, l->since, l->until);
        FUZZ_CHECK(l->kind > 0 && l->kind < GPV_LIVES);
        FUZZ_CHECK(i == 0 || l[-1].since <= l->since);
    }
}

static void check_lefts(const struct gpv_night *n)
{
    for (size_t i = 0; i < n->lefts.n; i++) {
        const struct gpv_left_row *l = &n->lefts.row[i];

        FUZZ_CHECK(l->batch > 0 && l->time > 0 && l->least >= -1);
        FUZZ_CHECK(l->most == -1 || (l->least >= 0 && l->least <= l->most));
        FUZZ_CHECK(i == 0 || l[-1].time <= l->time);
    }
}

static void check_lists(const struct gpv_night *n)
{
    FUZZ_CHECK(n->from <= n->to);
    for (size_t i = 0; i < n->shapes.n; i++)
        FUZZ_CHECK(n->shapes.row[i].class == GPV_NONE || n->shapes.row[i].class < n->classes.n);
    for (size_t i = 0; i < n->batches.n; i++)
        FUZZ_CHECK(gpv_find_batch(n, n->batches.row[i].id) == i);
    check_attempts(n);
    check_tenancies(n);
    check_outs(n);
    check_reasons(n);
    check_lives(n);
    check_lefts(n);
}

static struct gpv_night *read_lines(const char *text, size_t size)
{
    struct gpv_night *n = gpv_night_new();

    FUZZ_CHECK(n);
    FUZZ_CHECK(gpv_lines_read(n, text, size) == 0);
    FUZZ_CHECK(gpv_night_end(n, 0) == 0);
    check_lists(n);
    return n;
}

static void check_same(const struct gpv_night *a, const struct gpv_night *b)
{
    FUZZ_CHECK(a->from == b->from && a->to == b->to && a->over == b->over && b->unknown == 0);
    FUZZ_CHECK(a->gpus.n == b->gpus.n && a->classes.n == b->classes.n);
    FUZZ_CHECK(a->shapes.n == b->shapes.n && a->batches.n == b->batches.n);
    FUZZ_CHECK(a->attempts.n == b->attempts.n && a->names.n == b->names.n);
    FUZZ_CHECK(a->tenancies.n == b->tenancies.n && a->outs.n == b->outs.n);
    FUZZ_CHECK(a->reasons.n == b->reasons.n && a->lives.n == b->lives.n);
    FUZZ_CHECK(a->lefts.n == b->lefts.n);
    for (size_t i = 0; i < a->attempts.n; i++)
        FUZZ_CHECK(a->attempts.row[i].last == b->attempts.row[i].last);
}

/* Takes the night, which may have unknown lines. */
static void check_night(struct gpv_night *night)
{
    struct gpv_lines once = { 0 }, twice = { 0 };

    check_lists(night);
    FUZZ_CHECK(gpv_night_write(night, &once) && !once.failed);
    struct gpv_night *again = read_lines(once.text, once.size);
    check_same(night, again);
    FUZZ_CHECK(gpv_night_write(again, &twice) && !twice.failed);
    FUZZ_CHECK(once.size == twice.size && memcmp(once.text, twice.text, once.size) == 0);
    gpv_lines_free(&once);
    gpv_lines_free(&twice);
    gpv_night_free(night);
    gpv_night_free(again);
}

/* Bytes as a text without a byte more: a read beyond it is found. */
static char *text_of(const uint8_t *data, size_t size)
{
    char *text = malloc(size ? size : 1);

    FUZZ_CHECK(text);
    if (size != 0)
        memcpy(text, data, size);
    return text;
}

#endif
