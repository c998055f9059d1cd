/* SPDX-License-Identifier: MIT */
/*
 * late_ready.c - a worker ends its setup after its kill was ordered, or before its keeper has
 * reported that it has started a worker.                                                     [C10]
 */
#include "fixture.h"

#include "own_page.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "wire/frame.h"

enum { STARTED, GATE, SAID, SECOND }; /* words */
enum { LIVES, PIPE };                 /* numbers */
/* From the start of setup on; a keeper must be stopped before. */
#define SETUP_LIMIT T_S(T_SANITIZED ? 8 : 3)

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

static void note_pipe(void)
{
    struct stat pipe_to_host;

    T_EQ(fstat(own_pipe(O_WRONLY), &pipe_to_host), 0);
    atomic_store(&t_page->numbers[PIPE], pipe_to_host.st_ino);
}

/* The first life of `outrun` notes its pipe, the second one waits. */
static int setup(gpud_worker *w, void **ret_state)
{
    (void)w, (void)ret_state;
    if (atomic_fetch_add(&t_page->numbers[LIVES], 1))
        t_word_wait(SECOND, 1);
    else
        note_pipe();
    return 0;
}

static int setup_at_gate(gpud_worker *w, void **ret_state)
{
    (void)w, (void)ret_state;
    watch_setup();
    (void)t_word_add(STARTED);
    t_word_wait(GATE, 1);
    return 0;
}

/* ---- the host ---- */

struct scene {
    gpud_dispatcher *d;
    struct t_log log;
    struct t_proc keeper, worker;
};

/* C10: the host has ordered the kill, the keeper, which is stopped, has not read it, and setup
 * ends.  The worker counts as a survivor all the same. */
T_LONG_CASE(survivor_alone, 120)
{
    struct scene s = { .d = NULL };
    const struct gpud_event *e;

    s.d = T_BEGIN(setup_at_gate, t_no_work, .devices = "cpu:1", .kill_limit = T_S(2),
                  .setup_limit = SETUP_LIMIT);
    t_word_wait(STARTED, 1);
    s.worker = t_worker(s.d, 0);
    s.keeper = t_keeper_of(&s.worker);
    t_stop(&s.keeper);
    t_submit_tags(s.d, 0, 5);
    t_wait_until("the kill is ordered", t_word_waits, NULL);
    t_word_set(GATE, 1);
    t_word_wait(SAID, 1);
    t_collect(s.d, &s.log, 5);
    for (uint64_t i = 0; i < 5; i++)
        (void)T_OUTCOME(&s.log, i, NO_WORKER);
    e = t_log_at(&s.log, GPUD_EVENT_SETUP_FAILURE, 0);
    T_CHECK(e);
    T_EQ(e->code, GPUD_EQUARANTINED);
    T_EQ(t_slot(s.d, 0).state, GPUD_SLOT_QUARANTINED);
    T_CHECK(!t_proc_ended(&s.worker));
    t_destroy(&s.d, &s.log); /* kills the keeper, and its worker dies with it */
    t_wait_ended(&s.worker);
    t_wait_ended(&s.keeper);
    T_OK(gpud_fini());
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

static int start_is_ordered(void *user)
{
    return t_slot(user, 0).incarnation == 2;
}

/* The second worker's setup_done is stored in its place while the keeper, which is to start it, is
 * stopped: as if that worker had been faster than STARTED. */
static struct scene outrun(uint64_t kill_limit)
{
    struct scene s = { .d = NULL };

    s.d =
        T_BEGIN(setup, t_no_work, .devices = "cpu:1", .kill_limit = kill_limit, .backoff = T_MS(1));
    t_wait_ready(s.d, 1);
    s.worker = t_worker(s.d, 0);
    s.keeper = t_keeper_of(&s.worker);
    T_OK(gpud_dispatcher_device_drain(s.d, "cpu:0"));
    t_wait_slot(s.d, 0, GPUD_SLOT_STOPPED);
    t_stop(&s.keeper);
    T_OK(gpud_dispatcher_device_return(s.d, "cpu:0"));
    t_wait_until("the start is ordered", start_is_ordered, s.d);
    say_ready();
    t_submit_tags(s.d, 0, 3);
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

    t_kill(s.keeper.pid, SIGCONT);
    t_wait_ready(s.d, 1);
    T_CMP(t_slot(s.d, 0).pid, >, 0);
    t_word_set(SECOND, 1);
    t_collect(s.d, &s.log, 3);
    for (uint64_t i = 0; i < 3; i++)
        T_EQ(T_OUTCOME(&s.log, i, SUCCESS)->incarnation, 2);
    t_end(&s.d, &s.log);
}
