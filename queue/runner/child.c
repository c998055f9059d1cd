/* SPDX-License-Identifier: MIT */
/* child.c - the command's process, from its fork to its program. */
#include "queue/runner/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "queue/runner/points.h"
#include "queue/runner/record.h"

static _Noreturn void fail(const struct gpq_child *c, int step, int error)
{
    const struct gpq_child_failure f = { .step = step, .error = error };

    (void)!write(c->failures, &f, sizeof(f));
    _exit(127);
}

/* Returns without the release if the runner is killed before: the command must not run. */
static void wait_for_release(const struct gpq_child *c)
{
    char byte;
    ssize_t n;

    do
        n = read(c->released, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(127);
}

/* The kernel's choice for a process that is short of memory must not be that of a service manager
 * for the agent: a command is no more precious than others of its user. */
static void reset_oom_score(void)
{
    char text[16] = "";
    int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return;
    if (read(fd, text, sizeof(text) - 1) > 0 && text[0] == '-')
        (void)!write(fd, "0", 1);
    (void)close(fd);
}

/* The agent may ignore some signals, which an exec would hand on; the runner blocks all. */
static void reset_signals(void)
{
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t none;

    for (int s = 1; s < NSIG; s++)
        (void)sigaction(s, &action, NULL); /* KILL, STOP and two of libc refuse */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The agent has raised its own one. */
static int restore_limit(uint64_t descriptors)
{
    struct rlimit limit;

    if (!descriptors)
        return 0;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return -1;
    limit.rlim_cur = (rlim_t)descriptors < limit.rlim_max ? (rlim_t)descriptors : limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

_Noreturn void gpq_child_run(const struct gpq_child *c)
{
    for (int i = 0; i < 2; i++)
        (void)close(c->not_ours[i]);
    if (setsid() < 0)
        fail(c, GPQ_STEP_COMMAND, errno);
    gpq_point("child");
    wait_for_release(c);
    if (dup3(c->null, 0, 0) < 0 || dup3(c->output, 1, 0) < 0 || dup3(c->output, 2, 0) < 0)
        fail(c, GPQ_STEP_COMMAND, errno);
    reset_oom_score();
    if (restore_limit(c->plan->descriptors))
        fail(c, GPQ_STEP_COMMAND, errno);
    if (chdir(c->plan->cwd))
        fail(c, GPQ_STEP_CWD, errno);
    environ = c->environment; /* execvp searches its PATH */
    reset_signals();
    (void)execvp(c->plan->argv[0], c->plan->argv);
    fail(c, GPQ_STEP_PROGRAM, errno);
}
