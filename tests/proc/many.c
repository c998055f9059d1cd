/* SPDX-License-Identifier: MIT */
/* many.c - gpud_dispatcher_submit_many: an array of tasks, in one call.         [C1] [C5] [C15] */
#include "fixture.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { TURN, GATE, STARTED };
enum { MANY = 1000 };
#define AT_GATE (1ull << 32)
#define NOT_WRITTEN 77u

static int process(gpud_task *t, void *state)
{
    uint64_t turn = t_word_add(TURN);

    (void)state;
    if (gpud_task_tag(t) & AT_GATE) {
        (void)t_word_add(STARTED);
        t_word_wait(GATE, 1);
    }
    if (gpud_task_size(t)) {
        uint64_t first;

        memcpy(&first, gpud_task_data(t), sizeof first);
        return first != (gpud_task_tag(t) & (AT_GATE - 1));
    }
    return gpud_task_result_set(t, &turn, sizeof turn);
}

static struct gpud_task_desc tasks[MANY];
static uint64_t ids[MANY];

static void prepare(void)
{
    for (uint64_t i = 0; i < MANY; i++) {
        tasks[i] = (struct gpud_task_desc)GPUD_TASK_DESC_INIT;
        tasks[i].tag = i;
        ids[i] = NOT_WRITTEN;
    }
}

/* What the call answered, and that it wrote so many ids. */
static void submitted(gpud_dispatcher *d, size_t n, uint64_t wait, int code, size_t accepted,
                      const char *field, const char *words)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    size_t taken = 12345;

    T_EQ(gpud_dispatcher_submit_many(d, tasks, n, wait, ids, &taken, &e), code);
    T_EQ(taken, accepted);
    for (size_t i = 0; i < n; i++)
        T_EQ(ids[i] != NOT_WRITTEN, i < accepted);
    if (code) {
        T_EQ(e.code, code);
        T_TEXT(e.field, field);
        if (!strstr(e.text, words))
            T_FAIL("\"%s\" does not say \"%s\"", e.text, words);
    }
}

/* C5: in the order of the array, each with an id of its own, behind one that was there before. */
T_CASE(in_order)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");
    uint64_t last = 0;

    prepare();
    T_SUBMIT(d, .tag = MANY);
    submitted(d, MANY, 0, 0, MANY, "", "");
    t_collect(d, &log, MANY + 1);
    for (uint64_t i = 0; i < MANY; i++) {
        const struct gpud_event *e = T_OUTCOME(&log, i, SUCCESS);
        uint64_t turn = *(const uint64_t *)e->result;

        T_EQ(e->task_id, ids[i]);
        T_CMP(turn, >, last);
        T_CMP(e->queued_at, >, 0);
        T_CMP(e->started_at, >=, e->queued_at);
        last = turn;
    }
    t_end(&d, &log);
}

/* Where data are copied without the lock the clock is read again: each time counts from the task's
 * own acceptance. */
T_CASE(times_count_from_acceptance)
{
    const size_t size = (size_t)16 << 20;
    struct t_log log = { 0 };
    char *data = calloc(1, size);
    gpud_dispatcher *d;

    T_CHECK(data);
    d = T_BEGIN(NULL, process, .devices = "cpu:1", .payload_budget = 16 * size);
    prepare();
    for (uint64_t i = 0; i < 3; i++) {
        tasks[i].data = data;
        tasks[i].size = size;
        tasks[i].tag = 0;
    }
    submitted(d, 3, 0, 0, 3, "", "");
    t_collect(d, &log, 3);
    T_CMP(t_log_at(&log, GPUD_EVENT_OUTCOME, 1)->queued_at, >,
          t_log_at(&log, GPUD_EVENT_OUTCOME, 0)->queued_at);
    T_CMP(t_log_at(&log, GPUD_EVENT_OUTCOME, 2)->queued_at, >,
          t_log_at(&log, GPUD_EVENT_OUTCOME, 1)->queued_at);
    t_end(&d, &log);
    free(data);
}

/* C15: those before the first without room are taken, and the rest can be handed over from
 * there. */
T_CASE(no_room)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .queue_size = 8, .drive = GPUD_DRIVE_CALLER);
    size_t accepted;

    prepare();
    submitted(d, 20, 0, GPUD_EFULL, 8, "queue_size",
              "task 8 of 20, counted from 0: queue_size is 8, ");
    T_CODE(gpud_dispatcher_submit_many(d, tasks + 8, 12, 0, NULL, &accepted, NULL), EFULL);
    T_EQ(accepted, 0);
    t_collect(d, &log, 8);
    T_CODE(gpud_dispatcher_submit_many(d, tasks + 8, 12, 0, ids + 8, &accepted, NULL), EFULL);
    T_EQ(accepted, 8);
    t_collect(d, &log, 16);
    T_OK(gpud_dispatcher_submit_many(d, tasks + 16, 4, 0, NULL, NULL, NULL));
    t_collect(d, &log, 20);
    t_check_exactly_once(&log, 20);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 20);
    t_end(&d, &log);
}

/* C15: one in the middle that makes no sense: those before it run, those behind it were not looked
 * at. */
T_CASE(one_is_refused)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2");

    prepare();
    tasks[5].size = 10;
    tasks[6].max_attempts = 256;
    submitted(d, 10, GPUD_NEVER, GPUD_EINVAL, 5, "data",
              "task 5 of 10, counted from 0: task.data is NULL, but task.size is 10");
    t_collect(d, &log, 5);
    t_check_exactly_once(&log, 5);
    T_EQ(t_stats(d).accepted, 5);
    t_end(&d, &log);
}

static void *collect_all(void *arg)
{
    static struct t_log log;

    t_collect(arg, &log, MANY);
    t_check_exactly_once(&log, MANY);
    t_log_free(&log);
    return NULL;
}

/* The whole array waits for room, as often as there is none. */
T_CASE(waits_for_room)
{
    T_EACH_DRIVE (drive) {
        pthread_t thread;
        gpud_dispatcher *d =
            T_BEGIN(NULL, process, .devices = "cpu:2", .queue_size = 16, .drive = drive);

        prepare();
        t_thread(&thread, collect_all, d);
        submitted(d, MANY, GPUD_NEVER, 0, MANY, "", "");
        t_join(thread);
        t_end(&d, NULL);
    }
}

/* The wait is one for all of them; what was taken stays taken. */
T_CASE(waits_in_vain)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .queue_size = 4);
    uint64_t began;

    prepare();
    tasks[0].tag = AT_GATE;
    began = t_now();
    submitted(d, 10, T_MS(50), GPUD_EFULL, 4, "queue_size", "task 4 of 10, ");
    T_CMP(t_now() - began, >=, T_MS(50));
    t_word_set(GATE, 1);
    t_collect(d, &log, 4);
    t_end(&d, &log);
}

/* Data are copied, labels too, and buffers are taken, up to the one that is refused. */
T_CASE(data_and_buffers)
{
    enum { N = 40, LARGE = 1 << 20 };
    static unsigned char large[LARGE];
    struct t_log log = { 0 };
    void *buffer[2];
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2");

    prepare();
    for (uint64_t i = 0; i < N; i++) {
        tasks[i].data = &tasks[i].tag;
        tasks[i].size = sizeof tasks[i].tag;
        tasks[i].label = "one";
    }
    memcpy(large, &tasks[7].tag, sizeof tasks[7].tag);
    tasks[7].data = large;
    tasks[7].size = LARGE;
    for (int i = 0; i < 2; i++) {
        T_OK(gpud_dispatcher_buffer_alloc(d, LARGE, &buffer[i]));
        memcpy(buffer[i], &tasks[20 + 15 * i].tag, sizeof(uint64_t));
        tasks[20 + 15 * i].data = buffer[i];
        tasks[20 + 15 * i].size = LARGE;
    }
    tasks[30].priority = 1; /* and another one with a reason to be refused */
    tasks[30].awaited = 2;
    submitted(d, N, 0, GPUD_EINVAL, 30, "awaited", "task 30 of 40, ");
    memset(large, 0, sizeof large);
    T_CODE(gpud_dispatcher_buffer_free(d, buffer[0]), EINVAL);
    T_OK(gpud_dispatcher_buffer_free(d, buffer[1]));
    t_collect(d, &log, 30);
    for (uint64_t i = 0; i < 30; i++)
        T_TEXT(T_OUTCOME(&log, i, SUCCESS)->label, "one");
    t_end(&d, &log);
}

/* Records of an older and of a newer version lie as far apart as the first one says; all have its
 * length. */
T_CASE(records_of_other_versions)
{
    enum {
        SHORT = offsetof(struct gpud_task_desc, label) + 8,
        LONG = sizeof(struct gpud_task_desc) + 16,
        N = 3
    };
    static const uint32_t length[] = { SHORT, LONG };
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");

    for (size_t k = 0; k < 2; k++) {
        unsigned char *all = calloc(N, length[k]);
        size_t accepted;

        for (uint64_t i = 0; i < N; i++) {
            memcpy(all + i * length[k], &length[k], sizeof length[k]);
            if (k)
                ((struct gpud_task_desc *)(void *)(all + i * length[k]))->tag = i + 1;
        }
        T_OK(gpud_dispatcher_submit_many(d, (struct gpud_task_desc *)(void *)all, N, 0, NULL,
                                         &accepted, NULL));
        T_EQ(accepted, N);
        memcpy(all + length[k], &length[1 - k], sizeof length[k]);
        T_CODE(gpud_dispatcher_submit_many(d, (struct gpud_task_desc *)(void *)all, N, 0, NULL,
                                           &accepted, NULL),
               ESTRUCT);
        T_EQ(accepted, 1);
        free(all);
    }
    t_collect(d, &log, 2 * (N + 1));
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 2 * (N + 1));
    for (uint64_t i = 2; i <= N; i++)
        (void)T_OUTCOME(&log, i, SUCCESS);
    t_end(&d, &log);
}

static int submit_inside(const struct gpud_event *e, void *d)
{
    (void)e;
    if (t_word_add(STARTED) == 1) {
        for (size_t i = 0; i < MANY; i++)
            ids[i] = NOT_WRITTEN;
        submitted(d, 3, 1, GPUD_EREENTER, 0, "wait", "wait is 1 in a callback");
        submitted(d, 3, 0, 0, 3, "", "");
    }
    return 0;
}

static int give_one(struct gpud_task_desc *task, size_t n, void *user)
{
    (void)task, (void)n, (void)user;
    return t_word_add(TURN) == 1;
}

T_CASE(in_a_callback)
{
    struct gpud_run_counts counts = GPUD_RUN_COUNTS_INIT;
    struct gpud_callbacks cb = GPUD_CALLBACKS_INIT;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");

    prepare();
    cb.on_success = submit_inside;
    cb.counts = &counts;
    T_OK(gpud_dispatcher_run(d, give_one, &cb, d, NULL));
    T_EQ(counts.success, 4);
    t_end(&d, NULL);
}

/* Nothing to hand over, nowhere to read it, nobody to take it. */
T_CASE(arguments)
{
    struct t_log log = { 0 };
    size_t accepted = 5;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");

    prepare();
    T_OK(gpud_dispatcher_submit_many(d, NULL, 0, 0, NULL, &accepted, NULL));
    T_EQ(accepted, 0);
    accepted = 5;
    T_CODE(gpud_dispatcher_submit_many(d, NULL, 1, 0, NULL, &accepted, NULL), EINVAL);
    T_EQ(accepted, 0);
    accepted = 5;
    T_CODE(gpud_dispatcher_submit_many(NULL, tasks, 1, 0, NULL, &accepted, NULL), EINVAL);
    T_EQ(accepted, 0);
    tasks[0].struct_size = 4;
    submitted(d, 2, 0, GPUD_ESTRUCT, 0, "struct_size", "tasks[0].struct_size is 4, ");
    prepare();
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    submitted(d, 2, GPUD_NEVER, GPUD_ECLOSED, 0, "",
              "task 0 of 2, counted from 0: the dispatcher takes no more tasks");
    t_collect_rest(d, &log);
    t_end(&d, &log);
}

static void *hand_over(void *d)
{
    submitted(d, 10, GPUD_NEVER, GPUD_ECLOSED, 4, "",
              "task 4 of 10, counted from 0: the dispatcher takes no more tasks");
    return NULL;
}

static int four_are_in(void *d)
{
    return t_stats(d).accepted == 4;
}

/* C1: intake ends while it waits for room. */
T_CASE(closed_meanwhile)
{
    struct t_log log = { 0 };
    pthread_t thread;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .queue_size = 4);

    prepare();
    t_thread(&thread, hand_over, d);
    t_wait_until("four are in", four_are_in, d);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    t_join(thread);
    t_collect_rest(d, &log);
    t_check_exactly_once(&log, 4);
    t_end(&d, &log);
}

struct handing {
    gpud_dispatcher *d;
    size_t taken;
    int code;
};

/* Whoever waits for the lock gets it as soon as this thread lets go of it. */
static void *hand_all_over(void *arg)
{
    struct sched_param none = { 0 };
    struct handing *h = arg;

    T_EQ(pthread_setschedparam(pthread_self(), SCHED_IDLE, &none), 0);
    h->code = gpud_dispatcher_submit_many(h->d, tasks, MANY, 0, NULL, &h->taken, NULL);
    return NULL;
}

static int some_are_in(void *d)
{
    return t_stats(d).accepted > 0;
}

/* Of the host's threads: none goes on while another one does. */
static void run_on_one_cpu(void)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    T_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* Keeps hand_all_over from going on for a while, or until *over. */
static void *be_busy(void *over)
{
    const uint64_t until = t_now() + T_MS(100);

    while (!atomic_load((atomic_int *)over) && t_now() < until)
        ;
    return NULL;
}

/* C1, C19: destroy waits until the call has left, also where that has let go of the lock.  What is
 * freed is overwritten, so that a call that goes on there does not end. */
T_CASE(destroyed_meanwhile)
{
    static char data[4096];

    (void)mallopt(M_PERTURB, 85);
    t_init(NULL, process, NULL);
    prepare();
    for (uint64_t i = 0; i < MANY; i++) {
        tasks[i].data = data;
        tasks[i].size = sizeof(data);
    }
    run_on_one_cpu();
    for (int i = 0; i < 5; i++) {
        struct handing h = { .d = T_CREATE(.devices = "cpu:1", .queue_size = 2 * MANY) };
        uint64_t uncollected = 0;
        pthread_t thread, other;
        atomic_int over = 0;
        gpud_dispatcher *d = h.d;

        t_thread(&thread, hand_all_over, &h);
        t_wait_until("some are in", some_are_in, d);
        t_thread(&other, be_busy, &over);
        T_OK(gpud_dispatcher_destroy(&d, &uncollected));
        atomic_store(&over, 1);
        t_join(other);
        t_join(thread);
        T_EQ(h.code, h.taken == MANY ? 0 : GPUD_ECLOSED);
        T_EQ(uncollected, h.taken);
    }
    T_OK(gpud_fini());
}
