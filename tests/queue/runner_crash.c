/* SPDX-License-Identifier: MIT */
/* runner_crash.c - the runner or its agent killed: what a new agent finds.  [Q4] */
#include "harness.h"

#include "process.h"
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue/files/lock.h"
#include "queue/runner/process.h"
#include "queue/runner/start.h"
#include "queue/runner/sweep.h"

/* ---- Ends of the sweep ---- */

static void sweep(struct rig *r, unsigned killed)
{
    struct gpq_swept swept;

    T_EQ(gpq_sweep(&r->claimed.id, &r->found.record, (int)(T_PATIENCE / T_MS(1)), &swept), 0);
    T_EQ(swept.left, 0);
    T_EQ(swept.killed, killed);
}

static int is_counted(void *user)
{
    struct stat st;

    return !stat(user, &st) && st.st_size;
}

/* ---- The runner killed at each point ---- */

struct point {
    const char *name;
    enum gpq_found_state found;
    bool runs; /* the command has been released */
};

static const struct point points[] = {
    { "begun", GPQ_FOUND_NEVER_STARTED, false },  { "noted", GPQ_FOUND_NEVER_STARTED, false },
    { "forked", GPQ_FOUND_NEVER_STARTED, false }, { "started", GPQ_FOUND_CRASHED, false },
    { "released", GPQ_FOUND_CRASHED, true },      { "ended", GPQ_FOUND_CRASHED, true },
    { "swept", GPQ_FOUND_CRASHED, true },         { "written", GPQ_FOUND_ENDED, true },
    { "synced", GPQ_FOUND_ENDED, true },
};

/* Q4: the runner stops there, so is alive; then it is killed, judged and swept, and the command has
 * run as often as the judgement says. */
static void kill_at(struct rig *r, const struct point *p)
{
    bool stays = !strcmp(p->name, "released");
    struct gpq_swept swept;

    free(r->argv[2]);
    r->argv[2] = strdup(stays ? "echo >>count; exec sleep 1000" : "echo >>count");
    rig_start(r, p->name);
    rig_await_stop(r);
    RIG_LOOK(r, RUNNING);
    if (p->runs)
        t_wait_until("the command has counted", is_counted, (void *)"count");
    rig_kill(r);
    T_TEXT(rig_look(r), gpq_found_text(p->found));
    if (p->found == GPQ_FOUND_CRASHED) {
        T_EQ(gpq_sweep(&r->claimed.id, &r->found.record, (int)(T_PATIENCE / T_MS(1)), &swept), 0);
        /* At "started" it may meet the process that saw no release. */
        T_CHECK(stays ? swept.killed == 1 : p->runs ? !swept.killed : swept.killed <= 1);
    }
    rig_reap();
    if (p->runs)
        rig_expect("count", "\n");
    else
        T_EQ(access("count", F_OK), -1);
    (void)unlink("count");
    rig_next_attempt(r);
}

T_CASE(killed_at_each_point)
{
    struct rig r;

    rig_open(&r, "");
    for (size_t i = 0; i < T_LENGTH(points); i++)
        kill_at(&r, &points[i]);
    rig_close(&r);
}

/* Q4: the stop is in the record before the command learns of it, and outlives the runner. */
T_CASE(killed_after_a_stop)
{
    struct rig r;

    rig_open(&r, "echo >ready; exec sleep 1000");
    rig_start(&r, "stopped");
    rig_await_ready(&r);
    t_kill(r.runner, SIGTERM);
    rig_await_stop(&r);
    rig_kill(&r);
    RIG_LOOK(&r, LOST);
    T_CHECK(r.found.record.has_stop);
    sweep(&r, 1);
    rig_close(&r);
}

/* Q4: never two starts.  What an agent does with a runner that was killed at any instant: a command
 * that it may start again has not run. */
T_LONG_CASE(killed_at_any_instant, 120)
{
    unsigned never = 0, crashed = 0, ended = 0;
    const size_t rounds = t_rounds(200, 50);
    struct rig r;

    rig_open(&r, "echo >>count; (setsid sleep 1000 &); exec sleep 0.001");
    for (size_t i = 0; i < rounds; i++) {
        struct gpq_swept swept;
        int status;
        rig_start(&r, NULL);
        for (size_t spin = 0; spin < i * 7919 % 200; spin++)
            (void)sched_yield();
        (void)kill(r.runner, SIGKILL);
        T_EQ(waitpid(r.runner, &status, 0), r.runner);
        rig_await_unlocked(&r);
        (void)rig_look(&r);
        T_EQ(gpq_sweep(&r.claimed.id, &r.found.record, (int)(T_PATIENCE / T_MS(1)), &swept), 0);
        rig_reap();
        never += r.found.state == GPQ_FOUND_NEVER_STARTED;
        crashed += r.found.state == GPQ_FOUND_CRASHED;
        ended += r.found.state == GPQ_FOUND_ENDED;
        if (!access("count", F_OK)) {
            T_CHECK(r.found.state != GPQ_FOUND_NEVER_STARTED);
            char *text = rig_read("count");
            T_CHECK(strlen(text) <= 1); /* 0: killed between its open and its write */
            free(text);
        } else {
            T_CHECK(r.found.state != GPQ_FOUND_ENDED);
        }
        (void)unlink("count");
        rig_next_attempt(&r);
    }
    printf("never started %u, crashed %u, ended %u\n", never, crashed, ended);
    T_EQ(never + crashed + ended, rounds);
    rig_close(&r);
}

/* ---- The agent killed ---- */

T_PROGRAM(agent)
{
    struct rig r;

    (void)argc;
    (void)argv;
    rig_open(&r, "echo >>count; echo >ready; read x <go; echo after; exit 5");
    rig_start(&r, NULL);
    t_word_set(0, (uint32_t)r.runner);
    t_rest();
}

static void ids_of_the_agent(struct rig *r)
{
    struct gpq_record rec;
    char *text = rig_read("s/run/12.44.1");

    T_EQ(gpq_boot_read(r->boot), 0);
    T_EQ(gpq_record_read(text, strlen(text), &rec), 0);
    free(text);
    memcpy(r->claimed.boot, r->boot, sizeof(r->boot));
    r->claimed.id = rec.id;
}

/* Q4: the runner goes on, is adopted, and is not started twice. */
T_CASE(agent_killed)
{
    struct rig r = { .state = "s" };
    struct pollfd p = { .events = POLLIN };
    pid_t agent;
    int status;

    T_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    agent = t_program_start("agent", NULL, NULL);
    t_word_wait(0, 1);
    r.runner = (pid_t)t_word(0);
    r.ready = open("ready", O_RDWR | O_CLOEXEC);
    r.go = open("go", O_RDWR | O_CLOEXEC);
    t_kill(agent, SIGKILL);
    T_EQ(waitpid(agent, &status, 0), agent);
    t_wait_until("the command has counted", is_counted, (void *)"count");
    ids_of_the_agent(&r);
    RIG_LOOK(&r, RUNNING);
    T_EQ(gpq_run_adopt(r.state, &r.found, &p.fd), 0);
    T_EQ(poll(&p, 1, 0), 0);
    T_EQ(gpq_process_signal(p.fd, SIGWINCH), 0);
    rig_go(&r);
    T_EQ(poll(&p, 1, (int)(T_PATIENCE / T_MS(1))), 1);
    T_EQ(close(p.fd), 0);
    RIG_END(&r, EXITED, 5);
    rig_expect("s/log", "after\n");
    rig_expect("count", "\n");
    T_EQ(gpq_run_adopt(r.state, &r.found, &p.fd), -ESRCH);
    T_EQ(close(r.ready) + close(r.go), 0);
}

T_CASE(adopt_checks_what_it_opens)
{
    struct rig r;
    int fd;

    rig_open(&r, "echo >ready; read x <go");
    rig_start(&r, "begun");
    rig_await_stop(&r);
    RIG_LOOK(&r, RUNNING);
    T_EQ(gpq_run_adopt(r.state, &r.found, &fd), -EAGAIN); /* its line is not there yet */
    t_kill(r.runner, SIGCONT);
    rig_await_ready(&r);
    RIG_LOOK(&r, RUNNING);
    r.found.record.runner.ticks++; /* another process with the number */
    T_EQ(gpq_run_adopt(r.state, &r.found, &fd), -ESRCH);
    r.found.record.runner.ticks--;
    T_EQ(gpq_run_adopt(r.state, &r.found, &fd), 0);
    T_EQ(close(fd), 0);
    rig_kill(&r);
    T_EQ(gpq_run_adopt(r.state, &r.found, &fd), -ESRCH);
    RIG_LOOK(&r, CRASHED);
    sweep(&r, 1);
    rig_close(&r);
}

/* ---- The sweep ---- */

/* A daemon and the command keep no lock; the sweep finds both, and the ones that left the session
 * or cleared their environment. */
T_CASE(sweep_finds_all)
{
    struct rig r;

    rig_open(&r, "(setsid sh -c 'echo >ready; exec sleep 1000' &)\n"
                 "(env -i /bin/sh -c 'echo >ready; exec /bin/sleep 1000' &)\n"
                 "echo >ready; exec sleep 1000");
    rig_start(&r, NULL);
    for (int i = 0; i < 3; i++)
        rig_await_ready(&r);
    T_EQ(gpq_lock_check("s/run/12.44.1"), -EBUSY);
    rig_kill(&r);
    T_EQ(gpq_lock_check("s/run/12.44.1"), 0);
    RIG_LOOK(&r, CRASHED);
    sweep(&r, 3);
    sweep(&r, 0);
    rig_close(&r);
}

/* After the end of the leader, a member that carries the variable shows whose session it is. */
T_CASE(sweep_of_a_session_without_its_leader)
{
    struct rig r;

    rig_open(&r, "(env -i /bin/sh -c 'echo >ready; exec /bin/sleep 1000' &)\n"
                 "(echo >ready; exec sleep 1000) & echo >ready; read x <go; sleep 1000");
    rig_start(&r, NULL);
    for (int i = 0; i < 3; i++)
        rig_await_ready(&r);
    RIG_LOOK(&r, RUNNING);
    rig_kill(&r);
    t_kill(r.found.record.command.pid, SIGKILL);
    T_EQ(waitpid(r.found.record.command.pid, NULL, 0), r.found.record.command.pid);
    RIG_LOOK(&r, CRASHED);
    sweep(&r, 2);
    rig_close(&r);
}

/* A session and a process with the numbers of the record, which are others by now, stay. */
T_CASE(sweep_spares_others)
{
    struct gpq_process p;
    struct rig r;
    pid_t other;

    rig_open(&r, "echo >ready; exec sleep 1000");
    rig_start(&r, NULL);
    rig_await_ready(&r);
    rig_kill(&r);
    RIG_LOOK(&r, CRASHED);
    sweep(&r, 1);
    rig_reap();
    other = fork();
    if (!other) {
        (void)setsid();
        t_word_set(0, 1);
        t_rest();
    }
    t_word_wait(0, 1);
    r.found.record.command.pid = other;
    r.found.record.command.ticks = 1;
    sweep(&r, 0);
    T_EQ(gpq_process_read(other, &p), 0);
    r.found.record.command.ticks = p.ticks;
    sweep(&r, 1);
    rig_close(&r);
}

/* A process that has not ended within the patience is reported: the caller comes again. */
T_CASE(sweep_has_a_limit)
{
    struct gpq_swept swept;
    struct rig r;

    rig_open(&r, "echo >ready; exec sleep 1000");
    rig_start(&r, NULL);
    rig_await_ready(&r);
    rig_kill(&r);
    RIG_LOOK(&r, CRASHED);
    T_EQ(gpq_sweep(&r.claimed.id, &r.found.record, 0, &swept), -ETIMEDOUT);
    T_EQ(swept.killed, 1);
    T_EQ(gpq_sweep(&r.claimed.id, &r.found.record, (int)(T_PATIENCE / T_MS(1)), &swept), 0);
    T_EQ(swept.left, 0);
    rig_close(&r);
}
