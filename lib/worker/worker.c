/* SPDX-License-Identifier: MIT */
#include "worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/fds.h"
#include "os/memory.h"
#include "os/process.h"
#include "wire/frame.h"

/* The flush rule: whether the host sleeps, and must be rung, is looked at before the next
 * process if the last one took longer than this, or the oldest untold end is older than that;
 * and always when there is nothing more to run. */
#define FLUSH_RUN_NS (4 * GPI_US)
#define FLUSH_AGE_NS (50 * GPI_US)

/* After a task that took this long, the 0.5 us of setting the timer exactly do not matter. */
#define EXACT_RUN_NS (20 * GPI_US)

/* After a batch of this many tasks more are likely on their way.  Letting others on this CPU go
 * first, once, often finds them without the bell: 8 % more small tasks with 8 workers on a CPU.
 * After a single task it would only cost. */
#define BATCH_TASKS 4

/* ---- telling ---- */

void gpi_worker_tell(gpud_worker *w, uint32_t news)
{
    struct gpi_frame f = { .magic = GPI_LOOK_MAGIC, .incarnation = w->plan.incarnation, .what = news };
    ssize_t r;

    do
        r = write(w->plan.looks, &f, sizeof f);
    while (r < 0 && errno == EINTR);
    if (r != (ssize_t)sizeof f)
        _exit(72); /* the host is gone; the keeper is about to say so */
}

static void flush_ends(gpud_worker *w)
{
    w->untold = false;
    if (gpi_page_must_ring(&w->plan.page->host_sleeps))
        gpi_worker_tell(w, GPI_NEWS_ENDED);
}

/* ---- one task ---- */

static void block_alarm(bool block)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    (void)sigprocmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static void task_init(struct gpud_task *t, gpud_worker *w, uint32_t index, uint64_t number)
{
    struct gpi_cell *c = &w->plan.page->cell[index];

    t->worker = w;
    t->cell = c;
    t->extra = &w->plan.page->extra[index];
    t->data = w->plan.input + c->data_off;
    t->size = c->data_size;
    t->number = number;
    t->result_place = GPI_PLACE_NONE;
    t->result_size = 0;
    t->index = index;
    t->fail_code = 0;
}

static void write_end(gpud_worker *w, struct gpud_task *t, int code, uint64_t ended_at)
{
    struct gpi_cell *c = t->cell;

    bool expired = atomic_load_explicit(&w->limit.expired, memory_order_relaxed);

    if (t->fail_code)
        code = t->fail_code;
    c->ended_at = ended_at;
    c->stopped = gpi_limit_stopped(&w->limit, ended_at);
    c->result_off = t->result_off;
    c->result_size = t->result_size;
    c->result_place = (uint16_t)t->result_place;
    c->code = code;
    c->flags = (uint16_t)((expired ? GPI_CELL_EXPIRED : 0) | (t->fail_code ? GPI_CELL_TEXT : 0));
    atomic_store_explicit(&c->end, gpi_end_word(t->number, code ? GPI_END_FAILED : GPI_END_OK), memory_order_release);
}

/* A child that was forked in setup or process and came back from it is no second worker. */
static void leave_if_forked(const gpud_worker *w)
{
    if (!*w->original)
        _exit(0);
}

static void run_task(gpud_worker *w, uint32_t index, uint64_t number)
{
    struct gpi_cell *c = &w->plan.page->cell[index];
    struct gpud_task *t = &w->task;
    uint64_t started = w->last_end ? w->last_end : gpi_now(), ended;
    int code;

    if (w->last_run > EXACT_RUN_NS)
        block_alarm(false); /* the last task may have left it blocked */
    if (w->untold && (w->last_run > FLUSH_RUN_NS || started - w->oldest_end > FLUSH_AGE_NS)) {
        flush_ends(w);
        started = gpi_now();
    }
    leave_if_forked(w);
    if (!gpi_cell_take(c, number, GPI_CLAIMED))
        return; /* recalled or cancelled: not ours, not a word of it may be read */
    task_init(t, w, index, number);
    gpi_limit_begin(&w->limit, number, started, c->limit, w->last_run > EXACT_RUN_NS);
    atomic_store_explicit(&c->stopped_before, w->limit.stopped_before, memory_order_relaxed);
    atomic_store_explicit(&c->started_at, started, memory_order_release);
    code = w->plan.definition->process(t, w->state);
    leave_if_forked(w);
    ended = gpi_now();
    write_end(w, t, code, ended);
    gpi_limit_end(&w->limit);
    if (!w->untold)
        w->oldest_end = ended;
    w->untold = true;
    w->last_end = ended;
    w->last_run = ended - started;
}

/* ---- orders ---- */

/* Runs what has been sent so far; gives how many numbers that were. */
static uint64_t run_sent(gpud_worker *w)
{
    struct gpi_page *p = w->plan.page;
    uint64_t first = w->next, last;

    while (w->next <= (last = atomic_load_explicit(&p->sent_number, memory_order_acquire))) {
        w->last_end = 0; /* a fresh look at the clock: none of these may start before it was sent */
        for (; w->next <= last; w->next++)
            run_task(w, atomic_load_explicit(&p->order[w->next % GPI_CELLS], memory_order_relaxed) % GPI_CELLS, w->next);
    }
    if (w->untold)
        flush_ends(w);
    return w->next - first;
}

/* Sleeps until the bell; false when it says END. */
static bool await_bell(gpud_worker *w)
{
    struct gpi_frame f[GPI_CELLS];
    struct gpi_page *p = w->plan.page;
    bool go_on = true;
    ssize_t r;

    atomic_store(&p->worker_sleeps, 1);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&p->sent_number) >= w->next) {
        atomic_store(&p->worker_sleeps, 0); /* a bell that was rung meanwhile rings in vain */
        return true;
    }
    do
        r = read(w->plan.orders, f, sizeof f);
    while (r < 0 && errno == EINTR);
    if (r <= 0 || r % (ssize_t)GPI_FRAME_SIZE)
        _exit(73);
    for (size_t i = 0; i < (size_t)r / GPI_FRAME_SIZE; i++) {
        if (!gpi_order_valid(&f[i]))
            _exit(73);
        if (f[i].what & GPI_ORDER_END && f[i].incarnation == w->plan.incarnation)
            go_on = false;
    }
    return go_on;
}

static void serve(gpud_worker *w)
{
    bool go_on = true;

    while (go_on) {
        while (run_sent(w) >= BATCH_TASKS)
            (void)sched_yield();
        go_on = await_bell(w);
    }
    (void)run_sent(w);
}

/* Bells rung for a former life. */
static void drop_old_bells(int fd)
{
    char drop[4096];
    struct pollfd p = { .fd = fd, .events = POLLIN };

    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK); /* a former life may have set it */
    while (poll(&p, 1, 0) == 1 && (p.revents & POLLIN) && read(fd, drop, sizeof drop) > 0)
        ;
}

/* ---- birth and end ---- */

/* Runs first among the exit handlers, and last: exit() in user code runs none of the host's and
 * writes none of its stdio, which was purged when the spawner was born. */
static void on_user_exit(int status, void *unused)
{
    (void)unused;
    (void)fflush(stdout);
    (void)fflush(stderr);
    _exit(status);
}

static void settle_stdio(int output)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (null >= 0) {
        (void)dup2(null, 0);
        if (null > 2)
            close(null);
    }
    (void)dup2(output, 1);
    (void)dup2(output, 2);
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* else the tail is empty after a SIGKILL */
}

static void settle_environment(const gpud_worker *w)
{
    char number[24];

    snprintf(number, sizeof number, "%u", w->plan.page->slot);
    (void)setenv("GPUD_SLOT", number, 1);
    snprintf(number, sizeof number, "%u", w->plan.incarnation);
    (void)setenv("GPUD_INCARNATION", number, 1);
    (void)setenv("GPUD_DEVICE", w->plan.page->device, 1);
}

static void settle(gpud_worker *w)
{
    const int keep[] = { 0, 1, 2, w->plan.orders, w->plan.looks };
    char name[16];

    (void)setsid();
    gpi_process_prompt(0, false); /* which the keeper is */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != w->plan.keeper)
        _exit(74); /* the keeper died before the line above took hold */
    snprintf(name, sizeof name, "gpud-w%u", w->plan.page->slot);
    (void)prctl(PR_SET_NAME, name);
    settle_stdio(w->plan.output);
    gpi_fd_close_others(keep, sizeof keep / sizeof *keep);
    (void)on_exit(on_user_exit, NULL);
    settle_environment(w);
}

/* A word that a forked child reads as 0, and the keeper's words made read-only for us: only accidents
 * are meant, and a system that cannot do it does without. */
static void guard(gpud_worker *w)
{
    static uint32_t always = 1; /* never written again */
    uint32_t *word = gpi_memory_wipeonfork();

    if (word)
        *word = 1;
    w->original = word ? word : &always;
    gpi_memory_protect(&w->plan.page->stopped_ns, GPI_KEEPER_WORDS);
}

/* Setup, with the verdict told; false when it failed. */
static bool set_up(gpud_worker *w)
{
    struct gpi_page *p = w->plan.page;
    int code = w->plan.definition->setup ? w->plan.definition->setup(w, &w->state) : 0;

    leave_if_forked(w);
    if (code)
        p->setup_code = code;
    atomic_store_explicit(&p->setup_done, code ? 2 : 1, memory_order_release);
    gpi_worker_tell(w, GPI_NEWS_SETUP);
    return code == 0;
}

static _Noreturn void leave(int status)
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
    settle(&w); /* the spawner's signals, inherited: all default, all blocked */
    guard(&w);
    if (gpi_limit_init(&w.limit, plan->page))
        _exit(75);
    gpi_process_signals_unblock();
    block_alarm(true);
    drop_old_bells(plan->orders);
    if (!set_up(&w))
        leave(1);
    block_alarm(false);
    serve(&w);
    block_alarm(true);
    if (plan->definition->cleanup)
        plan->definition->cleanup(&w, w.state);
    leave(0);
}
