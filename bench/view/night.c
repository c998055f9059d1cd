/* SPDX-License-Identifier: MIT */
#include "night.h"

#include <errno.h>
#include <string.h>

#include "../report.h"
#include "view/line.h"
#include "view/words.h"

#define SECOND INT64_C(1000000000)
#define BEGIN (INT64_C(1795900000) * SECOND)
#define SPAN (36000 * SECOND)
#define FULL (1 << 20) /* bytes of lines that are written at once */

static const char *const class_names[BV_CLASSES] = { "whisper", "judge", "shell" };

/* How an attempt ends: the first of them is ok. */
enum { ENDS = 4 };
static const struct {
    const char *word, *text;
    int status;
} ends[ENDS] = { { "ok", "", 0 },
                 { "crashed", "killed by signal 11 (SIGSEGV): frame header of clip-%06u", -11 },
                 { "error", "exit status 1: KeyError: 'clip-%06u'", 1 },
                 { "timeout", "exceeded its time limit of 600.000 s (limit) with clip-%06u", -9 } };

struct made {
    FILE *f;
    struct gpv_lines lines;
    uint64_t seed;
    int64_t step;               /* mean time of an attempt */
    int64_t free_at[BV_GPUS];   /* when the attempt of a GPU ends */
    unsigned class_of[BV_GPUS]; /* of its worker */
    uint32_t left;              /* attempts to write */
};

/* A number from 0 to n - 1. */
static uint32_t draw(struct made *m, uint32_t n)
{
    m->seed = m->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)((m->seed >> 33) % n);
}

static void flush(struct made *m, size_t least)
{
    if (m->lines.size < least)
        return;
    (void)fwrite(m->lines.text, 1, m->lines.size, m->f);
    m->lines.size = 0;
}

static const char *gpu_name(unsigned gpu, char ret[16])
{
    (void)snprintf(ret, 16, "gpu:%u", gpu);
    return ret;
}

/* ---- Lists ---- */

static void write_lists(struct made *m)
{
    struct gpv_lines *l = &m->lines;
    char text[64];

    gpv_line_begin(l, "records");
    gpv_line_number(l, GPV_LINES_VERSION);
    gpv_line_text(l, "bench");
    gpv_line_end(l);
    for (unsigned i = 0; i < BV_GPUS; i++) {
        gpv_line_begin(l, "gpu");
        gpv_line_text(l, gpu_name(i, text));
        gpv_line_text(l, NULL);
        gpv_line_number(l, i);
        gpv_line_text(l, "NVIDIA H200");
        gpv_line_end(l);
    }
    for (unsigned i = 0; i < BV_CLASSES; i++) {
        gpv_line_begin(l, "class");
        gpv_line_text(l, class_names[i]);
        gpv_line_end(l);
        gpv_line_begin(l, "shape");
        gpv_line_number(l, i + 1);
        gpv_line_text(l, class_names[i]);
        gpv_line_number(l, 1);
        gpv_line_text(l, "1 GPU");
        gpv_line_end(l);
    }
}

static void write_span(struct made *m, const char *kind, const char *subject, const char *word,
                       const char *class, int64_t since, int64_t until, const char *text)
{
    struct gpv_lines *l = &m->lines;

    gpv_line_begin(l, kind);
    if (subject)
        gpv_line_text(l, subject);
    gpv_line_text(l, word);
    if (class)
        gpv_line_text(l, class);
    gpv_line_time(l, (uint64_t)since);
    gpv_line_time(l, (uint64_t)until);
    gpv_line_text(l, text);
    gpv_line_end(l);
}

/* ---- Attempts ---- */

static unsigned first_free(const struct made *m)
{
    unsigned first = 0;

    for (unsigned i = 1; i < BV_GPUS; i++)
        if (m->free_at[i] < m->free_at[first])
            first = i;
    return first;
}

/* The worker of another class leaves, and one of this class loads. */
static void change_class(struct made *m, unsigned gpu, unsigned class)
{
    const char *before = class_names[m->class_of[gpu]];
    const int64_t at = m->free_at[gpu], loads = at + SECOND, ready = at + 31 * SECOND;
    char name[16], text[64];

    if (m->class_of[gpu] == class)
        return;
    (void)snprintf(text, sizeof text, "evicted for %s", class_names[class]);
    write_span(m, "tenancy", gpu_name(gpu, name), "unload", before, at, loads, text);
    write_span(m, "tenancy", name, "boot", class_names[class], loads, ready, "first use");
    m->class_of[gpu] = class;
    m->free_at[gpu] = ready;
}

/* An attempt of a task that is ready since *ready, which becomes its end.  Returns how it ends. */
static unsigned write_attempt(struct made *m, uint64_t task, uint32_t number, unsigned class,
                              int64_t *ready)
{
    const unsigned gpu = first_free(m), end = draw(m, 50) == 0 ? 1 + draw(m, ENDS - 1) : 0;
    struct gpv_lines *l = &m->lines;
    char text[96];

    change_class(m, gpu, class);
    gpv_line_begin(l, "attempt");
    gpv_line_task(l, task);
    gpv_line_number(l, number);
    gpv_line_number(l, class + 1);
    gpv_line_text(l, gpu_name(gpu, text));
    gpv_line_time(l, (uint64_t)*ready);
    gpv_line_time(l, (uint64_t)m->free_at[gpu]);
    *ready = m->free_at[gpu] += m->step / 2 + m->step * draw(m, 1000) / 1000;
    gpv_line_time(l, (uint64_t)*ready);
    gpv_line_text(l, ends[end].word);
    gpv_line_number(l, ends[end].status);
    (void)snprintf(text, sizeof text, ends[end].text, GPV_NUMBER_OF(task));
    gpv_line_text(l, text);
    (void)snprintf(text, sizeof text, "python transcribe.py part-%u/clip-%06u.wav",
                   GPV_BATCH_OF(task), GPV_NUMBER_OF(task));
    gpv_line_text(l, text);
    gpv_line_end(l);
    flush(m, FULL);
    m->left--;
    return end;
}

/* ---- Batches ---- */

static void write_ends(struct made *m, const uint32_t ended[ENDS])
{
    char text[ENDS * 24];
    int n = 0;

    for (unsigned i = 0; i < ENDS; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%s=%u", i ? "," : "", ends[i].word,
                      ended[i]);
    gpv_line_text(&m->lines, text);
}

static void write_batch_row(struct made *m, uint32_t batch, unsigned class, int64_t made,
                            int64_t ended, uint32_t tasks, const uint32_t ended_by[ENDS])
{
    struct gpv_lines *l = &m->lines;

    gpv_line_begin(l, "batch");
    gpv_line_number(l, batch);
    gpv_line_text(l, class_names[class]);
    gpv_line_time(l, (uint64_t)made);
    gpv_line_time(l, (uint64_t)ended);
    gpv_line_number(l, 1);  /* priority */
    gpv_line_text(l, NULL); /* flags */
    gpv_line_number(l, tasks);
    for (int i = 0; i < 4; i++)
        gpv_line_number(l, 0); /* joined, held, ready, running */
    write_ends(m, ended_by);
    gpv_line_number(l, 0); /* its first waiting task, and the shape of that */
    gpv_line_text(l, NULL);
    gpv_line_end(l);
}

static void write_batch(struct made *m, uint32_t batch, uint32_t attempts)
{
    const unsigned class = batch % BV_CLASSES;
    const int64_t made = m->free_at[first_free(m)];
    uint32_t tasks = 0, ended_by[ENDS] = { 0 };
    int64_t last = made;
    char first[GPV_WORD], shape[16];

    for (const uint32_t rest = m->left - attempts; m->left > rest;) {
        const uint64_t task = GPV_TASK(batch, ++tasks);
        int64_t ready = made;
        unsigned end = write_attempt(m, task, 1, class, &ready);
        if (end != 0 && tasks % 2 && m->left > rest)
            end = write_attempt(m, task, 2, class, &ready);
        ended_by[end]++;
        last = ready > last ? ready : last;
    }
    write_batch_row(m, batch, class, made, last, tasks, ended_by);
    (void)snprintf(shape, sizeof shape, "%u", class + 1);
    write_span(m, "reason", shape, gpv_task_id(GPV_TASK(batch, tasks), first), "BUSY", made, last,
               "every GPU that it may use is busy");
}

int bv_night_write(FILE *f, uint32_t attempts, uint32_t batches)
{
    struct made m = {
        .f = f, .seed = attempts, .left = attempts, .step = SPAN / attempts * BV_GPUS
    };
    int64_t last = 0;
    bool failed;

    for (unsigned i = 0; i < BV_GPUS; i++)
        m.free_at[i] = BEGIN + 30 * SECOND;
    write_lists(&m);
    write_span(&m, "life", NULL, "opened", NULL, BEGIN, 0, "");
    write_span(&m, "out", "gpu:5", "foreign", NULL, BEGIN + SPAN / 2, BEGIN + SPAN, "ben's python");
    for (uint32_t i = 1; i <= batches; i++)
        write_batch(&m, i, attempts / batches + (i <= attempts % batches));
    for (unsigned i = 0; i < BV_GPUS; i++)
        last = m.free_at[i] > last ? m.free_at[i] : last;
    gpv_line_begin(&m.lines, "now");
    gpv_line_time(&m.lines, (uint64_t)last);
    gpv_line_end(&m.lines);
    failed = m.lines.failed;
    flush(&m, 0);
    gpv_lines_free(&m.lines);
    if (failed)
        return b_complain("out of memory");
    return fflush(f) ? b_complain("the night is not written: %s", strerror(errno)) : 0;
}
