/* SPDX-License-Identifier: MIT */
/* fact_write.c - writes a fact, or an action, as a line. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "sim/fact_shape.h"
#include "sim/log_shape.h"

struct text {
    char *to;
    size_t size;
};

/* Without printf: a world has thousands of lines. */
static void add(struct text *t, const char *words)
{
    while (*words && t->size < GPI_FACT_LINE_SIZE - 1)
        t->to[t->size++] = *words++;
    t->to[t->size] = 0;
}

static void add_number(struct text *t, uint64_t n)
{
    char digits[21];
    size_t i = sizeof digits - 1;

    digits[i] = 0;
    do
        digits[--i] = (char)('0' + n % 10);
    while (n /= 10);
    add(t, &digits[i]);
}

static void add_time(struct text *t, uint64_t time)
{
    size_t i = 0;

    if (time == GPI_NEVER) {
        add(t, "never");
        return;
    }
    while (time % gpi_log_units[i].size)
        i++;
    add_number(t, time / gpi_log_units[i].size);
    add(t, gpi_log_units[i].name);
}

static void add_bytes(struct text *t, uint64_t bytes)
{
    size_t i = 0;

    if (bytes == GPI_MEMORY_ALL) {
        add(t, "all");
        return;
    }
    while (bytes ? bytes % gpi_fact_byte_units[i].size > 0 : gpi_fact_byte_units[i].size > 1)
        i++;
    add_number(t, bytes / gpi_fact_byte_units[i].size);
    add(t, gpi_fact_byte_units[i].name);
}

static void add_word(struct text *t, const char *list, uint64_t value)
{
    struct gpi_log_word w;
    char word[16];

    for (uint64_t i = 0; i <= value; i++)
        if (!gpi_log_next_word(&list, &w)) {
            add_number(t, value);
            return;
        }
    (void)snprintf(word, sizeof word, "%.*s", (int)w.size, w.at);
    add(t, word);
}

static void add_value(struct text *t, const struct gpi_fact_field *f, uint64_t value)
{
    if (f->form == GPI_FACT_TIME) {
        add_time(t, value);
    } else if (f->form == GPI_FACT_BYTES) {
        add_bytes(t, value);
    } else if (f->form == GPI_FACT_WORD) {
        add_word(t, f->words, value);
    } else if (f->form == GPI_FACT_SIGNED && (int32_t)(uint32_t)value < 0) {
        add(t, "-");
        add_number(t, (uint32_t)0 - (uint32_t)value);
    } else {
        add_number(t, value);
    }
}

static void add_list(struct text *t, const char *name, const uint16_t *device, uint32_t n)
{
    add(t, " ");
    add(t, name);
    for (uint32_t i = 0; i < n; i++) {
        add(t, i ? "," : "=");
        add_number(t, device[i]);
    }
}

static void add_request(struct text *t, const struct gpi_request *r)
{
    const char *between = " need=";

    for (size_t i = 0; i < GPI_FACT_REQUEST_FIELDS; i++) {
        const struct gpi_fact_field *f = &gpi_fact_request_fields[i];
        if (f->optional && gpi_fact_value(r, f) == f->otherwise)
            continue;
        add(t, between);
        add(t, f->name);
        add(t, ":");
        add_value(t, f, gpi_fact_value(r, f));
        between = ",";
    }
}

static void add_field(struct text *t, const struct gpi_fact_field *f, const struct gpi_fact *fact)
{
    if (f->form == GPI_FACT_LIST) {
        if (fact->n_devices)
            add_list(t, f->name, fact->list, fact->n_devices);
        return;
    }
    for (uint32_t i = 0; f->form == GPI_FACT_REQUESTS && i < fact->n_requests; i++)
        add_request(t, &fact->request[i]);
    if (f->form == GPI_FACT_REQUESTS || (f->optional && gpi_fact_value(fact, f) == f->otherwise))
        return;
    add(t, " ");
    if (f->name) {
        add(t, f->name);
        add(t, "=");
    }
    add_value(t, f, gpi_fact_value(fact, f));
}

const char *gpi_fact_write(char to[GPI_FACT_LINE_SIZE], const struct gpi_fact *f)
{
    const struct gpi_fact_shape *s = &gpi_fact_shapes[f->kind];
    struct text t = { to, 0 };

    if (f->kind >= GPI_FACT_SUBMIT) {
        add(&t, "@");
        add_time(&t, f->now);
        add(&t, " ");
    }
    add(&t, s->name);
    for (uint32_t i = 0; gpi_fact_is_field(s, i); i++)
        add_field(&t, &s->field[i], f);
    return to;
}

static void add_key(struct text *t, const char *key, uint64_t value)
{
    add(t, key);
    add_number(t, value);
}

const char *gpi_fact_write_action(char to[GPI_FACT_LINE_SIZE], const struct gpi_plan_action *a)
{
    static const char *const names[] = { "RUN", "PROMISE", "BOOT", "DRAIN", "UNLOAD", "HOPELESS" };
    struct text t = { to, 0 };

    add(&t, a->kind < sizeof names / sizeof *names ? names[a->kind] : "?");
    if (a->task != GPI_NOWHERE)
        add_key(&t, " t=", a->task);
    if (a->worker != GPI_NOWHERE)
        add_key(&t, " w=", a->worker);
    if (a->kind == GPI_PLAN_BOOT)
        add_key(&t, " c=", a->class);
    if (a->kind == GPI_PLAN_RUN || a->kind == GPI_PLAN_BOOT) {
        if (a->n_devices)
            add_list(&t, "d", a->device, a->n_devices);
        if (a->what)
            add_key(&t, " variant=", a->what);
    }
    if (a->kind == GPI_PLAN_PROMISE) {
        add(&t, " at=");
        add_time(&t, a->at);
        add(&t, " how=");
        add_word(&t, GPI_FACT_PROMISE_WORDS, a->how);
    }
    return to;
}
