/* SPDX-License-Identifier: MIT */
/* rig.c - plays the agent for tests of the runner. */
#include "harness.h"

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
#include "queue/files/out.h"
#include "queue/files/save.h"
#include "queue/files/statedir.h"
#include "queue/runner/start.h"

static int make_fifo(const char *name)
{
    int fd;

    T_EQ(mkfifo(name, 0600), 0);
    fd = open(name, O_RDWR | O_CLOEXEC);
    T_CHECK(fd >= 0);
    return fd;
}

static void make_out(struct rig *r)
{
    struct gpq_error e;

    T_EQ(gpq_out_make(&gpq_system_files, r->state, r->plan.id.task, r->plan.id.attempt, &e), 0);
    T_EQ(gpq_out_work_path(r->out, r->state, r->plan.id.task, r->plan.id.attempt), 0);
    r->claimed.id = r->plan.id;
}

void rig_open(struct rig *r, const char *script)
{
    static char sh[] = "sh", c[] = "-c", path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
    struct gpq_error e;

    *r = (struct rig){ .argv = { sh, c, strdup(script), NULL }, .environment = { path, NULL } };
    T_CHECK(getcwd(r->here, sizeof(r->here)));
    T_EQ(gpq_statedir_make("s", true, r->state, &e), 0);
    T_EQ(gpq_path(r->log, "%s/log", r->state), 0);
    T_EQ(gpq_boot_read(r->boot), 0);
    r->plan = (struct gpq_plan){ .id = { .task = GPQ_TASK(12, 44), .attempt = 1 },
                                 .cwd = r->here,
                                 .out = r->out,
                                 .log = "log",
                                 .argv = r->argv,
                                 .environment = r->environment };
    T_EQ(gpq_run_nonce(r->plan.id.nonce), 0);
    memcpy(r->claimed.boot, r->boot, sizeof(r->boot));
    make_out(r);
    r->ready = make_fifo("ready");
    r->go = make_fifo("go");
    T_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
}

void rig_program(struct rig *r, const char *name, const char *argument)
{
    static char page[64];
    char self[GPQ_PATH] = "";

    T_CMP(readlink("/proc/self/exe", self, sizeof(self) - 1), >, 0);
    (void)snprintf(page, sizeof(page), "T_PAGE=%s", getenv("T_PAGE"));
    r->environment[1] = page;
    free(r->argv[2]);
    T_CHECK(asprintf(&r->argv[2], "exec '%s' --program %s %s", self, name, argument) > 0);
}

void rig_next_attempt(struct rig *r)
{
    r->plan.id.attempt++;
    T_EQ(gpq_run_nonce(r->plan.id.nonce), 0);
    make_out(r);
}

void rig_close(struct rig *r)
{
    free(r->argv[2]);
    T_EQ(close(r->ready), 0);
    T_EQ(close(r->go), 0);
    rig_reap();
}

void rig_start_with(struct rig *r, const char *runner, char *const *environment)
{
    const struct gpq_start s = { .runner = runner,
                                 .environment = environment,
                                 .state = r->state,
                                 .boot = r->boot,
                                 .plan = &r->plan };
    struct gpq_error e = { 0 };

    if (gpq_run_start(&s, &r->runner, &e))
        T_FAIL("start: %s", e.text);
}

void rig_start(struct rig *r, const char *point)
{
    char assignment[64], *environment[] = { assignment, NULL };

    (void)snprintf(assignment, sizeof(assignment), "GPQ_TEST_POINT=%s", point ? point : "");
    rig_start_with(r, point ? T_STOPPING_RUNNER : T_RUNNER, point ? environment : NULL);
}

void rig_await_ready(struct rig *r)
{
    struct pollfd p = { .fd = r->ready, .events = POLLIN };
    char byte = 0;

    while (byte != '\n') {
        T_EQ(poll(&p, 1, (int)(T_PATIENCE / T_MS(1))), 1);
        T_EQ(read(r->ready, &byte, 1), 1);
    }
}

void rig_go(struct rig *r)
{
    T_EQ(write(r->go, "\n", 1), 1);
}

const char *rig_look(struct rig *r)
{
    T_EQ(gpq_run_look(r->state, &r->claimed, r->boot, &r->found), 0);
    return gpq_found_text(r->found.state);
}

void rig_end(struct rig *r)
{
    int status;

    T_EQ(waitpid(r->runner, &status, 0), r->runner);
    T_EQ(status, 0);
    RIG_LOOK(r, ENDED);
}

void rig_await_stop(struct rig *r)
{
    int status;

    T_EQ(waitpid(r->runner, &status, WUNTRACED), r->runner);
    T_CHECK(WIFSTOPPED(status));
}

void rig_kill(struct rig *r)
{
    int status;

    t_kill(r->runner, SIGKILL);
    T_EQ(waitpid(r->runner, &status, 0), r->runner);
    T_EQ(status, SIGKILL);
    rig_await_unlocked(r);
}

static int is_unlocked(void *path)
{
    return !gpq_lock_check(path);
}

void rig_await_unlocked(struct rig *r)
{
    char path[GPQ_PATH];

    T_EQ(gpq_run_path(path, r->state, &r->claimed.id), 0);
    t_wait_until("the record is not locked", is_unlocked, path);
}

void rig_reap(void)
{
    while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
        ;
    T_EQ(errno, ECHILD);
}

char *rig_read(const char *path)
{
    void *data;
    size_t size;

    T_EQ(gpq_read_whole(&gpq_system_files, path, 64 << 20, &data, &size), 0);
    return data;
}

void rig_expect(const char *path, const char *content)
{
    char *text = rig_read(path);

    T_TEXT(text, content);
    free(text);
}
