/* SPDX-License-Identifier: MIT */
#include "raw_fork.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"
#include "place.h"
#include "raw_pipe.h"

/* What the server and its workers say. */
struct note {
    pid_t pid; /* 0: from the server, the worker is gone */
    uint64_t started;
};

static void send_note(int out, const struct note *note)
{
    if (write(out, note, sizeof(*note)) != (ssize_t)sizeof(*note))
        _exit(1);
}

static void work(int in, int out)
{
    struct note note = { .pid = getpid() };
    char frame[B_FRAME];

    send_note(out, &note); /* ready */
    if (read(in, frame, sizeof(frame)) != (ssize_t)sizeof(frame))
        _exit(1);
    note.started = b_now();
    send_note(out, &note);
    for (;;)
        (void)pause();
}

_Noreturn void b_raw_fork_worker(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setsid();
    work(0, 1);
    _exit(1);
}

static pid_t spawn_worker(int in, int out)
{
    char path[] = "/proc/self/exe", argument[] = B_RAW_ARGUMENT;
    char *const argv[] = { path, argument, NULL };
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;

    if (posix_spawn_file_actions_init(&actions))
        return -1;
    if (posix_spawn_file_actions_adddup2(&actions, in, 0) ||
        posix_spawn_file_actions_adddup2(&actions, out, 1) ||
        posix_spawn(&pid, path, &actions, NULL, argv, environ))
        pid = -1;
    (void)posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static void serve(int ask, int in, int out, enum b_raw_server kind)
{
    int eager = kind == B_EAGER;
    const struct note gone = { .pid = 0 };
    siginfo_t info;
    pid_t pid, self = getpid();
    char asked;

    for (;;) {
        if (!eager && read(ask, &asked, 1) != 1)
            _exit(0);
        pid = kind == B_SPAWNER ? spawn_worker(in, out) : fork();
        if (pid < 0)
            _exit(1);
        if (pid == 0) {
            b_child_begin(self);
            (void)setsid();
            work(in, out);
        }
        (void)waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
        (void)kill(-pid, SIGKILL); /* what it had started, while its number cannot be another's */
        (void)waitpid(pid, NULL, 0);
        if (!eager)
            send_note(out, &gone);
    }
}

static int read_note(struct b_raw_fork *f, struct note *note)
{
    struct pollfd look = { .fd = f->event, .events = POLLIN };

    if (poll(&look, 1, 5000) != 1)
        return -1;
    return read(f->event, note, sizeof(*note)) == (ssize_t)sizeof(*note) ? 0 : -1;
}

static int ask_worker(struct b_raw_fork *f)
{
    return f->kind == B_EAGER || write(f->ask, "", 1) == 1 ? 0 : -1;
}

/* Waits for a fresh worker, gives it a task; gives when that started. */
static int start_task(struct b_raw_fork *f, uint64_t *ret_started)
{
    char frame[B_FRAME] = { 0 };
    struct note note;

    if (read_note(f, &note))
        return -1;
    if (write(f->task, frame, sizeof(frame)) != (ssize_t)sizeof(frame))
        return -1;
    if (read_note(f, &note))
        return -1;
    f->worker = note.pid;
    *ret_started = note.started;
    return 0;
}

/* Makes three pipes or none. */
static int open_pipes(int ends[3][2])
{
    int i;

    for (i = 0; i < 3; i++) {
        if (pipe(ends[i]) == 0)
            continue;
        while (i-- > 0) {
            (void)close(ends[i][0]);
            (void)close(ends[i][1]);
        }
        return -1;
    }
    return 0;
}

int b_raw_fork_open(struct b_raw_fork *f, int cpu, enum b_raw_server kind)
{
    enum { ASK, TASK, EVENT };
    pid_t parent = getpid();
    uint64_t started;
    int ends[3][2];

    if (open_pipes(ends))
        return -1;
    f->kind = kind;
    f->server = fork();
    if (f->server == 0) {
        b_child_begin(parent);
        (void)close(ends[ASK][1]);
        (void)close(ends[TASK][1]);
        (void)close(ends[EVENT][0]);
        (void)b_pin(0, cpu);
        serve(ends[ASK][0], ends[TASK][0], ends[EVENT][1], kind);
    }
    (void)close(ends[ASK][0]);
    (void)close(ends[TASK][0]);
    (void)close(ends[EVENT][1]);
    f->ask = ends[ASK][1];
    f->task = ends[TASK][1];
    f->event = ends[EVENT][0];
    if (f->server > 0 && ask_worker(f) == 0 && start_task(f, &started) == 0)
        return 0;
    b_raw_fork_close(f);
    return -1;
}

void b_raw_fork_close(struct b_raw_fork *f)
{
    b_child_end(f->server); /* the worker ends with it */
    (void)close(f->ask);
    (void)close(f->task);
    (void)close(f->event);
    f->server = 0;
}

int b_raw_fork_restart(struct b_raw_fork *f, uint64_t *ret_took)
{
    uint64_t start = b_now(), started;
    struct note gone;

    if (kill(f->worker, SIGKILL))
        return -1;
    if (f->kind != B_EAGER && (read_note(f, &gone) || gone.pid != 0))
        return -1;
    if (ask_worker(f) || start_task(f, &started))
        return -1;
    *ret_took = started - start;
    return 0;
}

int b_raw_death(uint64_t run, uint64_t *ret_took, uint64_t *ret_late)
{
    struct pollfd look = { .events = POLLIN };
    volatile unsigned spin = 0;
    pid_t parent = getpid(), pid;
    uint64_t start, due, end;
    int rc = -1;

    due = b_now() + run;
    pid = fork();
    if (pid < 0)
        return -1;
    if (pid == 0) {
        b_child_begin(parent);
        (void)setsid(); /* as a worker: the scheduler may group by session */
        for (;;)
            spin = spin + 1;
    }
    look.fd = (int)syscall(SYS_pidfd_open, pid, 0U);
    if (look.fd >= 0) {
        start = b_now();
        b_sleep(due > start ? due - start : 0);
        start = b_now();
        if (kill(pid, SIGKILL) == 0 && poll(&look, 1, 5000) == 1) {
            end = b_now();
            *ret_took = end - start;
            *ret_late = end - due;
            rc = 0;
        }
        (void)close(look.fd);
    }
    b_child_end(pid);
    return rc;
}
