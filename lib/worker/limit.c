/* SPDX-License-Identifier: MIT */
#include "worker/limit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "worker/cuda.h"
#include "worker/signals.h"

/* ends a blocking call, too, that begins right after the alarm */
#define AGAIN_NS (50 * GPI_MS)
#define ACCOUNT_WAIT_NS (100 * GPI_MS)  /* for the keeper's account of a stop */
#define ACCOUNT_LOOK_NS (GPI_MS / 2)

/* The one static: a signal handler has no other way to it.  Set once, before the handlers. */
static struct gpi_limit *watched;

static void arm(struct gpi_limit *l, uint64_t when)
{
    atomic_store(&l->armed, when);
    gpi_alarm_at(&l->alarm, when);
}

/* Arms outside the handler, which may run in between and set another time. */
static void arm_from_task(struct gpi_limit *l, uint64_t when)
{
    do {
        arm(l, when);
        atomic_signal_fence(memory_order_seq_cst);
    } while (atomic_load(&l->armed) != when && (when = atomic_load(&l->armed)) != 0);
}

/* A task sleeps through a signal that arrives just before a blocking call, so another signal
 * follows.  Not on GPUs: each signal may hit a call of the driver that is not restarted.  Functions
 * that wait there read the clock (gpud_cuda_stream_sync, gpud_task_expired). */
static void arm_again(struct gpi_limit *l, uint64_t now)
{
    if (!l->once)
        arm(l, now + AGAIN_NS);
}

static void disarm(struct gpi_limit *l)
{
    atomic_store(&l->armed, 0);
    gpi_alarm_off(&l->alarm);
}

static uint64_t stopped_so_far(struct gpi_limit *l)
{
    return atomic_load(&l->page->stopped_ns) - l->stopped_before;
}

/* Returns whether this process was continued and the keeper has not accounted for that stop yet. */
static bool account_open(struct gpi_limit *l, uint64_t now)
{
    uint32_t ours = atomic_load(&l->continued), theirs = atomic_load(&l->page->continues);

    if ((int32_t)(ours - theirs) <= 0)
        return false;
    if (now - atomic_load(&l->continued_at) < ACCOUNT_WAIT_NS)
        return true;
    atomic_store(&l->continued, theirs); /* the keeper missed one: such stops count in full */
    return false;
}

enum verdict { IN_TIME, LATE, UNKNOWN };

/* Returns when the soft limit expires, stops not added: of the call, or of the time without
 * progress. */
static uint64_t soft_limit(struct gpi_limit *l)
{
    return gpi_time_min(atomic_load_explicit(&l->deadline, memory_order_relaxed),
                        atomic_load_explicit(&l->stall_at, memory_order_relaxed));
}

static uint64_t stopped_since_progress(struct gpi_limit *l)
{
    return atomic_load(&l->page->stopped_ns) - atomic_load(&l->stopped_progress);
}

static enum verdict judge(struct gpi_limit *l, uint64_t now, uint64_t *ret_deadline)
{
    uint64_t stall_at = atomic_load(&l->stall_at);

    *ret_deadline = soft_limit(l);
    if (*ret_deadline == GPI_NEVER || now < *ret_deadline)
        return IN_TIME;
    if (account_open(l, now))
        return UNKNOWN;
    *ret_deadline = gpi_time_add(atomic_load(&l->deadline), stopped_so_far(l));
    if (stall_at != GPI_NEVER) {
        stall_at = gpi_time_add(stall_at, stopped_since_progress(l));
        *ret_deadline = gpi_time_min(*ret_deadline, stall_at);
        if (now >= stall_at && !atomic_load(&l->page->stalled_at))
            /* for the host, which kills the worker a grace later */
            atomic_store(&l->page->stalled_at, stall_at);
    }
    return now < *ret_deadline ? IN_TIME : LATE;
}

static void set_expired(struct gpi_limit *l)
{
    if (atomic_load(&l->expired))
        return;
    l->stopped_expired = stopped_so_far(l);
    atomic_store(&l->expired, 1);
}

static void on_alarm(int signo)
{
    struct gpi_limit *l = watched;
    int err = errno;
    uint64_t now = gpi_now(), deadline;

    (void)signo;
    atomic_store(&l->armed, 0);
    if (gpi_limit_cancelled(l)) {
        arm_again(l, now);
    } else {
        switch (judge(l, now, &deadline)) {
        case LATE:
            set_expired(l);
            arm_again(l, now);
            break;
        case UNKNOWN:
            arm(l, now + ACCOUNT_LOOK_NS);
            break;
        case IN_TIME:
            if (deadline != GPI_NEVER)
                arm(l, deadline);
            break;
        }
    }
    errno = err;
}

static void on_continue(int signo)
{
    (void)signo;
    atomic_store(&watched->continued_at, gpi_now());
    atomic_fetch_add(&watched->continued, 1);
}

int gpi_limit_init(struct gpi_limit *l, struct gpi_page *page)
{
    memset(l, 0, sizeof *l);
    l->page = page;
    l->once = gpi_cuda_on_gpu(page);
    l->stall = GPI_NEVER;
    atomic_store(&l->deadline, GPI_NEVER);
    atomic_store(&l->stall_at, GPI_NEVER);
    atomic_store(&l->continued, atomic_load(&page->continues));
    if (gpi_alarm_init(&l->alarm))
        return -1;
    watched = l;
    /* without SA_RESTART blocking calls of a late task end with EINTR */
    gpi_signals_handle(SIGALRM, on_alarm, l->once ? SA_RESTART : 0);
    gpi_signals_handle(SIGCONT, on_continue, SA_RESTART);
    return 0;
}

/* If the keeper accounts for a stop after the worker has stopped waiting for that, the account must
 * not count for the next stop. */
static void forget_late_account(struct gpi_limit *l)
{
    uint32_t ours = atomic_load_explicit(&l->continued, memory_order_relaxed);
    uint32_t theirs = atomic_load_explicit(&l->page->continues, memory_order_relaxed);

    if ((int32_t)(theirs - ours) > 0)
        /* fails if a stop ends just now */
        (void)atomic_compare_exchange_strong(&l->continued, &ours, theirs);
}

/* Writes the words that the host reads, before the host can see the start. */
static uint64_t begin_stall(struct gpi_limit *l, uint64_t started_at)
{
    atomic_store(&l->stopped_progress, l->stopped_before);
    atomic_store(&l->page->stalled_at, 0);
    atomic_store(&l->page->progress_stopped, l->stopped_before);
    atomic_store(&l->page->progress_at, started_at);
    return gpi_time_add(started_at, l->stall);
}

void gpi_limit_begin(struct gpi_limit *l, uint64_t cells, uint64_t started_at, uint64_t limit,
                     bool exact)
{
    uint64_t deadline = gpi_time_add(started_at, limit), stall_at = GPI_NEVER, soft, armed;

    forget_late_account(l);
    l->stopped_before = atomic_load_explicit(&l->page->stopped_ns, memory_order_relaxed);
    atomic_store_explicit(&l->expired, 0, memory_order_relaxed);
    atomic_store_explicit(&l->cells, cells, memory_order_relaxed);
    if (l->stall != GPI_NEVER)
        stall_at = begin_stall(l, started_at);
    soft = gpi_time_min(deadline, stall_at);
    atomic_store_explicit(&l->stall_at, stall_at, memory_order_relaxed);
    atomic_store_explicit(&l->deadline, deadline, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    armed = atomic_load_explicit(&l->armed, memory_order_relaxed);
    if (soft != GPI_NEVER && (armed == 0 || armed > soft || (exact && armed < soft)))
        arm_from_task(l, soft);
    else if (soft == GPI_NEVER && armed && exact)
        disarm(l);
    if (gpi_limit_cancelled(l))
        /* its signal may have arrived before `cells` was set */
        arm_from_task(l, started_at + AGAIN_NS);
}

void gpi_limit_end(struct gpi_limit *l)
{
    atomic_store_explicit(&l->deadline, GPI_NEVER, memory_order_relaxed);
    atomic_store_explicit(&l->stall_at, GPI_NEVER, memory_order_relaxed);
    atomic_store_explicit(&l->cells, 0, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

bool gpi_limit_cancelled(struct gpi_limit *l)
{
    return (atomic_load_explicit(&l->cells, memory_order_relaxed) &
            atomic_load_explicit(&l->page->cancel, memory_order_relaxed)) != 0;
}

bool gpi_limit_expired(struct gpi_limit *l)
{
    uint64_t deadline;

    if (atomic_load_explicit(&l->expired, memory_order_relaxed))
        return true;
    if (soft_limit(l) == GPI_NEVER)
        return false;
    if (judge(l, gpi_now(), &deadline) == LATE)
        set_expired(l);
    return atomic_load_explicit(&l->expired, memory_order_relaxed);
}

uint64_t gpi_limit_next_look(struct gpi_limit *l, uint64_t now)
{
    uint64_t deadline;

    return judge(l, now, &deadline) == UNKNOWN ? now + ACCOUNT_LOOK_NS : deadline;
}

/* This process runs: if the keeper's words call it stopped, the account is open, no matter how many
 * SIGCONT the handler has counted. */
static void await_account(struct gpi_limit *l)
{
    const struct timespec pause = { .tv_nsec = (long)ACCOUNT_LOOK_NS };
    uint64_t until = gpi_now() + ACCOUNT_WAIT_NS;

    while ((account_open(l, gpi_now()) || atomic_load(&l->page->stopped_since)) &&
           gpi_now() < until)
        nanosleep(&pause, NULL);
}

uint64_t gpi_limit_quiet(struct gpi_limit *l, uint64_t now, uint64_t *ret_stopped)
{
    uint64_t quiet = now - atomic_load_explicit(&l->page->progress_at, memory_order_relaxed);

    *ret_stopped = 0;
    if (quiet < l->stall)
        return quiet;
    await_account(l);
    *ret_stopped = stopped_since_progress(l);
    return quiet > *ret_stopped ? quiet - *ret_stopped : 0;
}

uint64_t gpi_limit_pause(struct gpi_limit *l)
{
    atomic_store(&l->stall_at, GPI_NEVER);
    return gpi_now();
}

void gpi_limit_progress(struct gpi_limit *l, uint64_t now)
{
    uint64_t stopped = atomic_load(&l->page->stopped_ns), soft, armed;

    atomic_store(&l->stopped_progress, stopped);
    atomic_store(&l->page->progress_stopped, stopped);
    atomic_store(&l->page->progress_at, now);
    atomic_store(&l->stall_at, gpi_time_add(now, l->stall));
    atomic_signal_fence(memory_order_seq_cst);
    soft = soft_limit(l);
    armed = atomic_load(&l->armed);
    /* Progress that is frequent enough is never interrupted, and most of it leaves the timer
     * alone. */
    if (!atomic_load(&l->expired) && soft != GPI_NEVER &&
        (armed == 0 || armed > soft || armed < soft - l->stall / 2))
        arm_from_task(l, soft);
}

uint64_t gpi_limit_stopped(struct gpi_limit *l, uint64_t ended_at, bool later)
{
    if (!later && atomic_load_explicit(&l->expired, memory_order_relaxed))
        return l->stopped_expired;
    if (ended_at >= atomic_load_explicit(&l->deadline, memory_order_relaxed))
        await_account(l);
    return stopped_so_far(l);
}
