/* SPDX-License-Identifier: MIT */
/*
 * worker.c - the bells of a real worker, met by the host at each instruction between the end of a
 * task and sleep: whatever the host does meanwhile, no wake-up is lost on either side.
 *
 * The case is the host: it shares a page and two pipes with one worker, which it steps.
 */
#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "process.h"
#include "step.h"
#include "wire/frame.h"
#include "worker/worker.h"

enum { PLAIN, STOPS_AT_ITS_END, FAILS_AND_STOPS };

static int process(gpud_task *t, void *state)
{
    void *room;

    (void)state;
    if (gpud_task_tag(t) == FAILS_AND_STOPS) {
        (void)gpud_task_result_alloc(t, 1000 + gpud_task_id(t), &room);
        (void)gpud_task_fail(t, (int)gpud_task_id(t), "on purpose");
    }
    if (gpud_task_tag(t) != PLAIN)
        t_step_mark();
    return 0;
}

struct scene {
    struct gpi_page *page;
    unsigned char *input;
    int orders[2], looks[2];
    uint64_t number;
    pid_t keeper, worker;
    size_t size;
};

static void be_worker(void *arg)
{
    static const struct gpud_definition definition = GPUD_DEFINITION("test", NULL, process, NULL);
    const struct scene *s = arg;
    const struct gpi_worker_plan plan = {
        .definition = &definition,
        .page = s->page,
        .input = s->input,
        .result = s->input,
        .orders = s->orders[0],
        .looks = s->looks[1],
        .incarnation = 1,
        .keeper = s->keeper,
    };

    t_step_mark();
    gpi_worker_run(&plan);
}

static void *shared_memory(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    T_CHECK(at != MAP_FAILED);
    return at;
}

/* Reads what the worker has rung; gives all news, 0 when there is none. */
static uint32_t heard(const struct scene *s)
{
    struct gpi_frame f;
    uint32_t news = 0;

    while (read(s->looks[0], &f, sizeof(f)) == (ssize_t)sizeof(f)) {
        T_CHECK(gpi_look_valid(&f));
        news |= f.what;
    }
    return news;
}

static void send(struct scene *s, uint64_t tag)
{
    const struct gpi_frame bell = { .magic = GPI_ORDER_MAGIC,
                                    .incarnation = 1,
                                    .what = GPI_ORDER_TASKS };
    uint64_t number = ++s->number;
    struct gpi_cell *c = &s->page->cell[number % GPI_CELLS];

    c->task_id = number;
    c->tag = tag;
    c->limit = GPI_NEVER;
    atomic_store(&c->claim, gpi_claim_word(number, GPI_SENT));
    atomic_store(&s->page->order[number % GPI_CELLS], (uint8_t)(number % GPI_CELLS));
    atomic_store(&s->page->sent_number, number);
    if (gpi_page_must_ring(&s->page->worker_sleeps))
        T_EQ(write(s->orders[1], &bell, sizeof(bell)), sizeof(bell));
}

static bool has_ended(const struct scene *s, uint64_t number)
{
    return atomic_load(&s->page->cell[number % GPI_CELLS].end) >> 8 == number;
}

/* Waits for what must come.  0, or -1 when it does not. */
static int wait_for(const struct scene *s, bool (*come)(const struct scene *s, uint64_t number),
                    uint64_t number)
{
    uint64_t until = t_now() + T_PATIENCE / 4;

    while (!come(s, number)) {
        if (t_now() > until)
            return -1;
        (void)poll(NULL, 0, 0);
    }
    return 0;
}

static bool set_up(const struct scene *s, uint64_t unused)
{
    (void)unused;
    return atomic_load(&s->page->setup_done) == 1 && heard(s) & GPI_NEWS_SETUP;
}

static bool sleeps(const struct scene *s, uint64_t unused)
{
    struct t_proc p;

    (void)unused;
    return atomic_load(&s->page->worker_sleeps) && !t_proc_read(s->worker, &p) && p.state == 'S';
}

static void open_scene(struct scene *s)
{
    memset(s, 0, sizeof(*s));
    s->size = gpi_page_size(0);
    s->page = shared_memory(s->size);
    s->input = shared_memory(4096);
    s->page->first_number = 1;
    s->keeper = getpid();
    T_EQ(pipe(s->orders), 0);
    T_EQ(pipe(s->looks), 0);
    T_EQ(fcntl(s->looks[0], F_SETFL, O_NONBLOCK), 0);
    s->worker = t_step_start(be_worker, s);
    t_step_go(s->worker, 0);
    T_EQ(wait_for(s, set_up, 0), 0);
}

static void close_scene(struct scene *s)
{
    const struct gpi_frame end = { .magic = GPI_ORDER_MAGIC,
                                   .incarnation = 1,
                                   .what = GPI_ORDER_END };
    int status;

    T_EQ(write(s->orders[1], &end, sizeof(end)), sizeof(end));
    T_EQ(t_step_wait(s->worker, &status, T_PATIENCE), 0);
    T_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (int i = 0; i < 2; i++) {
        (void)close(s->orders[i]);
        (void)close(s->looks[i]);
    }
    (void)munmap(s->page, s->size);
    (void)munmap(s->input, 4096);
}

/* Sends a task that stops at its end, and waits until it does. */
static void send_and_stop(struct scene *s, uint64_t tag)
{
    int status;

    T_EQ(wait_for(s, sleeps, 0), 0); /* so that each round is like the last */
    (void)heard(s);
    send(s, tag);
    T_EQ(t_step_wait(s->worker, &status, T_PATIENCE), 0);
    T_CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
}

/* Runs one instruction.  0 when the worker has fallen asleep instead. */
static int step_once(const struct scene *s)
{
    int r = t_step(s->worker, T_MS(20)), status;

    for (; r == 0; r = t_step_wait(s->worker, &status, T_MS(20)) ? 0 : 1)
        if (sleeps(s, 0))
            return 0;
    T_EQ(r, 1);
    return 1;
}

/* Brings the worker k instructions past the mark in its task.  0 when it falls asleep before. */
static int step_past_a_task(struct scene *s, unsigned k)
{
    send_and_stop(s, STOPS_AT_ITS_END);
    for (unsigned i = 0; i < k; i++)
        if (!step_once(s))
            return 0;
    return 1;
}

/* Wakes the worker out of the call in which its last step is stuck. */
static void wake_by_a_task(struct scene *s)
{
    int status;

    send(s, PLAIN);
    T_EQ(t_step_wait(s->worker, &status, T_PATIENCE), 0);
    T_CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
}

/* C1 A1: at whatever instruction the worker is killed: an end word never comes before its record.
 */
T_LONG_CASE(end_is_complete_when_told, 60)
{
    struct scene s;
    unsigned told = 0, k = 0;

    open_scene(&s);
    send_and_stop(&s, FAILS_AND_STOPS);
    for (; step_once(&s); k++) {
        struct gpi_ending e;
        const struct gpi_cell *c = &s.page->cell[s.number % GPI_CELLS];

        if (gpi_cell_look(c, s.number, 1, gpi_now(), 0, &e) == GPI_LOOK_NOT_YET)
            continue;
        told++;
        T_EQ(gpi_cell_look(c, s.number, 1, gpi_now(), 0, &e), GPI_LOOK_ENDED);
        T_EQ(e.end, GPI_END_FAILED);
        T_EQ(e.code, s.number);
        T_EQ(e.result_place, GPI_PLACE_CELL);
        T_EQ(e.result_size, 1000 + s.number);
        T_CHECK(e.has_text);
        T_CMP(e.ended_at, >, e.started_at);
    }
    printf("%u instructions, told at %u of them\n", k, told);
    T_CMP(told, >, 0);
    wake_by_a_task(&s);
    t_step_go(s.worker, 0);
    T_EQ(wait_for(&s, has_ended, s.number), 0);
    close_scene(&s);
}

/* What was sent while the worker fell asleep is run, whatever instruction it had come to. */
T_LONG_CASE(task_sent_as_the_worker_falls_asleep, 120)
{
    struct scene s;
    int awake = 1;
    unsigned k = 0;

    open_scene(&s);
    for (; awake; k += t_stride()) {
        awake = step_past_a_task(&s, k);
        if (awake)
            send(&s, PLAIN);
        else
            wake_by_a_task(&s);
        t_step_go(s.worker, 0);
        if (wait_for(&s, has_ended, s.number))
            T_FAIL("a task that was sent at instruction %u after the last one is never looked at",
                   k);
    }
    printf("%u instructions from the task to sleep\n", k);
    T_CMP(k, >, 50);
    close_scene(&s);
}

static bool end_was_rung(const struct scene *s, uint64_t unused)
{
    (void)unused;
    return heard(s) & GPI_NEWS_ENDED;
}

/* The other way round: the host falls asleep while the worker ends a task.  It has seen the end, or
 * it is woken. */
T_LONG_CASE(host_falls_asleep_as_a_task_ends, 120)
{
    struct scene s;
    unsigned k = 0, seen = 0, rung = 0;
    int awake = 1;

    open_scene(&s);
    for (; awake; k += t_stride()) {
        awake = step_past_a_task(&s, k);
        atomic_store(&s.page->host_sleeps, 1);
        atomic_thread_fence(memory_order_seq_cst);
        if (has_ended(&s, s.number)) {
            atomic_store(&s.page->host_sleeps, 0);
            seen++;
            if (!awake)
                wake_by_a_task(&s);
            t_step_go(s.worker, 0);
        } else {
            t_step_go(s.worker, 0);
            if (wait_for(&s, end_was_rung, 0))
                T_FAIL("the host fell asleep at instruction %u of the end of a task, and no bell "
                       "woke it",
                       k);
            rung++;
        }
    }
    printf("the host saw %u ends by itself and was woken for %u\n", seen, rung);
    T_CMP(seen, >, 0);
    T_CMP(rung, >, 0);
    T_EQ(wait_for(&s, has_ended, s.number), 0);
    close_scene(&s);
}
