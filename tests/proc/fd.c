/* SPDX-License-Identifier: MIT */
/* fd.c - gpud_dispatcher_fd: the dispatcher in a loop of the host. */
#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { SETUPS, STOP };
enum { STUBBORN = T_VERBS };

static int process(gpud_task *t, void *state)
{
    if (gpud_task_tag(t) >> 32 == STUBBORN) {
        (void)t_word_add(T_STARTED);
        for (;;)
            (void)poll(NULL, 0, 1000);
    }
    (void)t_process(t, state);
    return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
}

/* The first setup fails. */
static int setup(gpud_worker *w, void **ret_state)
{
    (void)ret_state;
    (void)w;
    return t_word_add(SETUPS) == 1 ? 3 : 0;
}

/* ---- a loop of the host ---- */

struct loop {
    gpud_dispatcher *d;
    struct t_log log;
    int epoll, fd;
    int calls;             /* drive is CALLER: it tells of whatever is to be done */
    unsigned turns, empty; /* how often it was readable; and the poll gave nothing */
    int over;              /* EEND was seen */
};

static void open_loop(struct loop *l, gpud_dispatcher *d, uint32_t drive)
{
    struct epoll_event e = { .events = EPOLLIN };

    *l = (struct loop){ .d = d, .epoll = epoll_create1(EPOLL_CLOEXEC), .fd = gpud_dispatcher_fd(d),
                         .calls = drive == GPUD_DRIVE_CALLER };
    T_CMP(l->fd, >=, 0);
    T_CMP(l->epoll, >=, 0);
    T_EQ(epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->fd, &e), 0);
}

static void close_loop(struct loop *l)
{
    T_EQ(epoll_ctl(l->epoll, EPOLL_CTL_DEL, l->fd, NULL), 0);
    T_EQ(close(l->epoll), 0);
}

static int readable(int fd, int ms)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    int r;

    while ((r = poll(&p, 1, ms)) < 0 && errno == EINTR)
        ;
    return r;
}

/* Waits until it is readable, at most so long, and polls until nothing more comes. */
static int turn(struct loop *l, uint64_t patience)
{
    struct epoll_event e;
    size_t before = l->log.count;
    int r;

    while ((r = epoll_wait(l->epoll, &e, 1, (int)(patience / T_MS(1)))) < 0 && errno == EINTR)
        ;
    if (r == 0)
        return 0;
    l->turns++;
    while ((r = t_poll(l->d, &l->log, 0)) > 0)
        ;
    l->over = r == GPUD_EEND;
    l->empty += l->log.count == before && !l->over;
    return 1;
}

static void loop_until(struct loop *l, uint32_t kind, size_t n)
{
    while (t_log_count(&l->log, kind) < n)
        if (!turn(l, T_PATIENCE))
            T_FAIL("the fd does not tell: %zu of %zu", t_log_count(&l->log, kind), n);
}

static void loop_to_the_end(struct loop *l)
{
    while (!l->over)
        if (!turn(l, T_PATIENCE))
            T_FAIL("the fd does not tell of the end");
}

/* Something goes on that is no event: only with DRIVE_CALLER must the fd tell. */
static void step(struct loop *l)
{
    if (!turn(l, l->calls ? T_PATIENCE : T_MS(5)) && l->calls)
        T_FAIL("the fd does not ask for driving");
}

/* Everything that goes on by itself at the start has been done. */
static void settle(struct loop *l, unsigned slots)
{
    while (t_stats(l->d).slots_ready < slots)
        step(l);
    while (turn(l, T_MS(30)))
        ;
}

static void end_loop(struct loop *l)
{
    close_loop(l);
    t_end(&l->d, &l->log);
}

static void each_way(void (*scene)(uint32_t drive))
{
    scene(GPUD_DRIVE_THREAD);
    memset(t_page, 0, sizeof *t_page);
    scene(GPUD_DRIVE_CALLER);
}

/* ---- what it is ---- */

/* C13: close-on-exec, out of the way, the same each time, not to be read; gone with the dispatcher
 * (the harness counts). */
static void one_fd(uint32_t drive)
{
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .drive = drive);
    char byte[8];
    int fd;

    fd = gpud_dispatcher_fd(d);
    T_CMP(fd, >=, 700);
    T_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    T_EQ(gpud_dispatcher_fd(d), fd);
    T_EQ(read(fd, byte, sizeof byte), -1);
    T_CODE(gpud_dispatcher_fd(NULL), EINVAL);
    t_end(&d, NULL);
    T_EQ(fcntl(fd, F_GETFD), -1);
}

T_CASE(what_it_is)
{
    each_way(one_fd);
}

/* A level: readable as long as an event waits, and no longer. */
static void level(uint32_t drive)
{
    struct loop l;
    struct gpud_event e[2] = { { .struct_size = sizeof e[0] } };

    t_init(NULL, process, NULL);
    open_loop(&l, T_CREATE(.devices = "cpu:1", .drive = drive), drive);
    settle(&l, 1);
    T_EQ(readable(l.fd, 0), 0);
    for (uint64_t n = 0; n < 3; n++)
        T_SUBMIT(l.d, .tag = n);
    /* not collected: only driven, where that is ours to do */
    while (t_stats(l.d).undelivered < 3) {
        T_EQ(readable(l.fd, (int)(T_PATIENCE / T_MS(1))), 1);
        if (drive == GPUD_DRIVE_CALLER) {
            struct gpud_stats s = t_stats(l.d);

            if (s.undelivered)
                break;
            T_CMP(gpud_dispatcher_poll(l.d, e, 1, 0), >=, 0);
            if (t_stats(l.d).delivered)
                break;
        }
    }
    while (t_stats(l.d).delivered < 3) {
        T_EQ(readable(l.fd, (int)(T_PATIENCE / T_MS(1))), 1);
        T_CMP(gpud_dispatcher_poll(l.d, e, 1, 0), >=, 0);
    }
    while (readable(l.fd, 20)) /* driving that is left */
        T_EQ(gpud_dispatcher_poll(l.d, e, 1, 0), 0);
    end_loop(&l);
}

T_CASE(it_is_a_level)
{
    each_way(level);
}

/* ---- loops ---- */

/* A bare epoll loop: keeps some tasks going; each outcome once; few turns for nothing. */
static void bare_epoll(uint32_t drive)
{
    const uint64_t all = T_SANITIZED ? 500 : 5000;
    struct loop l;
    uint64_t given = 0;

    t_init(NULL, process, NULL);
    open_loop(&l, T_CREATE(.devices = "cpu:3", .drive = drive, .queue_size = 64), drive);
    do {
        while (given < all && gpud_dispatcher_submit(l.d, T_TASK(.tag = given), 0, NULL, NULL) == 0)
            given++;
        T_EQ(turn(&l, T_PATIENCE), 1);
    } while (t_log_count(&l.log, GPUD_EVENT_OUTCOME) < all);
    t_check_exactly_once(&l.log, all);
    T_CMP(l.empty, <, 100 + 6 * all); /* it does not spin */
    T_OK(gpud_dispatcher_close(l.d, GPUD_FINISH_ALL, 0));
    loop_to_the_end(&l);
    T_EQ(readable(l.fd, 0), 1); /* stays so */
    end_loop(&l);
}

T_LONG_CASE(a_bare_epoll_loop, 120)
{
    each_way(bare_epoll);
}

/* One request at a time: an answer must not wait for a tick of anything. (Of a quarter of them: the
 * others may have waited for a CPU.) */
static void one_by_one(uint32_t drive)
{
    const unsigned rounds = 300;
    unsigned soon = 0;
    struct loop l;

    t_init(NULL, process, NULL);
    open_loop(&l, T_CREATE(.devices = "cpu:1", .drive = drive), drive);
    settle(&l, 1);
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t began = t_now();

        T_SUBMIT(l.d, .tag = i);
        loop_until(&l, GPUD_EVENT_OUTCOME, i + 1);
        soon += t_now() - began < T_MS(T_SANITIZED ? 20 : 5);
    }
    T_CMP(soon, >=, rounds / 4);
    end_loop(&l);
}

T_CASE(one_request_at_a_time)
{
    each_way(one_by_one);
}

/* The fd asked for while tasks run, and events wait. */
static void asked_for_late(uint32_t drive)
{
    struct loop l;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .drive = drive);

    t_submit_tags(d, 0, 20);
    open_loop(&l, d, drive);
    loop_until(&l, GPUD_EVENT_OUTCOME, 20);
    t_check_exactly_once(&l.log, 20);
    end_loop(&l);
}

T_CASE(it_is_asked_for_late)
{
    each_way(asked_for_late);
}

/* ---- what must wake the loop ---- */

struct other {
    gpud_dispatcher *d;
    uint64_t id;
    pthread_t thread;
};

static void *submit_from_elsewhere(void *arg)
{
    struct other *o = arg;

    for (uint64_t n = 0; n < 100; n++) {
        T_SUBMIT(o->d, .tag = n);
        if (n % 10 == 0)
            t_pass(T_US(300));
    }
    return NULL;
}

static void submits(uint32_t drive)
{
    struct other o;
    struct loop l;
    uint64_t began;

    t_init(NULL, process, NULL);
    open_loop(&l, T_CREATE(.devices = "cpu:2", .drive = drive), drive);
    settle(&l, 2);
    o.d = l.d;
    began = t_now();
    t_thread(&o.thread, submit_from_elsewhere, &o);
    loop_until(&l, GPUD_EVENT_OUTCOME, 100);
    /* not by a timer that was due anyway, 10 s after the start */
    T_CMP(t_now() - began, <, T_S(8));
    t_join(o.thread);
    t_check_exactly_once(&l.log, 100);
    end_loop(&l);
}

T_CASE(a_submit_elsewhere)
{
    each_way(submits);
}

static void *cancel_elsewhere(void *arg)
{
    struct other *o = arg;

    t_word_wait(T_STARTED, 1);
    T_OK(gpud_dispatcher_cancel(o->d, o->id, GPUD_CANCEL_HARD));
    return NULL;
}

/* Cancel from another thread, and the grace that passes then: only time can tell. */
static void cancels(uint32_t drive)
{
    struct other o;
    struct loop l;

    t_init(NULL, process, NULL);
    open_loop(&l, T_CREATE(.devices = "cpu:1", .drive = drive, .grace = T_MS(30)), drive);
    o.d = l.d;
    o.id = t_submit(l.d, T_TASK(.tag = T_TAG(STUBBORN, 0)));
    t_thread(&o.thread, cancel_elsewhere, &o);
    loop_until(&l, GPUD_EVENT_OUTCOME, 1);
    t_join(o.thread);
    (void)T_OUTCOME(&l.log, T_TAG(STUBBORN, 0), CANCELLED);
    end_loop(&l);
}

T_CASE(a_cancel_elsewhere)
{
    each_way(cancels);
}

/* A death, with nothing else going on: the worker is replaced. */
static void deaths(uint32_t drive)
{
    struct t_proc worker;
    struct loop l;

    t_init(NULL, process, NULL);
    open_loop(&l, T_CREATE(.devices = "cpu:1", .drive = drive, .backoff = T_MS(10)), drive);
    T_SUBMIT(l.d, .tag = T_TAG(T_KILL, 1));
    loop_until(&l, GPUD_EVENT_OUTCOME, 1);
    (void)T_OUTCOME(&l.log, T_TAG(T_KILL, 1), CRASHED);
    settle(&l, 1);
    worker = t_worker(l.d, 0);
    t_kill(worker.pid, SIGKILL);
    while (t_slot(l.d, 0).incarnation < 3)
        step(&l); /* the death, then the end of the backoff */
    T_SUBMIT(l.d, .tag = 2);
    loop_until(&l, GPUD_EVENT_OUTCOME, 2);
    (void)T_OUTCOME(&l.log, 2, SUCCESS);
    end_loop(&l);
}

T_CASE(a_death)
{
    each_way(deaths);
}

/* C6: the hard limit, found by time alone. */
static void limits(uint32_t drive)
{
    const struct gpud_event *e;
    struct loop l;

    t_init(NULL, process, NULL);
    open_loop(&l, T_CREATE(.devices = "cpu:1", .drive = drive, .grace = T_MS(20)), drive);
    T_SUBMIT(l.d, .tag = T_TAG(STUBBORN, 0), .limit = T_MS(30));
    loop_until(&l, GPUD_EVENT_OUTCOME, 1);
    e = T_OUTCOME(&l.log, T_TAG(STUBBORN, 0), TIMEOUT);
    T_EQ(e->phase, GPUD_PHASE_HARD);
    T_CMP(e->ended_at - e->started_at, >=, T_MS(50));
    T_CMP(e->ended_at - e->started_at, <, T_S(T_SANITIZED ? 10 : 2));
    end_loop(&l);
}

T_CASE(a_limit)
{
    each_way(limits);
}

/* A setup that fails, and its backoff. */
static void failed_setup(uint32_t drive)
{
    struct loop l;

    t_init(setup, process, NULL);
    open_loop(&l, T_CREATE(.devices = "cpu:1", .drive = drive, .backoff = T_MS(20)), drive);
    loop_until(&l, GPUD_EVENT_SETUP_FAILURE, 1);
    settle(&l, 1);
    T_EQ(t_word(SETUPS), 2);
    end_loop(&l);
}

T_CASE(a_setup_that_fails)
{
    each_way(failed_setup);
}

/* C3 C6: a task that is tried again after a while, and one that expires behind a long one. */
static void deferred(uint32_t drive)
{
    struct loop l;

    t_init(NULL, process, NULL);
    open_loop(&l, T_CREATE(.devices = "cpu:1", .drive = drive, .retry_backoff = T_MS(30)), drive);
    T_SUBMIT(l.d, .tag = T_TAG(T_KILL, 0), .max_attempts = 2);
    loop_until(&l, GPUD_EVENT_OUTCOME, 1);
    T_EQ(T_OUTCOME(&l.log, T_TAG(T_KILL, 0), CRASHED)->attempt, 2);
    T_SUBMIT(l.d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    while (t_word(T_STARTED) == 0)
        (void)turn(&l, T_MS(5));
    settle(&l, 1);
    T_SUBMIT(l.d, .tag = 5, .expires = T_MS(40));
    loop_until(&l, GPUD_EVENT_OUTCOME, 2);
    (void)T_OUTCOME(&l.log, 5, TIMEOUT);
    t_word_set(T_GATE, 1);
    loop_until(&l, GPUD_EVENT_OUTCOME, 3);
    end_loop(&l);
}

T_CASE(what_is_put_off)
{
    each_way(deferred);
}

static gpud_dispatcher *interrupted;

static void on_interrupt(int number)
{
    (void)number;
    (void)gpud_dispatcher_stop(interrupted, GPUD_FINISH_NOW);
}

/* stop from a signal handler of the thread that is in its own loop. */
static void stops(uint32_t drive)
{
    struct sigaction action = { .sa_handler = on_interrupt }, old;
    struct loop l;

    t_init(NULL, process, NULL);
    open_loop(&l, T_CREATE(.devices = "cpu:1", .drive = drive), drive);
    interrupted = l.d;
    T_EQ(sigaction(SIGINT, &action, &old), 0);
    T_SUBMIT(l.d, .tag = T_TAG(T_UNTIL_CANCELLED, 0));
    while (t_word(T_STARTED) == 0)
        (void)turn(&l, T_MS(5));
    (void)turn(&l, T_MS(50));
    T_EQ(raise(SIGINT), 0);
    loop_to_the_end(&l);
    (void)T_OUTCOME(&l.log, T_TAG(T_UNTIL_CANCELLED, 0), CANCELLED);
    T_EQ(sigaction(SIGINT, &old, NULL), 0);
    end_loop(&l);
}

T_CASE(a_stop)
{
    each_way(stops);
}

/* ---- beside others ---- */

static void *wait_elsewhere(void *arg)
{
    struct other *o = arg;
    struct gpud_event e = GPUD_EVENT_INIT;

    T_OK(gpud_dispatcher_wait(o->d, o->id, &e, GPUD_NEVER, NULL));
    T_EQ(e.outcome, GPUD_OUTCOME_SUCCESS);
    T_OK(gpud_event_release(&e));
    (void)t_word_add(STOP);
    return NULL;
}

/* A thread in wait drives while the loop runs, with a limit's timer about: the loop gets what is
 * its own, goes on when that thread has left, and does not spin. */
static void beside_wait(uint32_t drive)
{
    struct other o;
    struct loop l;

    t_init(NULL, process, NULL);
    open_loop(&l, T_CREATE(.devices = "cpu:2", .drive = drive), drive);
    settle(&l, 2);
    o.d = l.d;
    o.id = t_submit(l.d, T_TASK(.tag = T_TAG(T_WAIT_FOR_GATE, 0), .awaited = 1));
    t_thread(&o.thread, wait_elsewhere, &o);
    for (uint64_t n = 0; n < 100; n++) {
        T_SUBMIT(l.d, .tag = n, .limit = T_MS(n % 2 ? 2000 : 3000));
        loop_until(&l, GPUD_EVENT_OUTCOME, n + 1);
    }
    t_word_set(T_GATE, 1);
    t_join(o.thread);
    for (uint64_t n = 100; n < 200; n++) {
        T_SUBMIT(l.d, .tag = n);
        loop_until(&l, GPUD_EVENT_OUTCOME, n + 1);
    }
    t_check_exactly_once(&l.log, 200);
    T_CMP(l.empty, <, 10000);
    end_loop(&l);
}

T_CASE(beside_a_thread_that_waits)
{
    each_way(beside_wait);
}

static int give(struct gpud_task_desc *task, size_t n, void *user)
{
    uint64_t *given = user;

    (void)n;
    task->tag = *given;
    return (*given)++ < 50;
}

/* run, and then the loop again. */
static void beside_run(uint32_t drive)
{
    struct loop l;
    uint64_t given = 0;

    t_init(NULL, process, NULL);
    open_loop(&l, T_CREATE(.devices = "cpu:2", .drive = drive), drive);
    T_OK(gpud_dispatcher_run(l.d, give, T_CALLBACKS(0), &given, NULL));
    settle(&l, 2);
    for (uint64_t n = 0; n < 50; n++)
        T_SUBMIT(l.d, .tag = n);
    loop_until(&l, GPUD_EVENT_OUTCOME, 50);
    t_check_exactly_once(&l.log, 50);
    end_loop(&l);
}

T_CASE(after_run)
{
    each_way(beside_run);
}

/* The loop's thread polls with patience now and then: the fd goes on telling. */
static void patient(uint32_t drive)
{
    struct loop l;

    t_init(NULL, process, NULL);
    open_loop(&l, T_CREATE(.devices = "cpu:1", .drive = drive), drive);
    for (uint64_t n = 0; n < 100; n++) {
        T_SUBMIT(l.d, .tag = n);
        if (n % 3 == 0)
            t_collect(l.d, &l.log, n + 1);
        else
            loop_until(&l, GPUD_EVENT_OUTCOME, n + 1);
    }
    t_check_exactly_once(&l.log, 100);
    end_loop(&l);
}

T_CASE(patience_now_and_then)
{
    each_way(patient);
}

/* Time that passes while another thread drives must not leave a past alarm behind: the loop would
 * spin until that thread goes. */
T_CASE(a_past_alarm_does_not_spin)
{
    struct other o;
    struct loop l;

    t_init(NULL, process, NULL);
    open_loop(&l, T_CREATE(.devices = "cpu:1", .drive = GPUD_DRIVE_CALLER, .grace = T_MS(10)),
              GPUD_DRIVE_CALLER);
    settle(&l, 1);
    o.d = l.d;
    o.id =
        t_submit(l.d, T_TASK(.tag = T_TAG(T_WAIT_FOR_GATE, 0), .limit = T_MS(500), .awaited = 1));
    while (t_word(T_STARTED) == 0)
        (void)turn(&l, T_MS(5)); /* now the alarm stands at limit and grace */
    o.id = t_submit(l.d, T_TASK(.tag = 2, .awaited = 1));
    t_thread(&o.thread, wait_elsewhere, &o);
    l.empty = 0;
    while (t_word(STOP) == 0)
        (void)turn(&l, T_MS(20));
    t_join(o.thread);
    T_CMP(l.empty, <, 1000);
    l.log.count = 0;
    T_EQ(t_stats(l.d).timeout, 1);
    close_loop(&l);
    T_OK(gpud_dispatcher_destroy(&l.d, NULL));
    t_log_free(&l.log);
    T_OK(gpud_fini());
}
