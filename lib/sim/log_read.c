/* SPDX-License-Identifier: MIT */
/* log_read.c - see log_read.h. */
#include "sim/log_read.h"

#include <string.h>

#include "base/clock.h"
#include "log/log_shape.h"
#include "sim/fact_read.h"
#include "sim/line_read.h"

#define WORDS_MAX 24u /* of a line: more than the longest shape or fact has */

_Static_assert(GPI_LOG_FIELDS_MAX + 2 < WORDS_MAX, "a line has room for all");

/* Cuts off and returns the text before the first of the characters `ends`, and drops that one.
 * If the text ends with such a character, an empty word remains.  from->at is NULL at the end. */
static struct gpi_line_word cut(struct gpi_line_word *from, const char *ends)
{
    struct gpi_line_word w = { from->at, 0 };

    while (w.size < from->size && !(w.at[w.size] && strchr(ends, w.at[w.size])))
        w.size++;
    if (w.size == from->size)
        *from = (struct gpi_line_word){ 0 };
    else
        *from = (struct gpi_line_word){ from->at + w.size + 1, from->size - w.size - 1 };
    return w;
}

/* ---- reading values ---- */

static bool read_bits(struct gpi_line_word w, const char *list, uint64_t *ret)
{
    uint64_t bit;

    for (*ret = 0; w.at; *ret |= 1ull << bit)
        if (!gpi_line_among(cut(&w, "+"), list, &bit))
            return false;
    return true;
}

static bool read_devices(struct gpi_line_word w, struct gpi_log_line *l)
{
    uint64_t number;

    for (l->slot.n = 0; w.at; l->slot.device[l->slot.n++] = (uint16_t)number)
        if (l->slot.n == GPI_LOG_DEVICES || !gpi_line_digits(cut(&w, ","), UINT16_MAX, &number))
            return false;
    return true;
}

static bool read_value(struct gpi_line_word w, const struct gpi_log_field *f, uint64_t *ret)
{
    switch (f->form) {
    case GPI_FORM_NUMBER:
        return gpi_line_digits(w, f->most, ret) && *ret >= f->least;
    case GPI_FORM_SIGNED:
        return gpi_line_signed(w, ret);
    case GPI_FORM_BIG:
        return gpi_line_digits(w, UINT64_MAX, ret);
    case GPI_FORM_TIME:
        return gpi_line_time(w, ret);
    case GPI_FORM_FLAG:
        return gpi_line_digits(w, 1, ret);
    case GPI_FORM_MARK:
        *ret = 1;
        return true;
    case GPI_FORM_WORD:
        return gpi_line_among(w, f->words, ret);
    case GPI_FORM_BITS:
        return read_bits(w, f->words, ret);
    default:
        return false;
    }
}

/* ---- errors ---- */

struct reader {
    struct gpi_line_word word[WORDS_MAX];
    uint32_t n, at;
    const char *end; /* of the text */
    char *error;
};

static bool refuse(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(struct reader *r, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    gpi_line_error(r->error, GPI_LOG_ERROR_SIZE, format, list);
    va_end(list);
    return false;
}

static bool refuse_value(struct reader *r, const struct gpi_log_field *f, struct gpi_line_word w)
{
#define REFUSE(format, ...) \
    refuse(r, "%s is %.*s, expected " format, f->name, gpi_line_shown(w), w.at, __VA_ARGS__)
    switch (f->form) {
    case GPI_FORM_NUMBER:
        return REFUSE("a number from %u to %u", f->least, f->most);
    case GPI_FORM_SIGNED:
        return REFUSE("a number from %d to %d", INT32_MIN, INT32_MAX);
    case GPI_FORM_BIG:
        return REFUSE("a number below 2^%u", 64u);
    case GPI_FORM_TIME:
        return REFUSE("a time such as %s, or never", "20ms");
    case GPI_FORM_FLAG:
        return REFUSE("%u or %u", 0u, 1u);
    case GPI_FORM_WORD:
        return REFUSE("one of: %s", f->words);
    case GPI_FORM_BITS:
        return REFUSE("one or more, with + between them, of: %s", f->words);
    default:
        return REFUSE("up to %u numbers with commas between them", GPI_LOG_DEVICES);
    }
#undef REFUSE
}

/* ---- reading ---- */

/* Cuts NAME= off a word and returns NAME. */
static struct gpi_line_word key_of(struct gpi_line_word *value)
{
    struct gpi_line_word rest = *value, key = cut(&rest, "=");

    if (!key.size || key.size == value->size)
        return (struct gpi_line_word){ value->at, 0 };
    *value = rest;
    return key;
}

/* Returns the field with this name; without a name, the first unseen field with a fixed place. */
static uint32_t find_field(const struct gpi_log_shape *s, struct gpi_line_word key, uint32_t seen)
{
    uint32_t i = 0;

    while (i < s->n && (key.size ? s->field[i].placed || s->field[i].form == GPI_FORM_MARK ||
                                       !gpi_line_is(key, s->field[i].name)
                                 : !s->field[i].placed || seen >> i & 1))
        i++;
    return i;
}

/* Returns the mark that consists of this word, or the number of fields. */
static uint32_t find_mark(const struct gpi_log_shape *s, struct gpi_line_word word)
{
    uint32_t i = 0;

    while (i < s->n && (s->field[i].form != GPI_FORM_MARK || !gpi_line_is(word, s->field[i].name)))
        i++;
    return i;
}

static bool read_request(struct reader *r, struct gpi_line_word w, struct gpi_log_line *l)
{
    if (l->submit.what.n_requests == GPI_VARIANTS)
        return refuse(r, "more than %u variants", GPI_VARIANTS);
    return gpi_fact_read_request(&l->submit.request[l->submit.what.n_requests++], w, r->error);
}

static bool read_field(struct reader *r, const struct gpi_log_shape *s, struct gpi_log_line *l,
                       uint32_t *seen)
{
    struct gpi_line_word value = r->word[r->at], key = key_of(&value);
    const struct gpi_line_word named = key.size ? key : value;
    const uint32_t mark = find_mark(s, r->word[r->at]);
    const uint32_t i = mark < s->n ? mark : find_field(s, key, *seen);
    const struct gpi_log_field *f = &s->field[i];
    uint64_t number = 0;
    char name[GPI_LOG_NAME_SIZE];

    if (i == s->n)
        return refuse(r, "%s%s has no field %.*s", s->noun, gpi_log_name(name, s),
                      gpi_line_shown(named), named.at);
    if (f->form == GPI_FORM_REQUESTS)
        return read_request(r, value, l);
    if (*seen >> i & 1)
        return refuse(r, "field %s stands twice", f->name);
    if (f->form == GPI_FORM_DEVICES ? !read_devices(value, l) : !read_value(value, f, &number))
        return refuse_value(r, f, value);
    gpi_log_put(l, f, number);
    *seen |= 1u << i;
    return true;
}

static bool read_fields(struct reader *r, const struct gpi_log_shape *s, struct gpi_log_line *l)
{
    uint32_t seen = 0;
    char name[GPI_LOG_NAME_SIZE];

    for (; r->at < r->n; r->at++)
        if (!read_field(r, s, l, &seen))
            return false;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct gpi_log_field *f = &s->field[i];
        if (!(seen >> i & 1) && !f->optional)
            return refuse(r, "%s%s lacks field %s", s->noun, gpi_log_name(name, s), f->name);
        if (!(seen >> i & 1))
            gpi_log_put(l, f, f->otherwise);
    }
    return true;
}

/* Counts the words without a name: a line of a device has one, an event `device` has none. */
static uint32_t count_placed(const struct reader *r)
{
    uint32_t n = 0;

    for (uint32_t i = r->at + 1; i < r->n; i++)
        n += !memchr(r->word[i].at, '=', r->word[i].size);
    return n;
}

static bool read_setting(struct reader *r, struct gpi_log_line *l)
{
    struct gpi_line_word value = { "", 0 }, key;
    uint32_t i = 0;

    if (r->n != 2)
        return refuse(r, "expected set NAME=VALUE");
    value = r->word[1];
    key = key_of(&value);
    while (i < gpi_log_n_settings && !gpi_line_is(key, gpi_log_settings[i].name))
        i++;
    if (i == gpi_log_n_settings)
        return refuse(r, "no setting has the name %.*s", gpi_line_shown(key), key.at);
    l->kind = GPI_LOG_SET;
    l->set.which = i;
    return read_value(value, &gpi_log_settings[i], &l->set.value) ||
           refuse_value(r, &gpi_log_settings[i], value);
}

static bool read_stamp(struct reader *r, struct gpi_log_line *l)
{
    struct gpi_line_word w = r->word[0];

    if (*w.at != '@')
        return true;
    w.at++;
    w.size--;
    l->stamped = true;
    if (!gpi_line_time(w, &l->now) || l->now == GPI_NEVER)
        return refuse(r, "@ is followed by %.*s, expected a time such as @1075ms",
                      gpi_line_shown(w), w.at);
    r->at = 1;
    return r->n > 1 || refuse(r, "expected a step behind the time");
}

static bool is_core_fact(const struct gpi_fact *f)
{
    return f->kind <= GPI_FACT_CLASS || f->kind == GPI_FACT_FOREIGN ||
           f->kind == GPI_FACT_OBSERVED || f->kind == GPI_FACT_OBSERVED_OF ||
           f->kind == GPI_FACT_ADOPT || f->kind == GPI_FACT_CLASS_SET;
}

static bool read_fact(struct reader *r, struct gpi_log_line *l)
{
    const char *text = r->word[r->at].at + strlen("fact");

    l->kind = GPI_LOG_FACT;
    l->fact.now = l->now;
    if (!gpi_fact_read(&l->fact, text, (size_t)(r->end - text), r->error))
        return false;
    if (!is_core_fact(&l->fact))
        return refuse(r, "a core has no fact of this kind");
    if (l->stamped && l->fact.kind <= GPI_FACT_CLASS)
        return refuse(r, "this fact has no time");
    return l->fact.now == l->now || refuse(r, "expected the time before fact");
}

static bool read_line(struct reader *r, struct gpi_log_line *l)
{
    struct gpi_log_shape s;

    if (gpi_line_is(r->word[0], "set"))
        return read_setting(r, l);
    if (!read_stamp(r, l))
        return false;
    if (gpi_line_is(r->word[r->at], "fact"))
        return read_fact(r, l);
    if (!gpi_log_shape_named(&s, r->word[r->at], count_placed(r)))
        return refuse(r, "%.*s is no event, call, action or other word of a log",
                      gpi_line_shown(r->word[r->at]), r->word[r->at].at);
    if (l->stamped && (s.kind < GPI_LOG_EVENT || s.kind > GPI_LOG_DECIDE))
        return refuse(r, "%s has no time: only events and calls have one", s.name);
    l->kind = s.kind;
    r->at++;
    if (s.kind == GPI_LOG_EVENT) {
        l->event.kind = s.which;
        l->event.now = l->now;
    } else if (s.kind == GPI_LOG_ACTION) {
        l->action.kind = s.which;
    }
    return read_fields(r, &s, l);
}

bool gpi_log_read(struct gpi_log_line *ret, const char *text, size_t size,
                  char reterr[GPI_LOG_ERROR_SIZE])
{
    struct reader r = { .error = reterr };
    struct gpi_line_word rest = { text, size }, w;

    memset(ret, 0, sizeof *ret); /* so that equal lines have equal bytes */
    *reterr = 0;
    r.end = text + size;
    while (rest.at) {
        w = cut(&rest, " \t");
        if (w.size && r.n == WORDS_MAX && *r.word[0].at != '#')
            return refuse(&r, "more than %u words", WORDS_MAX);
        if (w.size && r.n < WORDS_MAX)
            r.word[r.n++] = w;
    }
    ret->kind = !r.n ? GPI_LOG_BLANK : *r.word[0].at == '#' ? GPI_LOG_COMMENT : GPI_LOG_RULE;
    return ret->kind != GPI_LOG_RULE || (r.n == 1 && gpi_line_is(r.word[0], "----")) ||
           read_line(&r, ret);
}
