/* SPDX-License-Identifier: MIT */
/* log.c - writes a line of a log, and its settings. */
#include <string.h>

#include "log/fact_shape.h"
#include "log/log_shape.h"

static void add_bits(struct gpi_line *t, const char *list, uint64_t value)
{
    const char *between = "";

    for (uint64_t bit = 0; value >> bit; bit++)
        if (value >> bit & 1) {
            gpi_line_add(t, between);
            gpi_line_add_word(t, list, bit);
            between = "+";
        }
}

static void add_devices(struct gpi_line *t, const struct gpi_log_line *l)
{
    for (uint32_t i = 0; i < l->slot.n && i < GPI_LOG_DEVICES; i++) {
        gpi_line_add(t, i ? "," : "");
        gpi_line_add_number(t, l->slot.device[i]);
    }
}

static void add_value(struct gpi_line *t, const struct gpi_log_field *f, uint64_t value)
{
    switch (f->form) {
    case GPI_FORM_SIGNED:
        gpi_line_add_signed(t, (int32_t)(uint32_t)value);
        break;
    case GPI_FORM_TIME:
        gpi_line_add_time(t, value);
        break;
    case GPI_FORM_WORD:
        gpi_line_add_word(t, f->words, value);
        break;
    case GPI_FORM_BITS:
        add_bits(t, f->words, value);
        break;
    default:
        gpi_line_add_number(t, value);
    }
}

static void add_field(struct gpi_line *t, const struct gpi_log_field *f,
                      const struct gpi_log_line *l)
{
    const uint64_t value = gpi_log_value(l, f);

    for (uint32_t i = 0; f->form == GPI_FORM_REQUESTS && i < l->submit.what.n_requests; i++)
        gpi_fact_add_request(t, &l->submit.request[i]);
    if (f->form == GPI_FORM_REQUESTS)
        return;
    if (f->form == GPI_FORM_DEVICES ? l->slot.n == 0 : f->optional && value == f->otherwise)
        return;
    gpi_line_add(t, " ");
    gpi_line_add(t, f->placed ? "" : f->name);
    if (f->form == GPI_FORM_MARK)
        return;
    if (!f->placed)
        gpi_line_add(t, "=");
    if (f->form == GPI_FORM_DEVICES)
        add_devices(t, l);
    else
        add_value(t, f, value);
}

static void add_stamp(struct gpi_line *t, const struct gpi_log_line *l)
{
    if (!l->stamped)
        return;
    gpi_line_add(t, "@");
    gpi_line_add_time(t, l->now);
    gpi_line_add(t, " ");
}

static void add_line(struct gpi_line *t, const struct gpi_log_line *l)
{
    struct gpi_log_shape s;
    char name[GPI_LOG_NAME_SIZE];

    add_stamp(t, l);
    if (!gpi_log_shape_of(&s, l)) {
        gpi_line_add(t, "?");
        gpi_line_add_number(t, l->kind == GPI_LOG_EVENT ? l->event.kind : l->action.kind);
        return;
    }
    gpi_line_add(t, gpi_log_name(name, &s));
    for (uint32_t i = 0; i < s.n; i++)
        add_field(t, &s.field[i], l);
}

/* The time of the line stands before its name. */
static void add_fact(struct gpi_line *t, const struct gpi_log_line *l)
{
    char fact[GPI_FACT_LINE_SIZE];
    const char *text = gpi_fact_write(fact, &l->fact);

    add_stamp(t, l);
    gpi_line_add(t, "fact ");
    gpi_line_add(t, *text == '@' ? strchr(text, ' ') + 1 : text);
}

const char *gpi_log_write(char to[GPI_LOG_LINE_SIZE], const struct gpi_log_line *l)
{
    struct gpi_line t = { to, 0, GPI_LOG_LINE_SIZE };

    *to = 0;
    if (l->kind == GPI_LOG_COMMENT || l->kind == GPI_LOG_RULE) {
        gpi_line_add(&t, l->kind == GPI_LOG_RULE ? "----" : "#");
    } else if (l->kind == GPI_LOG_SET) {
        gpi_line_add(&t, "set ");
        gpi_line_add(&t, gpi_log_settings[l->set.which].name);
        gpi_line_add(&t, "=");
        add_value(&t, &gpi_log_settings[l->set.which], l->set.value);
    } else if (l->kind == GPI_LOG_FACT) {
        add_fact(&t, l);
    } else if (l->kind != GPI_LOG_BLANK) {
        add_line(&t, l);
    }
    return to;
}

/* ---- settings as lines ---- */

void gpi_log_defaults(struct gpi_sched_settings *ret)
{
    memset(ret, 0, sizeof *ret);
    for (size_t i = 0; i < gpi_log_n_settings; i++)
        gpi_log_put(ret, &gpi_log_settings[i], gpi_log_settings[i].otherwise);
}

void gpi_log_set(struct gpi_sched_settings *set, const struct gpi_log_line *l)
{
    gpi_log_put(set, &gpi_log_settings[l->set.which], l->set.value);
}

bool gpi_log_sets_class(const struct gpi_log_line *l)
{
    return gpi_log_settings[l->set.which].at >= offsetof(struct gpi_sched_settings, class);
}

bool gpi_log_has_time(const struct gpi_log_line *l)
{
    return l->kind >= GPI_LOG_EVENT ||
           (l->kind == GPI_LOG_FACT && l->fact.kind >= GPI_FACT_SUBMIT);
}

bool gpi_log_setting(struct gpi_log_line *ret, const struct gpi_sched_settings *before,
                     const struct gpi_sched_settings *set, uint32_t *at)
{
    while (*at < gpi_log_n_settings && gpi_log_value(set, &gpi_log_settings[*at]) ==
                                           gpi_log_value(before, &gpi_log_settings[*at]))
        ++*at;
    if (*at == gpi_log_n_settings)
        return false;
    *ret = (struct gpi_log_line){ .kind = GPI_LOG_SET };
    ret->set.which = *at;
    ret->set.value = gpi_log_value(set, &gpi_log_settings[*at]);
    ++*at;
    return true;
}
