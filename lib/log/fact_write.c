/* SPDX-License-Identifier: MIT */
/* fact_write.c - writes a fact, or an action, as a line. */
#include "log/fact_shape.h"

static void add_bytes(struct gpi_line *t, uint64_t bytes)
{
    if (bytes == GPI_MEMORY_ALL)
        gpi_line_add(t, "all");
    else if (bytes == 0)
        gpi_line_add(t, "0");
    else
        gpi_line_add_amount(t, bytes, gpi_fact_byte_units);
}

static void add_value(struct gpi_line *t, const struct gpi_fact_field *f, uint64_t value)
{
    if (f->form == GPI_FACT_TIME) {
        gpi_line_add_time(t, value);
    } else if (f->form == GPI_FACT_BYTES) {
        add_bytes(t, value);
    } else if (f->form == GPI_FACT_WORD) {
        gpi_line_add_word(t, f->words, value);
    } else if (f->form == GPI_FACT_SIGNED) {
        gpi_line_add_signed(t, (int32_t)(uint32_t)value);
    } else {
        gpi_line_add_number(t, value);
    }
}

static void add_list(struct gpi_line *t, const char *name, const uint16_t *device, uint32_t n)
{
    gpi_line_add(t, " ");
    gpi_line_add(t, name);
    for (uint32_t i = 0; i < n; i++) {
        gpi_line_add(t, i ? "," : "=");
        gpi_line_add_number(t, device[i]);
    }
}

void gpi_fact_add_request(struct gpi_line *t, const struct gpi_request *r)
{
    const char *between = " need=";

    for (size_t i = 0; i < GPI_FACT_REQUEST_FIELDS; i++) {
        const struct gpi_fact_field *f = &gpi_fact_request_fields[i];
        if (f->optional && gpi_fact_value(r, f) == f->otherwise)
            continue;
        gpi_line_add(t, between);
        gpi_line_add(t, f->name);
        gpi_line_add(t, ":");
        add_value(t, f, gpi_fact_value(r, f));
        between = ",";
    }
}

static void add_field(struct gpi_line *t, const struct gpi_fact_field *f,
                      const struct gpi_fact *fact)
{
    if (f->form == GPI_FACT_LIST) {
        if (fact->n_devices)
            add_list(t, f->name, fact->list, fact->n_devices);
        return;
    }
    for (uint32_t i = 0; f->form == GPI_FACT_REQUESTS && i < fact->n_requests; i++)
        gpi_fact_add_request(t, &fact->request[i]);
    if (f->form == GPI_FACT_REQUESTS || (f->optional && gpi_fact_value(fact, f) == f->otherwise))
        return;
    gpi_line_add(t, " ");
    if (f->name) {
        gpi_line_add(t, f->name);
        gpi_line_add(t, "=");
    }
    add_value(t, f, gpi_fact_value(fact, f));
}

const char *gpi_fact_write(char to[GPI_FACT_LINE_SIZE], const struct gpi_fact *f)
{
    const struct gpi_fact_shape *s = &gpi_fact_shapes[f->kind];
    struct gpi_line t = { to, 0, GPI_FACT_LINE_SIZE };

    if (f->kind >= GPI_FACT_SUBMIT) {
        gpi_line_add(&t, "@");
        gpi_line_add_time(&t, f->now);
        gpi_line_add(&t, " ");
    }
    gpi_line_add(&t, s->name);
    for (uint32_t i = 0; gpi_fact_is_field(s, i); i++)
        add_field(&t, &s->field[i], f);
    return to;
}

static void add_key(struct gpi_line *t, const char *key, uint64_t value)
{
    gpi_line_add(t, key);
    gpi_line_add_number(t, value);
}

const char *gpi_fact_write_action(char to[GPI_FACT_LINE_SIZE], const struct gpi_plan_action *a)
{
    static const char *const names[] = { "RUN",    "PROMISE",  "BOOT",  "DRAIN",
                                         "UNLOAD", "HOPELESS", "REVOKE" };
    struct gpi_line t = { to, 0, GPI_FACT_LINE_SIZE };

    gpi_line_add(&t, a->kind < sizeof names / sizeof *names ? names[a->kind] : "?");
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
    if (a->kind == GPI_PLAN_RUN && a->how != GPI_RUN_ONE) {
        gpi_line_add(&t, " how=");
        gpi_line_add_word(&t, GPI_FACT_RUN_WORDS, a->how);
    }
    if (a->kind == GPI_PLAN_PROMISE) {
        gpi_line_add(&t, " at=");
        gpi_line_add_time(&t, a->at);
        gpi_line_add(&t, " how=");
        gpi_line_add_word(&t, GPI_FACT_PROMISE_WORDS, a->how);
    }
    return to;
}
