/* SPDX-License-Identifier: MIT */
#include "log/log_shape.h"

#include <string.h>

#include "base/clock.h"
#include "gpudispatch/dispatch.h"
#include "gpudispatch/types.h"

/* ---- shapes ---- */

#define X_NAME(name, value, text) " " #name
#define OUTCOME_WORDS "-" GPUD_OUTCOME_MAP(X_NAME) /* the map begins with 1 */
#define PHASE_WORDS GPUD_PHASE_MAP(X_NAME)

#define IN(member) .at = offsetof(struct gpi_log_line, member)
#define ANY .form = GPI_FORM_NUMBER, .most = UINT32_MAX
#define DEFAULT(value) .optional = true, .otherwise = (value)
#define CELL_MOST 63u
#define CLASS_MOST 255u
#define MARKED(text, member)                                \
    {                                                       \
        text, IN(member), .form = GPI_FORM_MARK, DEFAULT(0) \
    }

static const struct gpi_log_shape shapes[] = {
    { GPI_LOG_CUT, 0, 0, "", "cut", { { 0 } } },
    { GPI_LOG_CLASS,
      0,
      1,
      "",
      "class",
      { { "class", IN(class.class), .most = CLASS_MOST, .placed = true } } },
    { GPI_LOG_DEVICE,
      0,
      3,
      "",
      "device",
      { { "device", IN(device.device), ANY, .placed = true },
        { "watched", IN(device.watched), .form = GPI_FORM_FLAG, DEFAULT(1) },
        { "kill_limit", IN(device.kill_limit), .form = GPI_FORM_TIME, DEFAULT(10 * GPI_S) } } },
    { GPI_LOG_SLOT,
      0,
      3,
      "",
      "slot",
      { { "slot", IN(slot.slot), ANY, .placed = true },
        { "class", IN(slot.class), DEFAULT(0), .most = CLASS_MOST },
        { "devices", IN(slot.device), .form = GPI_FORM_DEVICES, .optional = true } } },
    { GPI_LOG_SUBMIT,
      0,
      11,
      "",
      "submit",
      { { "t", IN(submit.task), ANY },
        { "class", IN(submit.what.class), DEFAULT(0), .most = CLASS_MOST },
        { "priority", IN(submit.what.priority), .form = GPI_FORM_SIGNED, DEFAULT(0) },
        { "attempts", IN(submit.what.max_attempts), DEFAULT(1), .least = 1, .most = UINT8_MAX },
        { "causes", IN(submit.what.causes), DEFAULT(GPUD_RETRY_CRASH), .most = GPI_RETRY_ALL },
        { "limit", IN(submit.what.limit), .form = GPI_FORM_TIME, DEFAULT(GPI_NEVER) },
        { "expires", IN(submit.what.expires), .form = GPI_FORM_TIME, DEFAULT(GPI_NEVER) },
        { "keep_alive", IN(submit.what.keep_alive), .form = GPI_FORM_TIME, DEFAULT(0) },
        { "order", IN(submit.what.order), .form = GPI_FORM_BIG, DEFAULT(0) },
        { "stall", IN(submit.what.stall), .form = GPI_FORM_TIME, DEFAULT(0) },
        { "need", IN(submit.request), .form = GPI_FORM_REQUESTS, .optional = true } } },
    { GPI_LOG_SEND, 0, 0, "", "send", { { 0 } } },
    { GPI_LOG_END,
      0,
      6,
      "",
      "end",
      { { "t", IN(end.task), ANY },
        { "outcome", OUTCOME_WORDS, IN(end.outcome), .form = GPI_FORM_WORD },
        { "phase", PHASE_WORDS, IN(end.phase), .form = GPI_FORM_WORD },
        { "run", IN(end.run), .form = GPI_FORM_TIME, DEFAULT(0) },
        { "share", IN(end.share), .form = GPI_FORM_TIME, DEFAULT(0) },
        MARKED("final", end.final) } },
    { GPI_LOG_DECIDE, 0, 0, "", "decide", { { 0 } } },
    { GPI_LOG_ACTION,
      GPI_ACT_LIFE,
      2,
      "",
      "slot",
      { { "slot", IN(action.slot), ANY, .placed = true },
        { "state", GPI_LIFE_WORDS, IN(action.how), .form = GPI_FORM_WORD, .placed = true } } },
    { GPI_LOG_SENT,
      0,
      5,
      "",
      "sent",
      { { "s", IN(sent.slot), ANY },
        { "t", IN(sent.task), ANY },
        { "c", IN(sent.cell), .most = CELL_MOST },
        MARKED("alone", sent.alone),
        MARKED("last", sent.last) } },
    { GPI_LOG_ENDED,
      0,
      7,
      "",
      "task",
      { { "task", IN(ended.task), ANY, .placed = true },
        { "outcome", OUTCOME_WORDS, IN(ended.outcome), .form = GPI_FORM_WORD, .placed = true },
        { "phase", PHASE_WORDS, IN(ended.phase), .form = GPI_FORM_WORD, .placed = true },
        { "attempts", IN(ended.attempts), ANY },
        { "why", GPI_WHY_WORDS, IN(ended.why), .form = GPI_FORM_WORD, DEFAULT(GPI_WHY_NO) },
        MARKED("again", ended.again),
        MARKED("held", ended.held) } },
};

/* ---- shapes of events and actions ---- */

struct row {
    const char *name;
    uint32_t fields;
    const char *how;
    bool bits;
    const char *what;
};

#define X_EVENT(name, fields, how, bits, what) { #name, (fields), how, (bits), what },
#define X_ACTION(name, fields, how, bits, what) { #name, (fields), how, (bits), what },
static const struct row events[] = { GPI_EVENT_MAP(X_EVENT) },
                        actions[] = { GPI_ACTION_MAP(X_ACTION) };

#define X_FIELD(name, member, key)                   \
    { GPI_F_##name,                                  \
      key,                                           \
      { offsetof(struct gpi_log_line, event.member), \
        offsetof(struct gpi_log_line, action.member) } },
static const struct {
    uint32_t bit;
    const char *key;
    size_t at[2]; /* in an event, in an action */
} columns[] = { GPI_SCHED_FIELDS(X_FIELD) };
#define COLUMNS (sizeof columns / sizeof *columns)

_Static_assert(COLUMNS <= GPI_LOG_FIELDS_MAX, "a shape has room for all");

/* Of these lists the writer omits the first word: it is the usual one. */
static bool has_usual(const char *words, uint32_t bit, bool acts)
{
    if (bit == GPI_F_WHAT)
        return acts;
    return !strcmp(words, "plain unread") || !strcmp(words, "plain spoilt");
}

static struct gpi_log_field column_of(const struct row *row, size_t column, bool acts)
{
    const uint32_t bit = columns[column].bit;
    struct gpi_log_field f = { columns[column].key, .at = columns[column].at[acts] };

    if (bit == GPI_F_HOW || bit == GPI_F_WHAT) {
        f.form = bit == GPI_F_HOW && row->bits ? GPI_FORM_BITS : GPI_FORM_WORD;
        f.words = bit == GPI_F_HOW ? row->how : row->what;
        f.optional = f.form == GPI_FORM_BITS || has_usual(f.words, bit, acts);
    } else if (bit == GPI_F_AT) {
        f.form = GPI_FORM_TIME;
    } else {
        f.most = bit == GPI_F_CELL ? CELL_MOST + 1 : UINT32_MAX; /* of ROOM: a number of cells */
        f.optional = acts && (bit == GPI_F_SLOT || bit == GPI_F_DEVICE);
        f.otherwise = GPI_NOWHERE;
    }
    return f;
}

static struct gpi_log_shape shape_of(const struct row *table, uint32_t which, bool acts)
{
    const struct row *row = &table[which];
    struct gpi_log_shape s = { acts ? GPI_LOG_ACTION : GPI_LOG_EVENT, which,     0,
                               acts ? "action " : "event ",           row->name, { { 0 } } };

    for (size_t i = 0; i < COLUMNS; i++)
        if (row->fields & columns[i].bit)
            s.field[s.n++] = column_of(row, i, acts);
    return s;
}

/* ---- settings ---- */

#define SETTING(name, member) name, .at = offsetof(struct gpi_sched_settings, member)
#define FROM(low, high, value) .least = (low), .most = (high), .otherwise = (value)
#define LASTS(value) .form = GPI_FORM_TIME, .otherwise = (value)

/* Slots, devices and tasks have bounds, so that no log can take all memory. */
const struct gpi_log_field gpi_log_settings[] = {
    { SETTING("slots", pool.slots), FROM(1, 4096, 4) },
    { SETTING("devices", pool.devices), FROM(1, 1u << 14, 4) },
    { SETTING("tasks", pool.tasks), FROM(1, 1u << 21, 16) },
    { SETTING("classes", pool.classes), FROM(1, CLASS_MOST + 1, 1) },
    { SETTING("ahead", class.ahead), FROM(0, CELL_MOST + 1, 1) },
    { SETTING("batch", class.batch), FROM(1, CELL_MOST + 1, 1) },
    { SETTING("batch_wait", class.batch_wait), LASTS(0) },
    { SETTING("setup_concurrency", pool.setup_concurrency), FROM(1, UINT32_MAX, UINT32_MAX) },
    { SETTING("makes", pool.makes), FROM(1, UINT32_MAX, 16) },
    { SETTING("max_tasks", class.max_tasks), FROM(0, UINT32_MAX, 0) },
    { SETTING("executed", class.executed), .form = GPI_FORM_FLAG },
    { SETTING("boot_limit", class.boot_limit), LASTS(120 * GPI_S) },
    { SETTING("setup_limit", class.setup_limit), LASTS(900 * GPI_S) },
    { SETTING("canary_limit", pool.canary_limit), LASTS(60 * GPI_S) },
    { SETTING("grace", class.grace), LASTS(2 * GPI_S) },
    { SETTING("cleanup_limit", class.cleanup_limit), LASTS(10 * GPI_S) },
    { SETTING("memory_wait", pool.memory_wait), LASTS(30 * GPI_S) },
    { SETTING("reply_limit", pool.reply_limit), LASTS(10 * GPI_S) },
    { SETTING("kill_limit", pool.kill_limit), LASTS(10 * GPI_S) },
    { SETTING("lead", class.lead), LASTS(20 * GPI_MS) },
    { SETTING("restart_backoff", class.restart.backoff), LASTS(GPI_S) },
    { SETTING("restart_cap", class.restart.cap), LASTS(60 * GPI_S) },
    { SETTING("restart_failures", class.restart.failures_in_a_row), FROM(1, UINT32_MAX, 3) },
    { SETTING("retry_backoff", class.retry.backoff), LASTS(0) },
    { SETTING("retry_cap", class.retry.cap), LASTS(60 * GPI_S) },
};
const size_t gpi_log_n_settings = sizeof gpi_log_settings / sizeof *gpi_log_settings;

/* ---- values in records ---- */

uint64_t gpi_log_value(const void *record, const struct gpi_log_field *f)
{
    const unsigned char *at = (const unsigned char *)record + f->at;
    uint64_t time;
    uint32_t number;
    bool flag;

    switch (f->form) {
    case GPI_FORM_TIME:
    case GPI_FORM_BIG:
        memcpy(&time, at, sizeof time);
        return time;
    case GPI_FORM_FLAG:
    case GPI_FORM_MARK:
        memcpy(&flag, at, sizeof flag);
        return flag;
    default:
        memcpy(&number, at, sizeof number);
        return number;
    }
}

void gpi_log_put(void *record, const struct gpi_log_field *f, uint64_t value)
{
    unsigned char *at = (unsigned char *)record + f->at;
    const uint32_t number = (uint32_t)value;
    const bool flag = value;

    switch (f->form) {
    case GPI_FORM_TIME:
    case GPI_FORM_BIG:
        memcpy(at, &value, sizeof value);
        break;
    case GPI_FORM_FLAG:
    case GPI_FORM_MARK:
        memcpy(at, &flag, sizeof flag);
        break;
    case GPI_FORM_DEVICES:
    case GPI_FORM_REQUESTS:
        break;
    default:
        memcpy(at, &number, sizeof number);
    }
}

/* tolower depends on the locale, and some locales do not map I to i. */
static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static bool is_lower(struct gpi_line_word w, const char *text)
{
    size_t i = 0;

    while (i < w.size && text[i] && w.at[i] == lower(text[i]))
        i++;
    return i == w.size && !text[i];
}

/* ---- a shape for a line ---- */

const char *gpi_log_name(char to[GPI_LOG_NAME_SIZE], const struct gpi_log_shape *s)
{
    size_t i = 0;

    for (; i < GPI_LOG_NAME_SIZE - 1 && s->name[i]; i++)
        to[i] = s->kind == GPI_LOG_EVENT ? lower(s->name[i]) : s->name[i];
    to[i] = 0;
    return to;
}

static bool fits(const struct gpi_log_shape *s, uint32_t placed)
{
    for (uint32_t i = 0; i < s->n; i++)
        placed -= s->field[i].placed;
    return placed == 0;
}

bool gpi_log_shape_named(struct gpi_log_shape *ret, struct gpi_line_word name, uint32_t placed)
{
    bool found = false;

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (gpi_line_is(name, shapes[i].name)) {
            *ret = shapes[i];
            found = true;
            if (fits(ret, placed))
                return true;
        }
    for (uint32_t i = 0; i < GPI_EVENTS; i++)
        if (is_lower(name, events[i].name)) {
            *ret = shape_of(events, i, false);
            return true;
        }
    for (uint32_t i = 0; i < GPI_ACTIONS; i++)
        if (gpi_line_is(name, actions[i].name)) {
            *ret = shape_of(actions, i, true);
            return true;
        }
    return found;
}

bool gpi_log_shape_of(struct gpi_log_shape *ret, const struct gpi_log_line *l)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (l->kind == shapes[i].kind &&
            (l->kind != GPI_LOG_ACTION || l->action.kind == shapes[i].which)) {
            *ret = shapes[i];
            return true;
        }
    if (l->kind == GPI_LOG_EVENT && l->event.kind < GPI_EVENTS)
        *ret = shape_of(events, l->event.kind, false);
    else if (l->kind == GPI_LOG_ACTION && l->action.kind < GPI_ACTIONS)
        *ret = shape_of(actions, l->action.kind, true);
    else
        return false;
    return true;
}
