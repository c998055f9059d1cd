/* SPDX-License-Identifier: MIT */
/* log.c - writes a line of a log, and its settings. */
#include <string.h>

#include "base/clock.h"
#include "sim/log_shape.h"

struct text {
    char *to;
    size_t size;
};

/* Without printf: a log has several fields per line, and a run of the tests millions of lines. */
static void add_bytes(struct text *t, const char *bytes, size_t size)
{
    const size_t room = GPI_LOG_LINE_SIZE - 1 - t->size;

    size = size < room ? size : room;
    memcpy(t->to + t->size, bytes, size);
    t->size += size;
    t->to[t->size] = 0;
}

static void add(struct text *t, const char *words)
{
    add_bytes(t, words, strlen(words));
}

static void add_number(struct text *t, uint64_t n)
{
    char digits[20];
    size_t i = sizeof digits;

    do
        digits[--i] = (char)('0' + n % 10);
    while (n /= 10);
    add_bytes(t, &digits[i], sizeof digits - i);
}

static void add_signed(struct text *t, int32_t n)
{
    if (n < 0)
        add(t, "-");
    add_number(t, (uint64_t)(n < 0 ? -(int64_t)n : n));
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

/* A value without a word is a fault of the core: the log has its number, which no reader takes. */
static void add_word(struct text *t, const char *list, uint64_t value)
{
    struct gpi_log_word w = { "", 0 };

    for (uint64_t i = 0; i <= value; i++)
        if (!gpi_log_next_word(&list, &w)) {
            add(t, "?");
            add_number(t, value);
            return;
        }
    add_bytes(t, w.at, w.size);
}

static void add_bits(struct text *t, const char *list, uint64_t value)
{
    const char *between = "";

    for (uint64_t bit = 0; value >> bit; bit++)
        if (value >> bit & 1) {
            add(t, between);
            add_word(t, list, bit);
            between = "+";
        }
}

static void add_devices(struct text *t, const struct gpi_log_line *l)
{
    for (uint32_t i = 0; i < l->slot.n && i < GPI_LOG_DEVICES; i++) {
        add(t, i ? "," : "");
        add_number(t, l->slot.device[i]);
    }
}

static void add_value(struct text *t, const struct gpi_log_field *f, uint64_t value)
{
    switch (f->form) {
    case GPI_FORM_SIGNED:
        add_signed(t, (int32_t)(uint32_t)value);
        break;
    case GPI_FORM_TIME:
        add_time(t, value);
        break;
    case GPI_FORM_WORD:
        add_word(t, f->words, value);
        break;
    case GPI_FORM_BITS:
        add_bits(t, f->words, value);
        break;
    default:
        add_number(t, value);
    }
}

static void add_field(struct text *t, const struct gpi_log_field *f, const struct gpi_log_line *l)
{
    const uint64_t value = gpi_log_value(l, f);

    if (f->form != GPI_FORM_DEVICES && f->optional && value == f->otherwise)
        return;
    add(t, " ");
    add(t, f->placed ? "" : f->name);
    if (f->form == GPI_FORM_MARK)
        return;
    if (!f->placed)
        add(t, "=");
    if (f->form == GPI_FORM_DEVICES)
        add_devices(t, l);
    else
        add_value(t, f, value);
}

static void add_line(struct text *t, const struct gpi_log_line *l)
{
    struct gpi_log_shape s;
    char name[GPI_LOG_NAME_SIZE];

    if (l->stamped) {
        add(t, "@");
        add_time(t, l->now);
        add(t, " ");
    }
    if (!gpi_log_shape_of(&s, l)) {
        add(t, "?");
        add_number(t, l->kind == GPI_LOG_EVENT ? l->event.kind : l->action.kind);
        return;
    }
    add(t, gpi_log_name(name, &s));
    for (uint32_t i = 0; i < s.n; i++)
        add_field(t, &s.field[i], l);
}

const char *gpi_log_write(char to[GPI_LOG_LINE_SIZE], const struct gpi_log_line *l)
{
    struct text t = { to, 0 };

    *to = 0;
    if (l->kind == GPI_LOG_COMMENT || l->kind == GPI_LOG_RULE) {
        add(&t, l->kind == GPI_LOG_RULE ? "----" : "#");
    } else if (l->kind == GPI_LOG_SET) {
        add(&t, "set ");
        add(&t, gpi_log_settings[l->set.which].name);
        add(&t, "=");
        add_value(&t, &gpi_log_settings[l->set.which], l->set.value);
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

bool gpi_log_setting(struct gpi_log_line *ret, const struct gpi_sched_settings *set, uint32_t *at)
{
    while (*at < gpi_log_n_settings &&
           gpi_log_value(set, &gpi_log_settings[*at]) == gpi_log_settings[*at].otherwise)
        ++*at;
    if (*at == gpi_log_n_settings)
        return false;
    *ret = (struct gpi_log_line){ .kind = GPI_LOG_SET };
    ret->set.which = *at;
    ret->set.value = gpi_log_value(set, &gpi_log_settings[*at]);
    ++*at;
    return true;
}
