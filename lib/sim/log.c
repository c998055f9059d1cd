/* SPDX-License-Identifier: MIT */
/*
 * log.c - reads and writes a line of a log.  Each kind of line has a shape: its name, and its
 * fields with their places in the record.  The reader and the writer use the same shape.
 */
#include "sim/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "gpudispatch/dispatch.h"
#include "gpudispatch/types.h"

#define WORDS_MAX 16u  /* of a line: more than the longest shape has */
#define FIELDS_MAX 8u  /* of a shape: all of GPI_SCHED_FIELDS */
#define NAME_SIZE 32u  /* of an event, more than the longest */
#define SHOWN 40       /* characters of a wrong word that an error quotes */

/* ---- shapes ---- */

enum form {
    NUMBER, /* uint32_t */
    SIGNED, /* int32_t */
    TIME,   /* uint64_t */
    FLAG,   /* bool */
    MARK,   /* bool: if it is true, the line has the name alone */
    WORD,   /* uint32_t: the word's place in a list */
    BITS,   /* uint32_t: bit per word */
    DEVICES /* the devices of a slot */
};

struct field {
    const char *name;
    const char *words; /* of WORD and BITS, with blanks between them */
    size_t at;         /* offset in the record */
    enum form form;
    bool placed;       /* the line has the value at a fixed place, without the name */
    bool optional;     /* the writer omits it if it has the value `otherwise` */
    uint64_t otherwise;
    uint32_t least, most; /* of NUMBER */
};

struct shape {
    uint32_t kind;  /* enum gpi_log_kind */
    uint32_t which; /* event or action */
    uint32_t n;
    const char *noun; /* before its name in errors */
    const char *name;
    struct field field[FIELDS_MAX];
};

#define X_NAME(name, value, text) " " #name
#define OUTCOME_WORDS "-" GPUD_OUTCOME_MAP(X_NAME) /* the map begins with 1 */
#define PHASE_WORDS GPUD_PHASE_MAP(X_NAME)

#define IN(member) .at = offsetof(struct gpi_log_line, member)
#define ANY .form = NUMBER, .most = UINT32_MAX
#define DEFAULT(value) .optional = true, .otherwise = (value)
#define CELL_MOST 63u
#define MARKED(text, member) { text, IN(member), .form = MARK, DEFAULT(0) }

static const struct shape shapes[] = {
    { GPI_LOG_CUT, 0, 0, "", "cut", { { 0 } } },
    { GPI_LOG_DEVICE, 0, 3, "", "device",
      { { "device", IN(device.device), ANY, .placed = true },
        { "watched", IN(device.watched), .form = FLAG, DEFAULT(1) },
        { "kill_limit", IN(device.kill_limit), .form = TIME, DEFAULT(10 * GPI_S) } } },
    { GPI_LOG_SLOT, 0, 2, "", "slot",
      { { "slot", IN(slot.slot), ANY, .placed = true },
        { "devices", IN(slot.device), .form = DEVICES } } },
    { GPI_LOG_SUBMIT, 0, 6, "", "submit",
      { { "t", IN(submit.task), ANY },
        { "priority", IN(submit.what.priority), .form = SIGNED, DEFAULT(0) },
        { "attempts", IN(submit.what.max_attempts), DEFAULT(1), .least = 1, .most = UINT8_MAX },
        { "causes", IN(submit.what.causes), DEFAULT(GPUD_RETRY_CRASH), .most = GPI_RETRY_ALL },
        { "limit", IN(submit.what.limit), .form = TIME, DEFAULT(GPI_NEVER) },
        { "expires", IN(submit.what.expires), .form = TIME, DEFAULT(GPI_NEVER) } } },
    { GPI_LOG_SEND, 0, 0, "", "send", { { 0 } } },
    { GPI_LOG_END, 0, 6, "", "end",
      { { "t", IN(end.task), ANY },
        { "outcome", OUTCOME_WORDS, IN(end.outcome), .form = WORD },
        { "phase", PHASE_WORDS, IN(end.phase), .form = WORD },
        { "run", IN(end.run), .form = TIME, DEFAULT(0) },
        { "share", IN(end.share), .form = TIME, DEFAULT(0) },
        MARKED("final", end.final) } },
    { GPI_LOG_DECIDE, 0, 0, "", "decide", { { 0 } } },
    { GPI_LOG_ACTION, GPI_ACT_LIFE, 2, "", "slot",
      { { "slot", IN(action.slot), ANY, .placed = true },
        { "state", GPI_LIFE_WORDS, IN(action.how), .form = WORD, .placed = true } } },
    { GPI_LOG_SENT, 0, 5, "", "sent",
      { { "s", IN(sent.slot), ANY },
        { "t", IN(sent.task), ANY },
        { "c", IN(sent.cell), .most = CELL_MOST },
        MARKED("alone", sent.alone),
        MARKED("last", sent.last) } },
    { GPI_LOG_ENDED, 0, 6, "", "task",
      { { "task", IN(ended.task), ANY, .placed = true },
        { "outcome", OUTCOME_WORDS, IN(ended.outcome), .form = WORD, .placed = true },
        { "phase", PHASE_WORDS, IN(ended.phase), .form = WORD, .placed = true },
        { "attempts", IN(ended.attempts), ANY },
        { "why", GPI_WHY_WORDS, IN(ended.why), .form = WORD, DEFAULT(GPI_WHY_NO) },
        MARKED("again", ended.again) } },
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

#define X_FIELD(name, member, key)                                                  \
    { GPI_F_##name, key, { offsetof(struct gpi_log_line, event.member),             \
                           offsetof(struct gpi_log_line, action.member) } },
static const struct {
    uint32_t bit;
    const char *key;
    size_t at[2]; /* in an event, in an action */
} columns[] = { GPI_SCHED_FIELDS(X_FIELD) };
#define COLUMNS (sizeof columns / sizeof *columns)

_Static_assert(COLUMNS <= FIELDS_MAX && FIELDS_MAX + 2 < WORDS_MAX, "a line has room for all");

/* Of these lists the writer omits the first word: it is the usual one. */
static bool has_usual(const char *words, uint32_t bit, bool acts)
{
    if (bit == GPI_F_WHAT)
        return acts;
    return !strcmp(words, "plain unread") || !strcmp(words, "plain spoilt");
}

static struct field column_of(const struct row *row, size_t column, bool acts)
{
    const uint32_t bit = columns[column].bit;
    struct field f = { columns[column].key, .at = columns[column].at[acts] };

    if (bit == GPI_F_HOW || bit == GPI_F_WHAT) {
        f.form = bit == GPI_F_HOW && row->bits ? BITS : WORD;
        f.words = bit == GPI_F_HOW ? row->how : row->what;
        f.optional = f.form == BITS || has_usual(f.words, bit, acts);
    } else if (bit == GPI_F_AT) {
        f.form = TIME;
    } else {
        f.most = bit == GPI_F_CELL ? CELL_MOST + 1 : UINT32_MAX; /* of ROOM: a number of cells */
        f.optional = acts && (bit == GPI_F_SLOT || bit == GPI_F_DEVICE);
        f.otherwise = GPI_NOWHERE;
    }
    return f;
}

static struct shape shape_of(const struct row *table, uint32_t which, bool acts)
{
    const struct row *row = &table[which];
    struct shape s = { acts ? GPI_LOG_ACTION : GPI_LOG_EVENT, which, 0,
                       acts ? "action " : "event ", row->name, { { 0 } } };

    for (size_t i = 0; i < COLUMNS; i++)
        if (row->fields & columns[i].bit)
            s.field[s.n++] = column_of(row, i, acts);
    return s;
}

/* ---- settings ---- */

#define SETTING(name, member) name, .at = offsetof(struct gpi_sched_settings, member)
#define FROM(low, high, value) .least = (low), .most = (high), .otherwise = (value)
#define LASTS(value) .form = TIME, .otherwise = (value)

/* Slots, devices and tasks have bounds, so that no log can take all memory. */
static const struct field settings[] = {
    { SETTING("slots", pool.slots), FROM(1, 4096, 4) },
    { SETTING("devices", pool.devices), FROM(1, 1u << 14, 4) },
    { SETTING("tasks", pool.tasks), FROM(1, 1u << 21, 16) },
    { SETTING("ahead", class.ahead), FROM(0, CELL_MOST + 1, 1) },
    { SETTING("least_ahead", class.least_ahead), FROM(1, CELL_MOST + 1, 1) },
    { SETTING("batch_wait", class.batch_wait), LASTS(0) },
    { SETTING("setup_concurrency", pool.setup_concurrency), FROM(1, UINT32_MAX, UINT32_MAX) },
    { SETTING("makes", pool.makes), FROM(1, UINT32_MAX, 16) },
    { SETTING("max_tasks", class.max_tasks), FROM(0, UINT32_MAX, 0) },
    { SETTING("executed", class.executed), .form = FLAG },
    { SETTING("boot_limit", class.boot_limit), LASTS(120 * GPI_S) },
    { SETTING("setup_limit", class.setup_limit), LASTS(900 * GPI_S) },
    { SETTING("canary_limit", pool.canary_limit), LASTS(60 * GPI_S) },
    { SETTING("grace", class.grace), LASTS(2 * GPI_S) },
    { SETTING("cleanup_limit", class.cleanup_limit), LASTS(10 * GPI_S) },
    { SETTING("memory_wait", pool.memory_wait), LASTS(30 * GPI_S) },
    { SETTING("reply_limit", pool.reply_limit), LASTS(10 * GPI_S) },
    { SETTING("lead", class.lead), LASTS(20 * GPI_MS) },
    { SETTING("restart_backoff", class.restart.backoff), LASTS(GPI_S) },
    { SETTING("restart_cap", class.restart.cap), LASTS(60 * GPI_S) },
    { SETTING("restart_failures", class.restart.failures_in_a_row), FROM(1, UINT32_MAX, 3) },
    { SETTING("retry_backoff", class.retry.backoff), LASTS(0) },
    { SETTING("retry_cap", class.retry.cap), LASTS(60 * GPI_S) },
};
#define SETTINGS (sizeof settings / sizeof *settings)

/* ---- values in records ---- */

static uint64_t value_in(const void *record, const struct field *f)
{
    const unsigned char *at = (const unsigned char *)record + f->at;
    uint64_t time;
    uint32_t number;
    bool flag;

    switch (f->form) {
    case TIME:
        memcpy(&time, at, sizeof time);
        return time;
    case FLAG:
    case MARK:
        memcpy(&flag, at, sizeof flag);
        return flag;
    default:
        memcpy(&number, at, sizeof number);
        return number;
    }
}

static void put(void *record, const struct field *f, uint64_t value)
{
    unsigned char *at = (unsigned char *)record + f->at;
    const uint32_t number = (uint32_t)value;
    const bool flag = value;

    switch (f->form) {
    case TIME:
        memcpy(at, &value, sizeof value);
        break;
    case FLAG:
    case MARK:
        memcpy(at, &flag, sizeof flag);
        break;
    case DEVICES:
        break;
    default:
        memcpy(at, &number, sizeof number);
    }
}

/* ---- words ---- */

struct word {
    const char *at;
    size_t size;
};

static bool is(struct word w, const char *text)
{
    return w.size == strlen(text) && !memcmp(w.at, text, w.size);
}

/* tolower depends on the locale, and some locales do not map I to i. */
static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static bool is_lower(struct word w, const char *text)
{
    size_t i = 0;

    while (i < w.size && text[i] && w.at[i] == lower(text[i]))
        i++;
    return i == w.size && !text[i];
}

/* Cuts off and returns the text before the first of the characters `ends`, and drops that one.
 * If the text ends with such a character, an empty word remains.  from->at is NULL at the end. */
static struct word cut(struct word *from, const char *ends)
{
    struct word w = { from->at, 0 };

    while (w.size < from->size && !(w.at[w.size] && strchr(ends, w.at[w.size])))
        w.size++;
    if (w.size == from->size)
        *from = (struct word){ 0 };
    else
        *from = (struct word){ from->at + w.size + 1, from->size - w.size - 1 };
    return w;
}

static bool next_of(const char **list, struct word *ret)
{
    *list += strspn(*list, " ");
    *ret = (struct word){ *list, strcspn(*list, " ") };
    *list += ret->size;
    return ret->size > 0;
}

/* ---- reading values ---- */

static bool read_digits(struct word w, uint64_t most, uint64_t *ret)
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

/* The largest unit comes first. */
static const struct {
    const char *name;
    uint64_t size;
} units[] = { { "s", GPI_S }, { "ms", GPI_MS }, { "us", GPI_US }, { "ns", 1 } };
#define UNITS (sizeof units / sizeof *units)

static bool read_time(struct word w, uint64_t *ret)
{
    struct word digits = { w.at, 0 };

    if (is(w, "never")) {
        *ret = GPI_NEVER;
        return true;
    }
    while (digits.size < w.size && w.at[digits.size] >= '0' && w.at[digits.size] <= '9')
        digits.size++;
    for (size_t i = 0; i < UNITS; i++)
        if (is((struct word){ w.at + digits.size, w.size - digits.size }, units[i].name) &&
            read_digits(digits, GPI_NEVER / units[i].size, ret)) {
            *ret *= units[i].size;
            return true;
        }
    return false;
}

static bool read_word(struct word w, const char *list, uint64_t *ret)
{
    struct word one;

    for (*ret = 0; next_of(&list, &one); ++*ret)
        if (one.size == w.size && !memcmp(one.at, w.at, w.size))
            return true;
    return false;
}

static bool read_bits(struct word w, const char *list, uint64_t *ret)
{
    uint64_t bit;

    for (*ret = 0; w.at; *ret |= 1ull << bit)
        if (!read_word(cut(&w, "+"), list, &bit))
            return false;
    return true;
}

static bool read_signed(struct word w, uint64_t *ret)
{
    const bool minus = w.size && *w.at == '-';
    const struct word digits = { w.at + minus, w.size - minus };

    if (!read_digits(digits, (uint64_t)INT32_MAX + minus, ret))
        return false;
    *ret = minus ? (uint32_t)0 - (uint32_t)*ret : *ret;
    return true;
}

static bool read_devices(struct word w, struct gpi_log_line *l)
{
    uint64_t number;

    for (l->slot.n = 0; w.at; l->slot.device[l->slot.n++] = (uint16_t)number)
        if (l->slot.n == GPI_LOG_DEVICES || !read_digits(cut(&w, ","), UINT16_MAX, &number))
            return false;
    return true;
}

static bool read_value(struct word w, const struct field *f, uint64_t *ret)
{
    switch (f->form) {
    case NUMBER:
        return read_digits(w, f->most, ret) && *ret >= f->least;
    case SIGNED:
        return read_signed(w, ret);
    case TIME:
        return read_time(w, ret);
    case FLAG:
        return read_digits(w, 1, ret);
    case MARK:
        *ret = 1;
        return true;
    case WORD:
        return read_word(w, f->words, ret);
    case BITS:
        return read_bits(w, f->words, ret);
    default:
        return false;
    }
}

/* ---- errors ---- */

struct reader {
    struct word word[WORDS_MAX];
    uint32_t n, at;
    char *error;
};

/* The line may have any bytes, but the error has printable characters only. */
static bool refuse(struct reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool refuse(struct reader *r, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    (void)vsnprintf(r->error, GPI_LOG_ERROR_SIZE, format, list);
    va_end(list);
    for (char *c = r->error; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return false;
}

static int shown(struct word w)
{
    return w.size < SHOWN ? (int)w.size : SHOWN;
}

static bool refuse_value(struct reader *r, const struct field *f, struct word w)
{
#define REFUSE(format, ...) \
    refuse(r, "%s is %.*s, expected " format, f->name, shown(w), w.at, __VA_ARGS__)
    switch (f->form) {
    case NUMBER:
        return REFUSE("a number from %u to %u", f->least, f->most);
    case SIGNED:
        return REFUSE("a number from %d to %d", INT32_MIN, INT32_MAX);
    case TIME:
        return REFUSE("a time such as %s, or never", "20ms");
    case FLAG:
        return REFUSE("%u or %u", 0u, 1u);
    case WORD:
        return REFUSE("one of: %s", f->words);
    case BITS:
        return REFUSE("one or more, with + between them, of: %s", f->words);
    default:
        return REFUSE("up to %u numbers with commas between them", GPI_LOG_DEVICES);
    }
#undef REFUSE
}

static const char *name_of(char to[NAME_SIZE], const struct shape *s)
{
    size_t i = 0;

    for (; i < NAME_SIZE - 1 && s->name[i]; i++)
        to[i] = s->kind == GPI_LOG_EVENT ? lower(s->name[i]) : s->name[i];
    to[i] = 0;
    return to;
}

/* ---- reading ---- */

/* Cuts NAME= off a word and returns NAME. */
static struct word key_of(struct word *value)
{
    struct word rest = *value, key = cut(&rest, "=");

    if (!key.size || key.size == value->size)
        return (struct word){ value->at, 0 };
    *value = rest;
    return key;
}

/* Returns the field with this name; without a name, the first unseen field with a fixed place. */
static uint32_t find_field(const struct shape *s, struct word key, uint32_t seen)
{
    uint32_t i = 0;

    while (i < s->n && (key.size ? s->field[i].placed || s->field[i].form == MARK ||
                                       !is(key, s->field[i].name)
                                 : !s->field[i].placed || seen >> i & 1))
        i++;
    return i;
}

/* Returns the mark that consists of this word, or the number of fields. */
static uint32_t find_mark(const struct shape *s, struct word word)
{
    uint32_t i = 0;

    while (i < s->n && (s->field[i].form != MARK || !is(word, s->field[i].name)))
        i++;
    return i;
}

static bool read_field(struct reader *r, const struct shape *s, struct gpi_log_line *l,
                       uint32_t *seen)
{
    struct word value = r->word[r->at], key = key_of(&value);
    const struct word named = key.size ? key : value;
    const uint32_t mark = find_mark(s, r->word[r->at]);
    const uint32_t i = mark < s->n ? mark : find_field(s, key, *seen);
    const struct field *f = &s->field[i];
    uint64_t number = 0;
    char name[NAME_SIZE];

    if (i == s->n)
        return refuse(r, "%s%s has no field %.*s", s->noun, name_of(name, s), shown(named),
                      named.at);
    if (*seen >> i & 1)
        return refuse(r, "field %s stands twice", f->name);
    if (f->form == DEVICES ? !read_devices(value, l) : !read_value(value, f, &number))
        return refuse_value(r, f, value);
    put(l, f, number);
    *seen |= 1u << i;
    return true;
}

static bool read_fields(struct reader *r, const struct shape *s, struct gpi_log_line *l)
{
    uint32_t seen = 0;
    char name[NAME_SIZE];

    for (; r->at < r->n; r->at++)
        if (!read_field(r, s, l, &seen))
            return false;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct field *f = &s->field[i];
        if (!(seen >> i & 1) && !f->optional)
            return refuse(r, "%s%s lacks field %s", s->noun, name_of(name, s), f->name);
        if (!(seen >> i & 1))
            put(l, f, f->otherwise);
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

static bool fits(const struct shape *s, uint32_t placed)
{
    for (uint32_t i = 0; i < s->n; i++)
        placed -= s->field[i].placed;
    return placed == 0;
}

/* Finds the matching shape among the shapes of the same name, else the last of them. */
static bool find_shape(const struct reader *r, struct shape *ret)
{
    const struct word name = r->word[r->at];
    const uint32_t placed = count_placed(r);
    bool found = false;

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (is(name, shapes[i].name)) {
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
        if (is(name, actions[i].name)) {
            *ret = shape_of(actions, i, true);
            return true;
        }
    return found;
}

static bool read_setting(struct reader *r, struct gpi_log_line *l)
{
    struct word value = { "", 0 }, key;
    uint32_t i = 0;

    if (r->n != 2)
        return refuse(r, "expected set NAME=VALUE");
    value = r->word[1];
    key = key_of(&value);
    while (i < SETTINGS && !is(key, settings[i].name))
        i++;
    if (i == SETTINGS)
        return refuse(r, "no setting has the name %.*s", shown(key), key.at);
    l->kind = GPI_LOG_SET;
    l->set.which = i;
    return read_value(value, &settings[i], &l->set.value) || refuse_value(r, &settings[i], value);
}

static bool read_stamp(struct reader *r, struct gpi_log_line *l)
{
    struct word w = r->word[0];

    if (*w.at != '@')
        return true;
    w.at++;
    w.size--;
    l->stamped = true;
    if (!read_time(w, &l->now) || l->now == GPI_NEVER)
        return refuse(r, "@ is followed by %.*s, expected a time such as @1075ms", shown(w), w.at);
    r->at = 1;
    return r->n > 1 || refuse(r, "expected a step behind the time");
}

static bool read_line(struct reader *r, struct gpi_log_line *l)
{
    struct shape s;

    if (is(r->word[0], "set"))
        return read_setting(r, l);
    if (!read_stamp(r, l))
        return false;
    if (!find_shape(r, &s))
        return refuse(r, "%.*s is no event, call, action or other word of a log",
                      shown(r->word[r->at]), r->word[r->at].at);
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
    struct word rest = { text, size }, w;

    memset(ret, 0, sizeof *ret); /* so that equal lines have equal bytes */
    *reterr = 0;
    while (rest.at) {
        w = cut(&rest, " \t");
        if (w.size && r.n == WORDS_MAX && *r.word[0].at != '#')
            return refuse(&r, "more than %u words", WORDS_MAX);
        if (w.size && r.n < WORDS_MAX)
            r.word[r.n++] = w;
    }
    ret->kind = !r.n ? GPI_LOG_BLANK : *r.word[0].at == '#' ? GPI_LOG_COMMENT : GPI_LOG_RULE;
    return ret->kind != GPI_LOG_RULE || (r.n == 1 && is(r.word[0], "----")) || read_line(&r, ret);
}

/* ---- writing ---- */

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
    while (time % units[i].size)
        i++;
    add_number(t, time / units[i].size);
    add(t, units[i].name);
}

/* A value without a word is a fault of the core: the log has its number, which no reader takes. */
static void add_word(struct text *t, const char *list, uint64_t value)
{
    struct word w = { "", 0 };

    for (uint64_t i = 0; i <= value; i++)
        if (!next_of(&list, &w)) {
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

static void add_value(struct text *t, const struct field *f, uint64_t value)
{
    switch (f->form) {
    case SIGNED:
        add_signed(t, (int32_t)(uint32_t)value);
        break;
    case TIME:
        add_time(t, value);
        break;
    case WORD:
        add_word(t, f->words, value);
        break;
    case BITS:
        add_bits(t, f->words, value);
        break;
    default:
        add_number(t, value);
    }
}

static void add_field(struct text *t, const struct field *f, const struct gpi_log_line *l)
{
    const uint64_t value = value_in(l, f);

    if (f->form != DEVICES && f->optional && value == f->otherwise)
        return;
    add(t, " ");
    add(t, f->placed ? "" : f->name);
    if (f->form == MARK)
        return;
    if (!f->placed)
        add(t, "=");
    if (f->form == DEVICES)
        add_devices(t, l);
    else
        add_value(t, f, value);
}

/* Returns false for an unknown kind, which only a faulty caller or core produces. */
static bool shape_for(const struct gpi_log_line *l, struct shape *ret)
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

static void add_line(struct text *t, const struct gpi_log_line *l)
{
    struct shape s;
    char name[NAME_SIZE];

    if (l->stamped) {
        add(t, "@");
        add_time(t, l->now);
        add(t, " ");
    }
    if (!shape_for(l, &s)) {
        add(t, "?");
        add_number(t, l->kind == GPI_LOG_EVENT ? l->event.kind : l->action.kind);
        return;
    }
    add(t, name_of(name, &s));
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
        add(&t, settings[l->set.which].name);
        add(&t, "=");
        add_value(&t, &settings[l->set.which], l->set.value);
    } else if (l->kind != GPI_LOG_BLANK) {
        add_line(&t, l);
    }
    return to;
}

/* ---- settings as lines ---- */

void gpi_log_defaults(struct gpi_sched_settings *ret)
{
    memset(ret, 0, sizeof *ret);
    for (size_t i = 0; i < SETTINGS; i++)
        put(ret, &settings[i], settings[i].otherwise);
}

void gpi_log_set(struct gpi_sched_settings *set, const struct gpi_log_line *l)
{
    put(set, &settings[l->set.which], l->set.value);
}

bool gpi_log_setting(struct gpi_log_line *ret, const struct gpi_sched_settings *set, uint32_t *at)
{
    while (*at < SETTINGS && value_in(set, &settings[*at]) == settings[*at].otherwise)
        ++*at;
    if (*at == SETTINGS)
        return false;
    *ret = (struct gpi_log_line){ .kind = GPI_LOG_SET };
    ret->set.which = *at;
    ret->set.value = value_in(set, &settings[*at]);
    ++*at;
    return true;
}
