/* SPDX-License-Identifier: MIT */
/* tasks.c - the tasks of a decision log, and their attempts. */
#include <stdlib.h>
#include <string.h>

#include "view/line.h"
#include "view/read/parts.h"

/* ---- Tasks ---- */

static struct gpv_log_task *task_at(struct gpv_log *l, uint64_t task)
{
    struct gpv_log_task **chunk;

    if (task >= (uint64_t)GPV_LOG_CHUNKS * GPV_LOG_CHUNK) {
        l->strange = true;
        return NULL;
    }
    chunk = &l->chunk[task / GPV_LOG_CHUNK];
    if (!*chunk)
        *chunk = calloc(GPV_LOG_CHUNK, sizeof(**chunk));
    l->no_memory = l->no_memory || !*chunk;
    return *chunk ? &(*chunk)[task % GPV_LOG_CHUNK] : NULL;
}

/* The task of the line, which has begun and not ended; or NULL. */
static struct gpv_log_task *task_of_line(struct gpv_log *l)
{
    struct gpv_log_task *t;
    uint32_t task;

    if (!gpv_log_number(l, "t", GPV_NONE - 1, &task))
        return NULL;
    t = task_at(l, task);
    return t && t->used ? t : NULL;
}

/* Now nothing can follow about its last attempt.  A name stands with an attempt. */
static void add_row(struct gpv_log *l, struct gpv_log_task *t)
{
    const struct gpv_name name = { t->row.task, t->name };

    if (!t->has_row)
        return;
    gpv_log_added(l, gpv_add_attempt(l->night, &t->row));
    if (t->name != 0)
        gpv_log_added(l, gpv_add_name(l->night, &name));
    t->name = 0;
    t->has_row = false;
}

void gpv_log_task_fact(struct gpv_log *l, uint32_t task, struct gpv_word word, struct gpv_word text)
{
    struct gpv_log_task *t = task_at(l, task);
    uint32_t kept = t ? gpv_line_keep(l->night, text.at, text.size) : 0;

    l->no_memory = l->no_memory || kept == GPV_NONE;
    if (!t || l->no_memory)
        return;
    if (gpv_word_is(word, "label"))
        t->label = kept;
    else if (gpv_word_is(word, "end") && t->has_row)
        t->row.text = kept;
}

void gpv_log_submit(struct gpv_log *l)
{
    struct gpv_log_task *t;
    struct gpv_log_batch *b;
    uint32_t task, class = 0;
    struct gpv_word word;

    if (!gpv_log_number(l, "t", GPV_NONE - 1, &task) ||
        (gpv_word_of(&l->rest, "class", &word) &&
         !gpv_log_number(l, "class", GPV_LOG_CLASSES - 1, &class)))
        return;
    t = task_at(l, task);
    l->strange = l->strange || l->now == 0 || (t && t->used);
    b = t && !l->strange ? gpv_log_batch_of(l, class) : NULL;
    if (!b || b->row.total == INT32_MAX) {
        l->strange = true;
        return;
    }
    add_row(l, t);
    *t = (struct gpv_log_task){ .used = true,
                                .batch = b->row.id,
                                .number = ++b->row.total,
                                .name = t->label,
                                .slot = GPV_NONE,
                                .ready = l->now };
    t->shape = gpv_log_shape_of(l, class);
}

/* ---- Attempts ---- */

/* The task is with nobody, and may start anew. */
static void take_back(struct gpv_log_task *t)
{
    t->slot = GPV_NONE;
    t->granted = t->runs = false;
    t->set = 0;
    t->got = t->began = t->ended = 0;
}

void gpv_log_sent(struct gpv_log *l)
{
    struct gpv_log_task *t = task_of_line(l);
    struct gpv_log_slot *s;
    uint32_t slot;

    if (!gpv_log_number(l, "s", GPV_LOG_SLOTS - 1, &slot))
        return;
    s = gpv_log_slot_of(l, slot);
    if (!t || !s) {
        l->strange = true;
        return;
    }
    add_row(l, t);
    take_back(t);
    t->slot = slot;
    t->set = s->set;
    t->got = l->now;
    t->turn = ++l->turns;
}

void gpv_log_running(struct gpv_log *l)
{
    struct gpv_log_task *t = task_of_line(l);

    if (t)
        t->runs = true;
}

void gpv_log_came_back(struct gpv_log *l)
{
    struct gpv_log_task *t = task_of_line(l);

    if (t)
        take_back(t);
}

void gpv_log_grant(struct gpv_log *l)
{
    struct gpv_log_task *t = task_of_line(l);

    if (!t) {
        l->strange = true;
        return;
    }
    add_row(l, t);
    take_back(t);
    t->granted = true;
    t->got = l->now;
}

void gpv_log_grant_on(struct gpv_log *l)
{
    struct gpv_log_task *t = task_of_line(l);
    uint32_t device;

    if (t && gpv_log_number(l, "d", GPV_LOG_DEVICES - 1, &device))
        gpv_log_join(l, &t->set, device);
}

void gpv_log_declined(struct gpv_log *l)
{
    gpv_log_came_back(l);
}

void gpv_log_revoke(struct gpv_log *l)
{
    if (gpv_log_says(l, "how", "back"))
        gpv_log_came_back(l);
}

void gpv_log_started(struct gpv_log *l)
{
    struct gpv_log_task *t = task_of_line(l);

    if (t) {
        t->began = gpv_log_time(l, "at");
        t->runs = true;
    }
}

/* External work that has had its outcome may end later: that is no task any more. */
void gpv_log_ended(struct gpv_log *l)
{
    struct gpv_log_task *t = task_of_line(l);

    if (t)
        t->ended = gpv_log_time(l, "at");
}

/* "adopt t=3 d=0,1 at=20ms": it runs already. */
void gpv_log_adopt(struct gpv_log *l)
{
    struct gpv_log_task *t = task_of_line(l);
    struct gpv_word list;

    if (!t)
        return;
    take_back(t);
    t->granted = t->runs = true;
    t->got = t->began = gpv_log_time(l, "at");
    if (gpv_word_of(&l->rest, "d", &list))
        gpv_log_join_all(l, &t->set, list);
}

/* "end t=3 outcome=ERROR phase=PROCESS run=1ms"; its outcome follows. */
void gpv_log_run(struct gpv_log *l)
{
    struct gpv_log_task *t = task_of_line(l);
    struct gpv_word word;
    int64_t run = 0;

    if (!t) {
        l->strange = true;
        return;
    }
    if (gpv_word_of(&l->rest, "run", &word))
        l->strange = !gpv_word_time(word, &run);
    t->began = l->now - run > t->got ? l->now - run : t->got;
    t->runs = true;
}

/* Its worker died, or was killed: it had begun the task when it got it, or after the one before. */
static int64_t began_of(struct gpv_log *l, const struct gpv_log_task *t)
{
    int64_t began = t->began != 0 ? t->began : t->got, free = 0;

    if (t->began == 0 && t->slot != GPV_NONE)
        free = l->slots.row[t->slot].free;
    began = began > free ? began : free;
    return began != 0 ? began : l->now;
}

static uint32_t outcome_of(struct gpv_log *l, struct gpv_word word)
{
    static const struct {
        const char *word;
        uint32_t outcome;
    } outcomes[] = { { "SUCCESS", GPV_OK },          { "ERROR", GPV_ERROR },
                     { "TIMEOUT", GPV_TIMEOUT },     { "CRASHED", GPV_CRASHED },
                     { "CANCELLED", GPV_CANCELLED }, { "NO_WORKER", GPV_NO_WORKER } };

    for (size_t i = 0; i < sizeof(outcomes) / sizeof(*outcomes); i++)
        if (gpv_word_is(word, outcomes[i].word))
            return outcomes[i].outcome;
    l->strange = true;
    return GPV_LOST;
}

static struct gpv_attempt row_of(struct gpv_log *l, const struct gpv_log_task *t, uint32_t outcome,
                                 bool started)
{
    struct gpv_attempt row = { .task = GPV_TASK(t->batch, t->number),
                               .ready = t->ready,
                               .ended = l->now,
                               .outcome = (uint8_t)outcome,
                               .shape = t->shape < GPV_NONE16 ? (uint16_t)t->shape : GPV_NONE16 };

    if (!started)
        return row;
    row.number = t->attempts + 1;
    row.set = t->set;
    row.started = began_of(l, t);
    row.ended = outcome == GPV_RUNNING ? 0 : t->ended != 0 ? t->ended : l->now;
    if (row.ended != 0 && row.ended < row.started)
        row.ended = row.started;
    row.ready = row.ready > row.started ? row.started : row.ready;
    return row;
}

static void end_task(struct gpv_log *l, struct gpv_log_task *t, uint32_t outcome)
{
    struct gpv_log_batch *b = &l->batches.row[t->batch - 1];

    b->row.ended_by[outcome]++;
    b->last = t->row.ended > b->last ? t->row.ended : b->last;
    t->used = false;
}

/* "task 3 ERROR PROCESS attempts=1 why=limit again" */
void gpv_log_task(struct gpv_log *l)
{
    struct gpv_word number = gpv_word_next(&l->rest), word, why;
    struct gpv_log_task *t;
    uint32_t outcome;
    uint64_t task, number_of;
    bool started, again = false;

    l->strange = !gpv_word_number(number, GPV_NONE - 1, &task);
    t = l->strange ? NULL : task_at(l, task);
    outcome = outcome_of(l, gpv_word_next(&l->rest));
    started = !gpv_word_is(gpv_word_next(&l->rest), "QUEUED");
    if (!t || !t->used || l->strange) {
        l->strange = true;
        return;
    }
    add_row(l, t);
    if (started && gpv_word_of(&l->rest, "attempts", &word) &&
        gpv_word_number(word, UINT8_MAX, &number_of) && number_of > 0)
        t->attempts = (uint32_t)number_of - 1; /* adopted work has had some before */
    t->row = row_of(l, t, outcome, started);
    t->has_row = true;
    if (gpv_word_of(&l->rest, "why", &why)) /* until a comment has more */
        t->row.text = gpv_line_keep(l->night, why.at, why.size);
    l->no_memory = l->no_memory || t->row.text == GPV_NONE;
    while ((word = gpv_word_next(&l->rest)).size != 0)
        again = again || gpv_word_is(word, "again");
    if (started && t->slot != GPV_NONE)
        l->slots.row[t->slot].free = t->row.ended;
    t->attempts += started;
    take_back(t);
    t->ready = l->now;
    if (!again)
        end_task(l, t, outcome);
}

/* ---- The end ---- */

typedef void (*task_fn)(struct gpv_log *l, struct gpv_log_task *t);

static void each_task(struct gpv_log *l, task_fn fn)
{
    for (size_t i = 0; i < GPV_LOG_CHUNKS; i++)
        for (size_t k = 0; l->chunk[i] && k < GPV_LOG_CHUNK && !l->no_memory; k++)
            fn(l, &l->chunk[i][k]);
}

/* Of the tasks that a worker has, the first one runs, and those that were seen. */
static void find_first(struct gpv_log *l, struct gpv_log_task *t)
{
    if (t->used && t->slot != GPV_NONE &&
        (l->slots.row[t->slot].runs == 0 || t->turn < l->slots.row[t->slot].runs))
        l->slots.row[t->slot].runs = t->turn;
}

static void end_open(struct gpv_log *l, struct gpv_log_task *t)
{
    struct gpv_batch *b;

    add_row(l, t);
    if (!t->used)
        return;
    b = &l->batches.row[t->batch - 1].row;
    if (t->slot != GPV_NONE)
        t->runs = t->runs || t->turn == l->slots.row[t->slot].runs;
    if (t->runs) {
        t->row = row_of(l, t, GPV_RUNNING, true);
        t->has_row = true;
        b->running++;
        add_row(l, t);
        return;
    }
    b->ready++;
    if (b->first == 0 || t->number < b->first) {
        b->first = t->number;
        b->shape = t->shape;
    }
}

void gpv_log_end_tasks(struct gpv_log *l)
{
    each_task(l, find_first);
    each_task(l, end_open);
    for (uint32_t i = 0; i < l->n_batches && !l->no_memory; i++) {
        struct gpv_batch *b = &l->batches.row[i].row;
        if (b->ready + b->running == 0)
            b->ended = l->batches.row[i].last;
        gpv_log_added(l, gpv_add_batch(l->night, b));
    }
}
