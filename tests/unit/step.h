/* SPDX-License-Identifier: MIT */
/*
 * step.h - a process that runs one instruction at a time, so that something can be made to happen
 * between any two of them: a signal, a word from the other side.  What a race test meets once in
 * many thousand rounds is met here in each of them.
 *
 * The process marks where the steps begin with t_step_mark; everything before and after runs at
 * full speed.  Only interleavings are covered, not the order in which a CPU's stores arrive.
 */
#ifndef T_STEP_H
#define T_STEP_H

#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* From one instruction at which something happens to the next: each with all effort. Sanitized code
 * has many more instructions, and is slow. */
static inline unsigned t_stride(void)
{
    return T_SANITIZED ? 307 : t_rounds(10, 10) == 10 ? 1 : 7;
}

static inline void t_step_mark(void)
{
    (void)kill(getpid(), SIGSTOP); /* raise of musl blocks signals meanwhile */
}

/* Starts `run` in a traced process; it stays at its first mark. */
static inline pid_t t_step_start(void (*run)(void *arg), void *arg)
{
    pid_t pid = fork();
    int status;

    T_CHECK(pid >= 0);
    if (!pid) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
            _exit(77);
        run(arg);
        _exit(0);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        t_skip("this place does not let a process trace its child");
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP)
        T_FAIL("the traced process does not come to its mark: status %#x", status);
    return pid;
}

/* What the next change of the process is: 0 and the status, or -1 when none comes in time. */
static inline int t_step_wait(pid_t pid, int *ret_status, uint64_t patience)
{
    const struct timespec limit = { (time_t)(patience / T_S(1)), (long)(patience % T_S(1)) };
    sigset_t child, old;
    pid_t r;

    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    /* while it is blocked it waits, ignored or not */
    T_EQ(sigprocmask(SIG_BLOCK, &child, &old), 0);
    while ((r = waitpid(pid, ret_status, WNOHANG)) == 0)
        if (sigtimedwait(&child, NULL, &limit) < 0 && errno != EINTR)
            break;
    T_EQ(sigprocmask(SIG_SETMASK, &old, NULL), 0);
    T_CHECK(r >= 0);
    return r == pid ? 0 : -1;
}

/* Runs one instruction.  1; 0 when it has not come to an end in time (the process blocks in a call,
 * or has no CPU); -1 when the process has ended or got a signal instead. */
static inline int t_step(pid_t pid, uint64_t patience)
{
    int status = 0;

    T_EQ(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
    if (t_step_wait(pid, &status, patience))
        return 0;
    return WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP ? 1 : -1;
}

/* Lets it run from where it stands, with a signal (0: none). */
static inline void t_step_go(pid_t pid, int signal)
{
    T_EQ(ptrace(PTRACE_CONT, pid, NULL, (void *)(long)signal), 0);
}

#endif
