/* SPDX-License-Identifier: MIT */
#include "worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/refused.h"
#include "os/exit.h"
#include "os/fds.h"
#include "os/memory.h"
#include "os/process.h"
#include "wire/frame.h"
#include "worker/signals.h"

/* The flush rule: whether the host sleeps, and must be rung, is looked at before the next
 * process if the last one took longer than this, or the oldest untold end is older than that;
 * and always when there is nothing more to run. */
#define FLUSH_RUN_NS (4 * GPI_US)
#define FLUSH_AGE_NS (50 * GPI_US)

/* After a task that took this long, the 0.5 us of setting the timer exactly do not matter. */
#define EXACT_RUN_NS (20 * GPI_US)

/* ---- telling ---- */

/* It cannot go on: the host reads why beside the exit status. */
static _Noreturn void give_up(gpud_worker *w, int status, const char *why)
{
    struct gpi_page *p = w->plan.page;

    snprintf(p->leave_text, sizeof p->leave_text, "%s", why);
    _exit(status);
}

static _Noreturn void give_up_refused(gpud_worker *w, int status, enum gpi_sys call)
{
    char why[GPI_REFUSAL_SIZE];

    give_up(w, status, gpi_refusal_text(why, call, errno));
}

void gpi_worker_tell(gpud_worker *w, uint32_t news)
{
    struct gpi_frame f = { .magic = GPI_LOOK_MAGIC,
                           .incarnation = w->plan.incarnation,
                           .what = news };
    ssize_t r;

    do
        r = write(w->plan.looks, &f, sizeof f);
    while (r < 0 && errno == EINTR);
    if (r != (ssize_t)sizeof f)
        give_up_refused(w, 72, GPI_SYS_WRITE); /* or the host is gone, as the keeper will see */
}

void gpi_worker_flush(gpud_worker *w)
{
    w->untold = false;
    if (gpi_page_must_ring(&w->plan.page->host_sleeps))
        gpi_worker_tell(w, GPI_NEWS_ENDED);
}

bool gpi_worker_must_flush(const gpud_worker *w, uint64_t now)
{
    return w->untold && (w->last_run > FLUSH_RUN_NS || now - w->oldest_end > FLUSH_AGE_NS);
}

/* ---- one task ---- */

void gpi_worker_block_alarm(bool block)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    (void)sigprocmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void gpi_worker_task_init(struct gpud_task *t, gpud_worker *w, uint32_t index, uint64_t number)
{
    struct gpi_cell *c = &w->plan.page->cell[index];

    t->worker = w;
    t->cell = c;
    t->extra = &w->plan.page->extra[index];
    t->data = w->plan.input + atomic_load_explicit(&c->data_off, memory_order_relaxed);
    t->size = c->data_size;
    t->number = number;
    t->result_place = GPI_PLACE_NONE;
    t->result_size = 0;
    t->index = index;
    t->fail_code = 0;
    t->flags = 0;
    t->stall_limit = c->stalls ? t->extra->stall_limit : GPI_NEVER;
    t->stalled_at = 0;
}

void gpi_worker_note_stall(gpud_worker *w, uint64_t now)
{
    uint64_t stopped, quiet = gpi_limit_quiet(&w->limit, now, &stopped);

    for (struct gpud_task *t = w->task; t < w->task + w->members; t++)
        if (quiet >= t->stall_limit && !t->stalled_at)
            t->stalled_at = now - (quiet - t->stall_limit);
}

void gpi_worker_write_end(gpud_worker *w, struct gpud_task *t, int code, uint64_t ended_at,
                          bool later)
{
    struct gpi_cell *c = t->cell;

    bool expired = atomic_load_explicit(&w->limit.expired, memory_order_relaxed);

    if (t->fail_code)
        code = t->fail_code;
    if (!code)
        t->flags &= (uint16_t)~GPI_CELL_TEXT;
    if (w->limit.stall != GPI_NEVER) {
        gpi_worker_note_stall(w, ended_at);
        t->extra->stalled_at = t->stalled_at;
    }
    c->ended_at = ended_at;
    c->stopped = later ? gpi_limit_stopped_later(&w->limit, ended_at)
                       : gpi_limit_stopped(&w->limit, ended_at);
    c->result_off = t->result_off;
    c->result_size = t->result_size;
    c->result_place = (uint16_t)t->result_place;
    c->code = code;
    c->flags = (uint16_t)((expired ? GPI_CELL_EXPIRED : 0) | (t->fail_code ? GPI_CELL_TEXT : 0) |
                          t->flags);
    atomic_store_explicit(&c->end, gpi_end_word(t->number, code ? GPI_END_FAILED : GPI_END_OK),
                          memory_order_release);
}

/* A child that was forked in setup or process and came back from it is no second worker. */
void gpi_worker_leave_if_forked(const gpud_worker *w)
{
    if (!*w->original)
        _exit(0);
}

void gpi_worker_note_end(gpud_worker *w, uint64_t ended)
{
    if (!w->untold)
        w->oldest_end = ended;
    w->untold = true;
    w->last_end = ended;
}

/* The first of a life: what process writes over the page cannot hide it. */
void gpi_worker_note_claim(gpud_worker *w)
{
    if (w->claimed)
        return;
    w->claimed = true;
    gpi_worker_tell(w, GPI_NEWS_CLAIMED);
}

/* Claimed, but too late: it is not to start any more, whether or not the host has noticed. */
void gpi_worker_refuse(gpud_worker *w, struct gpi_cell *c, uint64_t number, uint64_t now)
{
    atomic_store_explicit(&c->started_at, now, memory_order_relaxed);
    c->ended_at = now;
    c->stopped = c->result_size = 0;
    c->result_place = GPI_PLACE_NONE;
    c->code = 0;
    c->flags = 0;
    atomic_store_explicit(&c->end, gpi_end_word(number, GPI_END_EXPIRED), memory_order_release);
    gpi_worker_note_end(w, now);
}

/* What has ended is told.  The rest is the next one's. */
_Noreturn void gpi_worker_leave_sick(gpud_worker *w)
{
    gpi_worker_flush(w);
    gpi_worker_leave(GPI_EXIT_FAULT);
}

static void run_task(gpud_worker *w, uint32_t index, uint64_t number)
{
    struct gpi_cell *c = &w->plan.page->cell[index];
    struct gpud_task *t = w->task;
    uint64_t started = w->last_end ? w->last_end : gpi_now(), ended;
    bool sick;
    int code;

    if (w->last_run > EXACT_RUN_NS)
        gpi_worker_block_alarm(false); /* the last task may have left it blocked */
    if (gpi_worker_must_flush(w, started)) {
        gpi_worker_flush(w);
        started = gpi_now();
    }
    gpi_worker_leave_if_forked(w);
    if (!gpi_cell_take(c, number, GPI_CLAIMED))
        return; /* recalled or cancelled: not ours, not a word of it may be read */
    if (c->expires_at && started >= c->expires_at) {
        gpi_worker_refuse(w, c, number, started);
        return;
    }
    gpi_worker_note_claim(w);
    gpi_worker_task_init(t, w, index, number);
    w->limit.stall = t->stall_limit;
    gpi_limit_begin(&w->limit, 1ull << index, started, c->limit, w->last_run > EXACT_RUN_NS);
    atomic_store_explicit(&c->stopped_before, w->limit.stopped_before, memory_order_relaxed);
    atomic_store_explicit(&c->started_at, started, memory_order_release);
    code = w->plan.definition->process(t, w->state);
    gpi_worker_leave_if_forked(w);
    sick = w->cuda && gpi_worker_look(w, code);
    ended = gpi_now();
    gpi_worker_write_end(w, t, code, ended, false);
    gpi_limit_end(&w->limit);
    gpi_worker_note_end(w, ended);
    w->last_run = ended - started;
    if (sick)
        gpi_worker_leave_sick(w);
}

/* ---- orders ---- */

/* Runs what has been sent so far; gives how many numbers that were. */
static uint64_t run_sent(gpud_worker *w)
{
    struct gpi_page *p = w->plan.page;
    uint64_t first = w->next, last;

    while (w->next <= (last = atomic_load_explicit(&p->sent_number, memory_order_acquire))) {
        w->last_end = 0; /* a fresh look at the clock: none of these may start before it was sent */
        for (; w->next <= last; w->next++) {
            gpi_worker_ask_ahead(w, last);
            /* ALONE is of no concern here */
            run_task(w,
                     atomic_load_explicit(&p->order[w->next % GPI_CELLS], memory_order_relaxed) %
                         GPI_CELLS,
                     w->next);
        }
    }
    if (w->untold)
        gpi_worker_flush(w);
    return w->next - first;
}

/* Waits for the bell; false when a time, or a signal, has come first. */
static bool hears_bell(const gpud_worker *w, uint64_t until, const sigset_t *blocked)
{
    struct pollfd bell = { .fd = w->plan.orders, .events = POLLIN };
    uint64_t now = gpi_now(), left = until > now ? until - now : 0;
    const struct timespec wait = {
        .tv_sec = (time_t)(left / GPI_S),
        .tv_nsec = (long)(left % GPI_S),
    };

    return ppoll(&bell, 1, until == GPI_NEVER ? NULL : &wait, blocked) > 0;
}

/* Waits for the bell until a time; false when it has come first. */
static bool bell_in_time(const gpud_worker *w, uint64_t until)
{
    while (until != GPI_NEVER) {
        if (hears_bell(w, until, NULL))
            return true;
        if (gpi_now() >= until)
            return false;
    }
    return true;
}

/* Takes what the bells say; waits for one. */
static void take_orders(gpud_worker *w)
{
    struct gpi_frame f[GPI_CELLS];
    ssize_t r;

    do
        r = read(w->plan.orders, f, sizeof f);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        give_up_refused(w, 73, GPI_SYS_READ);
    if (r == 0 || r % (ssize_t)GPI_FRAME_SIZE)
        give_up(w, 73, "the pipe of its orders was closed");
    for (size_t i = 0; i < (size_t)r / GPI_FRAME_SIZE; i++) {
        if (!gpi_order_valid(&f[i]))
            give_up(w, 73, "an order is invalid");
        if (f[i].what & GPI_ORDER_END && f[i].incarnation == w->plan.incarnation)
            w->dismissed = true;
    }
}

void gpi_worker_doze(gpud_worker *w, uint64_t until, const sigset_t *blocked)
{
    if (hears_bell(w, until, blocked))
        take_orders(w);
}

bool gpi_worker_await(gpud_worker *w, uint64_t number, uint64_t until)
{
    struct gpi_page *p = w->plan.page;

    atomic_store(&p->worker_sleeps, 1);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&p->sent_number) >= number || !bell_in_time(w, until)) {
        atomic_store(&p->worker_sleeps, 0); /* a bell that was rung meanwhile rings in vain */
        return true;
    }
    take_orders(w);
    return !w->dismissed;
}

static void serve(gpud_worker *w)
{
    bool go_on = true;

    (void)gpi_worker_linger(w, GPI_AFTER_SETUP_NS);
    while (go_on) {
        while (run_sent(w) >= GPI_BATCH_TASKS && gpi_worker_linger(w, GPI_LINGER_NS))
            ;
        go_on = gpi_worker_await(w, w->next, GPI_NEVER);
    }
    (void)run_sent(w);
}

/* Bells rung for a former life. */
static void drop_old_bells(int fd)
{
    char drop[4096];
    struct pollfd p = { .fd = fd, .events = POLLIN };
    int flags = fcntl(fd, F_GETFL);

    if (flags & O_NONBLOCK) /* a former life has set it */
        (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    while (poll(&p, 1, 0) == 1 && (p.revents & POLLIN) && read(fd, drop, sizeof drop) > 0)
        ;
}

/* ---- birth and end ---- */

/* Runs first among the exit handlers, and last: exit() in user code runs none of the host's and
 * writes none of its stdio, which was purged when the spawner was born. */
static void on_user_exit(int status)
{
    (void)fflush(stdout);
    (void)fflush(stderr);
    _exit(status);
}

/* Else the tail is empty after a SIGKILL. With a buffer of ours, since glibc keeps a stream that
 * the host had given one full buffered for single characters, such as the newline of puts. */
static void settle_streams(void)
{
    static char line[4096]; /* in a process of its own */

    (void)setvbuf(stdout, line, _IOLBF, sizeof line);
    (void)setvbuf(stderr, NULL, _IONBF, 0);
}

/* From a copy of the keeper to a process of its own.  One that was executed has had all this before
 * its first instruction, and what it has opened since is its own. */
static void settle_forked(gpud_worker *w)
{
    const int keep[] = { 0, 1, 2, w->plan.orders, w->plan.looks };

    (void)setsid();
    gpi_process_prompt(0, false); /* which the keeper is */
    gpi_fd_close_others(keep, sizeof keep / sizeof *keep);
}

/* Reads 1 in a worker, 0 in a child that it has forked; NULL elsewhere. */
static const volatile uint32_t *here;

bool gpi_worker_here(void)
{
    return here && *here;
}

/* Made before the worker: reads 0 in each process that is forked from there on.  NULL where the
 * system cannot do it. */
static uint32_t *original_word;
static char name[16];
static bool prepared;

/* The keeper's words are made read-only for us: only accidents are meant, and a system that cannot
 * do it does without. */
void gpi_worker_prepare(struct gpi_page *page)
{
    snprintf(name, sizeof name, GPI_WORKER_NAME "%u", page->slot);
    settle_streams();
    original_word = gpi_memory_wipeonfork();
    gpi_memory_protect(&page->stopped_ns, GPI_KEEPER_WORDS);
    prepared = true;
}

static void settle(gpud_worker *w)
{
    static uint32_t always = 1; /* never written again */

    /* a forked one has said so already */
    if (w->plan.executed && !gpi_process_die_with(w->plan.keeper))
        give_up(w, 74, GPI_NO_KEEPER);
    if (!w->plan.executed)
        settle_forked(w);
    if (!prepared) /* it was executed, or has no keeper */
        gpi_worker_prepare(w->plan.page);
    gpi_exit_first(on_user_exit); /* not before: handlers of pthread_atfork may call atexit */
    (void)prctl(PR_SET_NAME, name);
    if (original_word)
        *original_word = 1;
    here = w->original = original_word ? original_word : &always;
}

_Static_assert(GPI_DEVICE_NAME_SIZE <= GPI_DEVICE_UUID_SIZE, "a name may stand for a UUID");

/* Names and UUIDs one by one, while nobody has written over them. */
static void read_devices(gpud_worker *w)
{
    char all[GPI_DEVICE_SIZE], *at = all, *one;

    gpi_page_text(all, w->plan.page->device, sizeof all);
    /* without snprintf, which costs ten page faults */
    while (w->n_devices < GPI_DEVICES && (one = strsep(&at, ",")) != NULL)
        memcpy(w->device[w->n_devices++], one, strnlen(one, sizeof w->device[0] - 1));
    for (uint32_t i = 0; i < w->n_devices; i++) {
        gpi_page_text(w->uuid[i], w->plan.page->uuid[i], sizeof w->uuid[0]);
        if (!w->uuid[i][0]) /* a CPU slot */
            memcpy(w->uuid[i], w->device[i], sizeof w->device[0]);
    }
}

/* All signals were blocked until the handlers knew their worker. */
static void block_only_alarm(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
}

/* Setup, with the verdict told; false when it failed. */
static bool set_up(gpud_worker *w)
{
    struct gpi_page *p = w->plan.page;
    int code = w->plan.definition->setup ? w->plan.definition->setup(w, &w->state) : 0;

    gpi_worker_leave_if_forked(w);
    if (code)
        p->setup_code = code;
    else
        gpi_worker_pin(w);
    atomic_store_explicit(&p->setup_done, code ? 2 : 1, memory_order_release);
    gpi_worker_tell(w, GPI_NEWS_SETUP);
    return code == 0;
}

_Noreturn void gpi_worker_leave(int status)
{
    (void)fflush(stdout);
    (void)fflush(stderr);
    _exit(status);
}

void gpi_worker_run(const struct gpi_worker_plan *plan)
{
    static gpud_worker w; /* in a process of its own */

    w.plan = *plan;
    w.next = plan->page->first_number;
    settle(&w); /* the spawner's signals, inherited: all blocked */
    read_devices(&w);
    if (gpi_signals_init() || gpi_limit_init(&w.limit, plan->page)) {
        char why[GPI_REFUSAL_SIZE];
        gpi_page_setup_failed(plan->page, GPUD_ESYSTEM,
                              gpi_refusal_text(why, gpi_refused_call(errno), errno));
        gpi_worker_leave(75);
    }
    block_only_alarm();
    drop_old_bells(plan->orders);
    gpi_worker_meet_devices(&w);
    if (!set_up(&w))
        gpi_worker_leave(1);
    gpi_worker_block_alarm(false);
    w.members = 1;
    if (plan->definition->process_batch &&
        (plan->page->max_batch > 1 || !plan->definition->process))
        gpi_worker_serve_batches(&w);
    else
        serve(&w);
    gpi_worker_block_alarm(true);
    if (plan->definition->cleanup)
        plan->definition->cleanup(&w, w.state);
    atomic_store(&plan->page->cleanup_done, 1);
    gpi_worker_leave(0);
}
