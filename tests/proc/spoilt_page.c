/* SPDX-License-Identifier: MIT */
/*
 * spoilt_page.c - a worker overwrites its whole status page while 36 tasks are sent ahead: which of
 * them are charged.                                                                [C2] [C3] [C17]
 */
#include "fixture.h"

#include "own_page.h"

#include <signal.h>
#include <unistd.h>

#include "wire/frame.h"

enum pattern { ZEROS, ONES, RANDOM, PATTERNS };
enum after { DIE, REST, RETURN };
enum { STARTED, GATE, SPOILT, SETUPS }; /* words */
enum { AHEAD = 36, BATCH = 4 };
enum verb { WORK, SPOIL, SPOIL_CLAIMS };
#define TAG(verb, pattern, after, n) \
    ((uint64_t)(verb) << 32 | (uint64_t)(pattern) << 28 | (uint64_t)(after) << 24 | (uint64_t)(n))

/* What a spoiler does: with each pattern, and with each end. */
static const struct {
    enum pattern pattern;
    enum after after;
} ways[] = { { ZEROS, DIE }, { ONES, DIE }, { RANDOM, DIE }, { RANDOM, REST }, { ZEROS, RETURN } };
enum { WAYS = T_LENGTH(ways) };

/* ---- the worker ---- */

static void fill(unsigned char *from, const unsigned char *to, enum pattern pattern)
{
    uint64_t seed = (uint64_t)getpid();

    if (pattern != RANDOM)
        memset(from, pattern == ONES ? 0xff : 0, (size_t)(to - from));
    for (; pattern == RANDOM && from < to; from++)
        *from = (unsigned char)next_random(&seed);
}

/* Overwrites the page but for the keeper's words, which a worker can only read. */
static void spoil(enum pattern pattern)
{
    unsigned char *page = (unsigned char *)own_page();

    fill(page, page + offsetof(struct gpi_page, stopped_ns), pattern);
    fill(page + offsetof(struct gpi_page, log_written), page + sizeof(struct gpi_page), pattern);
    (void)t_word_add(SPOILT);
}

static void go(enum after after)
{
    if (after == DIE)
        (void)raise(SIGKILL);
    if (after == REST)
        t_rest();
}

/* Of all but its own task: those behind cannot be claimed any more. */
static void spoil_claims(uint64_t id)
{
    struct gpi_page *p = own_page();

    for (uint32_t i = 0; i < GPI_CELLS; i++)
        if (p->cell[i].task_id != id)
            atomic_store(&p->cell[i].claim, UINT64_MAX);
}

static int process(gpud_task *t, void *state)
{
    const uint64_t tag = gpud_task_tag(t);
    const enum verb verb = (enum verb)(tag >> 32);

    (void)state;
    (void)t_word_add(STARTED);
    if (verb == SPOIL_CLAIMS) {
        t_word_wait(GATE, 1);
        spoil_claims(gpud_task_id(t));
    }
    if (verb == SPOIL) {
        t_word_wait(GATE, 1);
        spoil((enum pattern)(tag >> 28 & 15));
        go((enum after)(tag >> 24 & 15));
    }
    return 0;
}

static int process_batch(gpud_task *const *tasks, size_t n, void *state)
{
    for (size_t i = 0; i < n; i++)
        (void)process(tasks[i], state);
    return 0;
}

/* Says that setup is over, which it is not, and waits until tasks are sent. */
static void pretend_ready(void)
{
    struct gpi_page *p = own_page();
    const struct gpi_frame f = {
        .magic = GPI_LOOK_MAGIC,
        .incarnation = atomic_load(&p->incarnation),
        .what = GPI_NEWS_SETUP,
    };

    atomic_store(&p->setup_done, 1);
    if (write(own_pipe(O_WRONLY), &f, sizeof(f)) != sizeof(f))
        abort();
    while (atomic_load(&p->sent_number) + 1 < p->first_number + AHEAD)
        t_pass(T_US(100));
}

/* The setup bytes: the pattern with which the first setup spoils the page, and how it ends. */
static int setup(gpud_worker *w, void **ret_state)
{
    size_t size = 0;
    const unsigned char *way = gpud_worker_setup_data(w, &size);

    (void)ret_state;
    if (t_word_add(SETUPS) > 1)
        return 0;
    if (way[1] != RETURN)
        pretend_ready();
    spoil((enum pattern)way[0]);
    go((enum after)way[1]);
    return 0;
}

/* ---- the host ---- */

/* What is queued is sent to the worker, which may spoil its page then. */
static void open_gate(gpud_dispatcher *d)
{
    t_wait_until("all are sent", t_none_queued, d);
    t_word_set(GATE, 1);
}

/* Tasks 0 to n - 1 have ended well, as if nobody had spoilt anything. */
static void check_work(const struct t_log *log, uint64_t from, uint64_t n)
{
    for (uint64_t i = from; i < n; i++)
        T_EQ(T_OUTCOME(log, i, SUCCESS)->attempt, 1);
}

static void check_charged(const struct t_log *log, uint64_t tag, uint32_t attempt)
{
    const struct gpud_event *e = T_OUTCOME(log, tag, CRASHED);

    T_EQ(e->code, GPUD_EPROTOCOL);
    T_EQ(e->attempt, attempt);
    T_EQ(e->phase, GPUD_PHASE_PROCESS);
    if (!strstr(e->text, "broke the protocol, killed by signal 9 (SIGKILL)"))
        T_FAIL("%s", e->text);
}

/* C2: one spoils the page, 36 wait behind it: it alone is charged, they go back and run. [T27] */
T_LONG_CASE(one_task_is_charged, 60)
{
    t_init(NULL, process, NULL);
    for (int way = 0; way < WAYS; way++) {
        const uint64_t tag = TAG(SPOIL, ways[way].pattern, ways[way].after, 0);
        struct t_log log = { 0 };
        gpud_dispatcher *d;

        t_word_set(GATE, 0);
        d = T_CREATE(.devices = "cpu:1", .sent_ahead = AHEAD + 1, .kill_limit = T_S(1),
                     .backoff = T_MS(1));
        T_SUBMIT(d, .tag = tag);
        t_submit_tags(d, 0, AHEAD);
        open_gate(d);
        t_collect(d, &log, AHEAD + 1);
        check_charged(&log, tag, 1);
        check_work(&log, 0, AHEAD);
        T_EQ(t_stats(d).protocol_errors, 1);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

/* C2: those whose ends the host has taken keep their outcomes, in the middle of the cells, too. */
T_CASE(others_have_ended)
{
    t_init(NULL, process, NULL);
    for (int pattern = 0; pattern < PATTERNS; pattern++) {
        const uint64_t tag = TAG(SPOIL, pattern, DIE, 0);
        struct t_log log = { 0 };
        gpud_dispatcher *d;

        t_word_set(GATE, 0);
        d = T_CREATE(.devices = "cpu:1", .sent_ahead = 64, .backoff = T_MS(1));
        t_submit_tags(d, 0, 10);
        T_SUBMIT(d, .tag = tag);
        t_submit_tags(d, 10, AHEAD);
        t_collect(d, &log, 10);
        open_gate(d);
        t_collect(d, &log, AHEAD + 1);
        check_charged(&log, tag, 1);
        check_work(&log, 0, AHEAD);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

static uint32_t attempts_of_work(const struct t_log *log, uint64_t n)
{
    uint32_t all = 0;

    for (uint64_t i = 0; i < n; i++)
        all += T_OUTCOME(log, i, SUCCESS)->attempt;
    return all;
}

static int worker_sleeps(void *page)
{
    return atomic_load(&((struct gpi_page *)page)->worker_sleeps) != 0;
}

/* C1: a worker that can claim nothing any more is replaced, also where nothing has a limit. */
T_CASE(claims_are_spoilt)
{
    const uint64_t tag = TAG(SPOIL_CLAIMS, 0, RETURN, 0);
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .sent_ahead = AHEAD + 1, .kill_limit = T_S(1),
                .max_attempts = 2, .backoff = T_MS(1), .drive = GPUD_DRIVE_CALLER);

    T_OK(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL));
    T_SUBMIT(d, .tag = tag);
    t_submit_tags(d, 0, AHEAD);
    (void)t_poll(d, &log, 0);
    t_word_wait(STARTED, 1);
    t_word_set(GATE, 1);
    /* nobody drives: the host looks at no claim before the spoiler's end stands in the page */
    t_wait_until("the worker finds no task", worker_sleeps, own_page());
    t_collect(d, &log, AHEAD + 1);
    T_EQ(T_OUTCOME(&log, tag, SUCCESS)->attempt, 1);
    T_EQ(attempts_of_work(&log, AHEAD), AHEAD + 1); /* the first is believed to have begun */
    T_EQ(t_stats(d).protocol_errors, 1);
    t_end(&d, &log);
}

/* C2 C3: it wipes out ends that the host has not taken.  One of those that had ended is charged for
 * it, once; from then on no task is beside another, so the spoiler is found. */
T_CASE(ends_are_wiped_out)
{
    t_init(NULL, process, NULL);
    for (int pattern = 0; pattern < PATTERNS; pattern++) {
        const uint64_t tag = TAG(SPOIL, pattern, DIE, 0);
        struct t_log log = { 0 };
        gpud_dispatcher *d;

        t_word_set(SPOILT, 0);
        t_word_set(GATE, 0);
        d = T_CREATE(.devices = "cpu:1", .sent_ahead = AHEAD + 1, .max_attempts = 9,
                     .drive = GPUD_DRIVE_CALLER, .backoff = T_MS(1));
        T_OK(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL));
        t_submit_tags(d, 0, 10);
        T_SUBMIT(d, .tag = tag);
        t_submit_tags(d, 10, AHEAD);
        (void)t_poll(d, &log, 0);
        t_word_set(GATE, 1);
        t_word_wait(SPOILT, 1); /* nobody drives: the host takes no end */
        t_collect(d, &log, AHEAD + 1);
        check_charged(&log, tag, 2);
        T_CMP(attempts_of_work(&log, AHEAD), <=, AHEAD + 1);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

/* The spoiler, third of four in its batch, with 36 behind it. */
static gpud_dispatcher *gather_batch(uint64_t tag)
{
    gpud_dispatcher *d;

    t_word_set(STARTED, 0);
    t_word_set(GATE, 0);
    /* batch_wait: else the first may be called before the second is sent */
    d = T_CREATE(.devices = "cpu:1", .sent_ahead = AHEAD + BATCH, .max_batch = BATCH,
                 .batch_wait = T_S(5), .backoff = T_MS(1));
    t_submit_tags(d, 0, 2);
    T_SUBMIT(d, .tag = tag);
    t_submit_tags(d, 2, AHEAD + BATCH - 1);
    t_word_wait(STARTED, 3);
    open_gate(d);
    return d;
}

/* C2: the members of the batch are charged, and no other. */
T_LONG_CASE(members_are_charged, 60)
{
    const struct gpud_definition definition =
        GPUD_DEFINITION_BATCH("test", NULL, process_batch, NULL);

    T_OK(gpud_init(&definition, 1, NULL));
    for (int pattern = 0; pattern < PATTERNS; pattern++) {
        const uint64_t tag = TAG(SPOIL, pattern, DIE, 0);
        struct t_log log = { 0 };
        gpud_dispatcher *d = gather_batch(tag);

        t_collect(d, &log, AHEAD + BATCH);
        check_charged(&log, tag, 1);
        for (uint64_t i = 0; i < BATCH - 1; i++)
            check_charged(&log, i, 1);
        check_work(&log, BATCH - 1, AHEAD + BATCH - 1);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

/* ---- before the first claim ---- */

static gpud_dispatcher *create_with(int pattern, int after)
{
    const unsigned char way[] = { (unsigned char)pattern, (unsigned char)after };

    t_word_set(SETUPS, 0);
    return T_CREATE(.devices = "cpu:1", .setup_data = way, .setup_size = sizeof(way),
                    .sent_ahead = AHEAD, .backoff = T_MS(1), .failures_in_a_row = 2,
                    .kill_limit = T_S(1), .cleanup_limit = T_S(1));
}

/* C2: a worker that has claimed nothing is the slot's failure, and no task is charged with it. */
T_LONG_CASE(nothing_was_claimed, 60)
{
    t_init(setup, process, NULL);
    for (int way = 0; way < PATTERNS * RETURN; way++) {
        struct t_log log = { 0 };
        gpud_dispatcher *d = create_with(way / RETURN, way % RETURN);

        t_submit_tags(d, 0, AHEAD);
        t_collect(d, &log, AHEAD);
        check_work(&log, 0, AHEAD);
        T_EQ(t_stats(d).protocol_errors, 1);
        T_EQ(t_stats(d).restarts, 1);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

/* C1: a setup that spoils the page and returns.  Where the number of tasks sent is too high its
 * worker runs past them: it is replaced, and they are done.  One that meets them as they are sent
 * does them, and runs on: it is killed after cleanup_limit. */
T_LONG_CASE(setup_spoils_and_returns, 60)
{
    t_init(setup, process, NULL);
    for (int pattern = 0; pattern <= ONES; pattern++) {
        struct t_log log = { 0 };
        gpud_dispatcher *d = create_with(pattern, RETURN);

        t_submit_tags(d, 0, AHEAD);
        t_collect(d, &log, AHEAD);
        check_work(&log, 0, AHEAD);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}
