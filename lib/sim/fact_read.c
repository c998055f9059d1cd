/* SPDX-License-Identifier: MIT */
/* fact_read.c - see fact_read.h. */
#include "sim/fact_read.h"

#include <string.h>

#include "base/clock.h"
#include "log/fact_shape.h"
#include "sim/line_read.h"

struct reader {
    const char *at, *end; /* the rest of the line */
    char *error;
};

static bool refuse(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(struct reader *r, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    gpi_line_error(r->error, GPI_FACT_ERROR_SIZE, format, list);
    va_end(list);
    return false;
}

/* Cuts off the text before the first of the characters `ends`, and drops that one. */
static struct gpi_line_word cut(struct gpi_line_word *from, const char *ends)
{
    struct gpi_line_word w = { from->at, 0 };

    while (w.size < from->size && !(w.at[w.size] && strchr(ends, w.at[w.size])))
        w.size++;
    *from = w.size == from->size
                ? (struct gpi_line_word){ w.at + w.size, 0 }
                : (struct gpi_line_word){ w.at + w.size + 1, from->size - w.size - 1 };
    return w;
}

static struct gpi_line_word next_word(struct reader *r)
{
    struct gpi_line_word w;

    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
        r->at++;
    w = (struct gpi_line_word){ r->at, 0 };
    while (r->at < r->end && *r->at != ' ' && *r->at != '\t')
        r->at++;
    w.size = (size_t)(r->at - w.at);
    return w;
}

static bool read_form(struct gpi_line_word w, const struct gpi_fact_field *f, uint64_t *ret)
{
    switch (f->form) {
    case GPI_FACT_NUMBER:
        return gpi_line_digits(w, UINT32_MAX, ret);
    case GPI_FACT_SIGNED:
        return gpi_line_signed(w, ret);
    case GPI_FACT_TIME:
        return gpi_line_time(w, ret);
    case GPI_FACT_BYTES:
        *ret = GPI_MEMORY_ALL;
        return gpi_line_is(w, "all") ||
               gpi_line_amount(w, gpi_fact_byte_units, GPI_FACT_BYTE_UNITS, ret);
    case GPI_FACT_WORD:
        return gpi_line_among(w, f->words, ret);
    case GPI_FACT_FLAG:
        return gpi_line_digits(w, 1, ret);
    default:
        return gpi_line_digits(w, UINT64_MAX, ret);
    }
}

static bool read_value(struct reader *r, struct gpi_line_word w, const struct gpi_fact_field *f,
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
        return refuse(r, "%s is %.*s, expected %s%s", f->name ? f->name : "the number",
                      gpi_line_shown(w), w.at, expected[f->form], f->words ? f->words : "");
    gpi_fact_put(record, f, value);
    return true;
}

static bool read_list(struct reader *r, struct gpi_line_word w, struct gpi_fact *fact)
{
    uint64_t number;

    while (w.size) {
        struct gpi_line_word one = cut(&w, ",");
        if (fact->n_devices == GPI_FACT_DEVICES || !gpi_line_digits(one, UINT16_MAX, &number))
            return refuse(r, "a device is %.*s, expected up to %u numbers with commas between them",
                          gpi_line_shown(one), one.at, GPI_FACT_DEVICES);
        fact->list[fact->n_devices++] = (uint16_t)number;
    }
    return true;
}

static void put_defaults(void *record, const struct gpi_fact_field *f)
{
    if (f->optional && f->form != GPI_FACT_LIST && f->form != GPI_FACT_REQUESTS)
        gpi_fact_put(record, f, f->otherwise);
}

static bool read_request(struct reader *r, struct gpi_line_word w, struct gpi_request *ret)
{
    for (size_t i = 0; i < GPI_FACT_REQUEST_FIELDS; i++)
        put_defaults(ret, &gpi_fact_request_fields[i]);
    while (w.size) {
        struct gpi_line_word value = cut(&w, ","), name = cut(&value, ":");
        size_t i = 0;
        while (i < GPI_FACT_REQUEST_FIELDS && !gpi_line_is(name, gpi_fact_request_fields[i].name))
            i++;
        if (i == GPI_FACT_REQUEST_FIELDS)
            return refuse(r, "a request has no field %.*s", gpi_line_shown(name), name.at);
        if (!read_value(r, value, &gpi_fact_request_fields[i], ret))
            return false;
    }
    return true;
}

bool gpi_fact_read_request(struct gpi_request *ret, struct gpi_line_word w,
                           char reterr[GPI_FACT_ERROR_SIZE])
{
    struct reader r = { .error = reterr };

    return read_request(&r, w, ret);
}

static bool add_request(struct reader *r, struct gpi_line_word w, struct gpi_fact *fact)
{
    if (fact->n_requests == GPI_VARIANTS)
        return refuse(r, "more than %u variants", GPI_VARIANTS);
    return read_request(r, w, &fact->request[fact->n_requests++]);
}

static bool read_field(struct reader *r, const struct gpi_fact_shape *s, struct gpi_line_word w,
                       struct gpi_fact *fact, uint32_t *seen)
{
    const bool named = memchr(w.at, '=', w.size) != NULL;
    struct gpi_line_word value = w,
                         name = named ? cut(&value, "=") : (struct gpi_line_word){ w.at, 0 };
    uint32_t i = 0;

    while (gpi_fact_is_field(s, i) &&
           (named ? !s->field[i].name || !gpi_line_is(name, s->field[i].name)
                  : s->field[i].name != NULL))
        i++;
    if (!gpi_fact_is_field(s, i))
        return refuse(r, "%s has no field %.*s", s->name, gpi_line_shown(w), w.at);
    if (*seen >> i & 1 && s->field[i].form != GPI_FACT_REQUESTS)
        return refuse(r, "field %s stands twice", s->field[i].name ? s->field[i].name : s->name);
    *seen |= 1u << i;
    if (s->field[i].form == GPI_FACT_LIST)
        return read_list(r, value, fact);
    if (s->field[i].form == GPI_FACT_REQUESTS)
        return add_request(r, value, fact);
    return read_value(r, value, &s->field[i], fact);
}

static bool read_fields(struct reader *r, const struct gpi_fact_shape *s, struct gpi_fact *fact)
{
    uint32_t seen = 0;
    struct gpi_line_word w;

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

static bool read_stamp(struct reader *r, struct gpi_line_word *w, struct gpi_fact *ret,
                       bool *stamped)
{
    const struct gpi_line_word time = { w->at + 1, w->size - 1 };

    *stamped = w->size && *w->at == '@';
    if (!*stamped)
        return true;
    if (!gpi_line_time(time, &ret->now) || ret->now == GPI_NEVER)
        return refuse(r, "@ is followed by %.*s, expected a time such as @1075ms",
                      gpi_line_shown(time), time.at);
    *w = next_word(r);
    return w->size || refuse(r, "expected a fact behind the time");
}

bool gpi_fact_read(struct gpi_fact *ret, const char *text, size_t size,
                   char reterr[GPI_FACT_ERROR_SIZE])
{
    struct reader r = { text, text + size, reterr };
    struct gpi_line_word w = next_word(&r);
    const uint64_t before = ret->now;
    bool stamped;

    memset(ret, 0, sizeof *ret); /* so that equal facts have equal bytes */
    ret->now = before;
    *reterr = 0;
    if (!read_stamp(&r, &w, ret, &stamped))
        return false;
    while (ret->kind < GPI_FACTS && !gpi_line_is(w, gpi_fact_shapes[ret->kind].name))
        ret->kind++;
    if (ret->kind == GPI_FACTS)
        return refuse(&r, "%.*s is no fact of a plan", gpi_line_shown(w), w.at);
    if (stamped && ret->kind < GPI_FACT_SUBMIT)
        return refuse(&r, "%s has no time", gpi_fact_shapes[ret->kind].name);
    return read_fields(&r, &gpi_fact_shapes[ret->kind], ret);
}
