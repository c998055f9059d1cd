/* SPDX-License-Identifier: MIT */
/*
 * r_intake.c - accepting tasks in the situations in which a reader of the code found it to fail:
 * each case here failed before its mend.
 */
#include "fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT = 1000 }; /* a tag; others do nothing */
enum { GATE, STARTED, TURN, IN_COPY, GO_ON, IN_SOURCE, FEED, TID, DESTROYED, LEAVING };

static int process(gpud_task *t, void *state)
{
    uint64_t turn = t_word_add(TURN);

    (void)state;
    if (gpud_task_tag(t) == WAIT) {
        (void)t_word_add(STARTED);
        t_word_wait(GATE, 1);
    }
    return gpud_task_result_set(t, &turn, sizeof(turn));
}

static uint64_t turn_of(const struct t_log *log, uint64_t tag)
{
    return *(const uint64_t *)T_OUTCOME(log, tag, SUCCESS)->result;
}

/* ---- while a large payload is copied ---- */

enum { LARGE = 1 << 20 };
static unsigned char *large;
static struct sigaction old_action;

/* Somebody copies `large`: says so, and lets them read it once they may go on. */
static void on_fault(int signo)
{
    (void)signo;
    (void)t_word_add(IN_COPY);
    t_word_wait(GO_ON, 1);
    (void)mprotect(large, LARGE, PROT_READ);
}

static void make_large(void)
{
    struct sigaction action = { .sa_handler = on_fault };

    large = mmap(NULL, LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    T_CHECK(large != MAP_FAILED);
    T_EQ(sigaction(SIGSEGV, &action, &old_action), 0);
}

static void drop_large(void)
{
    T_EQ(sigaction(SIGSEGV, &old_action, NULL), 0);
    T_EQ(munmap(large, LARGE), 0);
}

struct submission {
    gpud_dispatcher *d;
    struct gpud_task_desc task;
    uint64_t wait, id;
    int answer;
};

static void *submit(void *arg)
{
    struct submission *s = arg;

    t_word_set(TID, (uint32_t)gettid());
    s->answer = gpud_dispatcher_submit(s->d, &s->task, s->wait, &s->id, NULL);
    return NULL;
}

/* C1: close while a large task is being copied: it is refused, and the end is the end. */
T_CASE(close_while_a_task_is_copied)
{
    struct t_log log = { 0 };
    struct submission s;
    pthread_t thread;

    make_large();
    s.d = T_BEGIN(NULL, process, .devices = "cpu:1");
    s.task = *T_TASK(.tag = 1, .data = large, .size = LARGE);
    s.wait = 0;
    t_thread(&thread, submit, &s);
    t_word_wait(IN_COPY, 1);
    T_OK(gpud_dispatcher_close(s.d, GPUD_FINISH_NOW, 0));
    t_wait_slot(s.d, 0, GPUD_SLOT_STOPPED); /* no worker is left for it */
    t_word_set(GO_ON, 1);
    t_join(thread);
    T_CODE(s.answer, ECLOSED);
    t_collect_rest(s.d, &log);
    T_EQ(log.count, 0);
    T_EQ(t_stats(s.d).accepted, 0);
    t_end(&s.d, &log);
    drop_large();
}

struct ending {
    gpud_dispatcher *d;
    int answer;
};

static void *poll_to_the_end(void *arg)
{
    struct gpud_event events[4] = { GPUD_EVENT_INIT };
    struct ending *x = arg;

    t_word_set(TID, (uint32_t)gettid());
    x->answer = gpud_dispatcher_poll(x->d, events, 4, GPUD_NEVER);
    return NULL;
}

/* C1: the last thing that the end waits for is a submit that is refused in the end: who polls hears
 * of it. */
static void end_while_a_task_is_copied(uint32_t drive)
{
    pthread_t thread, poller;
    struct submission s;
    struct ending x;
    uint64_t began;

    make_large();
    s.d = T_BEGIN(NULL, process, .devices = "cpu:1", .drive = drive);
    s.task = *T_TASK(.tag = 1, .data = large, .size = LARGE);
    s.wait = 0;
    t_thread(&thread, submit, &s);
    t_word_wait(IN_COPY, 1);
    T_OK(gpud_dispatcher_close(s.d, GPUD_FINISH_NOW, GPUD_NEVER));
    t_word_set(TID, 0);
    x = (struct ending){ .d = s.d };
    t_thread(&poller, poll_to_the_end, &x);
    t_wait_slot(s.d, 0, GPUD_SLOT_STOPPED);
    t_wait_until("poll sleeps", t_thread_sleeps, &t_page->words[TID]);
    began = t_now();
    t_word_set(GO_ON, 1);
    t_join(thread);
    T_CODE(s.answer, ECLOSED);
    t_join(poller);
    T_CODE(x.answer, EEND);
    /* not at the next timer: there is one 10 s after a keeper was asked for */
    T_CMP(t_now() - began, <, T_S(5));
    t_end(&s.d, NULL);
    drop_large();
}

T_CASE(end_while_a_task_is_copied_thread)
{
    end_while_a_task_is_copied(GPUD_DRIVE_THREAD);
}

T_CASE(end_while_a_task_is_copied_caller)
{
    end_while_a_task_is_copied(GPUD_DRIVE_CALLER);
}

static int nothing_more(struct gpud_task_desc *tasks, size_t n, void *user)
{
    (void)tasks, (void)n, (void)user;
    t_word_set(IN_SOURCE, 1);
    return 0;
}

static void *run_to_the_end(void *arg)
{
    struct ending *x = arg;

    t_word_set(TID, (uint32_t)gettid());
    x->answer = gpud_dispatcher_run(x->d, nothing_more, T_CALLBACKS(.on_event = NULL), NULL, NULL);
    return NULL;
}

static void *wait_for_success(void *arg)
{
    const struct submission *s = arg;
    struct gpud_event e = GPUD_EVENT_INIT;

    t_word_set(TID, (uint32_t)gettid());
    T_OK(gpud_dispatcher_wait(s->d, s->id, &e, GPUD_NEVER, NULL));
    T_EQ(e.outcome, GPUD_OUTCOME_SUCCESS);
    T_OK(gpud_event_release(&e));
    return NULL;
}

/* C12: run does not wait for an awaited task whose submit was copying as the source ended; and it
 * is told of that while another thread drives. */
T_CASE(run_ends_beside_an_awaited_copy)
{
    struct submission s = { .wait = 0 }, before;
    pthread_t thread, runner, waiter;
    struct ending x;

    make_large();
    s.d = T_BEGIN(NULL, process, .devices = "cpu:1", .sent_ahead = 1);
    before = s;
    T_OK(gpud_dispatcher_submit(s.d, T_TASK(.tag = WAIT, .awaited = 1), 0, &before.id, NULL));
    t_thread(&waiter, wait_for_success, &before);
    t_word_wait(STARTED, 1);
    t_wait_until("the first waits", t_thread_sleeps, &t_page->words[TID]);
    s.task = *T_TASK(.tag = 1, .data = large, .size = LARGE, .awaited = 1);
    t_thread(&thread, submit, &s);
    t_word_wait(IN_COPY, 1);
    t_word_set(TID, 0);
    x = (struct ending){ .d = s.d };
    t_thread(&runner, run_to_the_end, &x);
    t_word_wait(IN_SOURCE, 1);
    t_wait_until("run sleeps", t_thread_sleeps, &t_page->words[TID]);
    t_word_set(GO_ON, 1);
    t_join(thread);
    T_OK(s.answer);
    t_join(runner);
    T_OK(x.answer);
    t_word_set(GATE, 1);
    t_join(waiter);
    (void)wait_for_success(&s);
    t_end(&s.d, NULL);
    drop_large();
}

static void *destroy(void *arg)
{
    gpud_dispatcher *d = arg;

    t_destroy(&d, NULL);
    (void)t_word_add(DESTROYED);
    return NULL;
}

static int no_keeper_is_left(void *unused)
{
    struct t_procs all = t_procs_below(getpid());
    size_t n = 0;

    (void)unused;
    for (size_t i = 0; i < all.count; i++)
        n += strcmp(all.list[i].comm, "gpud-keeper") == 0;
    t_procs_free(&all);
    return n == 0;
}

/* C15: destroy waits for a submit that is under way in another thread; that is refused. */
T_CASE(destroy_while_a_task_is_copied)
{
    pthread_t thread, destroyer;
    struct submission s;

    make_large();
    s.d = T_BEGIN(NULL, process, .devices = "cpu:1");
    t_wait_ready(s.d, 1);
    s.task = *T_TASK(.tag = 1, .data = large, .size = LARGE);
    s.wait = GPUD_NEVER;
    t_thread(&thread, submit, &s);
    t_word_wait(IN_COPY, 1);
    t_thread(&destroyer, destroy, s.d);
    t_wait_until("no keeper is left", no_keeper_is_left, NULL);
    T_EQ(t_word_wait_for(DESTROYED, 1, T_MS(50)), -1);
    t_word_set(GO_ON, 1);
    t_join(thread);
    T_CODE(s.answer, ECLOSED);
    t_join(destroyer);
    T_OK(gpud_fini());
    drop_large();
}

/* C5 C17: the queue's last free band is taken while a large task of yet another priority is copied.
 */
T_CASE(new_priority_while_a_task_is_copied)
{
    enum { FIRST = 1, LAST = 3, MEANWHILE = 50, COPIED = 100 };
    static const uint64_t order[] = { WAIT, COPIED, MEANWHILE, 3, 2, 1 };
    struct t_log log = { 0 };
    struct submission s;
    pthread_t thread;

    make_large();
    s.d = T_BEGIN(NULL, process, .devices = "cpu:1", .sent_ahead = 1);
    T_SUBMIT(s.d, .tag = WAIT);
    t_word_wait(STARTED, 1);
    for (int32_t p = FIRST; p <= LAST; p++)
        T_SUBMIT(s.d, .tag = (uint64_t)p, .priority = p);
    s.task = *T_TASK(.tag = COPIED, .priority = COPIED, .data = large, .size = LARGE);
    s.wait = 0;
    t_thread(&thread, submit, &s);
    t_word_wait(IN_COPY, 1);
    T_SUBMIT(s.d, .tag = MEANWHILE, .priority = MEANWHILE);
    t_word_set(GO_ON, 1);
    t_join(thread);
    T_OK(s.answer);
    t_word_set(GATE, 1);
    t_collect(s.d, &log, 6);
    for (uint64_t i = 0; i < 6; i++)
        T_EQ(turn_of(&log, order[i]), i + 1);
    t_end(&s.d, &log);
    drop_large();
}

/* ---- sizes ---- */

/* C18: on an empty dispatcher a payload fits or is ETOOBIG; to wait for room would be in vain. */
T_CASE(too_big_is_not_full)
{
    enum { BUDGET = 16 << 20, STEP = 1 << 19, BELOW = 4096 };
    struct t_log log = { 0 };
    unsigned char *data = calloc(1, BUDGET);
    uint64_t fitting = 0, too_big = 0;
    gpud_dispatcher *d;

    T_CHECK(data);
    d = T_BEGIN(NULL, process, .devices = "cpu:1", .payload_budget = BUDGET);
    for (uint64_t size = STEP - BELOW; size <= BUDGET; size += STEP) {
        int r = gpud_dispatcher_submit(d, T_TASK(.tag = fitting, .data = data, .size = size), 0,
                                       NULL, NULL);
        void *buffer = NULL;

        if (r) {
            T_CODE(r, ETOOBIG);
            T_CODE(gpud_dispatcher_buffer_alloc(d, size, &buffer), ETOOBIG);
            too_big++;
            continue;
        }
        T_EQ(too_big, 0);
        t_collect(d, &log, ++fitting);
        T_OK(gpud_dispatcher_buffer_alloc(d, size, &buffer));
        T_OK(gpud_dispatcher_buffer_free(d, buffer));
    }
    T_CMP(fitting, >=, 4); /* 2 MiB */
    T_CMP(too_big, >=, BUDGET / 2 / STEP); /* half of the budget is for results */
    t_check_exactly_once(&log, fitting);
    t_end(&d, &log);
    free(data);
}

/* ---- a second run ---- */

static gpud_dispatcher *the_dispatcher;
static int fed;

static int source(struct gpud_task_desc *task, size_t n, void *log)
{
    (void)n;
    (void)log;
    if (fed++)
        return 0;
    (void)t_word_add(IN_SOURCE);
    t_word_wait(FEED, 1);
    task->tag = 0;
    return 1;
}

static void *run(void *log)
{
    const struct gpud_callbacks *callbacks =
        T_CALLBACKS(.on_success = t_log_add, .on_error = t_log_add);

    T_CODE(gpud_dispatcher_run(the_dispatcher, source, callbacks, log, NULL), ESTOPPED);
    return NULL;
}

/* C1 C16: a second run that answers EBUSY leaves the first as it is: what its source gives after a
 * close of ALL still runs, and run returns. */
T_CASE(refused_run_changes_nothing)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    pthread_t thread;

    the_dispatcher = T_BEGIN(NULL, process, .devices = "cpu:1");
    t_wait_ready(the_dispatcher, 1);
    t_thread(&thread, run, &log);
    t_word_wait(IN_SOURCE, 1);
    T_CODE(gpud_dispatcher_run(the_dispatcher, source, T_CALLBACKS(.on_success = t_log_add), &log,
                               &error),
           EBUSY);
    T_EQ(error.code, GPUD_EBUSY);
    T_TEXT(error.text, gpud_error_text(GPUD_EBUSY));
    T_OK(gpud_dispatcher_close(the_dispatcher, GPUD_FINISH_ALL, GPUD_NEVER));
    t_pass(T_MS(20)); /* in which workers would be told to leave */
    T_EQ(t_slot(the_dispatcher, 0).state, GPUD_SLOT_READY);
    t_word_set(FEED, 1);
    t_join(thread);
    (void)T_OUTCOME(&log, 0, SUCCESS);
    t_end(&the_dispatcher, &log);
}

/* ---- a run that finds no room ---- */

static int both_have_ended(void *d)
{
    return t_stats(d).success == 2;
}

/* With outcomes that nobody has fetched. */
static void fill_the_queue(gpud_dispatcher *d, uint64_t id[2])
{
    for (uint32_t i = 0; i < 2; i++)
        id[i] = t_submit(d, T_TASK(.tag = 100 + i, .awaited = 1));
    t_wait_until("both have ended", both_have_ended, d);
}

static void fetch(gpud_dispatcher *d, uint64_t id)
{
    struct gpud_event e = GPUD_EVENT_INIT;

    T_OK(gpud_dispatcher_wait(d, id, &e, GPUD_NEVER, NULL));
    T_EQ(e.outcome, GPUD_OUTCOME_SUCCESS);
    T_OK(gpud_event_release(&e));
}

static const char payload[10000]; /* too much for the record's own block */

static int labelled_source(struct gpud_task_desc *task, size_t n, void *log)
{
    int more = source(task, n, log);

    task->label = "the last";
    task->data = payload;
    task->size = sizeof(payload);
    t_word_set(TID, (uint32_t)gettid());
    return more;
}

static void *run_labelled(void *log)
{
    const struct gpud_callbacks *callbacks =
        T_CALLBACKS(.on_success = t_log_add, .on_error = t_log_add);

    T_CODE(gpud_dispatcher_run(the_dispatcher, labelled_source, callbacks, log, NULL), ESTOPPED);
    return NULL;
}

static void expect_cancelled(const struct t_log *log)
{
    const struct gpud_event *e = T_OUTCOME(log, 0, CANCELLED);

    T_TEXT(e->label, "the last");
    T_EQ(e->phase, GPUD_PHASE_QUEUED);
    T_EQ(e->code, GPUD_ECANCELLED);
    T_EQ(e->result_size, 0);
}

enum how { BY_CLOSE, BY_STOP, BY_LIMIT };

static void end_intake(gpud_dispatcher *d, enum how how)
{
    if (how == BY_CLOSE)
        T_OK(gpud_dispatcher_close(d, GPUD_FINISH_RUNNING, GPUD_NEVER));
    else if (how == BY_STOP)
        T_OK(gpud_dispatcher_stop(d, GPUD_FINISH_NOW));
    else
        T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, T_MS(20)));
}

/* C1: outcomes that nobody fetches fill the queue. What a source gives once nothing more starts, or
 * has given before, ends CANCELLED, and run returns. */
static void run_without_room(enum how how, int pulled_before)
{
    struct t_log log = { 0 };
    pthread_t thread;
    uint64_t id[2];

    the_dispatcher = T_BEGIN(NULL, process, .devices = "cpu:1", .queue_size = 2);
    fill_the_queue(the_dispatcher, id);
    t_thread(&thread, run_labelled, &log);
    t_word_wait(IN_SOURCE, 1);
    if (pulled_before) {
        t_word_set(FEED, 1);
        t_wait_until("the feeder waits for room", t_thread_sleeps, &t_page->words[TID]);
    }
    end_intake(the_dispatcher, how);
    t_word_set(FEED, 1);
    t_join(thread);
    expect_cancelled(&log);
    T_EQ(t_stats(the_dispatcher).accepted, 3);
    for (int i = 0; i < 2; i++)
        fetch(the_dispatcher, id[i]);
    t_end(&the_dispatcher, &log);
}

T_CASE(run_ends_without_room_by_close)
{
    run_without_room(BY_CLOSE, 1);
}

T_CASE(run_ends_without_room_by_stop)
{
    run_without_room(BY_STOP, 1);
}

T_CASE(run_ends_without_room_by_limit)
{
    run_without_room(BY_LIMIT, 1);
}

T_CASE(run_ends_without_room_late)
{
    run_without_room(BY_CLOSE, 0);
}

/* C1 C18: the same where buffers of the host hold all memory for task data. */
T_CASE(run_ends_without_memory)
{
    enum { MOST = 256 };
    struct t_log log = { 0 };
    void *buffer[MOST];
    pthread_t thread;
    int n = 0;

    the_dispatcher = T_BEGIN(NULL, process, .devices = "cpu:1", .payload_budget = 16u << 20);
    for (uint64_t size = 4u << 20; size >= 64; size /= 2)
        while (n < MOST && gpud_dispatcher_buffer_alloc(the_dispatcher, size, &buffer[n]) == 0)
            n++;
    T_CMP(n, <, MOST);
    t_thread(&thread, run_labelled, &log);
    t_word_wait(IN_SOURCE, 1);
    t_word_set(FEED, 1);
    t_wait_until("the feeder waits for memory", t_thread_sleeps, &t_page->words[TID]);
    T_OK(gpud_dispatcher_close(the_dispatcher, GPUD_FINISH_RUNNING, GPUD_NEVER));
    t_join(thread);
    expect_cancelled(&log);
    while (n > 0)
        T_OK(gpud_dispatcher_buffer_free(the_dispatcher, buffer[--n]));
    t_end(&the_dispatcher, &log);
}

/* C1: a submit that is refused in the end gives its place to what a source has brought, which may
 * still start. */
T_CASE(place_of_a_refused_submit)
{
    struct t_log log = { 0 };
    pthread_t thread, runner;
    struct submission s;

    make_large();
    t_init(NULL, process, NULL);
    s.d = the_dispatcher = T_CREATE(.devices = "cpu:1", .queue_size = 1);
    t_thread(&runner, run_labelled, &log);
    t_word_wait(IN_SOURCE, 1);
    s.task = *T_TASK(.tag = 1, .data = large, .size = LARGE);
    s.wait = 0;
    t_thread(&thread, submit, &s);
    t_word_wait(IN_COPY, 1);
    T_OK(gpud_dispatcher_close(the_dispatcher, GPUD_FINISH_ALL, GPUD_NEVER));
    t_word_set(TID, 0);
    t_word_set(FEED, 1);
    t_wait_until("the feeder waits for room", t_thread_sleeps, &t_page->words[TID]);
    t_word_set(GO_ON, 1);
    t_join(thread);
    T_CODE(s.answer, ECLOSED);
    t_join(runner);
    (void)T_OUTCOME(&log, 0, SUCCESS);
    t_end(&the_dispatcher, &log);
    drop_large();
}

/* ---- run, and an end that does not wait for it ---- */

static pthread_key_t in_feeder;

/* The feeder is on its way out, and run waits for that. */
static void linger(void *unused)
{
    (void)unused;
    (void)t_word_add(LEAVING);
    t_word_wait(DESTROYED, 1);
}

static int lingering_source(struct gpud_task_desc *task, size_t n, void *user)
{
    (void)n;
    (void)task;
    (void)user;
    T_EQ(pthread_setspecific(in_feeder, &in_feeder), 0);
    return 0;
}

static void *run_nothing(void *d)
{
    T_OK(
        gpud_dispatcher_run(d, lingering_source, T_CALLBACKS(.on_success = t_log_add), NULL, NULL));
    return NULL;
}

static int destroy_succeeds(void *d)
{
    int r = gpud_dispatcher_destroy(d, NULL);

    if (r)
        T_CODE(r, EBUSY);
    return r == 0;
}

/* C15: once destroy does not answer EBUSY any more, run looks at nothing that destroy has freed. */
T_CASE(destroy_while_run_returns)
{
    gpud_dispatcher *d;
    pthread_t thread;

    T_EQ(pthread_key_create(&in_feeder, linger), 0);
    d = T_BEGIN(NULL, process, .devices = "cpu:1");
    t_thread(&thread, run_nothing, d);
    t_word_wait(LEAVING, 1);
    t_wait_until("destroy succeeds", destroy_succeeds, &d);
    t_word_set(DESTROYED, 1);
    t_join(thread);
    T_EQ(pthread_key_delete(in_feeder), 0);
    T_OK(gpud_fini());
}

/* ---- a fork while somebody waits ---- */

static int child_ended(void *pid)
{
    siginfo_t si = { .si_pid = 0 };

    return !waitid(P_PID, (id_t) * (pid_t *)pid, &si, WEXITED | WNOHANG | WNOWAIT) && si.si_pid;
}

/* C13: in a forked child destroy returns, though at the fork a thread of the host was waiting for
 * room; in the host that thread is not disturbed. [T20] */
T_CASE(destroy_in_a_child_while_one_waits_for_room)
{
    struct t_log log = { 0 };
    struct submission s;
    pthread_t thread;
    int status = -1;
    pid_t pid;

    s.d = T_BEGIN(NULL, process, .devices = "cpu:1", .queue_size = 1);
    T_SUBMIT(s.d, .tag = WAIT);
    t_word_wait(STARTED, 1);
    s.task = *T_TASK(.tag = 1);
    s.wait = T_PATIENCE;
    t_thread(&thread, submit, &s);
    t_wait_until("the thread waits for room", t_thread_sleeps, &t_page->words[TID]);
    pid = fork();
    T_CMP(pid, >=, 0);
    if (!pid)
        _exit(gpud_dispatcher_destroy(&s.d, NULL) || s.d ? 1 : 0);
    t_wait_until("destroy returns in the child", child_ended, &pid);
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(status, 0);
    t_word_set(GATE, 1);
    t_collect(s.d, &log, 2);
    t_join(thread);
    T_OK(s.answer);
    (void)T_OUTCOME(&log, 1, SUCCESS);
    t_end(&s.d, &log);
}
