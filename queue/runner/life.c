/* SPDX-License-Identifier: MIT */
/* life.c - the life of the runner. */
#include "queue/runner/life.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "queue/files/out.h"
#include "queue/files/save.h"
#include "queue/files/stamp.h"
#include "queue/runner/below.h"
#include "queue/runner/child.h"
#include "queue/runner/log.h"
#include "queue/runner/oom.h"
#include "queue/runner/points.h"
#include "queue/runner/process.h"
#include "queue/runner/record.h"

enum { OUTPUT_BYTES = 65536 }; /* of a read: what a pipe holds */
/* The most that a pipe can hold; a process that is left may go on writing. */
enum { PIPE_READS = (1 << 30) / OUTPUT_BYTES };
enum { TRIES = 60, TRY_MS = 1000 }; /* of the end record on a full disk */
enum { STOP_MS = 200 };             /* from the end of the command to a stop */
enum { LONGEST_PAUSE_MS = 1000, SEARCH_ALL_MS = 100, VAIN_ROUNDS = 10 }; /* of the last sweep */

/* What a signal does. */
enum phase {
    WORKS, /* it is handed on to the command */
    ENDED, /* the command has ended: SIGTERM may be the reason */
    JUDGED /* nothing */
};

struct life {
    const struct gpq_plan *plan;
    char **environment;
    off_t recorded; /* bytes of the record */
    int null;
    int signals;
    int output[2], released[2], failures[2]; /* pipes: read, write */
    pid_t command;
    enum phase phase;
    bool ordered; /* an agent has ordered the end */
    bool stopped; /* SIGTERM arrived before any order */
    bool stop_recorded;
    uint32_t stop_by;
    uint64_t oom_kills; /* before the start */
    struct gpq_log log;
    struct gpq_run_end end;
};

static uint64_t now(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* ---- The record ---- */

/* Writes a line at its place: after a failure the next try writes over what was left of it. */
static int record(struct life *l, const char *line, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pwrite(GPQ_RUN_RECORD, line + done, size - done, l->recorded + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        done += (size_t)n;
    }
    l->recorded += (off_t)size;
    return 0;
}

static int record_runner(struct life *l)
{
    char line[GPQ_RECORD_LINE];
    struct gpq_process self;
    int ret = gpq_process_read(getpid(), &self);

    if (ret)
        return ret;
    return record(l, line,
                  gpq_record_runner(line, &(struct gpq_run_process){ self.pid, self.ticks }));
}

static int record_start(struct life *l)
{
    char line[GPQ_RECORD_LINE];
    struct gpq_process command;
    int ret = gpq_process_read(l->command, &command);

    if (ret)
        return ret;
    return record(l, line,
                  gpq_record_start(line, &(struct gpq_run_process){ command.pid, command.ticks },
                                   now(CLOCK_MONOTONIC), now(CLOCK_REALTIME)));
}

/* At once, so that it outlives the runner; a failure is mended with the end. */
static int record_stop(struct life *l)
{
    char line[GPQ_RECORD_LINE];
    int ret;

    if (!l->stopped || l->stop_recorded)
        return 0;
    ret = record(l, line, gpq_record_stop(line, l->stop_by));
    l->stop_recorded = !ret;
    return ret;
}

static int record_rest(struct life *l, const char *end, size_t size)
{
    int ret = record_stop(l);

    return ret ? ret : record(l, end, size);
}

/* Only the queue's own reserve (reserve.h) or a person makes space: wait for either. */
static int record_end(struct life *l)
{
    char line[GPQ_RECORD_LINE];
    size_t size = gpq_record_end(line, &l->end);
    int ret = record_rest(l, line, size);

    for (int i = 0; (ret == -ENOSPC || ret == -EDQUOT) && i < TRIES; i++) {
        (void)poll(NULL, 0, TRY_MS);
        ret = record_rest(l, line, size);
    }
    if (ret)
        return ret;
    gpq_point("written");
    if (fsync(GPQ_RUN_RECORD))
        return -errno;
    ret = gpq_sync_directory(&gpq_system_files, "run");
    gpq_point("synced");
    return ret;
}

/* ---- The start ---- */

static void fail(struct life *l, uint32_t step, int error)
{
    l->end.how = GPQ_RUN_FAILED;
    l->end.step = step;
    l->end.status = (uint64_t)error;
}

static int make_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC) ? -errno : 0;
}

static int prepare(struct life *l)
{
    sigset_t set;
    int ret;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGUSR1);
    (void)sigaddset(&set, SIGUSR2);
    l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (l->signals < 0)
        return -errno;
    l->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (l->null < 0)
        return -errno;
    ret = make_pipe(l->output);
    if (!ret)
        ret = make_pipe(l->released);
    if (!ret)
        ret = make_pipe(l->failures);
    if (ret)
        return ret;
    /* The read ends alone: the command's end of `output` blocks as it expects. */
    if (fcntl(l->output[0], F_SETFL, O_NONBLOCK) || fcntl(l->failures[0], F_SETFL, O_NONBLOCK))
        return -errno;
    l->environment = gpq_plan_environment(l->plan);
    return l->environment ? 0 : -ENOMEM;
}

static int make_command(struct life *l)
{
    const struct gpq_child c = { .plan = l->plan,
                                 .environment = l->environment,
                                 .null = l->null,
                                 .output = l->output[1],
                                 .released = l->released[0],
                                 .not_ours = { GPQ_RUN_RECORD, l->released[1] },
                                 .failures = l->failures[1] };

    l->command = fork();
    if (l->command < 0)
        return -errno;
    if (!l->command)
        gpq_child_run(&c);
    close_fd(&l->output[1]);
    close_fd(&l->released[0]);
    close_fd(&l->failures[1]);
    return 0;
}

/* The start is in the record before the command is released.  [Q4] */
static int release(struct life *l)
{
    int ret;

    gpq_point("forked");
    l->oom_kills = gpq_oom_kills();
    ret = record_start(l);
    if (ret)
        return ret;
    gpq_point("started");
    (void)!write(l->released[1], "", 1); /* the process may have been killed */
    close_fd(&l->released[1]);
    gpq_point("released");
    return 0;
}

/* ---- While the command works ---- */

/* SIGCONT, since a stopped process does not handle its SIGTERM. */
static void ask(struct life *l)
{
    /* Before its setsid there is no such group. */
    if (kill(-l->command, SIGTERM) && errno == ESRCH)
        (void)kill(l->command, SIGTERM);
    (void)kill(-l->command, SIGCONT);
    l->end.soft++;
}

static void kill_all(struct life *l)
{
    struct gpq_below_killed killed;

    (void)kill(-l->command, SIGKILL);
    (void)gpq_below_kill(&killed);
    l->end.hard = 1;
}

/* SIGTERM of another process than an agent, unless an order was first. */
static void note_stop(struct life *l, uint32_t by)
{
    if (l->phase == JUDGED || l->ordered || l->stopped)
        return;
    l->stopped = true;
    l->stop_by = by;
    (void)record_stop(l);
    gpq_point("stopped");
}

/* The command's group is signalled only while its first process has not been reaped. */
static void read_signals(struct life *l)
{
    struct signalfd_siginfo s;

    while (read(l->signals, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
        const bool soft = s.ssi_signo == SIGUSR2, hard = s.ssi_signo == SIGUSR1;
        const bool stop = s.ssi_signo == SIGTERM;
        if (stop)
            note_stop(l, s.ssi_pid);
        if (l->phase != WORKS)
            continue;
        l->ordered = l->ordered || soft || hard;
        if (soft || stop)
            ask(l);
        if (hard)
            kill_all(l);
    }
}

/* Copies what the pipe has now, up to `most` reads.  The end of the pipe closes it. */
static void copy_output(struct life *l, unsigned most)
{
    static char data[OUTPUT_BYTES];

    for (; most && l->output[0] >= 0; most--) {
        ssize_t n = read(l->output[0], data, sizeof(data));
        if (n > 0)
            gpq_log_write(&l->log, data, (size_t)n);
        else if (!n || (errno != EAGAIN && errno != EINTR))
            close_fd(&l->output[0]);
        else if (errno == EAGAIN)
            return;
    }
}

/* Waits for a signal or output, and handles it; -1: without a limit. */
static void await(struct life *l, int timeout_ms)
{
    struct pollfd p[2] = { { .fd = l->signals, .events = POLLIN },
                           { .fd = l->output[0], .events = POLLIN } };

    if (poll(p, 2, timeout_ms) <= 0)
        return;
    if (p[1].revents)
        copy_output(l, 1);
    if (p[0].revents)
        read_signals(l);
}

/* ---- The end ---- */

/* Notes how the first process has ended, and kills its group while its zombie keeps the number. */
static void end_command(struct life *l)
{
    struct gpq_child_failure f;
    int status = 0;

    l->end.monotonic = now(CLOCK_MONOTONIC);
    l->end.wall = now(CLOCK_REALTIME);
    (void)kill(-l->command, SIGKILL);
    (void)waitpid(l->command, &status, __WALL);
    if (read(l->failures[0], &f, sizeof(f)) == (ssize_t)sizeof(f)) {
        fail(l, (uint32_t)f.step, f.error);
    } else if (WIFSIGNALED(status)) {
        l->end.how = GPQ_RUN_KILLED;
        l->end.status = (uint64_t)WTERMSIG(status);
        l->end.core = WCOREDUMP(status) != 0;
    } else {
        l->end.how = GPQ_RUN_EXITED;
        l->end.status = (uint64_t)WEXITSTATUS(status);
    }
}

static bool has_failed(const struct gpq_run_end *end)
{
    return end->how == GPQ_RUN_KILLED || (end->how == GPQ_RUN_EXITED && end->status);
}

/* A manager that ends all processes may reach the command before the runner. */
static void await_stop(struct life *l)
{
    const uint64_t until = l->end.monotonic + STOP_MS * UINT64_C(1000000);

    l->phase = ENDED;
    read_signals(l);
    gpq_point("waits");
    for (bool last = false; !last && has_failed(&l->end) && !l->ordered && !l->stopped;) {
        const uint64_t at = now(CLOCK_MONOTONIC);
        last = at >= until;
        await(l, last ? 0 : (int)((until - at) / 1000000) + 1);
    }
    l->phase = JUDGED;
}

/*
 * Kills what is left below the runner, and waits until it has ended.  The end of each child makes
 * its own children the runner's; each round kills those that there are.  A process that cannot be
 * killed now, such as in an uninterruptible call, is waited for.  Where the runner may kill none of
 * those that are left, it goes.
 */
static void end_rest(struct life *l)
{
    struct gpq_below_killed k;

    for (int pause = 1, vain = 0; !gpq_below_none();
         pause = pause < LONGEST_PAUSE_MS ? 2 * pause : pause) {
        int fault = gpq_below_kill(&k);
        vain = fault || k.found == k.denied ? vain + 1 : 0;
        if (vain == VAIN_ROUNDS) {
            l->end.left = k.found ? k.found : 1;
            return;
        }
        if (pause > SEARCH_ALL_MS)
            gpq_below_kill_all();
        await(l, pause);
        (void)gpq_below_reap(0, &l->end.swept);
    }
}

/* Only outputs of a success are published.  [Q5] */
static void sync_outputs(struct life *l)
{
    const struct gpq_run_id *id = &l->plan->id;
    struct gpq_error e;

    if (!l->plan->out || l->end.how != GPQ_RUN_EXITED || l->end.status)
        return;
    l->end.outputs = gpq_out_sync(&gpq_system_files, ".", id->task, id->attempt, &e)
                         ? GPQ_OUTPUTS_FAILED
                         : GPQ_OUTPUTS_SYNCED;
}

static void write_stamp(const char *path, const char *stamp)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool failed = fd < 0 || gpq_write_all(&gpq_system_files, fd, stamp, strlen(stamp)) || fsync(fd);

    if (fd >= 0)
        (void)close(fd);
    if (failed)
        (void)unlink(path);
}

/* Its directory is synced with the end.  A stamp that is missing shows no file, so that a later
 * submit that names one runs it.  [Q6] */
static void note_stamp(struct life *l)
{
    char path[GPQ_PATH], *stamp;

    if (!l->plan->words || !l->plan->words[0] || l->end.how != GPQ_RUN_EXITED || l->end.status ||
        gpq_run_beside(path, ".", &l->plan->id, GPQ_RUN_STAMP))
        return;
    stamp = gpq_stamp_make(l->plan->words, l->plan->cwd);
    if (stamp && strcmp(stamp, GPQ_STAMP_NONE) != 0)
        write_stamp(path, stamp);
    free(stamp);
}

static void note_oom(struct life *l)
{
    uint64_t now = gpq_oom_kills();

    if (now != GPQ_OOM_UNKNOWN && l->oom_kills != GPQ_OOM_UNKNOWN && now > l->oom_kills)
        l->end.oom_kills = now - l->oom_kills;
}

/* Until the first process of the command has ended. */
static void work(struct life *l)
{
    uint64_t orphans = 0;

    while (!gpq_below_reap(l->command, &orphans))
        await(l, -1);
    gpq_point("ended");
    end_command(l);
    await_stop(l);
    end_rest(l);
    copy_output(l, PIPE_READS);
    gpq_point("swept");
    note_oom(l);
    sync_outputs(l);
    note_stamp(l);
}

static void note_log(struct life *l)
{
    l->end.log_bytes = l->log.bytes;
    l->end.log_freed = gpq_log_freed(&l->log);
    l->end.log_lost = l->log.lost;
    l->end.log_error = (uint64_t)l->log.error;
    gpq_log_close(&l->log);
}

/* 0, or -errno: the record could not be written.  A failure of another kind is the end. */
static int run(struct life *l)
{
    int ret;

    gpq_point("begun");
    ret = record_runner(l);
    if (ret)
        return ret;
    gpq_point("noted");
    gpq_log_open(&l->log, l->plan->log, l->plan->log_limit);
    ret = prepare(l);
    if (!ret)
        ret = make_command(l);
    if (ret) {
        fail(l, GPQ_STEP_RUNNER, -ret);
        l->end.monotonic = now(CLOCK_MONOTONIC);
        l->end.wall = now(CLOCK_REALTIME);
    } else {
        ret = release(l);
        if (ret) /* the runner's exit ends the process, which waits for its release */
            return ret;
        work(l);
    }
    note_log(l);
    return record_end(l);
}

int gpq_life(const struct gpq_plan *plan, size_t size)
{
    struct life l = { .plan = plan,
                      .recorded = (off_t)size,
                      .null = -1,
                      .signals = -1,
                      .output = { -1, -1 },
                      .released = { -1, -1 },
                      .failures = { -1, -1 },
                      .log = { .fd = -1 } };
    int ret = run(&l);

    free(l.environment);
    return ret ? 1 : 0;
}
