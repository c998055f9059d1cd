/* SPDX-License-Identifier: MIT */
/*
 * collect.c - from what workers write to outcomes.  A frame or word that no honest worker
 * writes retires the worker (C17).
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "host/dispatcher.h"

#define READ_FRAMES 64
#define LOG_ROUNDS 4 /* of 16 lines, at a look */

static void retire(gpud_dispatcher *d, struct gpi_slot *s, const char *why)
{
    if (s->kill != GPI_KILL_NO)
        return;
    d->count.protocol_errors++;
    gpi_log(d, GPUD_LEVEL_ERROR, s->index, "worker %d broke the protocol (%s); it is killed and replaced", s->pid, why);
    gpi_slot_kill(d, s, GPI_KILL_PROTOCOL);
}

/* ---- results ---- */

static bool granule_held(const struct gpi_slot *s, uint64_t i)
{
    return s->hold[i / 64] >> i % 64 & 1;
}

static uint64_t granules(uint64_t size)
{
    return (size + GPI_GRANULE - 1) / GPI_GRANULE;
}

static void account(gpud_dispatcher *d, struct gpi_slot *s, uint64_t at, uint64_t n, bool hold)
{
    for (uint64_t i = at; i < at + n; i++)
        s->hold[i / 64] ^= 1ull << i % 64;
    s->held += hold ? n * GPI_GRANULE : -(n * GPI_GRANULE);
    d->count.result_used += hold ? n * GPI_GRANULE : -(n * GPI_GRANULE);
}

/* Gives granules of a slot's result arena back to its worker. */
void gpi_result_release(gpud_dispatcher *d, uint32_t slot, uint64_t off, uint64_t size)
{
    struct gpi_slot *s = &d->slot[slot];
    uint64_t at = off / GPI_GRANULE, n = granules(size);

    account(d, s, at, n, false);
    for (uint64_t i = at; i < at + n; i++)
        atomic_fetch_add_explicit(&s->ch.page->granule[i].freed, 1, memory_order_release);
}

/* There is no worker: what it had taken and never told of is free; what we hold stays taken. */
void gpi_results_settle(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t most = d->set.result_size / GPI_GRANULE, n = atomic_load(&s->ch.page->granules_used);

    for (uint64_t i = 0; i < n && i < most; i++) {
        struct gpi_granule *g = &s->ch.page->granule[i];
        uint32_t freed = atomic_load_explicit(&g->freed, memory_order_relaxed), used = freed + granule_held(s, i);
        if (atomic_load_explicit(&g->used, memory_order_relaxed) != used)
            atomic_store_explicit(&g->used, used, memory_order_relaxed);
    }
}

/* Takes charge of a result in the arena; false when part of it is already ours. */
static bool hold_result(gpud_dispatcher *d, struct gpi_slot *s, uint64_t off, uint64_t size)
{
    uint64_t at = off / GPI_GRANULE, n = granules(size);

    for (uint64_t i = at; i < at + n; i++)
        if (granule_held(s, i))
            return false;
    account(d, s, at, n, true);
    if (n * GPI_GRANULE > s->largest_result)
        s->largest_result = n * GPI_GRANULE;
    else
        s->largest_result -= (s->largest_result - n * GPI_GRANULE) / 16;
    return true;
}

static bool keep_result(gpud_dispatcher *d, struct gpi_slot *s, struct gpi_task *t, uint32_t cell, const struct gpi_ending *e)
{
    const unsigned char *from = s->ch.page->extra[cell].result;
    int fresh;

    if (e->result_size == 0)
        return true;
    if (e->result_place == GPI_PLACE_ARENA) {
        if (!hold_result(d, s, e->result_off, e->result_size))
            return false;
        t->result_place = GPI_RESULT_ARENA;
        t->result_off = e->result_off;
    } else if (e->result_size <= GPI_OWN_SIZE && !t->has_block) {
        t->result_place = GPI_RESULT_OWN; /* its data has been read */
        t->result_off = t->data_off;
        memcpy(d->input + t->result_off, from, e->result_size);
    } else {
        t->result_place = GPI_RESULT_POOL;
        t->result_off = gpi_chunks_alloc(&d->pool_chunks, e->result_size, &fresh); /* sized so that it cannot fail */
        memcpy(d->pool + t->result_off, from, e->result_size);
    }
    t->size = e->result_size;
    return true;
}

/* ---- one ended attempt ---- */

static void learn(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_task *t)
{
    uint64_t run = t->ended_at - t->started_at;

    s->mean_run = s->mean_run ? s->mean_run - s->mean_run / 8 + run / 8 : run;
    if (s->mean_run == 0)
        s->mean_run = 1;
    d->mean_run = d->mean_run ? d->mean_run - d->mean_run / 32 + run / 32 : run;
    s->last_duration = run;
    s->work_time += run;
    if (!d->first_start || t->started_at < d->first_start)
        d->first_start = t->started_at;
    gpi_hist_add(&d->queue_wait, t->started_at - t->queued_at);
    gpi_hist_add(&d->run, run);
    gpi_hist_add(&d->overhead, d->now > t->ended_at ? d->now - t->ended_at : 0);
}

static void end_attempt(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, const struct gpi_ending *e)
{
    struct gpi_task *t = &d->task[s->cell_task[cell]];
    const struct gpi_attempt a = {
        .started_at = e->started_at,
        .ended_at = e->ended_at,
        .stopped = e->stopped,
        .limit = t->limit,
        .cancelled_at = s->cancel_number == s->cell_number[cell] ? s->cancel_at : GPI_NEVER,
        .failed = e->end == GPI_END_FAILED,
        .expired = e->expired,
    };
    uint32_t outcome = gpi_verdict(&a);
    int32_t code = outcome == GPUD_OUTCOME_ERROR ? e->code : 0;

    if (atomic_load_explicit(&s->ch.page->progress_pending, memory_order_relaxed) >> cell & 1)
        atomic_fetch_and(&s->ch.page->progress_pending, ~(1ull << cell)); /* or the cell's next task is credited with it */
    s->inflight &= ~(1ull << cell);
    s->sent--;
    t->started_at = e->started_at;
    t->ended_at = e->ended_at;
    t->attempts++;
    learn(d, s, t);
    if (!keep_result(d, s, t, cell, e)) {
        retire(d, s, "a result on top of another");
        outcome = GPUD_OUTCOME_ERROR;
        code = GPUD_EPROTOCOL;
    }
    if (e->has_text || t->detail) {
        struct gpi_detail *det = gpi_task_detail(t, 0); /* the ends of former attempts stay as words only */
        if (det && e->has_text)
            gpi_page_text(det->text, s->ch.page->extra[cell].fail_text, sizeof det->text);
    }
    if (outcome == GPUD_OUTCOME_TIMEOUT)
        code = GPUD_ETIMEOUT;
    else if (outcome == GPUD_OUTCOME_CANCELLED)
        code = GPUD_ECANCELLED;
    gpi_task_end(d, t, outcome, GPUD_PHASE_PROCESS, code);
    gpi_restart_good(&s->restart);
}

/* Cells were last written by another CPU, and records are many: both come slowly. */
static void prefetch_ahead(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t cell)
{
    const char *record = (const char *)&d->task[s->cell_task[cell]];

    gpi_prefetch(&s->ch.page->cell[cell].end);
    gpi_prefetch(record);
    gpi_prefetch(record + 64);
}

/* Looks at the cells, oldest first, up to the first that has not ended: a worker ends its tasks
 * in the order they were sent. */
void gpi_collect(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint32_t before = s->sent;

    for (; s->sent > 0 && s->oldest <= s->number; s->oldest++) {
        uint32_t cell = s->order[s->oldest % GPI_CELLS];
        struct gpi_ending e;
        enum gpi_look look;
        prefetch_ahead(d, s, s->order[(s->oldest + 4) % GPI_CELLS]);
        if (s->cell_number[cell] != s->oldest || !(s->inflight >> cell & 1))
            continue; /* recalled or cancelled */
        look = gpi_cell_look(&s->ch.page->cell[cell], s->oldest, d->task[s->cell_task[cell]].sent_at, d->now, d->set.result_size, &e);
        if (look == GPI_LOOK_ENDED)
            end_attempt(d, s, cell, &e);
        else if (look == GPI_LOOK_BAD)
            retire(d, s, "an end record that cannot be");
        if (look != GPI_LOOK_ENDED)
            break;
    }
    if (s->sent == before)
        return;
    s->last_heard = d->now;
    if (s->sent == 0) {
        s->peek_at = GPI_NEVER;
        if (s->state == GPUD_SLOT_BUSY)
            gpi_slot_enter(d, s, GPUD_SLOT_READY);
    } else if (s->sent >= 2) {
        s->peek_at = d->now + GPI_MS;
        gpi_slot_timer(d, s);
    }
}

/* Tasks end in the order they were sent.  One that has not, with an ended one behind it, was
 * spoilt in the page and will never end; nor will one that the worker is not told of. */
void gpi_look_for_disorder(gpud_dispatcher *d, struct gpi_slot *s)
{
    bool open = false;

    if (s->sent && atomic_load(&s->ch.page->sent_number) != s->number) {
        retire(d, s, "another send number than was stored");
        return;
    }
    for (uint64_t n = s->oldest; s->sent && n <= s->number; n++) {
        uint32_t cell = s->order[n % GPI_CELLS];
        bool ended;
        if (s->cell_number[cell] != n || !(s->inflight >> cell & 1))
            continue;
        if (atomic_load(&s->ch.page->order[n % GPI_CELLS]) != cell) {
            retire(d, s, "another order than was stored");
            return;
        }
        ended = atomic_load(&s->ch.page->cell[cell].end) >> 8 == n;
        if (ended && open) {
            retire(d, s, "an end before that of the task before");
            return;
        }
        open |= !ended;
    }
}

/* After a death: whatever has ended, whether or not what was sent before it has. */
static void collect_rest(gpud_dispatcher *d, struct gpi_slot *s)
{
    for (uint64_t left = s->inflight; left; left &= left - 1) {
        uint32_t cell = gpi_lowest_bit(left);
        struct gpi_ending e;
        if (gpi_cell_look(&s->ch.page->cell[cell], s->cell_number[cell], d->task[s->cell_task[cell]].sent_at, d->now,
                          d->set.result_size, &e) == GPI_LOOK_ENDED)
            end_attempt(d, s, cell, &e);
    }
}

bool gpi_collect_all(gpud_dispatcher *d)
{
    uint32_t before = d->unended;

    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slot[i].sent)
            gpi_collect(d, &d->slot[i]);
    return d->unended != before;
}

bool gpi_go_to_sleep(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slot[i].sent)
            atomic_store_explicit(&d->slot[i].ch.page->host_sleeps, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* our stores before the looks; see page.h */
    return !gpi_collect_all(d);
}

void gpi_wake_up(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slot[i].sent && atomic_load_explicit(&d->slot[i].ch.page->host_sleeps, memory_order_relaxed))
            atomic_store_explicit(&d->slot[i].ch.page->host_sleeps, 0, memory_order_relaxed);
}

/* ---- news ---- */

static void read_progress(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t pending = atomic_exchange(&s->ch.page->progress_pending, 0);

    for (uint64_t left = pending & s->inflight; left; left &= left - 1) {
        uint32_t cell = gpi_lowest_bit(left);
        const struct gpi_task *t = &d->task[s->cell_task[cell]];
        struct gpi_note *n;
        if (!gpi_cell_progress(&s->ch.page->extra[cell], &s->progress, s->progress_text))
            continue;
        s->last_progress_task = t->id;
        n = gpi_note_new(d, GPUD_EVENT_PROGRESS, true);
        if (!n)
            continue;
        n->slot = s->index;
        n->incarnation = s->incarnation;
        n->task_id = t->id;
        n->tag = t->tag;
        n->progress = s->progress;
        memcpy(n->text, s->progress_text, sizeof s->progress_text);
        if (t->has_label)
            memcpy(n->label, d->input + t->data_off - GPI_LABEL_SIZE, GPI_LABEL_SIZE);
        gpi_note_push(d, n);
    }
}

static void read_log(gpud_dispatcher *d, struct gpi_slot *s)
{
    struct gpi_page *p = s->ch.page;
    uint32_t at = atomic_load(&p->log_read), written, rounds = 0;

    s->more_log = false;
    while ((written = atomic_load(&p->log_written)) != at) {
        if (rounds++ == LOG_ROUNDS) {
            s->more_log = true; /* a worker that writes as fast as we read must not keep us here */
            s->peek_at = gpi_time_min(s->peek_at, d->now + GPI_MS);
            gpi_slot_timer(d, s);
            return;
        }
        if (written - at > GPI_LOG_LINES)
            at = written - GPI_LOG_LINES; /* a counter that cannot be: show what is there */
        for (; at != written; at++) {
            char text[GPI_LOG_TEXT_SIZE];
            uint32_t level = p->log[at % GPI_LOG_LINES].level;
            gpi_page_text(text, p->log[at % GPI_LOG_LINES].text, sizeof text);
            gpi_log(d, level >= 1 && level < GPUD_LEVEL_COUNT ? level : GPUD_LEVEL_INFO, s->index, "%s", text);
        }
        atomic_store(&p->log_read, at);
    }
}

void gpi_read_more_log(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (s->more_log)
        read_log(d, s);
}

static void read_news(gpud_dispatcher *d, struct gpi_slot *s, uint32_t news)
{
    if (news & GPI_NEWS_SETUP && s->state == GPUD_SLOT_STARTING && atomic_load(&s->ch.page->setup_done) == 1)
        gpi_slot_ready(d, s);
    if (news & GPI_NEWS_PROGRESS)
        read_progress(d, s);
    if (news & GPI_NEWS_LOG)
        read_log(d, s);
}

/* ---- pipes ---- */

/* Reads once; true when there may be more. */
static bool read_looks(gpud_dispatcher *d, struct gpi_slot *s)
{
    struct gpi_frame f[READ_FRAMES];
    ssize_t r = read(s->ch.looks, f, sizeof f);
    uint32_t news = 0;

    if (r == 0)
        gpi_drive_close(d, &s->ch.looks); /* the keeper died too; a pipe at its end would keep waking us */
    if (r <= 0)
        return r < 0 && errno == EINTR;
    if (r % (ssize_t)sizeof f[0])
        retire(d, s, "a piece of a frame");
    for (size_t i = 0; i < (size_t)r / sizeof f[0]; i++) {
        if (!gpi_look_valid(&f[i]))
            retire(d, s, "a bad frame");
        else if (f[i].incarnation != s->incarnation)
            d->count.late_dropped++;
        else
            news |= f[i].what;
    }
    if (news & ~GPI_NEWS_ENDED)
        read_news(d, s, news);
    if (news & GPI_NEWS_ENDED)
        gpi_collect(d, s);
    return r == (ssize_t)sizeof f;
}

void gpi_on_looks(gpud_dispatcher *d, struct gpi_slot *s)
{
    while (read_looks(d, s))
        ;
}

/* Keeps the last bytes of what the worker writes; false when there was nothing. */
bool gpi_on_output(gpud_dispatcher *d, struct gpi_slot *s)
{
    char buffer[16384];
    ssize_t r = read(s->ch.output, buffer, sizeof buffer);

    if (r == 0)
        gpi_drive_close(d, &s->ch.output);
    for (ssize_t i = r > (ssize_t)GPI_TAIL_SIZE ? r - (ssize_t)GPI_TAIL_SIZE : 0; i < r; i++) {
        s->tail[s->tail_at] = buffer[i];
        s->tail_at = (s->tail_at + 1) % GPI_TAIL_SIZE;
        s->tail_size += s->tail_size < GPI_TAIL_SIZE;
    }
    return r > 0;
}

/* After a death, before judging: everything the worker has said and written.  Until EAGAIN,
 * never until the end: its keeper holds the other ends. */
void gpi_drain(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_on_looks(d, s);
    for (int rounds = 0; rounds < 64 && gpi_on_output(d, s); rounds++)
        ; /* 1 MiB: a pipe holds no more */
    gpi_collect(d, s); /* the truth is in the cells */
    collect_rest(d, s);
}
