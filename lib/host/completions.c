/* SPDX-License-Identifier: MIT */
/*
 * completions.c - from the end records of workers to outcomes.  A frame or value that no honest
 * worker writes retires the worker (C17).
 */
#include <stdio.h>

#include "base/bits.h"
#include "base/clock.h"
#include "host/act.h"
#include "host/core.h"
#include "host/dispatcher.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"
#include "sched/verdict.h"

/* ---- one ended attempt ---- */

/* A batch member's cost is its share of the call; its latency is the whole call. */
static void learn(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_task *t,
                  const struct gpi_sched_attempt *a)
{
    s->last_duration = a->run;
    s->work_time += a->share;
    if (!d->stats.first_start || t->started_at < d->stats.first_start)
        d->stats.first_start = t->started_at;
    if (t->attempts == 1)
        gpi_hist_add(&d->stats.queue_wait, t->started_at - t->queued_at);
    gpi_hist_add(&d->stats.run, a->run);
    gpi_hist_add(&d->stats.overhead, d->now > t->ended_at ? d->now - t->ended_at : 0);
}

/* Writes the attempt's own text: the exceeded limit, then the text of its worker. */
static void own_words(const gpud_dispatcher *d, const struct gpi_slot *s, const struct gpi_task *t,
                      uint32_t cell, const struct gpi_ending *e, uint32_t outcome,
                      char text[GPI_WORDS_SIZE])
{
    const uint64_t limit_at = gpi_time_add(gpi_time_add(e->started_at, t->limit), e->stopped);
    char said[GPI_FAIL_TEXT_SIZE] = "", limit[94] = ""; /* both fit, with ": " */

    if (outcome == GPUD_OUTCOME_TIMEOUT)
        gpi_words_limit(d, t, e->stalled_at && e->stalled_at < limit_at, limit, sizeof limit);
    if (e->has_text)
        gpi_page_text(said, s->ch.page->extra[cell].fail_text, sizeof said);
    (void)snprintf(text, GPI_WORDS_SIZE, "%s%s%s", limit, *limit && *said ? ": " : "", said);
}

/* Describes an attempt that ended on its own, as one of several. */
static void describe_end(char *to, size_t size, uint32_t outcome, const struct gpi_ending *e,
                         const char *text)
{
    if (outcome == GPUD_OUTCOME_TIMEOUT)
        (void)snprintf(to, size, "%s", text);
    else if (outcome == GPUD_OUTCOME_CANCELLED)
        (void)snprintf(to, size, "cancelled%s%s", *text ? ": " : "", text);
    else if (*text)
        (void)snprintf(to, size, "failed with %d: %s", e->code, text);
    else
        gpi_words_value(e->has_text ? "failed with" : "process returned", e->code, to, size);
}

/* Of an attempt that only returned a value the log alone has a text. */
static void note_value(const gpud_dispatcher *d, uint32_t task, uint32_t outcome,
                       const struct gpi_ending *e)
{
    char how[GPI_WORDS_SIZE];

    if (!d->play)
        return;
    describe_end(how, sizeof how, outcome, e, "");
    gpi_core_note(d, "task", task, "end", how);
}

/* Keeps the text about the attempt's end, and with several attempts the texts of all of them.  An
 * attempt that only returned a value leaves no text here: see gpi_words_complete. */
static void add_words(gpud_dispatcher *d, const struct gpi_slot *s, struct gpi_task *t,
                      uint32_t cell, const struct gpi_ending *e, uint32_t outcome, bool again,
                      bool printed)
{
    struct gpi_detail *det;
    char how[GPI_WORDS_SIZE + 64];

    if (!e->has_text && !t->detail && !again && !printed && outcome != GPUD_OUTCOME_TIMEOUT) {
        note_value(d, s->cell_task[cell], outcome, e);
        return;
    }
    det = printed ? gpi_output_detail(s, t, cell, outcome) : gpi_task_detail(t, 0);
    if (!det)
        return;
    own_words(d, s, t, cell, e, outcome, det->text);
    if (outcome == GPUD_OUTCOME_SUCCESS)
        return;
    describe_end(how, sizeof how, outcome, e, det->text);
    gpi_attempt_words(d, t, how, again);
    if (printed && outcome == GPUD_OUTCOME_ERROR && !*det->text) /* now: it keeps the output */
        gpi_words_value(e->has_text ? "failed with" : "process returned", e->code, det->text,
                        sizeof det->text);
}

static int32_t code_of(uint32_t outcome, int32_t told)
{
    switch (outcome) {
    case GPUD_OUTCOME_ERROR:
        return told;
    case GPUD_OUTCOME_TIMEOUT:
        return GPUD_ETIMEOUT;
    case GPUD_OUTCOME_CANCELLED:
        return GPUD_ECANCELLED;
    default:
        return 0;
    }
}

/* Returns how the attempt ended: the end record in the page, judged by the limits. */
static inline uint32_t outcome_of(const struct gpi_slot *s, const struct gpi_task *t, uint32_t cell,
                                  const struct gpi_ending *e)
{
    const struct gpi_attempt a = {
        .started_at = e->started_at,
        .ended_at = e->ended_at,
        .stopped = e->stopped,
        .limit = t->limit,
        .stalled_at = e->stalled_at,
        .cancelled_at = s->cancelled >> cell & 1 ? s->cell_cancel_at[cell] : GPI_NEVER,
        .failed = e->end == GPI_END_FAILED,
        .expired = e->expired,
    };
    const uint32_t outcome = gpi_verdict(&a);
    const bool gave_way = s->told >> cell & 1 && outcome == GPUD_OUTCOME_ERROR &&
                          e->code == GPUD_ECANCELLED; /* so a task obeys a soft cancel */

    return gave_way ? (uint32_t)GPUD_OUTCOME_CANCELLED : outcome;
}

/* Performs the steps that most attempts do not need: text, output, another attempt, result. */
static void finish_attempt(gpud_dispatcher *d, struct gpi_slot *s, struct gpi_task *t,
                           uint32_t cell, struct gpi_ending e, const struct gpi_sched_attempt *a,
                           bool again, bool printed)
{
    if (a->outcome != GPUD_OUTCOME_SUCCESS || e.has_text || t->detail || printed)
        /* before the result overwrites the limit */
        add_words(d, s, t, cell, &e, a->outcome, again, printed);
    if (!a->final && (again || d->close.ending))
        gpi_result_drop(d, s, &e);
    else if (!a->final)
        gpi_result_keep(d, s, t, cell, &e);
}

static inline void end_attempt(gpud_dispatcher *d, struct gpi_slot *s, struct gpi_task *t,
                               uint32_t cell, struct gpi_ending e)
{
    const uint64_t run = e.ended_at - e.started_at;
    struct gpi_sched_attempt a = {
        .task = s->cell_task[cell],
        .outcome = outcome_of(s, t, cell, &e),
        .phase = GPUD_PHASE_PROCESS,
        .run = run,
        .share = e.batch > 1 ? run / e.batch : run, /* not == 1: compilers would always divide */
    };
    int32_t code = code_of(a.outcome, e.code);
    bool again, printed;

    if (e.result_place == GPI_PLACE_ARENA && gpi_result_overlaps(s, e.result_off, e.result_size)) {
        gpi_slot_retire(d, s, "a result overlaps another result");
        a.outcome = GPUD_OUTCOME_ERROR;
        code = GPUD_EPROTOCOL;
        a.final = true;
    }
    /* Without this the next task in the cell would be credited with the progress. */
    if (atomic_load_explicit(&s->ch.page->progress_pending, memory_order_relaxed) >> cell & 1)
        atomic_fetch_and(&s->ch.page->progress_pending, ~(1ull << cell));
    gpi_cell_empty(s, cell);
    s->claimed = true;
    d->ends++;
    t->started_at = e.started_at;
    t->ended_at = e.ended_at;
    t->attempts++;
    if (gpi_slot_class(d, s)->set.start_events)
        gpi_start_seen(d, s, cell, t->attempts, t->started_at);
    learn(d, s, t, &a);
    d->stats.count.batches += e.first;
    again = gpi_core_end(d, d->now, &a);
    printed = (s->out.read || s->out.prints) && gpi_output_ended(s, cell, a.outcome);
    if (a.outcome != GPUD_OUTCOME_SUCCESS || e.has_text || t->detail || printed || e.result_size)
        finish_attempt(d, s, t, cell, e, &a, again, printed);
    if (again)
        gpi_attempt_retry(d, t);
    else
        gpi_task_settle(d, t, a.outcome, GPUD_PHASE_PROCESS, code);
}

/* The worker reached the task too late and did not start it.  Returns false if the record is
 * invalid. */
static bool end_expired(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell,
                        const struct gpi_ending *e)
{
    struct gpi_task *t = &d->task[s->cell_task[cell]];

    const struct gpi_sched_attempt a = { .task = s->cell_task[cell],
                                         .outcome = GPUD_OUTCOME_TIMEOUT,
                                         .phase = GPUD_PHASE_QUEUED };

    if (e->started_at < gpi_task_expires(d, t))
        return false;
    gpi_cell_empty(s, cell);
    d->ends++;
    (void)gpi_core_end(d, d->now, &a);
    gpi_task_end(d, t, GPUD_OUTCOME_TIMEOUT, GPUD_PHASE_QUEUED, GPUD_ETIMEOUT);
    return true;
}

/* Reads when the task reached its stall limit.  Returns false if the value is invalid. */
static bool read_stall(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, struct gpi_ending *e)
{
    return gpi_cell_stalled(&s->ch.page->extra[cell], d->stall_limit[s->cell_task[cell]], e);
}

/* ---- the short way ---- */

#if defined(__SANITIZE_ADDRESS__) /* the suites run under it: they test both ways */
#define HAS_SHORT_WAY false
#else
#define HAS_SHORT_WAY true
#endif

/* Returns true if the ends of the slot's tasks may take the short way. */
static bool goes_short(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return HAS_SHORT_WAY && !s->told && !s->out.read && !s->out.prints && !d->close.ending &&
           !atomic_load_explicit(&s->ch.page->progress_pending, memory_order_relaxed);
}

/* Of tasks that ended in a row, each fourth stands for four in the histograms. */
#define SAMPLE 4u

/* Sums over the tasks whose ends took the short way. */
struct sum {
    uint64_t tasks, cost, work, first_start, cells;
    const struct gpi_task *last;
    uint32_t unsampled;
};

/* Adds the task's times to the histograms, for `n` tasks. */
static inline void sample(gpud_dispatcher *d, const struct gpi_task *t, uint32_t n)
{
    gpi_hist_add_many(&d->stats.queue_wait, t->started_at - t->queued_at, n);
    gpi_hist_add_many(&d->stats.run, t->ended_at - t->started_at, n);
    gpi_hist_add_many(&d->stats.overhead, d->now - t->ended_at, n);
}

/* Takes the end of a plain task that ended as most do.  Returns false if the long way must
 * decide. */
static inline bool end_plainly(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell,
                               struct sum *sum)
{
    const uint32_t index = s->cell_task[cell];
    const struct gpi_cell *c = &s->ch.page->cell[cell];
    struct gpi_task *t = &d->task[index];
    uint64_t started, ended, run;

    if (t->plain != GPI_PLAIN || !gpi_cell_ended_plainly(c, s->cell_number[cell]))
        return false;
    started = atomic_load_explicit(&c->started_at, memory_order_relaxed);
    ended = *(const volatile uint64_t *)&c->ended_at;
    run = ended - started;
    if (ended > d->now) /* the task ended after the turn had begun */
        d->now = gpi_now();
    if (started < t->sent_at || ended < started || ended > d->now || run >= t->limit)
        return false;
    gpi_cell_empty(s, cell);
    t->started_at = started;
    t->ended_at = ended;
    t->attempts = 1;
    t->state = GPI_TASK_ENDED;
    t->plain = GPI_PLAIN_ENDED;
    t->outcome = GPUD_OUTCOME_SUCCESS;
    t->phase = GPUD_PHASE_PROCESS;
    t->size = 0;
    if (sum->tasks++ == 0)
        sum->first_start = started;
    sum->cost += t->cost;
    sum->work += run;
    sum->last = t;
    sum->cells |= 1ull << cell;
    if (++sum->unsampled == SAMPLE) {
        sample(d, t, SAMPLE);
        sum->unsampled = 0;
    }
    gpi_core_success(d, d->now, index, run);
    gpi_event_append(d, index);
    return true;
}

static void count_plain(gpud_dispatcher *d, struct gpi_slot *s, const struct sum *sum)
{
    _Atomic uint64_t *pending = &s->ch.page->progress_pending;

    if (atomic_load_explicit(pending, memory_order_relaxed) & sum->cells)
        atomic_fetch_and(pending, ~sum->cells); /* else the next tasks there have this progress */
    d->ends += sum->tasks;
    d->stats.ran += sum->tasks;
    d->stats.count.success += sum->tasks;
    s->outcomes[GPUD_OUTCOME_SUCCESS] += sum->tasks;
    d->stats.cost_left -= sum->cost;
    d->stats.cost_done += sum->cost;
    s->work_time += sum->work;
    s->last_duration = sum->last->ended_at - sum->last->started_at;
    if (sum->unsampled)
        sample(d, sum->last, sum->unsampled);
    if (!d->stats.first_start || sum->first_start < d->stats.first_start)
        d->stats.first_start = sum->first_start;
    gpi_events_appended(d);
}

/* ---- the long way ---- */

/* Takes the end of the task in this cell, if it has ended.  The compiler keeps the end record out
 * of memory as long as other functions get only copies of it. */
static enum gpi_look look_at(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell)
{
    struct gpi_task *t = &d->task[s->cell_task[cell]];
    struct gpi_ending e;
    enum gpi_look look = gpi_cell_look(&s->ch.page->cell[cell], s->cell_number[cell], t->sent_at,
                                       d->now, d->set.result_size, &e);

    if (look != GPI_LOOK_ENDED)
        return look;
    if (e.ended_at > d->now) /* the task ended after the turn had begun */
        d->now = gpi_now();
    if (e.end == GPI_END_EXPIRED) {
        const struct gpi_ending expired = e;
        return end_expired(d, s, cell, &expired) ? look : GPI_LOOK_BAD;
    }
    if (t->stalls) {
        struct gpi_ending stalled = e;
        if (!read_stall(d, s, cell, &stalled))
            return GPI_LOOK_BAD;
        e.stalled_at = stalled.stalled_at;
    }
    end_attempt(d, s, t, cell, e);
    return look;
}

/* Another CPU last wrote the cells, and the records do not fit the caches: loads of both are
 * slow. */
static void prefetch_ahead(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t cell)
{
    const char *record = (const char *)&d->task[s->cell_task[cell]];

    gpi_prefetch(&s->ch.page->cell[cell].end);
    gpi_prefetch(record);
    gpi_prefetch(record + 64);
}

/* Returns the send number up to which all tasks have ended, 0 = none. */
static uint64_t last_ended(const struct gpi_slot *s)
{
    uint64_t last = 0;

    for (uint64_t n = s->oldest; n <= s->number; n++) {
        uint32_t cell;
        if (!gpi_slot_sent(s, n, &cell))
            continue;
        if (atomic_load_explicit(&s->ch.page->cell[cell].end, memory_order_acquire) >> 8 != n)
            break;
        last = n;
    }
    return last;
}

static void collect_plainly(gpud_dispatcher *d, struct gpi_slot *s, uint64_t last)
{
    struct sum sum = { .tasks = 0 };
    uint64_t n = s->oldest;
    uint32_t cell;

    for (; s->sent > 0 && n <= last; n++) {
        prefetch_ahead(d, s, s->order[(n + 4) % GPI_CELLS] % GPI_CELLS);
        if (gpi_slot_sent(s, n, &cell) && !end_plainly(d, s, cell, &sum))
            break;
    }
    s->oldest = n;
    if (sum.tasks)
        count_plain(d, s, &sum);
}

/* Takes the next end the long way.  Returns false if no task has ended. */
static bool collect_one(gpud_dispatcher *d, struct gpi_slot *s, uint64_t last)
{
    enum gpi_look look = GPI_LOOK_NOT_YET;
    uint32_t cell;

    for (; s->sent > 0 && s->oldest <= last && look == GPI_LOOK_NOT_YET; s->oldest++) {
        if (!gpi_slot_sent(s, s->oldest, &cell))
            continue;
        look = look_at(d, s, cell);
        if (look != GPI_LOOK_ENDED)
            break;
    }
    if (look == GPI_LOOK_BAD)
        gpi_slot_retire(d, s, "an end record is invalid");
    return look == GPI_LOOK_ENDED;
}

/* Reads the cells, oldest first, up to the first whose task has not ended: a worker ends its tasks
 * in the order they were sent. */
void gpi_collect(gpud_dispatcher *d, struct gpi_slot *s)
{
    const bool acting = gpi_act_later(d);
    uint64_t last = s->number;
    uint32_t before = s->sent;

    if (s->sent && gpi_output_expected(d, s)) {
        last = last_ended(s); /* before the loop: the next call takes the ends that follow */
        if (last)
            gpi_output_look(d, s);
    }
    do
        if (goes_short(d, s))
            collect_plainly(d, s, last);
    while (collect_one(d, s, last));
    if (gpi_slot_class(d, s)->set.start_events)
        gpi_see_starts(d, s);
    s->claimed |= s->sent != before;
    gpi_slot_loaded(d, s);
    gpi_act_now(d, acting);
    if (s->sent == before)
        return;
    s->last_heard = d->now;
    if (s->sent == 0) {
        s->peek_at = GPI_NEVER;
    } else {
        if (s->sent >= 2)
            s->peek_at = d->now + GPI_MS;
        gpi_slot_expect(d, s);
    }
}

/* Tasks end in the order they were sent.  If a task has not ended and a later one has, the worker
 * has overwritten its page, and the earlier task will never end.  Neither will a task that the
 * worker does not know. */
void gpi_look_for_disorder(gpud_dispatcher *d, struct gpi_slot *s)
{
    bool ended_behind = false;

    if (s->sent && atomic_load(&s->ch.page->sent_number) != s->number) {
        gpi_slot_retire(d, s, "the number of sent tasks was overwritten");
        return;
    }
    /* From the last task on: if the host sees its end, it can also see the ends before. */
    for (uint64_t n = s->number; s->sent && n >= s->oldest; n--) {
        uint32_t cell;
        uint64_t claim;
        bool ended;
        if (!gpi_slot_sent(s, n, &cell))
            continue;
        if (atomic_load(&s->ch.page->order[n % GPI_CELLS]) != s->order[n % GPI_CELLS]) {
            gpi_slot_retire(d, s, "an order was overwritten");
            return;
        }
        claim = atomic_load(&s->ch.page->cell[cell].claim);
        if (claim != gpi_claim_word(n, GPI_SENT) && claim != gpi_claim_word(n, GPI_CLAIMED)) {
            gpi_slot_retire(d, s, "a claim is invalid");
            return;
        }
        ended = atomic_load(&s->ch.page->cell[cell].end) >> 8 == n;
        if (!ended && ended_behind) {
            gpi_slot_retire(d, s, "a task ended before an earlier one");
            return;
        }
        ended_behind |= ended;
    }
}

/* After a death: takes every end, whether or not the tasks sent before have ended. */
void gpi_collect_rest(gpud_dispatcher *d, struct gpi_slot *s)
{
    const bool acting = gpi_act_later(d);

    for (uint64_t left = s->inflight; left; left &= left - 1)
        (void)look_at(d, s, gpi_lowest_bit(left));
    gpi_act_now(d, acting);
}

bool gpi_collect_all(gpud_dispatcher *d)
{
    uint64_t before = d->ends + d->starts;

    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slot[i].sent)
            gpi_collect(d, &d->slot[i]);
    return d->ends + d->starts != before;
}

bool gpi_go_to_sleep(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slot[i].sent)
            atomic_store_explicit(&d->slot[i].ch.page->host_sleeps, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* our stores before the reads: see page.h */
    return !gpi_collect_all(d);
}

void gpi_wake_up(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slot[i].sent &&
            atomic_load_explicit(&d->slot[i].ch.page->host_sleeps, memory_order_relaxed))
            atomic_store_explicit(&d->slot[i].ch.page->host_sleeps, 0, memory_order_relaxed);
}
