/* SPDX-License-Identifier: MIT */
/* runner.c - a command under its runner: how it starts, what it finds, how it ends. */
#include "harness.h"

#include "process.h"
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue/runner/process.h"
#include "queue/runner/start.h"

static uint64_t wall_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return T_S(t.tv_sec) + (uint64_t)t.tv_nsec;
}

/* ---- Ordinary ends ---- */

/* Q4 Q5: the record has all parts, the outputs are durable, and the log has both streams. */
T_CASE(ordinary_end)
{
    const uint64_t before = t_now(), wall_before = wall_now();
    struct gpq_record *rec;
    struct rig r;

    rig_open(&r, "echo out; echo err >&2; cat; echo file >$GPUDISPATCH_OUT/result");
    rig_start(&r, NULL);
    RIG_END(&r, EXITED, 0);
    rec = &r.found.record;
    rig_expect("s/log", "out\nerr\n");
    rig_expect("s/work/12.44.1/result", "file\n");
    T_CHECK(rec->has_runner && rec->has_start && !rec->torn);
    T_EQ(rec->runner.pid, r.runner);
    T_CHECK(rec->runner.ticks && rec->command.ticks && rec->command.pid != r.runner);
    T_CHECK(before < rec->monotonic && rec->monotonic < rec->end.monotonic &&
            rec->end.monotonic < t_now());
    T_CHECK(wall_before < rec->wall && rec->end.wall < wall_now());
    T_EQ(rec->end.log_bytes, 8);
    T_EQ(rec->end.outputs, GPQ_OUTPUTS_SYNCED);
    T_CHECK(!rec->end.step && !rec->end.core && !rec->end.soft && !rec->end.hard &&
            !rec->end.log_freed && !rec->end.log_lost && !rec->end.log_error && !rec->end.swept &&
            !rec->end.left);
    rig_close(&r);
}

/* Q6: the stamp has the files that the command names as they are when it has succeeded. */
T_CASE(stamp_of_a_success)
{
    char *words[] = { "ready", "input", "no", "result", NULL };
    char *text;
    struct rig r;

    rig_open(&r, "echo more >>input; echo 1 >result; exit ${CODE:-0}");
    r.plan.words = words;
    rig_start(&r, NULL);
    RIG_END(&r, EXITED, 0);
    text = rig_read("s/run/12.44.1.stamp");
    T_CHECK(!strncmp(text, "stamp=1\n5 ", 10));
    T_CHECK(strstr(text, " input\n2 ") && strstr(text, " result\n"));
    free(text);
    rig_next_attempt(&r);
    r.environment[1] = "CODE=3";
    rig_start(&r, NULL);
    RIG_END(&r, EXITED, 3);
    T_EQ(access("s/run/12.44.2.stamp", F_OK), -1);
    rig_close(&r);
}

/* A command has the limit of the plan, up to the hard one. */
T_CASE(limit_of_descriptors)
{
    struct rlimit limit;
    char text[64];
    struct rig r;

    T_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max = 700;
    T_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    rig_open(&r, "ulimit -Sn; ulimit -Hn");
    for (uint64_t soft = 0; soft <= 1200; soft += 600) {
        rig_next_attempt(&r);
        r.plan.descriptors = soft;
        rig_start(&r, NULL);
        RIG_END(&r, EXITED, 0);
    }
    (void)snprintf(text, sizeof(text), "700\n700\n600\n700\n700\n700\n");
    rig_expect("s/log", text);
    rig_close(&r);
}

T_CASE(exit_status)
{
    struct rig r;

    rig_open(&r, "exit 41");
    rig_start(&r, NULL);
    RIG_END(&r, EXITED, 41);
    T_EQ(r.found.record.end.outputs, GPQ_OUTPUTS_NONE);
    rig_close(&r);
}

T_CASE(ended_by_a_signal)
{
    struct rig r;

    rig_open(&r, "kill -USR2 $$");
    rig_start(&r, NULL);
    RIG_END(&r, KILLED, SIGUSR2);
    T_EQ(r.found.record.end.soft + r.found.record.end.hard + r.found.record.end.core, 0);
    rig_close(&r);
}

/* Outputs that cannot be synced, here since their directory is gone, are not durable.  [Q5] */
T_CASE(outputs_that_are_gone)
{
    struct rig r;

    rig_open(&r, "rmdir $GPUDISPATCH_OUT");
    rig_start(&r, NULL);
    RIG_END(&r, EXITED, 0);
    T_EQ(r.found.record.end.outputs, GPQ_OUTPUTS_FAILED);
    rig_close(&r);
}

/* ---- Failures to execute ---- */

T_CASE(no_such_program)
{
    static char name[] = "no-such-program", slash[] = "./none";
    struct rig r;

    rig_open(&r, "");
    for (int i = 0; i < 2; i++) {
        r.argv[0] = i ? slash : name;
        rig_start(&r, NULL);
        RIG_END(&r, FAILED, ENOENT);
        T_EQ(r.found.record.end.step, GPQ_STEP_PROGRAM);
        T_CHECK(r.found.record.has_start);
        rig_next_attempt(&r);
    }
    rig_close(&r);
}

T_CASE(not_executable)
{
    static char name[] = "./ready"; /* a fifo */
    struct rig r;

    rig_open(&r, "");
    r.argv[0] = name;
    rig_start(&r, NULL);
    RIG_END(&r, FAILED, EACCES);
    T_EQ(r.found.record.end.step, GPQ_STEP_PROGRAM);
    rig_close(&r);
}

T_CASE(no_working_directory)
{
    struct rig r;

    rig_open(&r, "echo never");
    r.plan.cwd = "/nonexistent/directory";
    rig_start(&r, NULL);
    RIG_END(&r, FAILED, ENOENT);
    T_EQ(r.found.record.end.step, GPQ_STEP_CWD);
    rig_expect("s/log", "");
    rig_close(&r);
}

/* The PATH of the submit counts, not that of the agent. */
T_CASE(path_of_the_submit)
{
    static char path[] = "PATH=/nonexistent", tool[] = "tool";
    struct rig r;
    int fd;

    rig_open(&r, "");
    fd = open("tool", O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    T_EQ(write(fd, "#!/bin/sh\necho tool\n", 20), 20);
    T_EQ(close(fd), 0);
    r.argv[0] = tool;
    r.environment[0] = path;
    rig_start(&r, NULL);
    RIG_END(&r, FAILED, ENOENT);
    rig_next_attempt(&r);
    T_CHECK(asprintf(&r.environment[0], "PATH=%s", r.here) > 0);
    rig_start(&r, NULL);
    RIG_END(&r, EXITED, 0);
    rig_expect("s/log", "tool\n");
    free(r.environment[0]);
    rig_close(&r);
}

/* ---- Surroundings ---- */

T_CASE(environment_of_the_command)
{
    static char a[] = "A=1", run[] = "GPUDISPATCH_RUN=of another one", odd[] = "no assignment";
    static char devices[] = "CUDA_VISIBLE_DEVICES=3", theirs[] = "CUDA_VISIBLE_DEVICES=7";
    static char threads[] = "OMP_NUM_THREADS=4", other[] = "A=2";
    char *variables[] = { devices, NULL }, *defaults[] = { threads, other, NULL };
    char expected[4 * GPQ_PATH], tag[GPQ_RUN_TAG];
    struct rig r;

    rig_open(&r, "exec env");
    for (int i = 0; i < 4; i++)
        r.environment[i + 1] = (char *[]){ a, run, odd, theirs }[i];
    r.plan.variables = variables;
    r.plan.defaults = defaults;
    r.plan.key = "line=7";
    rig_start(&r, NULL);
    RIG_END(&r, EXITED, 0);
    gpq_run_tag(tag, &r.plan.id);
    (void)snprintf(expected, sizeof(expected),
                   "GPUDISPATCH_RUN=%s\nGPUDISPATCH_TASK=12.44\nGPUDISPATCH_ATTEMPT=1\n"
                   "GPUDISPATCH_KEY=line=7\nGPUDISPATCH_OUT=%s\nCUDA_VISIBLE_DEVICES=3\n%s\nA=1\n"
                   "OMP_NUM_THREADS=4\nPWD=%s\n",
                   tag, r.out, r.environment[0], r.here);
    char *text = rig_read("s/log");
    /* The shell drops what is no assignment, and sorts or adds variables of its own. */
    for (char *line = strtok(expected, "\n"); line; line = strtok(NULL, "\n"))
        if (!strstr(text, line))
            T_FAIL("no %s in %s", line, text);
    T_CHECK(!strstr(text, "of another one") && !strstr(text, "DEVICES=7") && !strstr(text, "A=2"));
    free(text);
    rig_close(&r);
}

/* No descriptor of the runner, no blocked or ignored signal, a session of its own. */
T_CASE(surroundings_of_the_command)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
    struct rig r;
    char *text, *session;

    rig_open(&r, "ls /proc/self/fd | tr '\\n' ' '; grep -E 'Sig(Blk|Ign)' /proc/self/status;"
                 "echo $$ $(cut -d' ' -f6 /proc/$$/stat); pwd; readlink /proc/$$/fd/0");
    T_EQ(sigaction(SIGPIPE, &ignore, &before), 0);
    rig_start(&r, NULL);
    T_EQ(sigaction(SIGPIPE, &before, NULL), 0);
    RIG_END(&r, EXITED, 0);
    text = rig_read("s/log");
    T_CHECK(!strncmp(text, "0 1 2 3 ", 8)); /* 3: the directory that ls reads */
    T_CHECK(strstr(text, "SigBlk:\t0000000000000000\n"));
    T_CHECK(strstr(text, "SigIgn:"));
    /* The C library keeps 32 and 33 to itself. */
    T_EQ(strtoull(strstr(text, "SigIgn:") + 7, NULL, 16) & ~UINT64_C(0x180000000), 0);
    T_CHECK(asprintf(&session, "\n%d %d\n%s\n/dev/null\n", (int)r.found.record.command.pid,
                     (int)r.found.record.command.pid, r.here) > 0);
    T_CHECK(strstr(text, session));
    free(session);
    free(text);
    rig_close(&r);
}

static void write_score(const char *text)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        t_skip("oom_score_adj %s: %s", text, strerror(errno));
    T_EQ(close(fd), 0);
}

/* An agent that the system spares does not make its commands spared ones. */
T_CASE(a_command_is_not_spared_from_oom)
{
    char *before = rig_read("/proc/self/oom_score_adj");
    struct rig r;

    rig_open(&r, "cat /proc/self/oom_score_adj");
    write_score("-100");
    rig_start(&r, NULL);
    write_score(before);
    RIG_END(&r, EXITED, 0);
    rig_expect("s/log", "0\n");
    free(before);
    rig_close(&r);
}

T_CASE(surroundings_of_the_runner)
{
    struct gpq_process p;
    struct rig r;
    char path[64];
    char *text;

    rig_open(&r, "echo >ready; read x <go");
    rig_start(&r, NULL);
    rig_await_ready(&r);
    T_EQ(gpq_process_read(r.runner, &p), 0);
    T_EQ(p.session, r.runner);
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)r.runner);
    rig_expect(path, "gpud-runner\n");
    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)r.runner);
    text = rig_read(path);
    T_TEXT(text, "");
    free(text);
    rig_go(&r);
    RIG_END(&r, EXITED, 0);
    rig_close(&r);
}

/* ---- What is below the command ---- */

T_CASE(output_of_grandchildren)
{
    struct rig r;

    rig_open(&r, "(echo one; (echo two) & wait) & wait; (setsid sh -c 'echo three; echo >ready') &"
                 "wait; read x <go");
    rig_start(&r, NULL);
    rig_await_ready(&r);
    rig_go(&r);
    RIG_END(&r, EXITED, 0);
    char *text = rig_read("s/log");
    T_CHECK(strstr(text, "one\n") && strstr(text, "two\n") && strstr(text, "three\n"));
    T_EQ(strlen(text), 14);
    free(text);
    rig_close(&r);
}

/* A daemon, which left session, group and parent, does not outlive the command; nor does one that
 * closed the output. */
T_CASE(daemons_are_killed)
{
    struct rig r;
    pid_t daemons[2];
    struct gpq_process p;

    rig_open(&r, "for i in 1 2; do (setsid sh -c 'echo $$ >>daemons; echo >ready; exec sleep 1000'"
                 " >/dev/null 2>&1 &); done; read x <go; echo end");
    rig_start(&r, NULL);
    rig_await_ready(&r);
    rig_await_ready(&r);
    rig_go(&r);
    RIG_END(&r, EXITED, 0);
    T_EQ(r.found.record.end.swept, 2);
    T_EQ(r.found.record.end.left, 0);
    rig_expect("s/log", "end\n");
    char *text = rig_read("daemons");
    T_EQ(sscanf(text, "%d %d", &daemons[0], &daemons[1]), 2);
    free(text);
    for (int i = 0; i < 2; i++)
        T_EQ(gpq_process_read(daemons[i], &p), -ESRCH);
    rig_close(&r);
}

T_CASE(many_daemons_of_daemons)
{
    struct rig r;

    rig_open(&r,
             "d() { n=$1; [ $n = 0 ] || (setsid sh -c \"$body\" sh $((n - 1)) &) ; }\n"
             "body='[ $1 = 0 ] || for i in 1 2 3; do (setsid sh -c \"$body\" sh $(($1 - 1)) &); "
             "done; sleep 1000'; export body; d 4; exit 3");
    rig_start(&r, NULL);
    RIG_END(&r, EXITED, 3);
    T_EQ(r.found.record.end.left, 0);
    rig_close(&r);
    T_CHECK(!t_has_children());
}

/* Leaves a process of its group and one of its session behind, with stops in their way. */
T_PROGRAM(group)
{
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (!pid) {
            if (i)
                (void)setpgid(0, 0);
            (void)t_word_add(0);
            (void)raise(SIGSTOP);
            t_rest();
        }
    }
    t_word_wait(0, 2);
    return argc + !argv[0];
}

/* The rest of the session, in the same group and in another one. */
T_CASE(the_rest_of_the_session_is_killed)
{
    struct rig r;

    rig_open(&r, "");
    rig_program(&r, "group", "");
    rig_start(&r, NULL);
    RIG_END(&r, EXITED, 1);
    T_EQ(r.found.record.end.left, 0);
    T_CHECK(!t_has_children());
    rig_close(&r);
}

static int has_no_child_but_one(void *user)
{
    struct t_procs below = t_procs_below(*(pid_t *)user);
    size_t n = below.count;

    t_procs_free(&below);
    return n == 1;
}

/* Orphans that end while the command works are reaped then. */
T_CASE(orphans_are_reaped)
{
    struct rig r;

    rig_open(&r, "i=0; while [ $i -lt 50 ]; do (true &); i=$((i + 1)); done; echo >ready;"
                 "read x <go");
    rig_start(&r, NULL);
    rig_await_ready(&r);
    t_wait_until("the runner has one child", has_no_child_but_one, &r.runner);
    rig_go(&r);
    RIG_END(&r, EXITED, 0);
    T_EQ(r.found.record.end.swept, 0);
    rig_close(&r);
}

/* ---- Soft and hard ---- */

/* Ends after its second SIGTERM. */
T_PROGRAM(patient)
{
    sigset_t set;
    int number;

    (void)argc;
    (void)argv;
    t_block_signals();
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    for (int i = 0; i < 2; i++) {
        (void)t_word_add(0);
        T_EQ(sigwait(&set, &number), 0);
    }
    return 7;
}

/* One SIGTERM of the command for each soft order. */
T_CASE(soft)
{
    struct rig r;

    rig_open(&r, "");
    rig_program(&r, "patient", "");
    rig_start(&r, NULL);
    t_word_wait(0, 1);
    t_kill(r.runner, SIGUSR2);
    t_word_wait(0, 2);
    RIG_LOOK(&r, RUNNING);
    t_kill(r.runner, SIGUSR2);
    RIG_END(&r, EXITED, 7);
    T_EQ(r.found.record.end.soft, 2);
    T_EQ(r.found.record.end.hard, 0);
    T_CHECK(!r.found.record.has_stop);
    rig_close(&r);
}

/* The whole group receives it, also where it is stopped. */
T_CASE(soft_of_a_stopped_group)
{
    struct rig r;

    rig_open(&r, "sleep 1000 & echo >ready; kill -STOP 0; wait");
    rig_start(&r, NULL);
    rig_await_ready(&r);
    t_kill(r.runner, SIGUSR2);
    RIG_END(&r, KILLED, SIGTERM);
    T_EQ(r.found.record.end.soft, 1);
    rig_close(&r);
}

/* A signal that arrives before the runner has settled is not lost. */
T_CASE(soft_at_once)
{
    struct rig r;

    rig_open(&r, "exec sleep 1000");
    rig_start(&r, NULL);
    t_kill(r.runner, SIGUSR2);
    RIG_END(&r, KILLED, SIGTERM);
    T_CHECK(!r.found.record.has_stop);
    rig_close(&r);
}

T_CASE(hard)
{
    struct rig r;

    rig_open(&r, "trap '' TERM; (setsid sh -c 'trap \"\" TERM; echo >ready; while :; do sleep 1000;"
                 "done' &); echo >ready; while :; do read x <go; done");
    rig_start(&r, NULL);
    rig_await_ready(&r);
    rig_await_ready(&r);
    t_kill(r.runner, SIGUSR2);
    t_kill(r.runner, SIGUSR1);
    RIG_END(&r, KILLED, SIGKILL);
    T_EQ(r.found.record.end.hard, 1);
    T_CHECK(!t_has_children());
    rig_close(&r);
}

T_CASE(other_signals_have_no_effect)
{
    static const int others[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGALRM, SIGTSTP };
    struct rig r;

    rig_open(&r, "echo >ready; read x <go");
    rig_start(&r, NULL);
    rig_await_ready(&r);
    for (size_t i = 0; i < T_LENGTH(others); i++)
        t_kill(r.runner, others[i]);
    rig_go(&r);
    RIG_END(&r, EXITED, 0);
    rig_close(&r);
}

/* ---- Stops ---- */

/* Q4: SIGTERM is a stop, by its sender; the command receives it, and its end says how. */
T_CASE(stop)
{
    static const char *const ends[] = { "exit 0", "exit 3", "trap - TERM; kill -TERM $$" };
    struct rig r;

    rig_open(&r, "trap \"$END\" TERM; echo >ready; while :; do read x <go; done");
    for (int i = 0; i < 3; i++) {
        T_CHECK(asprintf(&r.environment[1], "END=%s", ends[i]) > 0);
        rig_start(&r, NULL);
        rig_await_ready(&r);
        t_kill(r.runner, SIGTERM);
        rig_end(&r);
        T_EQ(r.found.record.end.how, i < 2 ? GPQ_RUN_EXITED : GPQ_RUN_KILLED);
        T_EQ(r.found.record.end.status, i == 0 ? 0 : i == 1 ? 3 : SIGTERM);
        T_EQ(r.found.record.end.soft, 1);
        T_CHECK(r.found.record.has_stop);
        T_EQ(r.found.record.stop_by, getpid());
        free(r.environment[1]);
        rig_next_attempt(&r);
    }
    r.environment[1] = NULL;
    rig_close(&r);
}

/* The stop is in the record before the command has ended; an order after it changes nothing. */
T_CASE(stop_before_an_order)
{
    struct rig r;

    rig_open(&r, "trap 'echo >ready' TERM; echo >ready; while :; do read x <go; done");
    rig_start(&r, NULL);
    rig_await_ready(&r);
    t_kill(r.runner, SIGTERM);
    rig_await_ready(&r);
    RIG_LOOK(&r, RUNNING);
    T_CHECK(r.found.record.has_stop && !r.found.record.has_end);
    t_kill(r.runner, SIGTERM);
    t_kill(r.runner, SIGUSR1);
    RIG_END(&r, KILLED, SIGKILL);
    T_CHECK(r.found.record.has_stop);
    rig_close(&r);
}

/* An attempt whose end was ordered is no stopped one. */
T_CASE(stop_after_an_order)
{
    struct rig r;

    rig_open(&r, "");
    rig_program(&r, "patient", "");
    rig_start(&r, NULL);
    t_word_wait(0, 1);
    t_kill(r.runner, SIGUSR2);
    t_word_wait(0, 2);
    t_kill(r.runner, SIGTERM);
    RIG_END(&r, EXITED, 7);
    T_EQ(r.found.record.end.soft, 2);
    T_CHECK(!r.found.record.has_stop);
    rig_close(&r);
}

/* Ends a command before its runner gets the stop: the runner has seen that end, and waits. */
static void end_then_stop(struct rig *r, const char *script, bool stop)
{
    free(r->argv[2]);
    r->argv[2] = strdup(script);
    rig_start(r, "waits");
    rig_await_stop(r);
    if (stop)
        t_kill(r->runner, SIGTERM);
    t_kill(r->runner, SIGCONT);
    rig_end(r);
    rig_next_attempt(r);
}

/* Q4: a stop may reach the command first.  Without a stop it has failed. */
T_CASE(stop_of_the_command_first)
{
    static const struct {
        const char *script;
        bool waits;
    } ends[] = {
        { "kill -TERM $$", true }, { "kill -HUP $$", true }, { "kill -KILL $$", true },
        { "exit 143", true },      { "exit 129", true },     { "exit 137", true },
        { "kill -USR2 $$", true }, { "exit 1", true },       { "exit 15", true },
        { "exit 0", false },
    };
    struct rig r;

    rig_open(&r, "");
    for (size_t i = 0; i < T_LENGTH(ends); i++)
        for (int stop = 0; stop < 2; stop++) {
            end_then_stop(&r, ends[i].script, stop);
            if (r.found.record.has_stop != (stop && ends[i].waits))
                T_FAIL("%s: stop %d", ends[i].script, r.found.record.has_stop);
            T_EQ(r.found.record.end.soft, 0);
        }
    rig_close(&r);
}

/* ---- Beside the command ---- */

static uint64_t wakeups_of(pid_t pid)
{
    char path[64];
    unsigned long long n = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    char *text = rig_read(path), *at = strstr(text, "\nvoluntary_ctxt_switches:");
    T_CHECK(at && sscanf(at, "\nvoluntary_ctxt_switches: %llu", &n) == 1);
    free(text);
    return n;
}

static int is_asleep(void *user)
{
    struct gpq_process p;

    return !gpq_process_read(*(pid_t *)user, &p) && p.state == 'S';
}

/* Q11: no wake-up while the command is silent. */
T_CASE(zero_wakeups)
{
    struct rig r;
    uint64_t before;

    rig_open(&r, "exec 3<go; echo >ready; read x <&3");
    rig_start(&r, NULL);
    rig_await_ready(&r);
    t_wait_until("the runner sleeps", is_asleep, &r.runner);
    before = wakeups_of(r.runner);
    t_pass(T_MS(500));
    T_EQ(wakeups_of(r.runner), before);
    rig_go(&r);
    RIG_END(&r, EXITED, 0);
    rig_close(&r);
}

/* ---- The record on the disk ---- */

/* Starts the runner behind calls.c. */
static void start_with_calls(struct rig *r, const char *refused, const char *refusals)
{
    char preload[GPQ_PATH + 16], calls[GPQ_PATH + 32], text[64], count[64];
    char *environment[] = { preload, calls, text, count, NULL };

    if (T_SANITIZED)
        t_skip("a sanitizer's library is the first");
    (void)snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", T_CALLS_MODULE);
    (void)snprintf(calls, sizeof(calls), "T_CALLS=%s/calls", r->here);
    (void)snprintf(text, sizeof(text), "T_REFUSED=%s", refused);
    (void)snprintf(count, sizeof(count), "T_REFUSALS=%s", refusals);
    rig_start_with(r, T_RUNNER, environment);
}

/* Q4 Q5: outputs, then the end, then the name of the record are durable before the lock is free. */
T_CASE(the_order_of_writes_and_syncs)
{
    struct rig r;

    rig_open(&r, "echo >$GPUDISPATCH_OUT/file");
    start_with_calls(&r, "", "0");
    RIG_END(&r, EXITED, 0);
    rig_expect("calls", "write /12.44.1\nwrite /12.44.1\nsync /file\nsync /12.44.1\nsync /work\n"
                        "write /12.44.1\nsync /12.44.1\nsync /run\n");
    rig_close(&r);
}

/* Q9: an end that finds no space waits for some, and writes over what was left of it. */
T_CASE(the_end_waits_for_space)
{
    struct rig r;

    rig_open(&r, "exit 5");
    start_with_calls(&r, "end", "2");
    RIG_END(&r, EXITED, 5);
    rig_close(&r);
}

/* Q4: a command whose start cannot be recorded does not run. */
T_CASE(no_space_for_the_start)
{
    struct rig r;
    int status;

    rig_open(&r, "echo >>count");
    start_with_calls(&r, "start", "9");
    T_EQ(waitpid(r.runner, &status, 0), r.runner);
    T_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    rig_await_unlocked(&r);
    RIG_LOOK(&r, NEVER_STARTED);
    T_CHECK(r.found.record.torn);
    rig_reap();
    T_CHECK(access("count", F_OK));
    rig_close(&r);
}

/* ---- What the runner refuses ---- */

static int run_bare(int record, int plan, int state, unsigned most_fds)
{
    int status;
    pid_t pid = fork();

    if (!pid) {
        const int given[] = { record, plan, state };
        for (int i = 0; i < 3; i++)
            if (given[i] < 0)
                (void)close(GPQ_RUN_RECORD + i);
            else
                (void)dup3(given[i], GPQ_RUN_RECORD + i, 0);
        if (most_fds)
            (void)setrlimit(RLIMIT_NOFILE, &(struct rlimit){ most_fds, most_fds });
        (void)execl(T_RUNNER, "gpudispatch-runner", (char *)NULL);
        _exit(127);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    T_CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int file_of(const char *name, const void *data, size_t size)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), up;

    T_EQ(write(fd, data, size), size);
    up = fcntl(fd, F_DUPFD_CLOEXEC, 20); /* out of the way of the three */
    T_EQ(close(fd), 0);
    return up;
}

T_CASE(what_it_was_given_is_checked)
{
    char head[GPQ_RECORD_LINE], other[GPQ_RECORD_LINE];
    struct gpq_run_id id;
    struct rig r;
    void *data;
    size_t size;
    int record, plan, state;

    rig_open(&r, "echo >>count");
    T_EQ(gpq_plan_write(&r.plan, &data, &size), 0);
    record = file_of("record", head, gpq_record_head(head, &r.plan.id, r.boot, 0));
    plan = file_of("plan", data, size);
    free(data);
    state = fcntl(record, F_DUPFD_CLOEXEC, 20);
    T_EQ(run_bare(-1, -1, -1, 0), 2);
    T_EQ(run_bare(record, plan, -1, 0), 2);
    T_EQ(run_bare(record, plan, state, 0), 2); /* it is no directory */
    T_EQ(close(state), 0);
    state = open(r.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    T_EQ(run_bare(record, record, state, 0), 2);
    T_EQ(run_bare(plan, plan, state, 0), 2);
    id = r.plan.id;
    id.nonce[0] ^= 1;
    T_EQ(pwrite(record, other, gpq_record_head(other, &id, r.boot, 0), 0), strlen(head));
    T_EQ(run_bare(record, plan, state, 0), 2); /* the record of another run */
    T_EQ(pwrite(record, head, strlen(head), 0), strlen(head));
    T_EQ(run_bare(record, plan, state, 0), 0);
    T_EQ(run_bare(record, plan, state, 0), 2); /* it has run already */
    rig_expect("count", "\n");
    T_EQ(close(record) + close(plan) + close(state), 0);
    rig_close(&r);
}

/* The runner's own failure is an end without a start: the command never ran. */
T_CASE(the_runner_lacks_descriptors)
{
    char head[GPQ_RECORD_LINE], path[GPQ_PATH];
    struct rig r;
    void *data;
    size_t size;
    int record, plan, state;

    rig_open(&r, "echo >>count");
    T_EQ(gpq_plan_write(&r.plan, &data, &size), 0);
    T_EQ(gpq_run_path(path, r.state, &r.plan.id), 0);
    record = file_of(path, head, gpq_record_head(head, &r.plan.id, r.boot, 0));
    plan = file_of("plan", data, size);
    free(data);
    state = open(r.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    T_EQ(run_bare(record, plan, state, T_SANITIZED ? 11 : 9), 0);
    RIG_LOOK(&r, ENDED);
    T_EQ(r.found.record.end.how, GPQ_RUN_FAILED);
    T_EQ(r.found.record.end.step, GPQ_STEP_RUNNER);
    T_EQ(r.found.record.end.status, EMFILE);
    T_CHECK(!r.found.record.has_start && access("count", F_OK));
    T_EQ(close(record) + close(plan) + close(state), 0);
    rig_close(&r);
}

/* Q4: a record belongs to one run. */
T_CASE(no_second_runner)
{
    struct gpq_error e = { 0 };
    struct rig r;
    struct gpq_start s = { .runner = T_RUNNER };
    pid_t pid;

    rig_open(&r, "echo >>count; echo >ready; read x <go");
    rig_start(&r, NULL);
    s.state = r.state;
    s.boot = r.boot;
    s.plan = &r.plan;
    rig_await_ready(&r);
    T_EQ(gpq_run_start(&s, &pid, &e), GPQ_EBUSY);
    rig_go(&r);
    RIG_END(&r, EXITED, 0);
    T_EQ(gpq_run_start(&s, &pid, &e), GPQ_EREFUSED);
    rig_expect("count", "\n");
    rig_next_attempt(&r);
    s.runner = "/nonexistent";
    T_EQ(gpq_run_start(&s, &pid, &e), GPQ_ENOTFOUND);
    r.plan.cwd = "relative";
    T_EQ(gpq_run_start(&s, &pid, &e), GPQ_EINVAL);
    rig_close(&r);
}
