/* SPDX-License-Identifier: MIT */
/* fact_read.c - reads a line of a fact. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "sim/fact_shape.h"
#include "sim/log_shape.h"

#define SHOWN 40 /* characters of a wrong word that an error quotes */

struct reader {
    const char *at, *end; /* the rest of the line */
    char *error;
};

/* The line may have any bytes, but the error has printable characters only. */
static bool refuse(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(struct reader *r, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    (void)vsnprintf(r->error, GPI_FACT_ERROR_SIZE, format, list);
    va_end(list);
    for (char *c = r->error; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return false;
}

static int shown(struct gpi_log_word w)
{
    return w.size < SHOWN ? (int)w.size : SHOWN;
}

/* Cuts off the text before the first of the characters `ends`, and drops that one. */
static struct gpi_log_word cut(struct gpi_log_word *from, const char *ends)
{
    struct gpi_log_word w = { from->at, 0 };

    while (w.size < from->size && !(w.at[w.size] && strchr(ends, w.at[w.size])))
        w.size++;
    *from = w.size == from->size
                ? (struct gpi_log_word){ w.at + w.size, 0 }
                : (struct gpi_log_word){ w.at + w.size + 1, from->size - w.size - 1 };
    return w;
}

static struct gpi_log_word next_word(struct reader *r)
{
    struct gpi_log_word w;

    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
        r->at++;
    w = (struct gpi_log_word){ r->at, 0 };
    while (r->at < r->end && *r->at != ' ' && *r->at != '\t')
        r->at++;
    w.size = (size_t)(r->at - w.at);
    return w;
}

static bool read_digits(struct gpi_log_word w, uint64_t most, uint64_t *ret)
{
    uint64_t n = 0;

    for (size_t i = 0; i < w.size; i++) {
        const unsigned digit = (unsigned)(unsigned char)w.at[i] - '0';
        if (digit > 9 || n > most / 10 || digit > most - n * 10)
            return false;
        n = n * 10 + digit;
    }
    *ret = n;
    return w.size > 0;
}

static bool read_unit(struct gpi_log_word w, const char *unit, uint64_t size, uint64_t *ret)
{
    struct gpi_log_word digits = { w.at, 0 };

    while (digits.size < w.size && w.at[digits.size] >= '0' && w.at[digits.size] <= '9')
        digits.size++;
    if (!gpi_log_is((struct gpi_log_word){ w.at + digits.size, w.size - digits.size }, unit) ||
        !read_digits(digits, UINT64_MAX / size, ret))
        return false;
    *ret *= size;
    return true;
}

static bool read_time(struct gpi_log_word w, uint64_t *ret)
{
    *ret = GPI_NEVER;
    for (size_t i = 0; i < GPI_LOG_UNITS; i++)
        if (read_unit(w, gpi_log_units[i].name, gpi_log_units[i].size, ret))
            return true;
    return gpi_log_is(w, "never");
}

static bool read_bytes(struct gpi_log_word w, uint64_t *ret)
{
    *ret = GPI_MEMORY_ALL;
    for (size_t i = 0; i < GPI_FACT_BYTE_UNITS; i++)
        if (read_unit(w, gpi_fact_byte_units[i].name, gpi_fact_byte_units[i].size, ret))
            return true;
    return gpi_log_is(w, "all");
}

static bool read_word(struct gpi_log_word w, const char *list, uint64_t *ret)
{
    struct gpi_log_word one;

    for (*ret = 0; gpi_log_next_word(&list, &one); ++*ret)
        if (one.size == w.size && !memcmp(one.at, w.at, w.size))
            return true;
    return false;
}

static bool read_signed(struct gpi_log_word w, uint64_t *ret)
{
    const bool minus = w.size && *w.at == '-';

    if (!read_digits((struct gpi_log_word){ w.at + minus, w.size - minus },
                     (uint64_t)INT32_MAX + minus, ret))
        return false;
    *ret = minus ? (uint32_t)0 - (uint32_t)*ret : *ret;
    return true;
}

static bool read_form(struct gpi_log_word w, const struct gpi_fact_field *f, uint64_t *ret)
{
    switch (f->form) {
    case GPI_FACT_NUMBER:
        return read_digits(w, UINT32_MAX, ret);
    case GPI_FACT_SIGNED:
        return read_signed(w, ret);
    case GPI_FACT_TIME:
        return read_time(w, ret);
    case GPI_FACT_BYTES:
        return read_bytes(w, ret);
    case GPI_FACT_WORD:
        return read_word(w, f->words, ret);
    case GPI_FACT_FLAG:
        return read_digits(w, 1, ret);
    default:
        return read_digits(w, UINT64_MAX, ret);
    }
}

static bool read_value(struct reader *r, struct gpi_log_word w, const struct gpi_fact_field *f,
                       void *record)
{
    static const char *const expected[] = {
        [GPI_FACT_NUMBER] = "a number below 2^32",
        [GPI_FACT_SIGNED] = "a number of 32 bits",
        [GPI_FACT_BIG] = "a number of 64 bits",
        [GPI_FACT_TIME] = "a time such as 20ms, or never",
        [GPI_FACT_BYTES] = "bytes such as 24GiB, or all",
        [GPI_FACT_WORD] = "one of: ",
        [GPI_FACT_FLAG] = "0 or 1",
    };
    uint64_t value = 0;

    if (!read_form(w, f, &value))
        return refuse(r, "%s is %.*s, expected %s%s", f->name ? f->name : "the number", shown(w),
                      w.at, expected[f->form], f->words ? f->words : "");
    gpi_fact_put(record, f, value);
    return true;
}

static bool read_list(struct reader *r, struct gpi_log_word w, struct gpi_fact *fact)
{
    uint64_t number;

    while (w.size) {
        struct gpi_log_word one = cut(&w, ",");
        if (fact->n_devices == GPI_FACT_DEVICES || !read_digits(one, UINT16_MAX, &number))
            return refuse(r, "a device is %.*s, expected up to %u numbers with commas between them",
                          shown(one), one.at, GPI_FACT_DEVICES);
        fact->list[fact->n_devices++] = (uint16_t)number;
    }
    return true;
}

static void put_defaults(void *record, const struct gpi_fact_field *f)
{
    if (f->optional && f->form != GPI_FACT_LIST && f->form != GPI_FACT_REQUESTS)
        gpi_fact_put(record, f, f->otherwise);
}

static bool read_request(struct reader *r, struct gpi_log_word w, struct gpi_fact *fact)
{
    struct gpi_request *request;

    if (fact->n_requests == GPI_VARIANTS)
        return refuse(r, "more than %u variants", GPI_VARIANTS);
    request = &fact->request[fact->n_requests++];
    for (size_t i = 0; i < GPI_FACT_REQUEST_FIELDS; i++)
        put_defaults(request, &gpi_fact_request_fields[i]);
    while (w.size) {
        struct gpi_log_word value = cut(&w, ","), name = cut(&value, ":");
        size_t i = 0;
        while (i < GPI_FACT_REQUEST_FIELDS && !gpi_log_is(name, gpi_fact_request_fields[i].name))
            i++;
        if (i == GPI_FACT_REQUEST_FIELDS)
            return refuse(r, "a request has no field %.*s", shown(name), name.at);
        if (!read_value(r, value, &gpi_fact_request_fields[i], request))
            return false;
    }
    return true;
}

static bool read_field(struct reader *r, const struct gpi_fact_shape *s, struct gpi_log_word w,
                       struct gpi_fact *fact, uint32_t *seen)
{
    const bool named = memchr(w.at, '=', w.size) != NULL;
    struct gpi_log_word value = w,
                        name = named ? cut(&value, "=") : (struct gpi_log_word){ w.at, 0 };
    uint32_t i = 0;

    while (gpi_fact_is_field(s, i) &&
           (named ? !s->field[i].name || !gpi_log_is(name, s->field[i].name)
                  : s->field[i].name != NULL))
        i++;
    if (!gpi_fact_is_field(s, i))
        return refuse(r, "%s has no field %.*s", s->name, shown(w), w.at);
    if (*seen >> i & 1 && s->field[i].form != GPI_FACT_REQUESTS)
        return refuse(r, "field %s stands twice", s->field[i].name ? s->field[i].name : s->name);
    *seen |= 1u << i;
    if (s->field[i].form == GPI_FACT_LIST)
        return read_list(r, value, fact);
    if (s->field[i].form == GPI_FACT_REQUESTS)
        return read_request(r, value, fact);
    return read_value(r, value, &s->field[i], fact);
}

static bool read_fields(struct reader *r, const struct gpi_fact_shape *s, struct gpi_fact *fact)
{
    uint32_t seen = 0;
    struct gpi_log_word w;

    for (uint32_t i = 0; gpi_fact_is_field(s, i); i++)
        put_defaults(fact, &s->field[i]);
    while ((w = next_word(r)).size)
        if (!read_field(r, s, w, fact, &seen))
            return false;
    for (uint32_t i = 0; gpi_fact_is_field(s, i); i++)
        if (!s->field[i].optional && !(seen >> i & 1))
            return refuse(r, "%s lacks %s", s->name,
                          s->field[i].name ? s->field[i].name : "a number");
    return true;
}

static bool read_stamp(struct reader *r, struct gpi_log_word *w, struct gpi_fact *ret,
                       bool *stamped)
{
    const struct gpi_log_word time = { w->at + 1, w->size - 1 };

    *stamped = w->size && *w->at == '@';
    if (!*stamped)
        return true;
    if (!read_time(time, &ret->now) || ret->now == GPI_NEVER)
        return refuse(r, "@ is followed by %.*s, expected a time such as @1075ms", shown(time),
                      time.at);
    *w = next_word(r);
    return w->size || refuse(r, "expected a fact behind the time");
}

bool gpi_fact_read(struct gpi_fact *ret, const char *text, size_t size,
                   char reterr[GPI_FACT_ERROR_SIZE])
{
    struct reader r = { text, text + size, reterr };
    struct gpi_log_word w = next_word(&r);
    const uint64_t before = ret->now;
    bool stamped;

    memset(ret, 0, sizeof *ret); /* so that equal facts have equal bytes */
    ret->now = before;
    *reterr = 0;
    if (!read_stamp(&r, &w, ret, &stamped))
        return false;
    while (ret->kind < GPI_FACTS && !gpi_log_is(w, gpi_fact_shapes[ret->kind].name))
        ret->kind++;
    if (ret->kind == GPI_FACTS)
        return refuse(&r, "%.*s is no fact of a plan", shown(w), w.at);
    if (stamped && ret->kind < GPI_FACT_SUBMIT)
        return refuse(&r, "%s has no time", gpi_fact_shapes[ret->kind].name);
    return read_fields(&r, &gpi_fact_shapes[ret->kind], ret);
}
