/* SPDX-License-Identifier: MIT */
/*
 * data.c - the rows of the night for the script of the page (report.js).
 *
 * Rows are columns of numbers: the difference to the row before, and [difference, times] where it
 * repeats.  Times are ms since the begin of the span.  The rows are sorted by batch, since their
 * differences are small then.
 */
#include <stdlib.h>

#include "view/names.h"
#include "view/report/bars.h"
#include "view/report/html.h"
#include "view/report/page.h"
#include "view/report/textures.h"
#include "view/words.h"

#define MS INT64_C(1000000)
#define HOUR (3600000 * MS)

enum {
    TEXTS = 20000, /* the first ones */
    LETTERS = 160, /* of a text */
    NOT_KNOWN = 1  /* ms after the end of the span: no task is ready then */
};

struct place {
    uint32_t batch, attempt;
};

struct data {
    struct gpv_page *p;
    GPV_LIST(struct place) rows; /* attempts in their order */
    struct gpv_bars bars;
    GPV_LIST(uint32_t) texts; /* offsets, in ascending order; the first one is that of "" */
    size_t left_out;          /* texts */
    uint32_t sets;            /* of attempts: those with a GPU */
};

/* ---- Attempts and texts ---- */

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->batch != y->batch)
        return x->batch < y->batch ? -1 : 1;
    return (x->attempt > y->attempt) - (x->attempt < y->attempt);
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static const struct gpv_attempt *attempt(const struct data *d, size_t i)
{
    return &d->p->n->attempts.row[d->rows.row[i].attempt];
}

/* The name of the task of an attempt, if the page has it: an offset. */
static uint32_t name_of(const struct data *d, const struct gpv_attempt *a)
{
    const struct gpv_night *n = d->p->n;
    const bool left_out = n->attempts.n > GPV_REPORT_NAMES && !gpv_is_bad(a->outcome);
    return left_out ? 0 : gpv_name_text(n, a->task);
}

static int collect_attempts(struct data *d)
{
    const struct gpv_night *n = d->p->n;
    d->rows.row = malloc((n->attempts.n + 1) * sizeof(*d->rows.row));
    if (!d->rows.row)
        return -1;
    for (uint32_t i = 0; i < n->attempts.n; i++)
        d->rows.row[d->rows.n++] = (struct place){ GPV_BATCH_OF(n->attempts.row[i].task), i };
    for (size_t i = 0; i < n->attempts.n; i++) {
        const uint16_t set = n->attempts.row[i].set;
        if (gpv_set(n, set).n && set >= d->sets)
            d->sets = set + 1u;
    }
    qsort(d->rows.row, d->rows.n, sizeof(*d->rows.row), by_place);
    return 0;
}

/* Each text once. */
static int collect_texts(struct data *d)
{
    uint32_t *text = malloc((2 * d->rows.n + d->bars.n + 1) * sizeof(*text));
    size_t n = 0, kept = 0;
    if (!text)
        return -1;
    text[n++] = 0;
    for (size_t i = 0; i < d->rows.n; i++) {
        text[n++] = attempt(d, i)->text;
        text[n++] = name_of(d, attempt(d, i));
    }
    for (size_t i = 0; i < d->bars.n; i++)
        text[n++] = d->bars.row[i].text;
    qsort(text, n, sizeof(*text), by_number);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || text[i] != text[kept - 1])
            text[kept++] = text[i];
    }
    d->texts.row = text;
    d->texts.n = kept < TEXTS ? kept : TEXTS;
    d->left_out = kept - d->texts.n;
    return 0;
}

static uint32_t text_index(const struct data *d, uint32_t offset)
{
    const uint32_t *found = bsearch(&offset, d->texts.row, d->texts.n, sizeof(*found), by_number);
    return found ? (uint32_t)(found - d->texts.row) : 0;
}

/* ---- Columns: a row of each attempt, and then of each bar ---- */

static int64_t ms(const struct data *d, int64_t time)
{
    const int64_t ns = time - d->p->n->from;
    return ns >= 0 ? ns / MS : -((MS - 1 - ns) / MS);
}

typedef int64_t (*value_fn)(const struct data *d, size_t row);

static int64_t batch_at(const struct data *d, size_t i)
{
    return GPV_BATCH_OF(attempt(d, i)->task);
}
static int64_t number_at(const struct data *d, size_t i)
{
    return GPV_NUMBER_OF(attempt(d, i)->task);
}
static int64_t attempt_at(const struct data *d, size_t i)
{
    return attempt(d, i)->number;
}
static int64_t outcome_at(const struct data *d, size_t i)
{
    return attempt(d, i)->outcome;
}

static int64_t ready_at(const struct data *d, size_t i)
{
    const struct gpv_attempt *a = attempt(d, i);
    return a->ready ? ms(d, a->ready) : ms(d, d->p->n->to) + NOT_KNOWN;
}

static int64_t name_at(const struct data *d, size_t i)
{
    return text_index(d, name_of(d, attempt(d, i)));
}

static int64_t start_at(const struct data *d, size_t i)
{
    return ms(d, attempt(d, i)->started);
}
static int64_t bar_start(const struct data *d, size_t i)
{
    return ms(d, d->bars.row[i].from);
}

/* An attempt that runs has the length -1. */
static int64_t length_at(const struct data *d, size_t i)
{
    const struct gpv_attempt *a = attempt(d, i);
    return a->ended ? ms(d, a->ended) - ms(d, a->started) : -1;
}
static int64_t bar_length(const struct data *d, size_t i)
{
    return ms(d, d->bars.row[i].to) - bar_start(d, i);
}

static int64_t use_at(const struct data *d, size_t i)
{
    return gpv_is_bad(attempt(d, i)->outcome) ? GPV_USE_LOST : GPV_USE_OK;
}
static int64_t bar_use(const struct data *d, size_t i)
{
    return d->bars.row[i].use;
}

static int64_t text_at(const struct data *d, size_t i)
{
    return text_index(d, attempt(d, i)->text);
}
static int64_t bar_text(const struct data *d, size_t i)
{
    return text_index(d, d->bars.row[i].text);
}

static int64_t class_at(const struct data *d, size_t i)
{
    const uint32_t class = gpv_class_of(d->p->n, attempt(d, i));
    return class < d->p->n->classes.n ? class : (int64_t)d->p->n->classes.n;
}
static int64_t bar_class(const struct data *d, size_t i)
{
    return d->bars.row[i].class == GPV_NONE ? -1 : (int64_t)d->bars.row[i].class;
}

/* Set 0 has no GPU.  The sets of attempts follow, and then a set of each GPU. */
static int64_t set_at(const struct data *d, size_t i)
{
    const uint16_t set = attempt(d, i)->set;
    return gpv_set(d->p->n, set).n ? set + 1 : 0;
}
static int64_t bar_set(const struct data *d, size_t i)
{
    return 1 + (int64_t)d->sets + d->bars.row[i].gpu;
}

static const struct column {
    const char *name;
    value_fn of_attempt, of_bar; /* NULL: 0 */
} columns[] = {
    { "batch", batch_at, NULL },      { "number", number_at, NULL },
    { "attempt", attempt_at, NULL },  { "outcome", outcome_at, NULL },
    { "ready", ready_at, NULL },      { "name", name_at, NULL },
    { "start", start_at, bar_start }, { "length", length_at, bar_length },
    { "use", use_at, bar_use },       { "text", text_at, bar_text },
    { "class", class_at, bar_class }, { "set", set_at, bar_set },
};

static int64_t value(const struct data *d, const struct column *c, size_t i)
{
    if (i < d->rows.n)
        return c->of_attempt(d, i);
    return c->of_bar ? c->of_bar(d, i - d->rows.n) : 0;
}

static void put_column(const struct data *d, const struct column *c)
{
    const size_t n = d->rows.n + d->bars.n;
    FILE *f = d->p->f;
    int64_t last = 0;
    gpv_html(f, "\"%s\":[", c->name);
    for (size_t i = 0; i < n;) {
        const int64_t step = value(d, c, i) - last;
        const char *comma = i ? "," : "";
        size_t run = 0;
        for (; i < n && value(d, c, i) - last == step; run++, i++)
            last += step;
        if (run > 1)
            gpv_html(f, "%s[%lld,%zu]", comma, (long long)step, run);
        else
            gpv_html(f, "%s%lld", comma, (long long)step);
    }
    gpv_html(f, "]");
}

static void put_columns(const struct data *d)
{
    gpv_html(d->p->f, ",\n\"columns\":{\n");
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        gpv_html(d->p->f, i ? ",\n" : "");
        put_column(d, &columns[i]);
    }
    gpv_html(d->p->f, "}");
}

/* ---- Lists ---- */

static void strings(FILE *f, const char *name, size_t n, const char *(*text)(uint32_t))
{
    gpv_html(f, ",\n\"%s\":[", name);
    for (uint32_t i = 0; i < n; i++) {
        gpv_html(f, i ? "," : "");
        gpv_html_string(f, text(i), LETTERS);
    }
    gpv_html(f, "]");
}

static void put_gpus(const struct data *d)
{
    const struct gpv_night *n = d->p->n;
    FILE *f = d->p->f;
    char label[GPV_NAME];
    gpv_html(f, ",\n\"gpus\":[");
    for (uint32_t i = 0; i < n->gpus.n; i++) {
        gpv_html(f, i ? "," : "");
        gpv_html_string(f, gpv_gpu_label(n, i, label), LETTERS);
    }
    gpv_html(f, "],\n\"sets\":[[]");
    for (uint32_t i = 0; i < d->sets; i++) {
        const struct gpv_set set = gpv_set(n, (uint16_t)i);
        gpv_html(f, ",[");
        for (uint32_t g = 0; g < set.n; g++)
            gpv_html(f, "%s%u", g ? "," : "", set.gpu[g]);
        gpv_html(f, "]");
    }
    for (uint32_t i = 0; i < n->gpus.n; i++)
        gpv_html(f, ",[%u]", i);
    gpv_html(f, "]");
}

static void put_names(const struct data *d)
{
    const struct gpv_night *n = d->p->n;
    FILE *f = d->p->f;
    gpv_html(f, ",\n\"classes\":[");
    for (uint32_t i = 0; i <= n->classes.n; i++) {
        gpv_html(f, i ? ",[" : "[");
        gpv_html_string(f, gpv_class_label(n, i < n->classes.n ? i : GPV_NONE), LETTERS);
        gpv_html(f, ",%u]", d->p->texture[i]);
    }
    gpv_html(f, "],\n\"batches\":[");
    for (size_t i = 0; i < n->batches.n; i++) {
        gpv_html(f, "%s[%u,", i ? "," : "", n->batches.row[i].id);
        gpv_html_string(f, gpv_text(n, n->batches.row[i].name), LETTERS);
        gpv_html(f, "]");
    }
    gpv_html(f, "],\n\"texts\":[");
    for (size_t i = 0; i < d->texts.n; i++) {
        gpv_html(f, i ? "," : "");
        gpv_html_string(f, gpv_text(n, d->texts.row[i]), LETTERS);
    }
    gpv_html(f, "],\n\"uses\":[");
    for (enum gpv_use use = 0; use < GPV_USES; use++) {
        gpv_html(f, use ? ",[" : "[");
        gpv_html_string(f, gpv_use_text(use), LETTERS);
        gpv_html(f, ",%u]", gpv_texture_of_use(use));
    }
    gpv_html(f, "],\n\"lives\":[");
    const char *comma = "";
    for (size_t i = 0; i < n->lives.n; i++) {
        const char *text = gpv_page_life(d->p, &n->lives.row[i]);
        if (!text)
            continue;
        gpv_html(f, "%s[%lld,", comma, (long long)ms(d, n->lives.row[i].since));
        gpv_html_string(f, text, LETTERS);
        gpv_html(f, "]");
        comma = ",";
    }
    gpv_html(f, "]");
}

/* Where local time is set back or on: [ms, offset to UTC in s].  A zone changes at a full hour. */
static void put_zones(const struct data *d)
{
    const struct gpv_night *n = d->p->n;
    FILE *f = d->p->f;
    int64_t last = INT64_MIN;
    gpv_html(f, ",\n\"zones\":[");
    for (int64_t t = n->from; t <= n->to; t = (t / HOUR + 1) * HOUR) {
        const int64_t offset = gpv_zone(t);
        if (offset != last)
            gpv_html(f, "%s[%lld,%lld]", last != INT64_MIN ? "," : "", (long long)ms(d, t),
                     (long long)(offset / (1000 * MS)));
        last = offset;
    }
    gpv_html(f, "]");
}

/* ---- The section ---- */

static void say(struct gpv_page *p, const struct data *d, bool whole)
{
    char a[GPV_WORD], b[GPV_WORD];
    gpv_html(p->f, "<section id=\"search\" class=\"screen\"><h2>Find a task</h2>\n");
    if (!whole)
        gpv_html(
            p->f,
            "<p class=\"dim\" id=\"left-out\">The page leaves out the table of its %s attempts, "
            "more than %s: it cannot zoom or search. With the option --all of "
            "gpudispatch report it can; --csv writes the attempts as rows.</p>\n",
            gpv_count(p->n->attempts.n, a), gpv_count(GPV_REPORT_ATTEMPTS, b));
    else
        gpv_html(p->f, "<p class=\"dim\" id=\"find\">The search needs scripts; the tables above do "
                       "not.</p>\n");
    if (whole && p->n->attempts.n > GPV_REPORT_NAMES && p->n->names.n)
        gpv_html(p->f,
                 "<p class=\"dim\">Only tasks that ended badly have their names here: there are "
                 "more than %s attempts.</p>\n",
                 gpv_count(GPV_REPORT_NAMES, a));
    if (d->left_out)
        gpv_html(p->f, "<p class=\"dim\">%s names and texts are left out.</p>\n",
                 gpv_count(d->left_out, a));
    gpv_html(p->f, "</section>\n");
}

static void put(struct data *d, bool whole)
{
    const struct gpv_night *n = d->p->n;
    gpv_html(d->p->f,
             "<script type=\"application/json\" id=\"data\">{\"version\":1,\"whole\":%s,"
             "\"from\":%lld,\"span\":%lld,\"attempts\":%zu,\"bars\":%zu,\"low\":%u",
             whole ? "true" : "false", (long long)(n->from / MS), (long long)ms(d, n->to),
             d->rows.n, d->bars.n, GPV_USE_LIMITED);
    if (whole) {
        put_zones(d);
        put_gpus(d);
        put_names(d);
        strings(d->p->f, "outcomes", GPV_OUTCOMES, gpv_outcome_text);
        strings(d->p->f, "glyphs", GPV_OUTCOMES, gpv_outcome_glyph);
        put_columns(d);
    }
    gpv_html(d->p->f, "}</script>\n");
}

int gpv_page_data(struct gpv_page *p)
{
    struct data d = { .p = p };
    const bool whole = p->o->all || p->n->attempts.n <= GPV_REPORT_ATTEMPTS;
    const int ret = whole && (collect_attempts(&d) != 0 || gpv_bars_of(p->n, &d.bars) != 0 ||
                              collect_texts(&d) != 0)
                        ? -1
                        : 0;
    if (ret == 0) {
        say(p, &d, whole);
        put(&d, whole);
    }
    free(d.rows.row);
    free(d.bars.row);
    free(d.texts.row);
    return ret;
}
