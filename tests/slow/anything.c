/* SPDX-License-Identifier: MIT */
/*
 * anything - many threads call everything on two dispatchers, and count.
 *
 *     anything [--seconds S] [--seed S] [--threads T]
 *
 * Each round makes two dispatchers with options drawn by lot (who drives, batches, retries, expiry,
 * stall and time limits, small queues) and lets T threads submit, cancel, wait, poll, keep,
 * release, look and kill workers at random. Then both are closed, and what is left is
 * collected. Every accepted task has exactly one outcome, by poll or by wait [C1]; kept events read
 * the same until they are released, after destroy as well; nothing hangs. Exit 1 when anything of
 * that is not so.
 */
#include "fixture.h"

#include "asked.h"
#include "kept.h"
#include "lots.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TASKS_MAX = 20000, THREADS_MAX = 32, LABEL = 24, ROUND_MS = 700, WATCHDOG_S = 60 };

static struct {
    uint64_t seconds, seed, threads;
} want = { .seconds = 60, .seed = 1, .threads = 8 };

/* What a task does in its worker. */
enum deed {
    DEED_NOTHING,
    DEED_RESULT,
    DEED_FAIL,
    DEED_CRASH,
    DEED_EXIT,
    DEED_SLEEP,
    DEED_SPEAK,
    DEED_DEAF,
    DEED_KINDS
};

struct work {
    uint32_t deed, size;
    uint64_t nap, tag;
};

/* One dispatcher and what is known of its tasks. */
struct stage {
    gpud_dispatcher *d;
    struct gpud_options options;
    char devices[16];
    _Atomic uint32_t next; /* tag */
    _Atomic uint32_t accepted, rows;
    _Atomic uint8_t taken[TASKS_MAX], outcomes[TASKS_MAX], awaited[TASKS_MAX];
    _Atomic uint64_t id[TASKS_MAX];
    pthread_mutex_t polling;
    struct kept kept;
};

static struct stage stage[2];
static _Atomic int over;
static _Atomic uint64_t steps, tasks_of_all, by_outcome[GPUD_OUTCOME_COUNT];
static const char *_Atomic place = "start";

/* ---- worker ---- */

static void stay_deaf(gpud_task *t, uint64_t ns)
{
    uint64_t until = t_now() + ns;

    (void)t;
    while (t_now() < until)
        nap(100000);
}

static int act(gpud_task *t, int alone)
{
    const struct work *w = gpud_task_data(t);
    unsigned char *result;

    if (gpud_task_size(t) < sizeof *w)
        return 0;
    switch (w->deed) {
    case DEED_RESULT:
        if (gpud_task_result_alloc(t, w->size, (void **)&result))
            return gpud_task_fail(t, 5, "no room");
        memset(result, (int)(w->tag & 255), w->size);
        return 0;
    case DEED_FAIL:
        (void)gpud_task_result_set(t, w, sizeof *w);
        return gpud_task_fail(t, 7, "as asked");
    case DEED_CRASH:
        if (!alone && w->tag & 1)
            return 0;
        (void)kill(getpid(), SIGKILL);
        return 0;
    case DEED_EXIT:
        _exit(3);
    case DEED_SLEEP:
        nap(w->nap);
        return gpud_task_expired(t) ? 9 : 0;
    case DEED_SPEAK:
        for (int i = 0; i < 4; i++) {
            (void)gpud_task_progress(t, i / 4.0, "on");
            gpud_worker_log(gpud_task_worker(t), GPUD_LEVEL_INFO, "a line");
            (void)!write(1, "words\n", 6);
            nap(w->nap / 8);
        }
        return 0;
    case DEED_DEAF:
        stay_deaf(t, w->nap * 4);
        return 0;
    default:
        return 0;
    }
}

static int process(gpud_task *t, void *state)
{
    (void)state;
    return act(t, 1);
}

static int process_batch(gpud_task *const *tasks, size_t n, void *state)
{
    (void)state;
    for (size_t i = 0; i < n; i++)
        (void)act(tasks[i], n == 1);
    return 0;
}

/* ---- what comes back ---- */

static void note_outcome(struct stage *s, const struct gpud_event *e, int waited)
{
    const unsigned char *result = e->result;
    char label[LABEL];

    atomic_fetch_add(&steps, 1);
    if (e->tag >= TASKS_MAX || atomic_load(&s->awaited[e->tag]) != (waited ? 2 : 1))
        T_FAIL("an outcome of tag %" PRIu64 ", by the wrong way", e->tag);
    if (atomic_fetch_add(&s->outcomes[e->tag], 1))
        T_FAIL("a second outcome of tag %" PRIu64, e->tag);
    if (e->outcome == 0 || e->outcome >= GPUD_OUTCOME_COUNT)
        T_FAIL("outcome %u", e->outcome);
    (void)snprintf(label, sizeof label, "%" PRIu64, e->tag);
    if (e->tag % 3 == 0)
        T_TEXT(e->label, label);
    if (e->outcome == GPUD_OUTCOME_SUCCESS && e->result_size &&
        (result[0] != (e->tag & 255) || result[e->result_size - 1] != (e->tag & 255)))
        T_FAIL("tag %" PRIu64 " has another's result", e->tag);
    atomic_fetch_add(&by_outcome[e->outcome], 1);
}

/* ---- the calls ---- */

static int poll_once(struct stage *s, uint64_t *state, uint64_t wait)
{
    struct gpud_event events[32] = { { .struct_size = sizeof events[0] } };
    int n = gpud_dispatcher_poll(s->d, events, 1 + below(state, 32), wait);

    if (n < 0 && n != GPUD_EEND)
        T_FAIL("poll: %s", gpud_error_name(n));
    for (int i = 0; i < n; i++) {
        struct gpud_event again;
        int r;
        if (events[i].kind == GPUD_EVENT_OUTCOME)
            note_outcome(s, &events[i], 0);
        (void)sum_of(&events[i]);
        if (below(state, 4))
            continue;
        again = events[i];
        r = gpud_event_keep(s->d, &events[i]);
        if (r && r != GPUD_EFULL)
            T_FAIL("keep: %s", gpud_error_name(r));
        if (r == 0) {
            T_CODE(gpud_event_keep(s->d, &events[i]), EINVAL);
            T_CODE(gpud_event_keep(s->d, &again), EINVAL);
            kept_add(&s->kept, &events[i]);
        }
    }
    return n;
}

static void try_poll(struct stage *s, uint64_t *state)
{
    if (pthread_mutex_trylock(&s->polling))
        return;
    (void)poll_once(s, state, below(state, 3) ? 0 : T_MS(2));
    (void)pthread_mutex_unlock(&s->polling);
}

static void submit(struct stage *s, uint64_t *state, int awaited)
{
    static const uint32_t sizes[] = { 0, 1, 64, 65, 4096, 4097, 20000 };
    struct work w = { .nap = below(state, 6) ? below(state, T_US(300)) : below(state, T_MS(15)) };
    struct gpud_task_desc t = {
        .struct_size = sizeof t, .awaited = (uint32_t)awaited, .data = &w, .size = sizeof w
    };
    uint32_t tag = atomic_fetch_add(&s->next, 1);
    char label[LABEL];
    uint64_t id;
    int r;

    if (tag >= TASKS_MAX)
        return;
    w.tag = t.tag = tag;
    w.size = sizes[below(state, T_LENGTH(sizes))];
    w.deed = below(state, 12) ? DEED_RESULT * (uint32_t)below(state, 2)
                              : (uint32_t)below(state, DEED_KINDS);
    (void)snprintf(label, sizeof label, "%u", tag);
    t.label = tag % 3 == 0 ? label : NULL;
    t.priority = (int32_t)below(state, 3);
    t.limit = below(state, 5) ? 0 : 1 + below(state, T_MS(4));
    t.stall_limit = below(state, 8) ? 0 : 1 + below(state, T_MS(4));
    t.expires = below(state, 6) ? 0 : 1 + below(state, T_MS(6));
    t.max_attempts = (uint32_t)below(state, 4);
    t.retry_causes = (uint32_t)below(state, 16);
    atomic_store(&s->awaited[tag], awaited ? 2 : 1);
    atomic_fetch_add(&tasks_of_all, 1);
    r = gpud_dispatcher_submit(s->d, &t, below(state, 4) ? 0 : T_MS(1), &id, NULL);
    if (r == GPUD_EFULL || r == GPUD_ECLOSED)
        return;
    if (r)
        T_FAIL("submit: %s", gpud_error_name(r));
    atomic_store(&s->id[tag], id);
    atomic_store(&s->taken[tag], 1);
    atomic_fetch_add(&s->accepted, 1);
}

static uint64_t some_tag(struct stage *s, uint64_t *state)
{
    uint32_t n = atomic_load(&s->next);

    n = n > TASKS_MAX ? TASKS_MAX : n;
    return n == 0 ? 0 : below(state, 8) && n > 50 ? n - 1 - below(state, 50) : below(state, n);
}

static void wait_one(struct stage *s, uint64_t *state, uint64_t tag, uint64_t timeout)
{
    struct gpud_event e = GPUD_EVENT_INIT;
    int r;

    if (!atomic_load(&s->taken[tag]))
        return;
    r = gpud_dispatcher_wait(s->d, atomic_load(&s->id[tag]), &e, timeout, NULL);
    if (r == 0) {
        T_EQ(e.tag, tag);
        note_outcome(s, &e, 1);
        if (below(state, 2))
            kept_add(&s->kept, &e);
        else
            T_EQ(gpud_event_release(&e), 0);
    } else if (r == GPUD_ENOTAWAITED ? atomic_load(&s->awaited[tag]) != 1
                                     : r != GPUD_ETIMEOUT && r != GPUD_ENOTFOUND &&
                                           r != GPUD_EBUSY && r != GPUD_EFULL) {
        T_FAIL("wait: %s", gpud_error_name(r));
    }
}

static void look(struct stage *s, uint64_t *state)
{
    struct gpud_stats st = { .struct_size = sizeof st };
    struct gpud_slot_stats rows[4] = { { .struct_size = sizeof rows[0] } };
    int n;

    T_OK(gpud_dispatcher_stats(s->d, &st));
    T_CMP(st.delivered, <=, st.accepted);
    n = gpud_dispatcher_slots(s->d, rows, 4);
    if (below(state, 6) == 0 && n > 0) {
        struct gpud_slot_stats *row = &rows[below(state, (uint64_t)n)];
        if (row->pid > 0 && below(state, 3)) {
            (void)kill((pid_t)row->pid, SIGSTOP); /* it may be dying */
            nap(below(state, T_MS(3)));
            (void)kill((pid_t)row->pid, SIGCONT);
        } else if (row->pid > 0) {
            (void)kill((pid_t)row->pid, SIGKILL);
        }
    }
}

static void glance_at_fd(struct stage *s)
{
    struct pollfd p = { .fd = gpud_dispatcher_fd(s->d), .events = POLLIN };

    T_CMP(p.fd, >=, 0);
    (void)poll(&p, 1, 1);
}

static void *caller(void *arg)
{
    uint64_t state = *(uint64_t *)arg;

    while (!atomic_load(&over)) {
        struct stage *s = &stage[below(&state, 2)];
        switch (below(&state, 16)) {
        case 0: case 1: case 2: case 3: case 4:
            submit(s, &state, below(&state, 3) == 0);
            break;
        case 5: case 6: case 7:
            wait_one(s, &state, some_tag(s, &state), below(&state, 2) ? below(&state, T_MS(5)) : 0);
            break;
        case 8: {
            uint64_t tag = some_tag(s, &state);
            if (atomic_load(&s->taken[tag]))
                (void)gpud_dispatcher_cancel(s->d, atomic_load(&s->id[tag]), GPUD_CANCEL_HARD);
            break;
        }
        case 9:
            kept_release_one(&s->kept, &state);
            break;
        case 10:
            look(s, &state);
            break;
        case 11:
            if (below(&state, 20) == 0)
                glance_at_fd(s);
            break;
        case 12:
            if (below(&state, 2000) == 0)
                T_OK(gpud_dispatcher_stop(s->d, (uint32_t)below(&state, 3)));
            break;
        default:
            try_poll(s, &state);
        }
    }
    return NULL;
}

/* ---- rounds ---- */

static void open_stage(struct stage *s, uint64_t *state)
{
    static const char *const devices[] = { "cpu:1", "cpu:2", "cpu:3", "cpu:1/2" };
    static const uint64_t never_or[] = { 0, 0, T_MS(1), T_MS(8) };

    memset(s, 0, sizeof *s);
    (void)pthread_mutex_init(&s->polling, NULL);
    kept_open(&s->kept);
    s->options = (struct gpud_options){
        .struct_size = sizeof s->options,
        .drive = (uint32_t)below(state, 2),
        .devices = devices[below(state, 4)],
        .queue_size =
            below(state, 2) ? 1 + (uint32_t)below(state, 8) : 64 + (uint32_t)below(state, 400),
        .sent_ahead = (uint32_t)below(state, 5),
        .payload_budget = (below(state, 2) ? 16u << 20 : 64u << 20),
        .task_limit = below(state, 2) ? T_MS(20) : 0,
        .grace = below(state, 3) ? T_MS(1 + below(state, 30)) : GPUD_AT_ONCE,
        .backoff = T_US(100),
        .backoff_cap = T_MS(2),
        .failures_in_a_row = 1000000,
        .max_attempts = (uint32_t)below(state, 4),
        .retry_causes = (uint32_t)below(state, 16),
        .retry_backoff = below(state, 2) ? T_US(below(state, 3000)) : 0,
        .retry_backoff_cap = T_MS(5),
        .max_batch = below(state, 2) ? (uint32_t)(1 + below(state, 16)) : 0,
        .expires = never_or[below(state, 4)] * 4,
        .stall_limit = never_or[below(state, 4)],
        .setup_concurrency = (uint32_t)below(state, 2),
        .slot_events = (uint32_t)below(state, 2),
        .start_events = (uint32_t)below(state, 2),
    };
    if (s->options.max_batch > 1)
        s->options.batch_wait = never_or[below(state, 4)];
    s->d = t_create(&s->options);
}

static void tell(struct stage *s)
{
    const struct gpud_options *o = &s->options;
    struct gpud_stats st = { .struct_size = sizeof st };

    (void)fprintf(stderr,
                  "drive %u queue %u ahead %u batch %u/%" PRIu64 " grace %" PRIu64 " limit %" PRIu64
                  " stall %" PRIu64 " expires %" PRIu64 " attempts %u/%u %s\n",
                  o->drive, o->queue_size, o->sent_ahead, o->max_batch, o->batch_wait, o->grace,
                  o->task_limit, o->stall_limit, o->expires, o->max_attempts, o->retry_causes,
                  o->devices);
    if (s->d && gpud_dispatcher_stats(s->d, &st) == 0)
        (void)fprintf(stderr, "  accepted %" PRIu64 " delivered %" PRIu64 " deaths %" PRIu64 "\n",
                      st.accepted, st.delivered, st.deaths);
}

static void check_counts(struct stage *s)
{
    struct gpud_stats st = t_stats(s->d);
    uint32_t n = atomic_load(&s->next);

    for (uint32_t i = 0; i < n && i < TASKS_MAX; i++)
        if (atomic_load(&s->taken[i]) != atomic_load(&s->outcomes[i])) {
            tell(s);
            T_FAIL("tag %u: accepted %u, outcomes %u", i, atomic_load(&s->taken[i]),
                   atomic_load(&s->outcomes[i]));
        }
    T_EQ(st.accepted, atomic_load(&s->accepted));
    T_EQ(st.delivered, st.accepted);
    T_EQ(st.success + st.error + st.crashed + st.timeout + st.cancelled + st.no_worker,
         st.accepted);
}

static void close_stage(struct stage *s, uint64_t *state)
{
    uint32_t n = atomic_load(&s->next);
    uint64_t left = 1;

    place = "close";
    T_OK(gpud_dispatcher_close(s->d, (uint32_t)below(state, 3),
                               below(state, 3) ? T_S(30) : 1 + below(state, T_MS(20))));
    if (below(state, 2)) /* what is awaited comes first, or last */
        for (uint32_t i = 0; i < n && i < TASKS_MAX; i++)
            if (atomic_load(&s->awaited[i]) == 2 && !atomic_load(&s->outcomes[i]))
                wait_one(s, state, i, below(state, 2) ? GPUD_NEVER : 0);
    place = "the rest of poll";
    while (poll_once(s, state, GPUD_NEVER) != GPUD_EEND)
        if (below(state, 2))
            kept_release_one(&s->kept, state);
    place = "the rest of wait";
    while (s->kept.n > KEPT_MAX / 2 || (s->kept.n && s->kept.n >= s->options.queue_size))
        kept_release_one(&s->kept, state);
    for (uint32_t i = 0; i < n && i < TASKS_MAX; i++)
        while (atomic_load(&s->taken[i]) && atomic_load(&s->awaited[i]) == 2 &&
               !atomic_load(&s->outcomes[i])) {
            kept_release_one(&s->kept, state);
            wait_one(s, state, i, GPUD_NEVER);
        }
    check_counts(s);
    place = "destroy";
    T_OK(gpud_dispatcher_destroy(&s->d, &left));
    T_EQ(left, 0);
    (void)pthread_mutex_destroy(&s->polling);
    kept_close(&s->kept, state);
}

static void one_round(uint64_t *state)
{
    pthread_t thread[THREADS_MAX];
    uint64_t seed[THREADS_MAX];

    place = "the calls";
    atomic_store(&over, 0);
    open_stage(&stage[0], state);
    open_stage(&stage[1], state);
    for (uint64_t i = 0; i < want.threads; i++) {
        seed[i] = lot(state);
        if (pthread_create(&thread[i], NULL, caller, &seed[i]))
            abort();
    }
    t_pass(T_MS(50) + below(state, T_MS(ROUND_MS)));
    atomic_store(&over, 1);
    for (uint64_t i = 0; i < want.threads; i++)
        (void)pthread_join(thread[i], NULL);
    close_stage(&stage[0], state);
    close_stage(&stage[1], state);
    atomic_fetch_add(&steps, 1);
}

static void *watchdog(void *arg)
{
    uint64_t seen = 0, since = t_now();

    while (!atomic_load((_Atomic int *)arg)) {
        uint64_t now_seen = atomic_load(&steps);
        if (now_seen != seen) {
            seen = now_seen;
            since = t_now();
        } else if (t_now() - since > T_S(WATCHDOG_S)) {
            (void)fprintf(stderr, "hung in %s\n", place);
            tell(&stage[0]);
            tell(&stage[1]);
            abort();
        }
        t_pass(T_MS(100));
    }
    return NULL;
}

static void parse(int argc, char **argv)
{
    static const struct asked all[] = { { "--seconds", &want.seconds },
                                        { "--seed", &want.seed },
                                        { "--threads", &want.threads } };

    asked_read(argc, argv, "anything [--seconds S] [--seed S] [--threads T]", all, T_LENGTH(all));
    if (want.threads == 0 || want.threads > THREADS_MAX)
        exit(2);
}

int main(int argc, char **argv)
{
    static const struct gpud_definition definition = { .struct_size = sizeof definition,
                                                       .name = "test",
                                                       .process = process,
                                                       .process_batch = process_batch };
    _Atomic int done = 0;
    uint64_t state, until, rounds = 0;
    pthread_t dog;

    parse(argc, argv);
    T_OK(gpud_init(&definition, 1, NULL));
    if (pthread_create(&dog, NULL, watchdog, &done))
        abort();
    state = want.seed;
    until = t_now() + T_S(want.seconds);
    do {
        one_round(&state);
        rounds++;
    } while (t_now() < until);
    atomic_store(&done, 1);
    (void)pthread_join(dog, NULL);
    T_OK(gpud_fini());
    printf("%" PRIu64 " rounds, %" PRIu64 " tasks offered, seed %" PRIu64 ":", rounds, tasks_of_all,
           want.seed);
    for (uint32_t i = 1; i < GPUD_OUTCOME_COUNT; i++)
        printf(" %s %" PRIu64, gpud_outcome_name(i), by_outcome[i]);
    printf("\n");
    return 0;
}
