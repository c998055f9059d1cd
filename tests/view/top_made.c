/* SPDX-License-Identifier: MIT */
/* top_made.c - made-up snapshots for the tests of top, and their screens as text. */
#include "top_made.h"

#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "view/night/findings.h"

/* ---- Widths are those of UTF-8 ---- */

static locale_t utf8, before;

void use_utf8(void)
{
    utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
    if (!utf8)
        t_skip("the locale C.UTF-8 is not installed");
    before = uselocale(utf8);
}

void end_utf8(void)
{
    (void)uselocale(before);
    freelocale(utf8);
}

/* ---- Snapshots ---- */

struct gpv_now_gpu *add_gpu(struct gpv_snapshot *s, enum gpv_does does, const char *class)
{
    struct gpv_now_gpu *g = gpv_now_gpu(s);
    T_CHECK(g);
    snprintf(g->name, sizeof g->name, "gpu:%zu", s->gpus.n - 1);
    snprintf(g->class_name, sizeof g->class_name, "%s", class);
    g->does = does;
    g->since = NOW - 86 * SECOND;
    g->memory_used = g->memory_total = UINT64_MAX;
    g->utilization = g->temperature = g->power = GPV_NONE;
    g->tasks = does == GPV_DOES_RUN;
    if (does == GPV_DOES_RUN)
        g->task = GPV_TASK(15, 754 + s->gpus.n);
    return g;
}

struct gpv_now_batch *add_batch(struct gpv_snapshot *s, uint32_t id, const char *name)
{
    struct gpv_now_batch *b = gpv_now_batch(s);
    T_CHECK(b);
    b->id = id;
    snprintf(b->name, sizeof b->name, "%s", name);
    b->total = 100;
    b->ok = 60;
    b->bad = id % 7;
    b->running = id % 3;
    b->ready = 40 - b->bad - b->running;
    b->first = GPV_TASK(id, 3);
    snprintf(b->text, sizeof b->text, "reason of %" PRIu32, id);
    b->least = b->most = -1;
    return b;
}

struct gpv_now_finding *add_finding(struct gpv_snapshot *s, uint32_t kind, int64_t first,
                                    const char *what)
{
    struct gpv_now_finding *f = gpv_now_finding(s);
    T_CHECK(f);
    f->kind = kind;
    f->outcome = GPV_CRASHED;
    f->first = f->last = first;
    snprintf(f->what, sizeof f->what, "%s", what);
    snprintf(f->text, sizeof f->text, "its text");
    snprintf(f->command, sizeof f->command, "gpudispatch gpus");
    return f;
}

void begin(struct gpv_snapshot *s, struct gpv_top_state *t, int columns, int lines)
{
    *s = (struct gpv_snapshot){ .time = NOW, .since = 1, .least = -1, .most = -1 };
    snprintf(s->host, sizeof s->host, "box");
    gpv_top_init(t, columns, lines, false);
    t->live = true;
    t->now = NOW;
}

char *text_of(const struct gpv_top_state *t, const struct gpv_snapshot *s)
{
    struct gpv_screen screen;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    T_CHECK(f);
    T_EQ(gpv_top_draw(t, s, &screen), 0);
    gpv_screen_print(&screen, f);
    T_EQ(fclose(f), 0);
    gpv_screen_free(&screen);
    return text;
}

void check_has(const struct gpv_top_state *t, const struct gpv_snapshot *s, const char *part,
               bool has)
{
    char *text = text_of(t, s);
    if ((strstr(text, part) != NULL) != has)
        T_FAIL("%s '%s' in:\n%s", has ? "no" : "there is", part, text);
    free(text);
}

size_t lines_with(const struct gpv_top_state *t, const struct gpv_snapshot *s, const char *part)
{
    char *text = text_of(t, s);
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        n++;
    free(text);
    return n;
}

uint64_t key(struct gpv_top_state *t, const struct gpv_snapshot *s, uint32_t k, enum gpv_wish wish)
{
    uint64_t task;
    T_EQ(gpv_top_key(t, s, k, &task), wish);
    return task;
}

void fill(struct gpv_snapshot *s, struct gpv_top_state *t)
{
    begin(s, t, 80, 24);
    for (int i = 0; i < 3; i++)
        (void)add_gpu(s, i == 1 ? GPV_DOES_IDLE : GPV_DOES_RUN, "whisper");
    add_batch(s, 12, "night")->ready = 3;
    add_batch(s, 15, "rec-11")->ready = 90;
    (void)add_finding(s, GPV_FINDING_OUT, NOW, "GPU 5 QUARANTINED");
}
