/* SPDX-License-Identifier: MIT */
/*
 * hostile.c - a worker that lies: garbage in its pipes and in the pages it shares with the host.
 *
 * Whatever it writes, the host lives, every task has one outcome, and destroy returns in time
 * [C17]. (What the outcome of the liar's own tasks is, nobody can promise.)
 */
#include "verbs.h"

#include "own_page.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WORK,
    GARBAGE_IN_PIPES,
    SCRIBBLE_AND_DIE,
    SCRIBBLE_AND_RETURN,
    DESCRIBE,
    WORDS,
    WORDS_AND_DIE,
    FILL,
    GO_DEAF,
    LOSE_BELL,
    HIDE_START
};
enum { LOST };

/* Writes garbage to every pipe and socket of this worker; also records cut short, and too long. */
static void write_garbage(uint64_t seed)
{
    for (int fd = 3; fd < 1024; fd++) {
        uint64_t bytes[80];

        if (fcntl(fd, F_GETFD) < 0)
            continue;
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
        for (int i = 0; i < 20; i++) {
            for (size_t n = 0; n < 80; n++)
                bytes[n] = next_random(&seed);
            (void)!write(fd, bytes, 1 + next_random(&seed) % sizeof(bytes));
        }
    }
}

/* Writes a random word at random places of each page the library shares with us, `share` of 1,000.
 */
static void scribble(uint64_t seed, unsigned share)
{
    FILE *in = fopen("/proc/self/maps", "re");
    char line[512];

    while (in && fgets(line, sizeof(line), in)) {
        uint64_t from, to;
        char mode[8];

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &from, &to, mode) != 3 || mode[1] != 'w' ||
            mode[3] != 's' || !strstr(line, "memfd:gpud"))
            continue;
        if (to - from > 1u << 20)
            to = from + (1u << 20);
        for (; from < to; from += 8)
            if (next_random(&seed) % 1000 < share) {
                uint64_t word = next_random(&seed);

                /* Small numbers are the more dangerous ones. */
                *(volatile uint64_t *)from = word % 3 ? word >> (word % 64) : word;
            }
    }
    if (in)
        (void)fclose(in);
}

/* Lies in each word that is the worker's alone, but for the end records: by turns one of them, or
 * all. */
static void lie_in_words(uint64_t seed)
{
    static const uint64_t lies[] = { 0, 1, 63, 65, UINT32_MAX, UINT64_MAX, 1ull << 63 };
    struct gpi_page *p = own_page();
    uint64_t lie = lies[seed % 7];
    unsigned which = (unsigned)(seed / 7 % 8);

    if (which == 0 || which == 7)
        atomic_store(&p->granules_used, (uint32_t)lie);
    if (which == 1 || which == 7)
        atomic_store(&p->progress_at, lie);
    if (which == 2 || which == 7)
        atomic_store(&p->progress_stopped, lie);
    if (which == 3 || which == 7)
        atomic_store(&p->stalled_at, lie);
    for (uint32_t i = 0; i < GPI_CELLS; i++) {
        if (which == 4 || which == 7)
            p->extra[i].stalled_at = lie;
        if (which == 5 || which == 7)
            p->cell[i].flags = (uint16_t)lie;
        if (which == 6 || which == 7)
            atomic_store(&p->cell[i].end, atomic_load(&p->cell[i].claim) >> 2 << 8 |
                                              (lie & 1 ? GPI_END_EXPIRED : lie & 255));
    }
}

/* Takes granules, and says that it has taken none, or more than there are. */
static int fill(gpud_task *t, uint64_t seed)
{
    struct gpi_page *p = own_page();
    void *room = NULL;
    int code = gpud_task_result_alloc(t, 40 << 20, &room);

    if (code)
        return code;
    atomic_store(&p->granules_used, seed ? UINT32_MAX : 0);
    (void)raise(SIGKILL);
    return 0;
}

/* What the worker believes about itself, and a result too large for its cell. */
struct self {
    uint64_t seed, setup_size;
    uint32_t slot, incarnation;
    char device[32], setup[32];
    unsigned char filler[100000];
};

static int describe(gpud_task *t)
{
    gpud_worker *w = gpud_task_worker(t);
    void *room = NULL;
    size_t size = 0;
    struct self *s;
    int code = gpud_task_result_alloc(t, sizeof(*s), &room);

    if (code)
        return code;
    s = room;
    memset(s, 7, sizeof(*s));
    (void)snprintf(s->setup, sizeof(s->setup), "%s",
                   (const char *)gpud_worker_setup_data(w, &size));
    (void)snprintf(s->device, sizeof(s->device), "%s", gpud_worker_device(w));
    s->setup_size = size;
    s->seed = gpud_worker_seed(w);
    s->slot = gpud_worker_slot(w);
    s->incarnation = gpud_worker_incarnation(w);
    return 0;
}

/* Puts a pipe there in which nobody rings. */
static void go_deaf(void)
{
    int ear = own_pipe(O_RDONLY), quiet[2];

    if (pipe(quiet) || dup2(quiet[0], ear) < 0)
        abort();
}

/* Leaves a child that waits for the next bell before this worker does, and takes it away. */
static void lose_bell(void)
{
    int ear = own_pipe(O_RDONLY);
    char bell[4096];
    struct t_proc p;
    pid_t pid = fork();

    while (pid && !t_proc_read(pid, &p) && p.state != 'S')
        t_pass(T_US(100));
    if (pid)
        return;
    (void)!read(ear, bell, sizeof(bell));
    (void)t_word_add(LOST);
    _exit(0);
}

static struct gpi_cell *own_cell(uint64_t id)
{
    struct gpi_cell *c = own_page()->cell;

    while (c->task_id != id)
        c++;
    return c;
}

static int process(gpud_task *t, void *state)
{
    uint64_t verb = gpud_task_tag(t) >> 32, seed = gpud_task_tag(t) & 0xffffffffU;

    (void)state;
    if (verb == GARBAGE_IN_PIPES)
        write_garbage(seed);
    if (verb == SCRIBBLE_AND_DIE || verb == SCRIBBLE_AND_RETURN)
        scribble(seed, seed % 2 ? 1000 : 20);
    if (verb == SCRIBBLE_AND_DIE)
        (void)raise(SIGKILL);
    if (verb == WORDS || verb == WORDS_AND_DIE)
        lie_in_words(seed);
    if (verb == WORDS_AND_DIE)
        (void)raise(SIGKILL);
    if (verb == FILL)
        return fill(t, seed);
    if (verb == GO_DEAF)
        go_deaf();
    if (verb == LOSE_BELL)
        lose_bell();
    if (verb == HIDE_START) {
        atomic_store(&own_cell(gpud_task_id(t))->started_at, seed % 3 ? 0 : UINT64_MAX);
        if (seed % 2)
            (void)raise(SIGKILL);
    }
    return verb == DESCRIBE ? describe(t) : 0;
}

enum { TASKS = 60, HOSTILE_AT = 20 };

static void lie(uint64_t verb, uint64_t seeds)
{
    t_init(NULL, process, NULL);
    for (uint64_t seed = 0; seed < seeds; seed++) {
        gpud_dispatcher *d =
            T_CREATE(.devices = "cpu:2", .task_limit = T_MS(100), .grace = T_MS(50),
                     .setup_limit = T_S(2), .backoff = T_MS(1), .kill_limit = T_MS(300),
                     /* a spoilt sent_number keeps it from END */
                     .cleanup_limit = T_MS(300), .failures_in_a_row = 1000,
                     .stall_limit = verb >= WORDS && seed % 2 ? T_MS(60) : 0,
                     .start_events = seed / 2 % 2, .close_limit = T_S(1));
        uint64_t start, uncollected = 0;
        struct t_log log = { 0 };

        for (uint64_t n = 0; n < TASKS; n++)
            T_SUBMIT(d, .tag = n == HOSTILE_AT ? T_TAG(verb, seed) : n, .label = "x");
        /* Only what the liar held may be late or lost to its lies; whatever is told is told once.
         */
        T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, T_S(1)));
        start = t_now();
        while (t_poll(d, &log, T_MS(100)) != GPUD_EEND)
            T_CMP(t_now() - start, <, T_S(6));
        T_EQ(t_log_count(&log, GPUD_EVENT_OUTCOME), TASKS);
        for (uint64_t n = 0; n < TASKS; n++)
            (void)t_check_outcome(__FILE__, __LINE__, &log, n == HOSTILE_AT ? T_TAG(verb, seed) : n,
                                  0);
        start = t_now();
        T_OK(gpud_dispatcher_destroy(&d, &uncollected));
        T_EQ(uncollected, 0);
        T_CMP(t_now() - start, <, T_S(4));
        t_log_free(&log);
    }
    T_OK(gpud_fini());
}

/* C17: frames of garbage, cut short, too long. */
T_LONG_CASE(garbage_in_pipes, 60)
{
    lie(GARBAGE_IN_PIPES, 30);
}

/* C17: pages full of lies, and then its death must be settled with them. */
T_LONG_CASE(scribbles_and_dies, 60)
{
    lie(SCRIBBLE_AND_DIE, 30);
}

/* C17: pages full of lies, and it goes on. */
T_LONG_CASE(scribbles_and_returns, 90)
{
    lie(SCRIBBLE_AND_RETURN, 10);
}

/* C17: each of the words beside the end records: progress, stalls, batches, granules, ends that
 * cannot be. */
T_LONG_CASE(lies_in_words, 90)
{
    lie(WORDS, 56);
}

T_LONG_CASE(lies_in_words_and_dies, 90)
{
    lie(WORDS_AND_DIE, 56);
}

/* C17: what a dead worker had taken of its arena is free again, whatever it says it took. */
T_CASE(granules_come_back)
{
    t_init(NULL, process, NULL);
    for (uint64_t seed = 0; seed < 2; seed++) {
        gpud_dispatcher *d = t_create(
            T_OPTIONS(.devices = "cpu:1", .payload_budget = 160 << 20, .backoff = T_MS(1)));
        struct t_log log = { 0 };

        for (uint64_t n = 0; n < 8; n++) { /* each takes more than a tenth of it */
            T_SUBMIT(d, .tag = T_TAG(FILL, seed));
            t_collect(d, &log, n + 1);
        }
        T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_CRASHED), 8);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

/* C17: no lie outlives its worker: the next life of the slot finds everything right, pages
 * included. */
T_CASE(next_life_knows_nothing_of_it)
{
    t_init(NULL, process, NULL);
    for (uint64_t seed = 1; seed < 20; seed += 2) {
        gpud_dispatcher *d = T_CREATE(.devices = "cpu:1", .seed = 77, .setup_data = "setup",
                                      .setup_size = 6, .backoff = T_MS(1));
        struct t_log log = { 0 };

        T_SUBMIT(d, .tag = T_TAG(SCRIBBLE_AND_DIE, seed));
        t_collect(d, &log, 1); /* so that none of the others is ever at the liar */
        for (uint64_t n = 0; n < 10; n++)
            T_SUBMIT(d, .tag = T_TAG(DESCRIBE, n));
        t_collect(d, &log, 11);
        (void)t_check_outcome(__FILE__, __LINE__, &log, T_TAG(SCRIBBLE_AND_DIE, seed), 0);
        for (uint64_t n = 0; n < 10; n++) {
            const struct gpud_event *e = T_OUTCOME(&log, T_TAG(DESCRIBE, n), SUCCESS);
            const struct self *s = e->result;

            T_EQ(e->result_size, sizeof(*s));
            T_EQ(s->slot, 0);
            T_EQ(s->seed, 77);
            T_EQ(s->incarnation, e->incarnation);
            T_TEXT(s->device, "cpu:0");
            T_EQ(s->setup_size, 6);
            T_TEXT(s->setup, "setup");
            T_EQ(s->filler[sizeof(s->filler) - 1], 7);
        }
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

static int sleeps(void *user)
{
    struct t_proc *w = user;

    return !t_proc_read(w->pid, w) && w->state == 'S';
}

/* C1 C17: a worker that hears no bell is replaced, and what it was sent is done, also where nothing
 * has a limit. */
T_CASE(goes_deaf)
{
    struct t_log log = { 0 };
    char text[160];
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .kill_limit = T_S(1), .backoff = T_MS(1));
    struct t_proc w;

    T_SUBMIT(d, .tag = T_TAG(GO_DEAF, 0));
    t_collect(d, &log, 1);
    w = t_worker(d, 0);
    t_wait_until("the worker sleeps", sleeps, &w);
    t_submit_tags(d, 0, 10);
    t_collect(d, &log, 11);
    for (uint64_t n = 0; n < 10; n++)
        T_EQ(T_OUTCOME(&log, n, SUCCESS)->attempt, 1);
    T_EQ(t_stats(d).restarts, 1);
    T_EQ(t_stats(d).protocol_errors, 1);
    (void)snprintf(text, sizeof(text),
                   "worker %d of slot 0 broke the protocol: did not start a task within 1.000 s "
                   "(kill_limit); the host kills and replaces it",
                   (int)w.pid);
    T_TEXT(t_log_at(&log, GPUD_EVENT_LOG, 0)->text, text);
    t_end(&d, &log);
}

/* C1 C17: a bell that somebody else has taken is rung again; the worker stays. */
T_CASE(loses_its_bell)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .kill_limit = T_S(1));
    struct t_proc w;

    T_SUBMIT(d, .tag = T_TAG(LOSE_BELL, 0));
    t_collect(d, &log, 1);
    w = t_worker(d, 0);
    t_wait_until("the worker sleeps", sleeps, &w);
    (void)T_RUN(d, &log, SUCCESS, .tag = 1);
    t_word_wait(LOST, 1);
    T_EQ(t_stats(d).restarts, 0);
    t_end(&d, &log);
}

/* One that is stopped is not taken for deaf. */
T_CASE(stopped_is_not_deaf)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .kill_limit = T_S(1));
    struct t_proc w;

    t_wait_ready(d, 1);
    w = t_worker(d, 0);
    t_kill(w.pid, SIGSTOP);
    T_SUBMIT(d, .tag = 1);
    t_pass(T_MS(3500)); /* several looks at it */
    t_kill(w.pid, SIGCONT);
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, 1, SUCCESS);
    T_EQ(t_stats(d).restarts, 0);
    t_end(&d, &log);
}

/* Option start_events: an attempt is charged with a start that the host could not believe, and that
 * start is an event. */
T_CASE(hides_its_start)
{
    enum { LIARS = 12 };
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .start_events = 1,
                                 .drive = GPUD_DRIVE_CALLER, .backoff = T_MS(1));

    for (uint64_t n = 0; n < LIARS; n++) {
        const struct gpud_event *start, *end;
        struct t_proc worker;
        T_OK(gpud_dispatcher_ready(d, 1, GPUD_NEVER, NULL));
        worker = t_worker(d, 0);
        T_SUBMIT(d, .tag = T_TAG(HIDE_START, n));
        (void)t_poll(d, &log, 0); /* sends it, and looks no more until the worker has died */
        if (n % 2)
            t_wait_ended(&worker);
        t_collect(d, &log, n + 1);
        T_EQ(t_log_count(&log, GPUD_EVENT_STARTED), n + 1);
        start = t_log_at(&log, GPUD_EVENT_STARTED, n);
        end = T_OUTCOME(&log, T_TAG(HIDE_START, n), CRASHED);
        T_CHECK(start < end);
        T_EQ(start->tag, end->tag);
        T_EQ(start->attempt, 1);
        T_EQ(start->incarnation, end->incarnation);
        T_CMP(start->started_at, <=, end->ended_at);
        T_CMP(start->started_at, >=, end->sent_at);
    }
    t_end(&d, &log);
}
