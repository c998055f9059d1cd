/* SPDX-License-Identifier: MIT */
/* line_write.c - writes a row as a line of text. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "view/line.h"
#include "view/names.h"
#include "view/words.h"

/* ---- Fields ---- */

void gpv_lines_free(struct gpv_lines *l)
{
    free(l->text);
    *l = (struct gpv_lines){ 0 };
}

static char *room_for(struct gpv_lines *l, size_t size)
{
    while (!l->failed && l->size + size > l->room) {
        size_t more = l->room ? l->room * 2 : 4096;
        char *larger = more > l->room ? realloc(l->text, more) : NULL;
        l->failed = !larger;
        if (larger) {
            l->text = larger;
            l->room = more;
        }
    }
    return l->failed ? NULL : l->text + l->size;
}

static void put(struct gpv_lines *l, const char *text, size_t size)
{
    char *at = room_for(l, size);
    if (at) {
        memcpy(at, text, size);
        l->size += size;
    }
}

void gpv_line_begin(struct gpv_lines *l, const char *kind)
{
    put(l, kind, strlen(kind));
}

void gpv_line_end(struct gpv_lines *l)
{
    put(l, "\n", 1);
}

void gpv_line_bytes(struct gpv_lines *l, const char *text, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    char *at = room_for(l, size * 4 + 1);
    if (!at)
        return;
    *at++ = '\t';
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '\\' && c != 0x7f) {
            *at++ = (char)c;
            continue;
        }
        *at++ = '\\';
        *at++ = c == '\t' ? 't' : c == '\n' ? 'n' : c == '\\' ? '\\' : 'x';
        if (at[-1] != 'x')
            continue;
        *at++ = digits[c >> 4];
        *at++ = digits[c & 15];
    }
    l->size = (size_t)(at - l->text);
}

void gpv_line_text(struct gpv_lines *l, const char *text)
{
    gpv_line_bytes(l, text ? text : "", text ? strlen(text) : 0);
}

void gpv_line_number(struct gpv_lines *l, int64_t number)
{
    char text[24], *at = text + sizeof(text);
    uint64_t rest = number < 0 ? (uint64_t)0 - (uint64_t)number : (uint64_t)number;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (number < 0)
        *--at = '-';
    *--at = '\t';
    put(l, at, (size_t)(text + sizeof(text) - at));
}

void gpv_line_time(struct gpv_lines *l, uint64_t ns)
{
    if (ns != 0)
        gpv_line_number(l, (int64_t)ns);
    else
        put(l, "\t", 1);
}

void gpv_line_task(struct gpv_lines *l, uint64_t task)
{
    char text[GPV_WORD];
    gpv_line_text(l, gpv_task_id(task, text));
}

void gpv_line_flags(struct gpv_lines *l, bool open, bool held, bool at_once)
{
    char text[32] = "";
    snprintf(text, sizeof(text), "%s%s%s", open ? ",open" : "", held ? ",held" : "",
             at_once ? ",turns" : "");
    gpv_line_text(l, text + (*text != 0));
}

/* ---- A whole night ---- */

static void write_text(struct gpv_lines *l, const struct gpv_night *n, uint32_t text)
{
    gpv_line_text(l, gpv_text(n, text));
}

static const char *gpu_name(const struct gpv_night *n, uint32_t gpu)
{
    const struct gpv_gpu *row = gpu < n->gpus.n ? &n->gpus.row[gpu] : NULL;
    return row ? gpv_text(n, row->uuid ? row->uuid : row->name) : "";
}

static void write_shape(struct gpv_lines *l, const struct gpv_night *n, uint32_t shape)
{
    if (shape < n->shapes.n)
        gpv_line_number(l, n->shapes.row[shape].id);
    else
        gpv_line_text(l, NULL);
}

static void write_gpus(struct gpv_lines *l, const struct gpv_night *n, struct gpv_set set)
{
    gpv_line_text(l, NULL);
    for (uint32_t i = 0; i < set.n; i++) {
        size_t at = l->size;
        gpv_line_text(l, gpu_name(n, set.gpu[i]));
        if (l->failed)
            return;
        if (i > 0)
            l->text[at] = ',';
        else
            memmove(l->text + at, l->text + at + 1, --l->size - at);
    }
}

static void write_lists(struct gpv_lines *l, const struct gpv_night *n)
{
    for (size_t i = 0; i < n->gpus.n; i++) {
        const struct gpv_gpu *g = &n->gpus.row[i];
        gpv_line_begin(l, "gpu");
        write_text(l, n, g->name);
        write_text(l, n, g->uuid);
        if (g->index != GPV_NONE)
            gpv_line_number(l, g->index);
        else
            gpv_line_text(l, NULL);
        write_text(l, n, g->model);
        write_text(l, n, g->pci);
        write_text(l, n, g->profile);
        write_text(l, n, g->parent);
        gpv_line_end(l);
    }
    for (size_t i = 0; i < n->classes.n; i++) {
        gpv_line_begin(l, "class");
        write_text(l, n, n->classes.row[i].name);
        gpv_line_end(l);
    }
    for (size_t i = 0; i < n->shapes.n; i++) {
        const struct gpv_shape *s = &n->shapes.row[i];
        gpv_line_begin(l, "shape");
        gpv_line_number(l, s->id);
        gpv_line_text(l, gpv_class_name(n, s->class));
        gpv_line_number(l, s->gpus);
        write_text(l, n, s->text);
        gpv_line_end(l);
    }
}

static void write_ends(struct gpv_lines *l, const struct gpv_batch *b)
{
    char text[GPV_OUTCOMES * 32], *at = text;
    for (uint32_t i = GPV_OK; i < GPV_OUTCOMES; i++)
        if (b->ended_by[i] != 0)
            at += snprintf(at, (size_t)(text + sizeof(text) - at), "%s%s=%" PRIu32,
                           at > text ? "," : "", gpv_outcome_word(i), b->ended_by[i]);
    gpv_line_bytes(l, text, (size_t)(at - text));
}

static void write_batch(struct gpv_lines *l, const struct gpv_night *n, const struct gpv_batch *b)
{
    gpv_line_begin(l, "batch");
    gpv_line_number(l, b->id);
    write_text(l, n, b->name);
    gpv_line_time(l, (uint64_t)b->made);
    gpv_line_time(l, (uint64_t)b->ended);
    gpv_line_number(l, b->priority);
    gpv_line_flags(l, b->open, b->is_held, b->at_once);
    gpv_line_number(l, b->total);
    gpv_line_number(l, b->joined);
    gpv_line_number(l, b->held);
    gpv_line_number(l, b->ready);
    gpv_line_number(l, b->running);
    write_ends(l, b);
    gpv_line_number(l, b->first);
    write_shape(l, n, b->shape);
    gpv_line_number(l, b->turn);
    gpv_line_end(l);
}

static void write_attempt(struct gpv_lines *l, const struct gpv_night *n,
                          const struct gpv_attempt *a)
{
    gpv_line_begin(l, "attempt");
    gpv_line_task(l, a->task);
    gpv_line_number(l, a->number);
    write_shape(l, n, a->shape);
    write_gpus(l, n, gpv_set(n, a->set));
    gpv_line_time(l, (uint64_t)a->ready);
    gpv_line_time(l, (uint64_t)a->started);
    gpv_line_time(l, (uint64_t)a->ended);
    gpv_line_text(l, gpv_outcome_word(a->outcome));
    gpv_line_number(l, a->status);
    write_text(l, n, a->text);
    gpv_line_text(l, gpv_name_of(n, a->task));
    gpv_line_end(l);
}

/* The fields that rows with since and until end with. */
static void write_span(struct gpv_lines *l, const struct gpv_night *n, int64_t since, int64_t until,
                       uint32_t text)
{
    gpv_line_time(l, (uint64_t)since);
    gpv_line_time(l, (uint64_t)until);
    write_text(l, n, text);
    gpv_line_end(l);
}

static void write_length(struct gpv_lines *l, int64_t ns)
{
    if (ns < 0)
        gpv_line_text(l, NULL);
    else
        gpv_line_number(l, ns);
}

static void write_spans(struct gpv_lines *l, const struct gpv_night *n)
{
    for (size_t i = 0; i < n->tenancies.n; i++) {
        const struct gpv_tenancy *t = &n->tenancies.row[i];
        gpv_line_begin(l, "tenancy");
        gpv_line_text(l, gpu_name(n, t->gpu));
        gpv_line_text(l, gpv_tenancy_word(t->kind));
        gpv_line_text(l, gpv_class_name(n, t->class));
        write_span(l, n, t->since, t->until, t->text);
    }
    for (size_t i = 0; i < n->outs.n; i++) {
        const struct gpv_out *o = &n->outs.row[i];
        gpv_line_begin(l, "out");
        gpv_line_text(l, gpu_name(n, o->gpu));
        gpv_line_text(l, gpv_out_word(o->kind));
        write_span(l, n, o->since, o->until, o->text);
    }
    for (size_t i = 0; i < n->reasons.n; i++) {
        const struct gpv_reason *r = &n->reasons.row[i];
        gpv_line_begin(l, "reason");
        write_shape(l, n, r->shape);
        gpv_line_task(l, r->task);
        write_text(l, n, r->word);
        write_span(l, n, r->since, r->until, r->text);
    }
    for (size_t i = 0; i < n->lives.n; i++) {
        const struct gpv_life *life = &n->lives.row[i];
        gpv_line_begin(l, "life");
        gpv_line_text(l, gpv_life_word(life->kind));
        write_span(l, n, life->since, life->until, life->text);
    }
    for (size_t i = 0; i < n->lefts.n; i++) {
        const struct gpv_left_row *left = &n->lefts.row[i];
        gpv_line_begin(l, "left");
        gpv_line_number(l, left->batch);
        gpv_line_time(l, (uint64_t)left->time);
        write_length(l, left->least);
        write_length(l, left->most);
        gpv_line_end(l);
    }
}

bool gpv_night_write(const struct gpv_night *n, struct gpv_lines *l)
{
    gpv_line_begin(l, "records");
    gpv_line_number(l, GPV_LINES_VERSION);
    write_text(l, n, n->host);
    if (n->no_queue)
        gpv_line_text(l, "log");
    gpv_line_end(l);
    write_lists(l, n);
    for (size_t i = 0; i < n->batches.n; i++)
        write_batch(l, n, &n->batches.row[i]);
    for (size_t i = 0; i < n->attempts.n; i++)
        write_attempt(l, n, &n->attempts.row[i]);
    write_spans(l, n);
    gpv_line_begin(l, "now");
    gpv_line_time(l, (uint64_t)n->to);
    gpv_line_end(l);
    return !l->failed;
}
