/* SPDX-License-Identifier: MIT */
/* snapshot.c - rows of a snapshot, and a snapshot as a line of JSON. */
#include "view/now/snapshot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "view/json.h"
#include "view/names.h"
#include "view/night/findings.h"
#include "view/now/fields.h"
#include "view/plain.h"
#include "view/words.h"

/* ---- Rows ---- */

void *gpv_now_row(struct gpv_snapshot *s, const struct gpv_now_list *of)
{
    struct gpv_any_list *list = (void *)((char *)s + of->at);
    if (!gpv_grow(&list->row, list->n, &list->room, of->size))
        return NULL;
    return memset((char *)list->row + list->n++ * of->size, 0, of->size);
}

#define ADD_ROW(name, list)                            \
    struct name *name(struct gpv_snapshot *s)          \
    {                                                  \
        return gpv_now_row(s, &gpv_now_lists[(list)]); \
    }
ADD_ROW(gpv_now_gpu, GPV_GPUS)
ADD_ROW(gpv_now_class, GPV_CLASSES)
ADD_ROW(gpv_now_batch, GPV_BATCHES)
ADD_ROW(gpv_now_finding, GPV_FINDINGS)
ADD_ROW(gpv_now_end, GPV_ENDS)

void gpv_snapshot_free(struct gpv_snapshot *s)
{
    for (int i = 0; i < GPV_NOW_LISTS; i++)
        free(((struct gpv_any_list *)(void *)((char *)s + gpv_now_lists[i].at))->row);
    free(s->history);
    *s = (struct gpv_snapshot){ 0 };
}

static int batch_order(const void *left, const void *right)
{
    const struct gpv_now_batch *a = left, *b = right;
    if ((a->ended == 0) != (b->ended == 0))
        return a->ended == 0 ? -1 : 1;
    if (a->ended != b->ended)
        return a->ended > b->ended ? -1 : 1;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

void gpv_now_sort_batches(struct gpv_now_batch *batch, size_t n)
{
    if (n > 1)
        qsort(batch, n, sizeof(*batch), batch_order);
}

void gpv_now_fold_batch(struct gpv_now_more *more, const struct gpv_now_batch *b)
{
    more->batches++;
    more->total += b->total;
    more->ok += b->ok;
    more->bad += b->bad;
    more->running += b->running;
    more->ready += b->ready;
    more->held += b->held;
    more->turn += b->turn;
}

/* ---- Words and texts ---- */

const char *gpv_does_word(uint32_t does)
{
#define GPV_X_WORD(name, value, word) [value] = word,
    static const char *const words[] = { GPV_DOES_MAP(GPV_X_WORD) };
#undef GPV_X_WORD
    return does < GPV_DOES ? words[does] : "?";
}

void gpv_now_text(char *to, size_t size, const char *text)
{
    size_t used = 0;
    while (text[used]) {
        uint32_t character;
        size_t length = gpv_character(text + used, &character);
        length = length ? length : 1;
        if (used + length >= size)
            break;
        used += length;
    }
    memcpy(to, text, used);
    to[used] = 0;
}

void gpv_now_whose(char *to, size_t size, const char *batch_name, const struct gpv_finding *f)
{
    char text[96];
    struct gpv_cut c = gpv_cut(to, size);
    if (f->kind != GPV_FINDING_BAD && (f->kind != GPV_FINDING_KEPT || f->batch == 0))
        return;
    c.used = (size_t)snprintf(text, sizeof(text), "%" PRIu32 " ", f->batch);
    gpv_now_text(text + c.used, sizeof(text) - c.used, batch_name);
    gpv_now_text(to, size, text);
    c.used = strlen(to);
    for (uint32_t i = 0; i < f->n_ranges; i++) {
        if (f->range[i].from == f->range[i].to)
            snprintf(text, sizeof(text), "%" PRIu32, f->range[i].from);
        else
            snprintf(text, sizeof(text), "%" PRIu32 "-%" PRIu32, f->range[i].from, f->range[i].to);
        gpv_cut_add(&c, i ? ", " : " ", text);
    }
    if (f->more > 0)
        gpv_cut_add(&c, " ", "...");
}

void gpv_now_gpus(char *to, size_t size, const char *const *name, size_t n)
{
    struct gpv_cut c = gpv_cut(to, size);
    for (size_t first = 0, next; first < n; first = next) {
        const long from = gpv_gpu_number(name[first]);
        long last = from;
        char text[96];
        for (next = first + 1; last >= 0 && next < n && gpv_gpu_number(name[next]) == last + 1;
             next++)
            last++;
        if (from < 0)
            gpv_now_text(text, sizeof(text), name[first]);
        else
            snprintf(text, sizeof(text), last > from ? "%ld-%ld" : "%ld", from, last);
        gpv_cut_add(&c, first ? ", " : "", text);
    }
}

/* ---- Writing ---- */

static void write_uses(struct gpv_json *j, const struct gpv_uses *uses)
{
    for (uint32_t i = 0; i < GPV_USES; i++)
        if (uses->ns[i] != 0)
            gpv_json_number(j, gpv_use_word(i), uses->ns[i]);
}

static void write_counts(struct gpv_json *j, const struct gpv_field *f, const char *at)
{
    bool opened = false;
    for (uint32_t i = 0; i < f->size / sizeof(uint64_t); i++) {
        int64_t count = gpv_number_in(at + i * sizeof(uint64_t), sizeof(uint64_t));
        if (count == 0)
            continue;
        if (!opened)
            gpv_json_open(j, f->name, '{');
        opened = true;
        gpv_json_number(j, f->word(i), count);
    }
    if (opened)
        gpv_json_close(j, '}');
}

/* Without the zeros at the end. */
static void write_histogram(struct gpv_json *j, const struct gpv_field *f,
                            const struct gpv_histogram *h)
{
    int n = GPV_BUCKETS;
    if (h->count == 0)
        return;
    while (n > 0 && h->bucket[n - 1] == 0)
        n--;
    gpv_json_open(j, f->name, '{');
    gpv_json_number(j, "count", (int64_t)h->count);
    gpv_json_decimal(j, "sum", h->sum);
    gpv_json_open(j, "buckets", '[');
    for (int i = 0; i < n; i++)
        gpv_json_number(j, NULL, (int64_t)h->bucket[i]);
    gpv_json_close(j, ']');
    gpv_json_close(j, '}');
}

static void write_number(struct gpv_json *j, const struct gpv_field *f, int64_t number)
{
    if (number == f->none)
        return;
    if (f->kind == GPV_WORD_OF)
        gpv_json_text(j, f->name, f->word((uint32_t)number));
    else
        gpv_json_number(j, f->name, f->kind == GPV_I32 ? (int32_t)number : number);
}

static void write_field(struct gpv_json *j, const struct gpv_field *f, const char *at)
{
    char task[GPV_WORD];
    double decimal;
    switch (f->kind) {
    case GPV_TEXT:
        if (*at)
            gpv_json_text(j, f->name, at);
        break;
    case GPV_U32:
    case GPV_I32:
    case GPV_U64:
    case GPV_I64:
    case GPV_WORD_OF:
        write_number(j, f, gpv_number_in(at, f->size));
        break;
    case GPV_DECIMAL:
        memcpy(&decimal, at, sizeof(decimal));
        if (decimal > 0)
            gpv_json_decimal(j, f->name, decimal);
        break;
    case GPV_FLAG:
        if (*at)
            gpv_json_bool(j, f->name, true);
        break;
    case GPV_TASK_ID:
        if (gpv_number_in(at, f->size) != 0)
            gpv_json_text(j, f->name, gpv_task_id((uint64_t)gpv_number_in(at, f->size), task));
        break;
    case GPV_COUNTS:
        write_counts(j, f, at);
        break;
    case GPV_USE_TIMES:
        gpv_json_open(j, f->name, '{');
        write_uses(j, (const void *)at);
        gpv_json_close(j, '}');
        break;
    case GPV_HISTOGRAM:
        write_histogram(j, f, (const void *)at);
        break;
    }
}

static void write_fields(struct gpv_json *j, const struct gpv_field *fields, const void *row)
{
    for (const struct gpv_field *f = fields; f->name; f++)
        write_field(j, f, (const char *)row + f->at);
}

/* Returns how many rows are written. */
static size_t write_list(struct gpv_json *j, const struct gpv_now_list *of,
                         const struct gpv_any_list *list)
{
    size_t row = 0, begin = j->size;
    gpv_json_open(j, of->name, '[');
    for (; row < list->n; row++) {
        if ((of->rows != 0 && row >= of->rows) || (of->bytes != 0 && j->size - begin >= of->bytes))
            break;
        gpv_json_open(j, NULL, '{');
        write_fields(j, of->fields, (const char *)list->row + row * of->size);
        gpv_json_close(j, '}');
    }
    gpv_json_close(j, ']');
    return row;
}

static void write_lists(struct gpv_json *j, const struct gpv_snapshot *s)
{
    struct gpv_now_more more = s->more;
    size_t written[GPV_NOW_LISTS];
    for (int i = 0; i < GPV_NOW_LISTS; i++)
        written[i] =
            write_list(j, &gpv_now_lists[i], (const void *)((const char *)s + gpv_now_lists[i].at));
    for (size_t i = written[GPV_BATCHES]; i < s->batches.n; i++)
        gpv_now_fold_batch(&more, &s->batches.row[i]);
    more.classes += (uint32_t)(s->classes.n - written[GPV_CLASSES]);
    more.findings += (uint32_t)(s->findings.n - written[GPV_FINDINGS]);
    gpv_json_open(j, "more", '{');
    write_fields(j, gpv_more_fields, &more);
    gpv_json_close(j, '}');
}

/* ---- History: minutes of each GPU by use, in ms ---- */

/* The ms of a use and of those before it, so that the parts of a minute add up to it. */
static int64_t ms_up_to(const struct gpv_uses *minute, uint32_t use)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i <= use; i++)
        sum += minute->ns[i];
    return sum / 1000000;
}

static bool has_use(const struct gpv_uses *minute, uint32_t minutes, uint32_t use)
{
    for (uint32_t i = 0; i < minutes; i++)
        if (minute[i].ns[use] != 0)
            return true;
    return false;
}

static void write_gpu_history(struct gpv_json *j, const struct gpv_uses *minute, uint32_t minutes)
{
    gpv_json_open(j, NULL, '{');
    for (uint32_t use = 0; use < GPV_USES; use++) {
        if (!has_use(minute, minutes, use))
            continue;
        gpv_json_open(j, gpv_use_word(use), '[');
        for (uint32_t i = 0; i < minutes; i++)
            gpv_json_number(
                j, NULL, ms_up_to(&minute[i], use) - (use > 0 ? ms_up_to(&minute[i], use - 1) : 0));
        gpv_json_close(j, ']');
    }
    gpv_json_close(j, '}');
}

static void write_history(struct gpv_json *j, const struct gpv_snapshot *s)
{
    gpv_json_number(j, "minutes", s->minutes);
    gpv_json_open(j, "history", '[');
    for (size_t gpu = 0; gpu < s->gpus.n; gpu++)
        write_gpu_history(j, s->history + gpu * s->minutes, s->minutes);
    gpv_json_close(j, ']');
}

void gpv_snapshot_write(const struct gpv_snapshot *s, FILE *f)
{
    struct gpv_json j = { .f = f };
    gpv_json_open(&j, NULL, '{');
    gpv_json_number(&j, "snapshot", GPV_SNAPSHOT_VERSION);
    write_fields(&j, gpv_head_fields, s);
    write_lists(&j, s);
    if (s->history)
        write_history(&j, s);
    gpv_json_close(&j, '}');
}
