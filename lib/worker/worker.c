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

static void run_task(gpud_worker *w, uint32_t index, uint64_t number)
{
    struct gpi_cell *c = &w->plan.page->cell[index];
    struct gpud_task *t = w->task;
    uint64_t started = gpi_worker_before(w, w->last_end ? w->last_end : gpi_now()), ended;
    bool sick;
    int code;

    if (!gpi_cell_take(c, number, GPI_CLAIMED))
        return; /* recalled or cancelled: the worker may not read one word of it */
    if (c->expires_at && started >= c->expires_at) {
        gpi_worker_refuse(w, c, number, started);
        return;
    }
    gpi_worker_note_claim(w);
    gpi_worker_task_init(t, w, index, number);
    w->limit.stall = t->stall_limit;
    gpi_limit_begin(&w->limit, 1ull << index, started, c->limit, w->last_run > GPI_EXACT_RUN_NS);
    atomic_store_explicit(&c->stopped_before, w->limit.stopped_before, memory_order_relaxed);
    atomic_store_explicit(&c->started_at, started, memory_order_release);
    gpi_worker_note_start(w);
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

/* ---- tasks ---- */

/* Runs the tasks that have been sent so far; returns how many numbers that were. */
static uint64_t run_sent(gpud_worker *w)
{
    struct gpi_page *p = w->plan.page;
    uint64_t first = w->next, last;

    while (w->next <= (last = atomic_load_explicit(&p->sent_number, memory_order_acquire))) {
        w->last_end = 0; /* a new reading of the clock: no task may start before it was sent */
        for (; w->next <= last; w->next++) {
            gpi_worker_ask_ahead(w, last);
            /* ALONE does not matter here */
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

/* ---- birth and end ---- */

/* Else the tail is empty after a SIGKILL.  The buffer is the library's: glibc keeps a stream for
 * which the host had set a buffer fully buffered for single characters, such as the newline of
 * puts. */
static void settle_streams(void)
{
    static char line[4096]; /* static: the worker is a process of its own */

    (void)setvbuf(stdout, line, _IOLBF, sizeof line);
    (void)setvbuf(stderr, NULL, _IONBF, 0);
}

/* Turns a copy of the keeper into a process of its own.  An executed worker has had all this before
 * its first instruction, and the files it has opened since are its own. */
static void settle_forked(gpud_worker *w)
{
    const int keep[] = { 0, 1, 2, w->plan.orders, w->plan.looks };

    (void)setsid();
    gpi_process_prompt(0, false); /* the keeper's short turns on the CPU are not for tasks */
    gpi_fd_close_others(keep, sizeof keep / sizeof *keep);
}

/* Reads 1 in a worker, 0 in a child that it has forked; NULL elsewhere. */
static const volatile uint32_t *here;

bool gpi_worker_here(void)
{
    return here && *here;
}

/* Made before the worker: reads 0 in each process that is forked from then on.  NULL where the
 * system cannot do it. */
static uint32_t *original_word;
static char name[16];
static bool prepared;

/* Makes the keeper's words read-only for the worker.  This only prevents accidents, so a system
 * that cannot do it does without. */
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

    /* a forked one has done so already */
    if (w->plan.executed && !gpi_process_die_with(w->plan.keeper))
        gpi_worker_give_up(w, 74, GPI_NO_KEEPER);
    if (!w->plan.executed)
        settle_forked(w);
    if (!prepared) /* it was executed, or has no keeper */
        gpi_worker_prepare(w->plan.page);
    /* the first exit handler to run, and the last: exit() in user code runs no handler of the host,
     * and writes none of its stdio, which the spawner purged at its birth */
    gpi_exit_first(gpi_worker_leave); /* not before: handlers of pthread_atfork may call atexit */
    (void)prctl(PR_SET_NAME, name);
    if (original_word)
        *original_word = 1;
    here = w->original = original_word ? original_word : &always;
}

_Static_assert(GPI_DEVICE_NAME_SIZE <= GPI_DEVICE_UUID_SIZE, "a name may stand for a UUID");

/* Reads names and UUIDs one by one, before user code can overwrite them. */
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

/* Unblocks all signals but the alarm; until now the handlers did not know their worker. */
static void block_only_alarm(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
}

/* Runs setup and reports its result; returns false when it failed. */
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

void gpi_worker_run(const struct gpi_worker_plan *plan)
{
    static gpud_worker w; /* static: the worker is a process of its own */

    w.plan = *plan;
    w.next = plan->page->first_number;
    w.start_events = plan->page->start_events == 1;
    settle(&w); /* with the spawner's signal mask, inherited: all blocked */
    read_devices(&w);
    if (gpi_signals_init() || gpi_limit_init(&w.limit, plan->page)) {
        char why[GPI_REFUSAL_SIZE];
        gpi_page_setup_failed(plan->page, GPUD_ESYSTEM,
                              gpi_refusal_text(why, gpi_refused_call(errno), errno));
        gpi_worker_leave(75);
    }
    block_only_alarm();
    gpi_worker_drop_old_bells(plan->orders);
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
