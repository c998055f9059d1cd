/* SPDX-License-Identifier: MIT */
/* reasons.c - why submit and wait refuse: code, field, value and bound, on every path.    [C15] */
#include "verbs.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INSIDE, CODES };
enum { CALLS_BACK = T_VERBS };
#define NAME_64 "0123456789012345678901234567890123456789012345678901234567890123"

#define SIZED(size) (&(struct gpud_task_desc){ .struct_size = (size) })

static gpud_dispatcher *forked_with; /* NULL in a worker: it was forked before create */

/* A worker that takes itself for the host. */
static int call_back(gpud_task *t)
{
    struct gpud_error e[4] = { GPUD_ERROR_INIT, GPUD_ERROR_INIT, GPUD_ERROR_INIT, GPUD_ERROR_INIT };
    struct gpud_event event = GPUD_EVENT_INIT;
    const struct gpud_definition definition = GPUD_DEFINITION("again", NULL, NULL, NULL);
    gpud_dispatcher *d = NULL;
    char all[1200];
    int n;

    n = snprintf(all, sizeof all, "%d",
                 gpud_dispatcher_submit(forked_with, T_TASK(0), 0, NULL, &e[0]));
    n += snprintf(all + n, sizeof all - (size_t)n, " %d",
                  gpud_dispatcher_wait(forked_with, 1, &event, 0, &e[1]));
    n += snprintf(all + n, sizeof all - (size_t)n, " %d",
                  gpud_dispatcher_create(&d, T_OPTIONS(0), &e[2]));
    n += snprintf(all + n, sizeof all - (size_t)n, " %d", gpud_init(&definition, 1, &e[3]));
    n += snprintf(all + n, sizeof all - (size_t)n, " %d",
                  gpud_dispatcher_cancel(forked_with, 1, GPUD_CANCEL_SOFT));
    for (int i = 0; i < 4; i++)
        n += snprintf(all + n, sizeof all - (size_t)n, "\n%s", e[i].text);
    return gpud_task_result_set(t, all, (size_t)n + 1);
}

static int process(gpud_task *t, void *state)
{
    return gpud_task_tag(t) >> 32 == CALLS_BACK ? call_back(t) : t_process(t, state);
}

static void check(const struct gpud_error *e, int code, const char *field, const char *words)
{
    T_EQ(e->code, code);
    T_TEXT(e->field, field);
    if (!strstr(e->text, words))
        T_FAIL("\"%s\" does not say \"%s\"", e->text, words);
}

static void refused(gpud_dispatcher *d, const struct gpud_task_desc *task, uint64_t wait, int code,
                    const char *field, const char *words)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    uint64_t id = 77;

    T_EQ(gpud_dispatcher_submit(d, task, wait, &id, &e), code);
    T_EQ(id, 77);
    check(&e, code, field, words);
    T_EQ(gpud_dispatcher_submit(d, task, wait, &id, NULL), code); /* the record may be missing */
}

/* Descriptions that make no sense. */
T_CASE(submit_descriptions)
{
    struct {
        struct gpud_task_desc known;
        uint64_t more[2];
    } longer = { .known = { .struct_size = sizeof longer }, .more = { 0, 1 } };
    uint64_t number = 0;
    gpud_dispatcher *d = T_BEGIN(NULL, process, 0);

    refused(NULL, T_TASK(0), 0, GPUD_EINVAL, "d", "d is NULL");
    refused(d, NULL, 0, GPUD_EINVAL, "task", "task is NULL");
    refused(d, SIZED(0), 0, GPUD_ESTRUCT, "struct_size", "task.struct_size is 0, expected 112");
    refused(d, SIZED(28), 0, GPUD_ESTRUCT, "struct_size", "task.struct_size is 28, ");
    refused(d, SIZED(8), 0, GPUD_ESTRUCT, "struct_size", "task.struct_size is 8, ");
    refused(d, SIZED(1u << 30), 0, GPUD_ESTRUCT, "struct_size", "task.struct_size is 1073741824, ");
    refused(d, &longer.known, 0, GPUD_EVERSION, "struct_size",
            "task.struct_size is 128, expected 112: ");
    refused(d, T_TASK(.size = 10), 0, GPUD_EINVAL, "data",
            "task.data is NULL, but task.size is 10");
    refused(d, T_TASK(.label = NAME_64 "more"), 0, GPUD_ELABEL, "label",
            "is too long, the maximum is 63 bytes");
    refused(d, T_TASK(.max_attempts = 256), 0, GPUD_EINVAL, "max_attempts",
            "task.max_attempts is 256, the maximum is 255");
    refused(d, T_TASK(.retry_causes = 16), 0, GPUD_EINVAL, "retry_causes",
            "task.retry_causes is 16, the maximum is 15");
    refused(d, T_TASK(.keep_alive = T_MS(1)), 0, GPUD_EINVAL, "keep_alive",
            "task.keep_alive is 1000000, expected 0: pooled is 0");
    refused(d, T_TASK(.awaited = 2), 0, GPUD_EINVAL, "awaited",
            "task.awaited is 2, the maximum is 1");
    refused(d, T_TASK(.data = &number, .size = 1ull << 50), 0, GPUD_ETOOBIG, "size",
            "task.size is 1125899906842624, the maximum is ");
    t_end(&d, NULL);
}

/* Addresses in the payload memory that are no buffer, or too small a one. */
T_CASE(submit_buffers)
{
    void *data = NULL;
    gpud_dispatcher *d = T_BEGIN(NULL, process, 0);

    T_OK(gpud_dispatcher_buffer_alloc(d, 1000, &data));
    refused(d, T_TASK(.data = (char *)data + 64, .size = 8), 0, GPUD_EINVAL, "data",
            "not to a buffer of gpud_dispatcher_buffer_alloc");
    refused(d, T_TASK(.data = data, .size = 1u << 20), 0, GPUD_EINVAL, "size",
            "task.size is 1048576, the maximum is ");
    T_OK(gpud_dispatcher_buffer_free(d, data));
    refused(d, T_TASK(.data = data, .size = 8), 0, GPUD_EINVAL, "data",
            "not to a buffer of gpud_dispatcher_buffer_alloc");
    t_end(&d, NULL);
}

/* EFULL says which bound is reached; after it a submit that finds room leaves the record alone. */
T_CASE(submit_full)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    static char much[700 << 10];
    uint64_t n = 0;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .queue_size = 2);

    T_SUBMIT(d, .tag = T_TAG(T_WAIT_FOR_GATE, n++));
    T_SUBMIT(d, .tag = T_TAG(T_WAIT_FOR_GATE, n++));
    refused(d, T_TASK(0), 0, GPUD_EFULL, "queue_size", "queue_size is 2, ");
    refused(d, T_TASK(0), 1000, GPUD_EFULL, "queue_size", "queue_size is 2, ");
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 1);
    T_OK(gpud_dispatcher_submit(d, T_TASK(.tag = T_TAG(T_WORK, n++)), GPUD_NEVER, NULL, &e));
    T_EQ(e.code, 0);
    T_TEXT(e.text, "");
    t_collect(d, &log, n);
    t_destroy(&d, &log);

    t_word_set(T_GATE, 0);
    d = T_CREATE(.payload_budget = 16u << 20);
    for (n = 0; gpud_dispatcher_submit(
                    d, T_TASK(.tag = T_TAG(T_WAIT_FOR_GATE, n), .data = much, .size = sizeof much),
                    0, NULL, NULL) == 0;
         n++)
        ;
    refused(d, T_TASK(.data = much, .size = sizeof much), 0, GPUD_EFULL, "payload_budget",
            "payload_budget (16777216)");
    t_word_set(T_GATE, 1);
    t_collect(d, &log, n);
    t_end(&d, &log);
}

struct inside {
    gpud_dispatcher *d;
    uint64_t id;
    int told;
};

static int call_in_callback(const struct gpud_event *e, void *user)
{
    struct inside *in = user;
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpud_event event = GPUD_EVENT_INIT;

    if (e->kind != GPUD_EVENT_OUTCOME)
        return 0;
    refused(in->d, T_TASK(0), 5, GPUD_EREENTER, "wait", "wait is 5 in a callback, expected 0");
    T_CODE(gpud_dispatcher_wait(in->d, in->id, &event, 0, &error), EREENTER);
    check(&error, GPUD_EREENTER, "", "called in a callback of run");
    in->told++;
    return 0;
}

static int give_one(struct gpud_task_desc *task, size_t n, void *user)
{
    static int given;

    (void)task, (void)n, (void)user;
    return !given++;
}

/* In a callback, after close, stop and destroy. */
T_CASE(submit_at_the_wrong_time)
{
    struct inside in = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    in.d = d = T_CREATE(0);
    T_OK(gpud_dispatcher_run(d, give_one, T_CALLBACKS(.on_success = call_in_callback), &in, NULL));
    T_EQ(in.told, 1);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    refused(d, T_TASK(0), 0, GPUD_ECLOSED, "", "takes no more tasks: gpud_dispatcher_close");
    t_destroy(&d, NULL);
    d = T_CREATE(0);
    T_OK(gpud_dispatcher_stop(d, GPUD_FINISH_ALL));
    refused(d, T_TASK(0), 0, GPUD_ECLOSED, "", "takes no more tasks: gpud_dispatcher_stop");
    t_end(&d, NULL);
}

/* In a process forked from the host. */
T_CASE(in_a_forked_child)
{
    gpud_dispatcher *d = T_BEGIN(NULL, process, 0);
    int status = 0;
    pid_t child;

    child = fork();
    T_CMP(child, >=, 0);
    if (child == 0) {
        struct gpud_error e = GPUD_ERROR_INIT;
        struct gpud_event event = GPUD_EVENT_INIT;
        refused(d, T_TASK(0), 0, GPUD_EFORKED, "d", gpud_error_text(GPUD_EFORKED));
        T_CODE(gpud_dispatcher_wait(d, 1, &event, 0, &e), EFORKED);
        check(&e, GPUD_EFORKED, "d", gpud_error_text(GPUD_EFORKED));
        _exit(0);
    }
    T_EQ(waitpid(child, &status, 0), child);
    T_EQ(status, 0);
    t_end(&d, NULL);
}

/* In a worker: EREENTER, whatever was called. */
T_CASE(in_a_worker)
{
    static const char *const wanted =
        "-17 -17 -17 -17 -17\ncalled in a worker: only the host has dispatchers\ncalled in a "
        "worker: only the host has dispatchers\ncalled in a worker: only the host has "
        "dispatchers\ncalled in a worker: only the host has dispatchers";
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, 0);

    T_TEXT((const char *)T_RUN(d, &log, SUCCESS, .tag = T_TAG(CALLS_BACK, 0))->result, wanted);
    t_end(&d, &log);
}

static void not_given(gpud_dispatcher *d, uint64_t id, struct gpud_event *event, uint64_t timeout,
                      int code, const char *field, const char *words)
{
    struct gpud_error e = GPUD_ERROR_INIT;

    T_EQ(gpud_dispatcher_wait(d, id, event, timeout, &e), code);
    check(&e, code, field, words);
    T_EQ(gpud_dispatcher_wait(d, id, event, timeout, NULL), code);
}

static void *wait_for_one(void *arg)
{
    struct inside *in = arg;
    struct gpud_event e = GPUD_EVENT_INIT;

    int r;

    (void)t_word_add(INSIDE);
    do
        r = gpud_dispatcher_wait(in->d, in->id, &e, GPUD_NEVER, NULL);
    while (r == GPUD_EBUSY); /* a_thread_waits is inside just now */
    T_OK(r);
    T_OK(gpud_event_release(&e));
    return NULL;
}

static int a_thread_waits(void *user)
{
    struct inside *in = user;
    struct gpud_event e = GPUD_EVENT_INIT;

    return gpud_dispatcher_wait(in->d, in->id, &e, 0, NULL) == GPUD_EBUSY;
}

/* Every path on which wait gives nothing. */
T_CASE(waits)
{
    struct gpud_event event = GPUD_EVENT_INIT, kept = GPUD_EVENT_INIT,
                      small = { .struct_size = 16 };
    struct inside in = { 0 };
    struct t_log log = { 0 };
    char words[96];
    uint64_t plain, queued;
    pthread_t thread;
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    in.d = d = T_CREATE(.queue_size = 4, .sent_ahead = 1);
    in.id = t_submit(d, T_TASK(.tag = T_TAG(T_WAIT_FOR_GATE, 0), .awaited = 1));
    t_word_wait(T_STARTED, 1);
    plain = t_submit(d, T_TASK(.tag = 1));
    queued = t_submit(d, T_TASK(.tag = 2, .awaited = 1));
    not_given(NULL, in.id, &event, 0, GPUD_EINVAL, "d", "d is NULL");
    not_given(d, in.id, NULL, 0, GPUD_EINVAL, "event", "event is NULL");
    not_given(d, in.id, &small, 0, GPUD_ESTRUCT, "struct_size",
              "event.struct_size is 16, the minimum is ");
    not_given(d, 12345678, &event, 0, GPUD_ENOTFOUND, "task_id",
              "no live task has the id 12345678");
    (void)snprintf(words, sizeof words, "task %llu was submitted without awaited = 1",
                   (unsigned long long)plain);
    not_given(d, plain, &event, 0, GPUD_ENOTAWAITED, "task_id", words);
    (void)snprintf(words, sizeof words,
                   "timeout is 0.010 s, and task %llu has not ended: it is at slot 0",
                   (unsigned long long)in.id);
    not_given(d, in.id, &event, T_MS(10), GPUD_ETIMEOUT, "timeout", words);
    (void)snprintf(words, sizeof words, "task %llu has not ended: it waits in the queue",
                   (unsigned long long)queued);
    not_given(d, queued, &event, 0, GPUD_ETIMEOUT, "timeout", words);

    t_thread(&thread, wait_for_one, &in);
    t_word_wait(INSIDE, 1);
    t_wait_until("a thread waits", a_thread_waits, &in);
    (void)snprintf(words, sizeof words, "another thread waits for task %llu",
                   (unsigned long long)in.id);
    not_given(d, in.id, &event, 0, GPUD_EBUSY, "task_id", words);
    t_word_set(T_GATE, 1);
    t_join(thread);
    T_OK(gpud_dispatcher_wait(d, queued, &kept, T_PATIENCE, NULL));
    not_given(d, queued, &event, 0, GPUD_ENOTFOUND, "task_id", "its outcome was delivered");
    T_OK(gpud_event_release(&kept));
    t_collect(d, &log, 1);
    t_end(&d, &log);
}

/* As many events are kept as may be. */
T_CASE(wait_with_all_kept)
{
    struct gpud_event kept = GPUD_EVENT_INIT, event = GPUD_EVENT_INIT;
    uint64_t first, second;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .queue_size = 1);

    first = t_submit(d, T_TASK(.awaited = 1));
    T_OK(gpud_dispatcher_wait(d, first, &kept, T_PATIENCE, NULL));
    second = t_submit(d, T_TASK(.awaited = 1));
    not_given(d, second, &event, T_PATIENCE, GPUD_EFULL, "queue_size",
              "queue_size is 1, and 1 events are kept: release some");
    T_OK(gpud_event_release(&kept));
    T_OK(gpud_dispatcher_wait(d, second, &event, T_PATIENCE, NULL));
    T_OK(gpud_event_release(&event));
    t_end(&d, NULL);
}
