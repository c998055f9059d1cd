/* SPDX-License-Identifier: MIT */
/* keep.c - events kept beyond the next poll, the callback and the dispatcher. */
#include "verbs.h"

#include "snapshot.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEEN };
enum { SIZED, DIE, REPORT };
#define T_EVENT { .struct_size = sizeof(struct gpud_event) }
#define LARGE ((size_t)300 << 10)

static unsigned char pattern(uint64_t tag, size_t i)
{
    return (unsigned char)(tag * 31 + i);
}

/* A result of the task's low word in bytes. */
static int process(gpud_task *t, void *state)
{
    uint64_t tag = gpud_task_tag(t);
    size_t size = (size_t)(uint32_t)tag;
    unsigned char *to;
    void *room;
    int r;

    (void)state;
    if (tag >> 32 == DIE) {
        (void)write(1, "last words", 10);
        (void)raise(SIGKILL);
    }
    if (tag >> 32 == REPORT) {
        (void)gpud_task_progress(t, 0.5, "half");
        t_word_wait(SEEN, 1); /* of a task that has ended none would be told */
    }
    if (size == 0)
        return 0;
    r = gpud_task_result_alloc(t, size, &room);
    if (r)
        return r;
    to = room;
    for (size_t i = 0; i < size; i++)
        to[i] = pattern(tag, i);
    return 0;
}

static void check_result(const struct gpud_event *e)
{
    const unsigned char *p = e->result;

    T_EQ(e->outcome, GPUD_OUTCOME_SUCCESS);
    T_EQ(e->result_size, (uint32_t)e->tag);
    for (size_t i = 0; i < e->result_size; i++)
        T_EQ(p[i], pattern(e->tag, i));
}

static void poll_any(gpud_dispatcher *d, struct gpud_event *e)
{
    *e = (struct gpud_event)T_EVENT;
    T_EQ(gpud_dispatcher_poll(d, e, 1, T_PATIENCE), 1);
}

/* An outcome; there may be log lines before it. */
static void poll_one(gpud_dispatcher *d, struct gpud_event *e)
{
    do
        poll_any(d, e);
    while (e->kind != GPUD_EVENT_OUTCOME);
}

static void poll_nothing(gpud_dispatcher *d)
{
    struct gpud_event e = T_EVENT;

    T_EQ(gpud_dispatcher_poll(d, &e, 1, 0), 0);
}

/* Every place a result can have; the library is made to reuse all it may. */
T_CASE(beyond_the_next_poll)
{
    static const size_t sizes[] = { 0, 1, 64, 65, 4096, 4097, LARGE };
    enum { N = T_LENGTH(sizes) };
    struct gpud_event e[N];
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .queue_size = 64,
                                 .payload_budget = (uint64_t)64 << 20);

    for (unsigned i = 0; i < N; i++) {
        T_SUBMIT(d, .tag = sizes[i], .label = i % 2 ? "kept" : NULL);
        poll_one(d, &e[i]);
        T_OK(gpud_event_keep(d, &e[i]));
    }
    for (uint64_t n = 0; n < 500; n++) {
        struct gpud_event other;

        T_SUBMIT(d, .tag = sizes[n % N], .label = "other");
        poll_one(d, &other);
    }
    for (unsigned i = 0; i < N; i++) {
        check_result(&e[i]);
        T_TEXT(e[i].label, i % 2 ? "kept" : "");
        T_TEXT(e[i].device, "cpu:0");
        T_EQ(t_stats(d).kept, N - i);
        T_OK(gpud_event_release(&e[i]));
        T_CHECK(!e[i].result && !e[i].result_size && !*e[i].label && !*e[i].text && !*e[i].device);
        T_OK(gpud_event_release(&e[i])); /* not kept any more */
    }
    poll_nothing(d);
    T_EQ(t_stats(d).result_used, 0);
    T_EQ(t_stats(d).kept, 0);
    t_end(&d, NULL);
}

/* A large result is not copied. */
T_CASE(without_a_copy)
{
    struct gpud_event e;
    const void *lent;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");

    T_SUBMIT(d, .tag = LARGE);
    poll_one(d, &e);
    lent = e.result;
    T_OK(gpud_event_keep(d, &e));
    T_CHECK(e.result == lent);
    T_CMP(t_stats(d).result_used, >=, LARGE);
    poll_nothing(d);
    T_CMP(t_stats(d).result_used, >=, LARGE);
    check_result(&e);
    T_OK(gpud_event_release(&e));
    T_EQ(t_stats(d).result_used, 0);
    t_end(&d, NULL);
}

/* What cannot be kept. */
T_CASE(what_it_answers)
{
    struct gpud_event e, copy, small, strange = T_EVENT;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");

    T_SUBMIT(d, .tag = 100);
    poll_one(d, &e);
    small = copy = e;
    small.struct_size = offsetof(struct gpud_event, kept); /* does not reach beyond it */
    T_CODE(gpud_event_keep(NULL, &e), EINVAL);
    T_CODE(gpud_event_keep(d, NULL), EINVAL);
    T_CODE(gpud_event_keep(d, &small), ESTRUCT);
    T_CODE(gpud_event_keep(d, &strange), EINVAL);
    T_CODE(gpud_event_release(NULL), EINVAL);
    T_CODE(gpud_event_release(&small), ESTRUCT);
    T_OK(gpud_event_release(&copy)); /* only lent */
    check_result(&e);
    T_OK(gpud_event_keep(d, &e));
    T_CODE(gpud_event_keep(d, &e), EINVAL);
    copy = e;
    copy.kept = NULL;
    T_CODE(gpud_event_keep(d, &copy), EINVAL); /* kept already */
    T_OK(gpud_event_release(&e));
    T_SUBMIT(d, .tag = 100);
    poll_one(d, &e);
    poll_nothing(d);
    T_CODE(gpud_event_keep(d, &e), EINVAL); /* not lent any more */
    t_end(&d, NULL);
}

/* The words of what went wrong, and of events that are no outcomes. */
T_CASE(words)
{
    struct gpud_event crashed = T_EVENT, progress = T_EVENT, log = T_EVENT, next = T_EVENT;
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .log_level = GPUD_LEVEL_DEBUG, .slot_events = 1);
    int open = 3;

    T_SUBMIT(d, .tag = T_TAG(REPORT, 10), .label = "ten");
    T_SUBMIT(d, .tag = T_TAG(DIE, 0));
    while (open) {
        struct gpud_event e, *keep = NULL;

        poll_any(d, &e);
        if (e.kind == GPUD_EVENT_PROGRESS)
            keep = &progress, t_word_set(SEEN, 1);
        else if (e.kind == GPUD_EVENT_SLOT && !log.kept)
            keep = &log;
        else if (e.kind == GPUD_EVENT_OUTCOME && e.outcome == GPUD_OUTCOME_CRASHED)
            keep = &crashed;
        if (!keep)
            continue;
        *keep = e;
        T_OK(gpud_event_keep(d, keep));
        T_CODE(gpud_event_keep(d, &e), EINVAL);
        open--;
    }
    while (gpud_dispatcher_poll(d, &next, 1, 0) > 0)
        ;
    T_OK(gpud_dispatcher_destroy(&d, NULL));
    T_TEXT(progress.text, "half");
    T_TEXT(progress.label, "ten");
    T_TEXT(progress.device, "cpu:0");
    T_TEXT(log.device, "cpu:0");
    T_CHECK(strstr(crashed.text, "signal 9"));
    T_EQ(crashed.output_size, 10);
    T_EQ(memcmp(crashed.output, "last words", 10), 0);
    T_OK(gpud_event_release(&progress));
    T_OK(gpud_event_release(&log));
    T_OK(gpud_event_release(&crashed));
    T_OK(gpud_fini());
}

struct scene {
    gpud_dispatcher *d;
    uint64_t given, last;
    struct gpud_event kept[64];
    unsigned n;
};

static int give(struct gpud_task_desc *task, size_t n, void *user)
{
    struct scene *s = user;

    (void)n;
    if (s->given == s->last)
        return 0;
    task->tag = s->given++ % 2 ? LARGE : 50;
    return 1;
}

static int take_and_keep(const struct gpud_event *e, void *user)
{
    struct scene *s = user;
    struct gpud_event *mine = &s->kept[s->n];

    *mine = *e;
    T_OK(gpud_event_keep(s->d, mine));
    if (s->n % 3 == 2)
        T_OK(gpud_event_release(mine)); /* in a callback too */
    else
        s->n++;
    return 0;
}

/* Inside the callbacks of run; read after run, and after destroy. */
T_CASE(in_callbacks)
{
    struct scene s = { .last = 60 };

    s.d = T_BEGIN(NULL, process, .devices = "cpu:2", .payload_budget = (uint64_t)256 << 20);
    T_OK(gpud_dispatcher_run(s.d, give, T_CALLBACKS(.on_success = take_and_keep), &s, NULL));
    for (unsigned i = 0; i < s.n / 2; i++) {
        check_result(&s.kept[i]);
        T_OK(gpud_event_release(&s.kept[i]));
    }
    T_OK(gpud_dispatcher_destroy(&s.d, NULL));
    for (unsigned i = s.n / 2; i < s.n; i++) {
        check_result(&s.kept[i]);
        T_OK(gpud_event_release(&s.kept[i]));
    }
    T_OK(gpud_fini());
}

/* ---- beyond the dispatcher ---- */

/* How much memory the library's files that are mapped here hold, touched here or not. */
static size_t held_memory(void)
{
    char line[512];
    size_t pages = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    FILE *f = fopen("/proc/self/maps", "r");

    T_CHECK(f);
    while (fgets(line, sizeof line, f)) {
        unsigned char *map;
        uintptr_t from, to;
        size_t n;

        if (!strstr(line, "memfd:gpud-") || sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) != 2)
            continue;
        n = (to - from) / page;
        map = malloc(n);
        T_CHECK(map);
        T_EQ(mincore((void *)from, to - from, map), 0);
        for (size_t i = 0; i < n; i++)
            pages += map[i] & 1;
        free(map);
    }
    (void)fclose(f);
    return pages * page;
}

/* C19: destroy and fini with kept events: bytes stay readable, the rest of the arena goes, the last
 * release ends the mapping. */
T_CASE(beyond_the_dispatcher)
{
    struct gpud_event e[4], rest;
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .payload_budget = (uint64_t)256 << 20);

    for (unsigned i = 0; i < 4; i++) {
        T_SUBMIT(d, .tag = i % 2 ? LARGE + i : 100 + i);
        poll_one(d, &e[i]);
        T_OK(gpud_event_keep(d, &e[i]));
    }
    T_SUBMIT(d, .tag = (uint64_t)64 << 20);
    poll_one(d, &rest);
    T_CMP(held_memory(), >, (size_t)64 << 20);
    T_OK(gpud_dispatcher_destroy(&d, NULL));
    T_OK(gpud_fini());
    T_CMP(held_memory(), >=, 2 * LARGE);
    T_CMP(held_memory(), <, 4 * LARGE);
    for (unsigned i = 0; i < 4; i++) {
        check_result(&e[i]);
        T_EQ(t_counts_take().mappings, 1);
        T_OK(gpud_event_release(&e[i]));
    }
    T_EQ(t_counts_take().mappings, 0);
}

/* An awaited one likewise. */
T_CASE(awaited_beyond_the_dispatcher)
{
    struct gpud_event e[2] = { T_EVENT, T_EVENT };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");
    uint64_t id[2];

    id[0] = t_submit(d, T_TASK(.tag = 40, .label = "forty", .awaited = 1));
    id[1] = t_submit(d, T_TASK(.tag = LARGE, .awaited = 1));
    for (int i = 0; i < 2; i++)
        T_OK(gpud_dispatcher_wait(d, id[i], &e[i], GPUD_NEVER, NULL));
    T_OK(gpud_dispatcher_destroy(&d, NULL));
    T_TEXT(e[0].label, "forty");
    for (int i = 0; i < 2; i++) {
        check_result(&e[i]);
        T_OK(gpud_event_release(&e[i]));
    }
    T_OK(gpud_fini());
}

struct releaser {
    pthread_t thread;
    struct gpud_event *e;
    unsigned n;
};

static void *release_all(void *arg)
{
    struct releaser *r = arg;

    for (unsigned i = 0; i < r->n; i++)
        T_OK(gpud_event_release(&r->e[i]));
    return NULL;
}

/* Releases while the dispatcher ends: each finds it or does not. */
T_CASE(released_during_destroy)
{
    t_init(NULL, process, NULL);
    for (int round = 0; round < (T_SANITIZED ? 5 : 30); round++) {
        struct gpud_event e[32];
        struct releaser r[2];
        gpud_dispatcher *d = T_CREATE(.devices = "cpu:1", .payload_budget = (uint64_t)256 << 20);

        for (unsigned i = 0; i < 32; i++) {
            T_SUBMIT(d, .tag = i % 2 ? LARGE : 10);
            poll_one(d, &e[i]);
            T_OK(gpud_event_keep(d, &e[i]));
        }
        for (unsigned i = 0; i < 2; i++) {
            r[i] = (struct releaser){ .e = e + 16 * i, .n = 16 };
            t_thread(&r[i].thread, release_all, &r[i]);
        }
        T_OK(gpud_dispatcher_destroy(&d, NULL));
        for (unsigned i = 0; i < 2; i++)
            t_join(r[i].thread);
        T_EQ(t_counts_take().mappings, 0);
    }
    T_OK(gpud_fini());
}

/* ---- bounds ---- */

/* C18: who keeps a worker's whole share does not stop it: tasks that need room there fail and say
 * so, others go on; after a release there is room again. */
static void share_kept(uint32_t drive)
{
    struct gpud_event e[64], next;
    unsigned n = 0;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1",
                                 .payload_budget = (uint64_t)32 << 20, .drive = drive);

    for (;;) {
        T_SUBMIT(d, .tag = (uint64_t)2 << 20);
        poll_one(d, &next);
        if (next.outcome != GPUD_OUTCOME_SUCCESS)
            break;
        T_CMP(n, <, 64);
        e[n] = next;
        T_OK(gpud_event_keep(d, &e[n++]));
    }
    T_CMP(n, >=, 4);
    T_EQ(next.outcome, GPUD_OUTCOME_ERROR);
    T_EQ(next.code, GPUD_ERESULTSPACE);
    for (int i = 0; i < 10; i++) {
        T_SUBMIT(d, .tag = 1000);
        poll_one(d, &next);
        check_result(&next);
    }
    T_OK(gpud_event_release(&e[--n]));
    T_SUBMIT(d, .tag = (uint64_t)2 << 20);
    poll_one(d, &next);
    check_result(&next);
    while (n)
        T_OK(gpud_event_release(&e[--n]));
    t_end(&d, NULL);
}

T_CASE(a_share_that_is_kept)
{
    share_kept(GPUD_DRIVE_THREAD);
    share_kept(GPUD_DRIVE_CALLER);
}

/* C18: no more than queue_size are kept; the answer is "full" and nothing is lost. */
T_CASE(no_more_than_the_queue)
{
    struct gpud_event e[4], more, answer = T_EVENT;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .queue_size = 4);
    uint64_t id;

    for (unsigned i = 0; i < 4; i++) {
        T_SUBMIT(d, .tag = 30);
        poll_one(d, &e[i]);
        T_OK(gpud_event_keep(d, &e[i]));
    }
    T_SUBMIT(d, .tag = 30);
    poll_one(d, &more);
    T_CODE(gpud_event_keep(d, &more), EFULL);
    check_result(&more);
    id = t_submit(d, T_TASK(.tag = LARGE, .awaited = 1));
    T_CODE(gpud_dispatcher_wait(d, id, &answer, GPUD_NEVER, NULL), EFULL);
    T_EQ(answer.kind, 0);
    T_OK(gpud_event_release(&e[0]));
    T_OK(gpud_dispatcher_wait(d, id, &answer, 0, NULL));
    check_result(&answer);
    T_OK(gpud_event_release(&answer));
    T_OK(gpud_event_keep(d, &more) ? 0 : gpud_event_release(&more));
    for (unsigned i = 1; i < 4; i++)
        T_OK(gpud_event_release(&e[i]));
    t_end(&d, NULL);
}

/* ---- a forked child ---- */

/* In a forked child release only frees: the host's worker does not get the room twice, and the
 * bytes stay for the host. */
T_CASE(forked_child)
{
    struct gpud_event e[2], other;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");
    uint64_t used;

    for (unsigned i = 0; i < 2; i++) {
        T_SUBMIT(d, .tag = i ? LARGE : 20);
        poll_one(d, &e[i]);
        T_OK(gpud_event_keep(d, &e[i]));
    }
    used = t_stats(d).result_used;
    for (int order = 0; order < 3; order++) {
        int status = -1;
        pid_t child = fork();

        if (child == 0) {
            if (gpud_event_keep(d, &e[0]) != GPUD_EFORKED)
                _exit(1);
            if (order == 1 && gpud_dispatcher_destroy(&d, NULL))
                _exit(2);
            for (unsigned i = 0; i < 2; i++) {
                check_result(&e[i]);
                if (gpud_event_release(&e[i]))
                    _exit(3);
            }
            if (order != 2 && gpud_dispatcher_destroy(&d, NULL))
                _exit(4);
            if (order != 2 && t_counts_take().mappings)
                _exit(5);
            _exit(0);
        }
        T_EQ(waitpid(child, &status, 0), child);
        T_EQ(status, 0);
        /* its worker was not told that the room is free */
        T_SUBMIT(d, .tag = LARGE + 1);
        poll_one(d, &other);
        check_result(&other);
        check_result(&e[1]);
        poll_nothing(d);
        T_EQ(t_stats(d).protocol_errors, 0);
    }
    T_EQ(t_stats(d).result_used, used);
    for (unsigned i = 0; i < 2; i++) {
        check_result(&e[i]);
        T_OK(gpud_event_release(&e[i]));
    }
    T_EQ(t_stats(d).result_used, 0);
    t_end(&d, NULL);
}

/* The worker that wrote it dies; its room is not given to the next one. */
T_CASE(beyond_the_worker)
{
    struct gpud_event e, other;
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .payload_budget = (uint64_t)32 << 20);

    T_SUBMIT(d, .tag = LARGE + 7);
    poll_one(d, &e);
    T_OK(gpud_event_keep(d, &e));
    T_SUBMIT(d, .tag = T_TAG(DIE, 0));
    poll_one(d, &other);
    T_EQ(other.outcome, GPUD_OUTCOME_CRASHED);
    for (int i = 0; i < 100; i++) {
        T_SUBMIT(d, .tag = LARGE);
        poll_one(d, &other);
        check_result(&other);
    }
    check_result(&e);
    T_OK(gpud_event_release(&e));
    poll_nothing(d);
    T_EQ(t_stats(d).result_used, 0);
    t_end(&d, NULL);
}
