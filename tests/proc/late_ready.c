/* SPDX-License-Identifier: MIT */
/*
 * late_ready.c - a worker says that its setup is over when its kill was ordered, its keeper is
 * lost, or it is dead and what it started is being swept; or before its keeper has said that there
 * is a worker.                                                                          [C9] [C10]
 */
#include "fixture.h"

#include "own_page.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/frame.h"

enum { STARTED, GATE, SAID, SECOND }; /* words */
enum { WAY, LIVES, PIPE, LEFT }; /* numbers */
enum way { RETURN, OUTLIVE_KEEPER, LEAVE_CHILD, OUTRUN };
/* From the start of setup on; a keeper must be stopped before. */
#define SETUP_LIMIT T_S(T_SANITIZED ? 8 : 3)
#define KILL_LIMIT T_S(2)

static int process(gpud_task *t, void *state)
{
    (void)t, (void)state;
    return 0;
}

/* ---- the worker ---- */

/* A child of the worker's that says when setup is over. */
static void watch_setup(void)
{
    struct gpi_page *p = own_page();

    if (fork())
        return;
    while (atomic_load(&p->setup_done) != 1)
        t_pass(T_US(100));
    (void)t_word_add(SAID);
    _exit(0);
}

static void leave_child(void)
{
    struct t_proc p;
    pid_t pid = fork();

    if (!pid)
        t_rest();
    T_EQ(t_proc_read(pid, &p), 0);
    atomic_store(&t_page->numbers[LEFT], (uint64_t)pid);
}

static void note_pipe(void)
{
    struct stat pipe_to_host;

    T_EQ(fstat(own_pipe(O_WRONLY), &pipe_to_host), 0);
    atomic_store(&t_page->numbers[PIPE], pipe_to_host.st_ino);
}

/* The first life of slot 0 waits at the gate; with OUTRUN the second does, at another. */
static int setup(gpud_worker *w, void **ret_state)
{
    const enum way way = (enum way)atomic_load(&t_page->numbers[WAY]);

    (void)ret_state;
    if (way == OUTRUN && !atomic_fetch_add(&t_page->numbers[LIVES], 1))
        note_pipe();
    else if (way == OUTRUN)
        t_word_wait(SECOND, 1);
    if (way == OUTRUN)
        return 0;
    if (gpud_worker_slot(w) || atomic_fetch_add(&t_page->numbers[LIVES], 1))
        return 0;
    if (way == OUTLIVE_KEEPER)
        T_EQ(prctl(PR_SET_PDEATHSIG, 0), 0);
    if (way == LEAVE_CHILD)
        leave_child();
    else
        watch_setup();
    note_pipe();
    (void)t_word_add(STARTED);
    t_word_wait(GATE, 1);
    if (way == LEAVE_CHILD)
        _exit(3);
    return 0;
}

/* ---- the host ---- */

struct scene {
    gpud_dispatcher *d;
    struct t_log log;
    struct t_proc keeper, worker;
};

static struct scene begin(enum way way, const char *devices, uint32_t drive)
{
    struct scene s = { .d = NULL };

    atomic_store(&t_page->numbers[WAY], way);
    t_init(setup, process, NULL);
    s.d = t_create(T_OPTIONS(.devices = devices, .kill_limit = KILL_LIMIT,
                             .setup_limit = way == RETURN ? SETUP_LIMIT : GPUD_NEVER,
                             .backoff = T_MS(1), .drive = drive));
    while (t_word_wait_for(STARTED, 1, T_MS(1)))
        if (drive == GPUD_DRIVE_CALLER)
            (void)t_poll(s.d, &s.log, 0);
    while (drive == GPUD_DRIVE_CALLER && !t_slot(s.d, 0).pid)
        (void)t_poll(s.d, &s.log, T_MS(1)); /* the keeper's word that it has started one */
    s.worker = t_worker(s.d, 0);
    s.keeper = t_keeper_of(&s.worker);
    return s;
}

/* Destroy kills the keeper, which is stopped, and its worker dies with it. */
static void end(struct scene *s)
{
    t_destroy(&s->d, &s->log);
    t_wait_ended(&s->worker);
    t_wait_ended(&s->keeper);
    T_OK(gpud_fini());
}

/* The host has ordered the kill, the keeper, which is stopped, has not read it, and setup ends. */
static void cross(void)
{
    t_wait_until("the kill is ordered", t_word_waits, NULL);
    t_word_set(GATE, 1);
    t_word_wait(SAID, 1);
}

static void submit_some(gpud_dispatcher *d, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        (void)t_submit(d, T_TASK(.tag = i));
}

static void check_quarantined(struct scene *s)
{
    const struct gpud_event *e = t_log_at(&s->log, GPUD_EVENT_SETUP_FAILURE, 0);

    T_CHECK(e);
    T_EQ(e->code, GPUD_EQUARANTINED);
    T_EQ(t_slot(s->d, 0).state, GPUD_SLOT_QUARANTINED);
    T_CHECK(!t_proc_ended(&s->worker));
}

/* C10: ... and its tasks go to the other slot. */
T_LONG_CASE(survivor_among_others, 120)
{
    struct scene s = begin(RETURN, "cpu:2", GPUD_DRIVE_THREAD);

    t_wait_ready(s.d, 1); /* so that only the order to slot 0 can wait */
    t_stop(&s.keeper);
    cross();
    submit_some(s.d, 20);
    t_collect(s.d, &s.log, 20);
    for (uint64_t i = 0; i < 20; i++)
        T_EQ(T_OUTCOME(&s.log, i, SUCCESS)->slot, 1);
    t_collect_kind(s.d, &s.log, GPUD_EVENT_SETUP_FAILURE, 1);
    check_quarantined(&s);
    end(&s);
}

/* C10: ... and where there is no other, they end NO_WORKER. */
T_LONG_CASE(survivor_alone, 120)
{
    struct scene s = begin(RETURN, "cpu:1", GPUD_DRIVE_THREAD);

    t_stop(&s.keeper);
    submit_some(s.d, 5);
    cross();
    t_collect(s.d, &s.log, 5);
    for (uint64_t i = 0; i < 5; i++)
        (void)T_OUTCOME(&s.log, i, NO_WORKER);
    check_quarantined(&s);
    end(&s);
}

/* C9: the keeper goes on in time: a failed setup, and the slot goes on. */
T_LONG_CASE(keeper_goes_on, 120)
{
    struct scene s = begin(RETURN, "cpu:1", GPUD_DRIVE_THREAD);
    const struct gpud_event *e;

    t_stop(&s.keeper);
    submit_some(s.d, 5);
    cross();
    T_EQ(kill(s.keeper.pid, SIGCONT), 0);
    t_collect(s.d, &s.log, 5);
    e = t_log_at(&s.log, GPUD_EVENT_SETUP_FAILURE, 0);
    T_CHECK(e);
    T_EQ(e->code, GPUD_ETIMEOUT);
    for (uint64_t i = 0; i < 5; i++) {
        T_EQ(T_OUTCOME(&s.log, i, SUCCESS)->incarnation, 2);
        T_EQ(T_OUTCOME(&s.log, i, SUCCESS)->attempt, 1);
    }
    T_EQ(t_log_count(&s.log, GPUD_EVENT_SETUP_FAILURE), 1);
    T_EQ(t_stats(s.d).setup_failures, 1);
    end(&s);
}

/* C10: the keeper is dead, its worker is not, and the spawner does not say that it is. */
T_LONG_CASE(keeper_is_lost, 120)
{
    struct scene s = begin(OUTLIVE_KEEPER, "cpu:1", GPUD_DRIVE_CALLER);
    struct t_proc spawner = t_spawner();

    t_stop(&spawner);
    T_EQ(kill(s.keeper.pid, SIGKILL), 0);
    t_wait_ended(&s.keeper);
    (void)t_poll(s.d, &s.log, 0); /* the host reads that its socket has ended */
    T_CHECK(!t_proc_ended(&s.worker));
    t_word_set(GATE, 1);
    t_word_wait(SAID, 1);
    submit_some(s.d, 5);
    t_collect(s.d, &s.log, 5);
    for (uint64_t i = 0; i < 5; i++)
        (void)T_OUTCOME(&s.log, i, NO_WORKER);
    T_EQ(t_slot(s.d, 0).state, GPUD_SLOT_QUARANTINED);
    T_CHECK(!t_proc_ended(&s.worker));
    T_EQ(kill(spawner.pid, SIGCONT), 0);
    end(&s);
}

static int keeper_rests(void *user)
{
    struct t_proc *p = user;

    return !t_proc_read(p->pid, p) && p->state == 'S';
}

/* As the worker would have, had it ended its setup. */
static void say_ready(void)
{
    struct gpi_page *p = own_page(); /* the host's map of it */
    const struct gpi_frame f = {
        .magic = GPI_LOOK_MAGIC,
        .incarnation = atomic_load(&p->incarnation),
        .what = GPI_NEWS_SETUP,
    };
    char name[64];
    struct stat s;
    int fd = 3, out;

    while (fstat(fd, &s) || !S_ISFIFO(s.st_mode) || s.st_ino != atomic_load(&t_page->numbers[PIPE]))
        T_CMP(fd++, <, 65536);
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    out = open(name, O_WRONLY | O_CLOEXEC);
    T_CMP(out, >=, 0);
    atomic_store(&p->setup_done, 1);
    T_EQ(write(out, &f, sizeof(f)), sizeof(f));
    T_EQ(close(out), 0);
}

/* C10: the worker is dead, and what it started cannot be reaped: this process traces it. */
T_LONG_CASE(sweep_lasts, 120)
{
    struct scene s = begin(LEAVE_CHILD, "cpu:1", GPUD_DRIVE_CALLER);
    struct t_proc left;

    T_EQ(t_proc_read((pid_t)atomic_load(&t_page->numbers[LEFT]), &left), 0);
    if (ptrace(PTRACE_SEIZE, left.pid, NULL, NULL))
        t_skip("no process can be traced here: %s", strerror(errno));
    t_word_set(GATE, 1);
    t_wait_ended(&left); /* killed by the keeper, which then says that it sweeps, and rests */
    t_wait_until("the keeper rests", keeper_rests, &s.keeper);
    (void)t_poll(s.d, &s.log, 0);
    say_ready();
    submit_some(s.d, 5);
    t_collect(s.d, &s.log, 5);
    for (uint64_t i = 0; i < 5; i++)
        (void)T_OUTCOME(&s.log, i, NO_WORKER);
    T_EQ(t_slot(s.d, 0).state, GPUD_SLOT_QUARANTINED);
    T_EQ(waitpid(left.pid, NULL, __WALL), left.pid);
    end(&s);
}

/* C10: the kill is that of a close, which ends nevertheless. */
T_LONG_CASE(close_kills, 120)
{
    struct scene s = begin(RETURN, "cpu:1", GPUD_DRIVE_THREAD);

    t_stop(&s.keeper);
    T_OK(gpud_dispatcher_close(s.d, GPUD_FINISH_NOW, GPUD_NEVER));
    cross();
    t_collect_rest(s.d, &s.log);
    T_EQ(t_slot(s.d, 0).state, GPUD_SLOT_QUARANTINED);
    end(&s);
}

static int start_is_ordered(void *user)
{
    return t_slot(user, 0).incarnation == 2;
}

/* The second worker's setup_done is stored in its place while the keeper, which is to start it, is
 * stopped: as if that worker had been faster than STARTED. */
static struct scene outrun(uint64_t kill_limit)
{
    struct scene s = { .d = NULL };

    atomic_store(&t_page->numbers[WAY], OUTRUN);
    t_init(setup, process, NULL);
    s.d = t_create(T_OPTIONS(.devices = "cpu:1", .kill_limit = kill_limit, .backoff = T_MS(1)));
    t_wait_ready(s.d, 1);
    s.worker = t_worker(s.d, 0);
    s.keeper = t_keeper_of(&s.worker);
    T_OK(gpud_dispatcher_device_drain(s.d, "cpu:0"));
    t_wait_slot(s.d, 0, GPUD_SLOT_STOPPED);
    t_stop(&s.keeper);
    T_OK(gpud_dispatcher_device_return(s.d, "cpu:0"));
    t_wait_until("the start is ordered", start_is_ordered, s.d);
    say_ready();
    submit_some(s.d, 3);
    return s;
}

/* D4: the keeper is stopped before it has said that it has started one.  A slot that was ready then
 * would never learn of that worker's end. */
T_CASE(before_the_keepers_word)
{
    struct scene s = outrun(T_S(1));
    const struct gpud_event *e;

    t_word_set(SECOND, 1);
    t_collect(s.d, &s.log, 3);
    for (uint64_t i = 0; i < 3; i++)
        T_EQ(T_OUTCOME(&s.log, i, SUCCESS)->incarnation, 3);
    T_EQ(t_log_count(&s.log, GPUD_EVENT_SETUP_FAILURE), 1);
    e = t_log_at(&s.log, GPUD_EVENT_SETUP_FAILURE, 0);
    T_TEXT(e->text,
           "its keeper was stopped and did not start a worker within 1.000 s (kill_limit)");
    t_wait_ended(&s.keeper);
    t_end(&s.d, &s.log);
}

/* ... and where it goes on, the slot is ready with its word. */
T_CASE(before_the_word_of_a_keeper_that_goes_on)
{
    struct scene s = outrun(0);

    T_EQ(kill(s.keeper.pid, SIGCONT), 0);
    t_wait_ready(s.d, 1);
    T_CMP(t_slot(s.d, 0).pid, >, 0);
    t_word_set(SECOND, 1);
    t_collect(s.d, &s.log, 3);
    for (uint64_t i = 0; i < 3; i++)
        T_EQ(T_OUTCOME(&s.log, i, SUCCESS)->incarnation, 2);
    t_end(&s.d, &s.log);
}
