/* SPDX-License-Identifier: MIT */
/* line.c - reads a row from a line of text. */
#include "view/line.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "view/names.h"
#include "view/plain.h"
#include "view/words.h"

/* ---- Fields ---- */

/* The rest of a line, and whether a field had no sense. */
struct fields {
    struct gpv_night *night;
    const char *at, *end;
    bool strange, no_memory;
};

struct field {
    const char *text;
    size_t size;
};

static struct field next(struct fields *f)
{
    struct field field = { f->at, 0 };
    const char *tab = f->at < f->end ? memchr(f->at, '\t', (size_t)(f->end - f->at)) : NULL;
    field.size = (size_t)((tab ? tab : f->end) - f->at);
    f->at = tab ? tab + 1 : f->end;
    return field;
}

static bool is(struct field field, const char *word)
{
    return field.size == strlen(word) && memcmp(field.text, word, field.size) == 0;
}

/* A list with commas. */
static bool lists(struct field list, const char *word)
{
    const char *end = list.text + list.size, *at = list.text;
    for (const char *comma; (comma = memchr(at, ',', (size_t)(end - at))); at = comma + 1)
        if (is((struct field){ at, (size_t)(comma - at) }, word))
            return true;
    return is((struct field){ at, (size_t)(end - at) }, word);
}

/* A number of digits, with a minus if it may be less than 0; an empty field is 0. */
static int64_t number_of(struct fields *f, struct field field, int64_t least, int64_t most)
{
    bool minus = field.size > 0 && field.text[0] == '-';
    uint64_t value = 0;
    for (size_t i = minus; i < field.size; i++) {
        uint64_t digit = (uint64_t)(unsigned char)field.text[i] - '0'; /* a great one for others */
        if (digit > 9 || value > ((uint64_t)INT64_MAX - digit) / 10) {
            f->strange = true;
            return 0;
        }
        value = value * 10 + digit;
    }
    int64_t number = minus ? -(int64_t)value : (int64_t)value;
    f->strange = f->strange || number < least || number > most || (minus && field.size == 1);
    return number;
}

static uint32_t next_number(struct fields *f)
{
    return (uint32_t)number_of(f, next(f), 0, UINT32_MAX - 1);
}

/* Up to the year 2116: sums of times do not overflow. */
static int64_t next_time(struct fields *f)
{
    return number_of(f, next(f), 0, INT64_MAX / 2);
}

static uint64_t task_of(struct fields *f, struct field field)
{
    const char *dot = field.size ? memchr(field.text, '.', field.size) : NULL;
    if (!dot) {
        f->strange = true;
        return 0;
    }
    struct field batch = { field.text, (size_t)(dot - field.text) };
    struct field number = { dot + 1, field.size - batch.size - 1 };
    return GPV_TASK(number_of(f, batch, 1, UINT32_MAX - 1),
                    number_of(f, number, 1, UINT32_MAX - 1));
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One character of a field, which may be escaped; *at moves behind it. */
static char unescaped(const char **at, const char *end)
{
    char c = *(*at)++;
    if (c != '\\' || *at == end)
        return c;
    c = *(*at)++;
    if (c == 't' || c == 'n')
        return c == 't' ? '\t' : '\n';
    if (c != 'x' || end - *at < 2 || hex((*at)[0]) < 0 || hex((*at)[1]) < 0)
        return c;
    c = (char)(hex((*at)[0]) * 16 + hex((*at)[1]));
    *at += 2;
    return c;
}

/* Keeps a text, behind which a NUL stands; bytes that are no UTF-8, and NUL, become U+FFFD. */
static uint32_t keep_mended(struct gpv_night *n, const char *text, size_t size)
{
    char *mended = malloc(size * 3 + 1);
    size_t at = 0;
    if (!mended)
        return GPV_NONE;
    for (size_t i = 0; i < size;) {
        uint32_t c = 0;
        size_t length = gpv_character(text + i, &c);
        length = c ? length : 0;
        memcpy(mended + at, length ? text + i : "\xef\xbf\xbd", length ? length : 3);
        at += length ? length : 3;
        i += length ? length : 1;
    }
    mended[at] = 0;
    uint32_t kept = gpv_keep(n, mended, at);
    free(mended);
    return kept;
}

uint32_t gpv_line_keep(struct gpv_night *n, const char *field, size_t size)
{
    char room[512], *text = room;
    size_t kept_size = 0;
    bool plain = true;
    for (size_t i = 0; plain && i < size; i++)
        plain = field[i] != '\\' && field[i] > 0;
    if (plain)
        return gpv_keep(n, field, size);
    if (size >= sizeof(room))
        text = malloc(size + 1);
    for (const char *at = field; text && at < field + size;)
        text[kept_size++] = unescaped(&at, field + size);
    if (text)
        text[kept_size] = 0;
    uint32_t kept = text ? keep_mended(n, text, kept_size) : GPV_NONE;
    if (text != room)
        free(text);
    return kept;
}

static uint32_t keep(struct fields *f, struct field field)
{
    uint32_t kept = gpv_line_keep(f->night, field.text, field.size);
    f->no_memory = f->no_memory || kept == GPV_NONE;
    return kept;
}

static uint32_t next_text(struct fields *f)
{
    return keep(f, next(f));
}

/* The value of a word by its function; 0, and strange, if there is none. */
static uint32_t value_of(struct fields *f, struct field field, const char *(*word)(uint32_t),
                         uint32_t first, uint32_t most)
{
    for (uint32_t i = first; i < most; i++)
        if (is(field, word(i)))
            return i;
    f->strange = true;
    return 0;
}

/* ---- Rows that others name ---- */

/* A list could not name a GPU with a comma. */
static bool is_item(const struct gpv_night *n, uint32_t text)
{
    return text != 0 && !strchr(gpv_text(n, text), ',');
}

/* What adding a row returned. */
static void note(struct fields *f, int code)
{
    f->no_memory = f->no_memory || code < 0;
    f->strange = f->strange || code > 0;
}

/* The index of a GPU, which is added if it was not there. */
static uint32_t gpu_of(struct fields *f, struct field field)
{
    uint32_t name = keep(f, field);
    if (!is_item(f->night, name)) {
        f->strange = true;
        return GPV_NONE;
    }
    if (f->no_memory)
        return GPV_NONE;
    uint32_t there = gpv_find_gpu(f->night, gpv_text(f->night, name));
    if (there != GPV_NONE)
        return there;
    const struct gpv_gpu row = { .name = name, .index = GPV_NONE };
    note(f, gpv_add_gpu(f->night, &row));
    return gpv_find_gpu(f->night, gpv_text(f->night, name));
}

static uint32_t class_of(struct fields *f, struct field field)
{
    const struct gpv_class row = { keep(f, field) };
    if (field.size == 0 || f->no_memory)
        return GPV_NONE;
    f->no_memory = gpv_add_class(f->night, &row) < 0;
    return gpv_find_class(f->night, gpv_text(f->night, row.name));
}

static uint32_t shape_of(struct fields *f, struct field field)
{
    uint32_t id = (uint32_t)number_of(f, field, 0, UINT32_MAX - 1);
    const struct gpv_shape row = { .id = id, .class = GPV_NONE };
    if (field.size == 0 || f->strange)
        return GPV_NONE;
    uint32_t there = gpv_find_shape(f->night, id);
    if (there != GPV_NONE)
        return there;
    note(f, gpv_add_shape(f->night, &row));
    return gpv_find_shape(f->night, id);
}

enum { SET_MOST = 256 };

/* Each GPU once, in ascending order. */
static void insert(uint16_t gpu[SET_MOST], uint32_t *n, uint16_t one)
{
    uint32_t at = *n;
    while (at > 0 && gpu[at - 1] > one)
        at--;
    if (at > 0 && gpu[at - 1] == one)
        return;
    memmove(&gpu[at + 1], &gpu[at], (*n - at) * sizeof(*gpu));
    gpu[at] = one;
    ++*n;
}

static uint16_t set_of(struct fields *f, struct field field)
{
    uint16_t gpu[SET_MOST];
    uint32_t n = 0;
    const char *at = field.text, *end = field.text + field.size;
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct field name = { at, (size_t)((comma ? comma : end) - at) };
        uint32_t one = gpu_of(f, name);
        f->strange = f->strange || n == SET_MOST;
        if (f->no_memory || f->strange)
            return 0;
        insert(gpu, &n, (uint16_t)one);
        at = comma ? comma + 1 : end;
    }
    uint16_t set = gpv_keep_set(f->night, gpu, n);
    if (set == GPV_NONE16)
        note(f, gpv_sets_are_full(f->night) ? 1 : -1);
    return set;
}

/* A length of time; -1 if the field is empty. */
static int64_t next_length(struct fields *f)
{
    struct field field = next(f);
    return field.size ? number_of(f, field, 0, INT64_MAX) : -1;
}

/* ---- Lines ---- */

static int read_records(struct fields *f)
{
    (void)next_number(f); /* of a later version: what is not known is counted */
    f->night->host = next_text(f);
    f->night->no_queue = is(next(f), "log");
    return 0;
}

static int read_now(struct fields *f)
{
    int64_t now = next_time(f);
    if (!f->strange && !f->no_memory)
        f->night->to = now;
    return 0;
}

static int read_gpu(struct fields *f)
{
    struct gpv_gpu row = { .name = next_text(f) };
    row.uuid = next_text(f);
    struct field index = next(f);
    row.index = index.size ? (uint32_t)number_of(f, index, 0, UINT32_MAX - 1) : GPV_NONE;
    row.model = next_text(f);
    row.pci = next_text(f);
    row.profile = next_text(f);
    row.parent = next_text(f);
    f->strange = f->strange || !is_item(f->night, row.uuid ? row.uuid : row.name);
    return f->strange || f->no_memory ? 0 : gpv_add_gpu(f->night, &row);
}

static int read_class(struct fields *f)
{
    struct field name = next(f);
    f->strange = name.size == 0;
    (void)class_of(f, name);
    return 0;
}

static int read_shape(struct fields *f)
{
    struct field id = next(f);
    struct gpv_shape row = { .id = (uint32_t)number_of(f, id, 0, UINT32_MAX - 1) };
    row.class = class_of(f, next(f));
    row.gpus = next_number(f);
    row.text = next_text(f);
    f->strange = f->strange || id.size == 0;
    return f->strange || f->no_memory ? 0 : gpv_add_shape(f->night, &row);
}

/* "ok=12,error=3"; an outcome of a later version counts as lost, so that the sum stays right. */
static void read_ends(struct fields *f, struct field field, uint32_t ret[GPV_OUTCOMES])
{
    struct fields items = { f->night, field.text, field.text + field.size, false, false };
    while (items.at < items.end) {
        const char *comma = memchr(items.at, ',', (size_t)(items.end - items.at));
        const char *end = comma ? comma : items.end;
        const char *equals = memchr(items.at, '=', (size_t)(end - items.at));
        if (!equals) {
            f->strange = true;
            return;
        }
        bool unknown = f->strange;
        uint32_t outcome = value_of(f, (struct field){ items.at, (size_t)(equals - items.at) },
                                    gpv_outcome_word, GPV_OK, GPV_OUTCOMES);
        f->strange = unknown;
        ret[outcome ? outcome : GPV_LOST] += (uint32_t)number_of(
            f, (struct field){ equals + 1, (size_t)(end - equals - 1) }, 0, INT32_MAX);
        items.at = comma ? comma + 1 : items.end;
    }
}

static int read_batch(struct fields *f)
{
    struct gpv_batch row = { .id = next_number(f) };
    row.name = next_text(f);
    row.made = next_time(f);
    row.ended = next_time(f);
    row.priority = (int32_t)number_of(f, next(f), INT32_MIN, INT32_MAX);
    struct field flags = next(f);
    row.open = lists(flags, "open");
    row.is_held = lists(flags, "held");
    row.at_once = lists(flags, "turns");
    row.total = next_number(f);
    row.joined = next_number(f);
    row.held = next_number(f);
    row.ready = next_number(f);
    row.running = next_number(f);
    read_ends(f, next(f), row.ended_by);
    row.first = next_number(f);
    row.shape = shape_of(f, next(f));
    row.turn = next_number(f);
    row.turn = row.turn < row.held ? row.turn : row.held;
    f->strange = f->strange || row.id == 0;
    return f->strange || f->no_memory ? 0 : gpv_add_batch(f->night, &row);
}

static int read_attempt(struct fields *f)
{
    struct gpv_attempt row = { .task = task_of(f, next(f)) };
    row.number = next_number(f);
    uint32_t shape = shape_of(f, next(f));
    row.shape = shape < GPV_NONE16 ? (uint16_t)shape : GPV_NONE16;
    row.set = set_of(f, next(f));
    row.ready = next_time(f);
    row.started = next_time(f);
    row.ended = next_time(f);
    row.outcome = (uint8_t)value_of(f, next(f), gpv_outcome_word, GPV_RUNNING, GPV_OUTCOMES);
    row.status = (int16_t)number_of(f, next(f), INT16_MIN, INT16_MAX);
    row.text = next_text(f);
    struct gpv_name name = { row.task, 0 };
    if (gpv_wants_name(f->night, row.outcome))
        name.text = next_text(f);
    f->strange = f->strange || (row.started == 0 && row.ended == 0) ||
                 (row.ended == 0) != (row.outcome == GPV_RUNNING);
    if (f->strange || f->no_memory || gpv_add_attempt(f->night, &row) < 0)
        return f->strange || f->no_memory ? 0 : -1;
    return name.text != 0 ? gpv_add_name(f->night, &name) : 0;
}

static int read_tenancy(struct fields *f)
{
    struct gpv_tenancy row = { .gpu = gpu_of(f, next(f)) };
    row.kind = value_of(f, next(f), gpv_tenancy_word, 1, GPV_TENANCIES);
    row.class = class_of(f, next(f));
    row.since = next_time(f);
    row.until = next_time(f);
    row.text = next_text(f);
    f->strange = f->strange || row.since == 0;
    return f->strange || f->no_memory ? 0 : gpv_add_tenancy(f->night, &row);
}

static int read_out(struct fields *f)
{
    struct gpv_out row = { .gpu = gpu_of(f, next(f)) };
    row.kind = value_of(f, next(f), gpv_out_word, 1, GPV_OUTS);
    row.since = next_time(f);
    row.until = next_time(f);
    row.text = next_text(f);
    f->strange = f->strange || row.since == 0;
    return f->strange || f->no_memory ? 0 : gpv_add_out(f->night, &row);
}

static int read_reason(struct fields *f)
{
    struct gpv_reason row = { .shape = shape_of(f, next(f)) };
    row.task = task_of(f, next(f));
    row.word = next_text(f);
    row.since = next_time(f);
    row.until = next_time(f);
    row.text = next_text(f);
    f->strange = f->strange || row.since == 0 || row.shape == GPV_NONE;
    return f->strange || f->no_memory ? 0 : gpv_add_reason(f->night, &row);
}

static int read_life(struct fields *f)
{
    struct gpv_life row = { .kind = value_of(f, next(f), gpv_life_word, 1, GPV_LIVES) };
    row.since = next_time(f);
    row.until = next_time(f);
    row.text = next_text(f);
    f->strange = f->strange || row.since == 0;
    return f->strange || f->no_memory ? 0 : gpv_add_life(f->night, &row);
}

static int read_left(struct fields *f)
{
    struct gpv_left_row row = { .batch = next_number(f) };
    row.time = next_time(f);
    row.least = next_length(f);
    row.most = next_length(f);
    f->strange = f->strange || row.batch == 0 || row.time == 0 ||
                 (row.most >= 0 && (row.least < 0 || row.most < row.least));
    return f->strange || f->no_memory ? 0 : gpv_add_left(f->night, &row);
}

static const struct {
    const char *word;
    int (*read)(struct fields *f);
} kinds[] = {
    { "attempt", read_attempt }, { "tenancy", read_tenancy }, { "out", read_out },
    { "reason", read_reason },   { "life", read_life },       { "left", read_left },
    { "gpu", read_gpu },         { "class", read_class },     { "shape", read_shape },
    { "batch", read_batch },     { "records", read_records }, { "now", read_now },
};

int gpv_line_read(struct gpv_night *n, const char *line, size_t size)
{
    struct fields f = { n, line, line + size, false, false };
    if (size == 0)
        return 0;
    struct field kind = next(&f);
    int code = 0;
    bool known = false;
    for (size_t i = 0; size <= GPV_LINE_MOST && !known && i < sizeof(kinds) / sizeof(*kinds); i++) {
        known = is(kind, kinds[i].word);
        if (known)
            code = kinds[i].read(&f);
    }
    note(&f, code);
    n->unknown += !known || f.strange;
    return f.no_memory ? -1 : 0;
}

int gpv_lines_read(struct gpv_night *n, const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        const char *newline = memchr(text + at, '\n', size - at);
        size_t length = newline ? (size_t)(newline - text) - at : size - at;
        if (gpv_line_read(n, text + at, length) < 0)
            return -1;
        at += length + 1;
    }
    return 0;
}
