/* SPDX-License-Identifier: MIT */
/* sweep.c - ends the command of a runner that was killed. */
#include "queue/runner/sweep.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "queue/runner/process.h"

/* Processes that one round kills; the next round finds the others. */
enum { ROUND = 256 };

struct sweep {
    const struct gpq_run_process *command; /* NULL: unknown */
    char assignment[sizeof(GPQ_RUN_VARIABLE "=") + GPQ_RUN_TAG];
    pid_t self;
    bool session_is_ours;
    struct pollfd killed[ROUND]; /* pidfds */
    unsigned n, denied, unknown, total;
};

static void add_assignment(struct sweep *s, const struct gpq_run_id *id)
{
    char tag[GPQ_RUN_TAG];

    gpq_run_tag(tag, id);
    (void)snprintf(s->assignment, sizeof(s->assignment), GPQ_RUN_VARIABLE "=%s", tag);
}

/* ---- Which processes ---- */

static bool in_session(const struct sweep *s, const struct gpq_process *p)
{
    return s->command && (p->session == s->command->pid || p->pid == s->command->pid);
}

static bool is_command(const struct sweep *s, const struct gpq_process *p)
{
    return s->command && p->pid == s->command->pid && p->ticks == s->command->ticks;
}

static bool is_marked(struct sweep *s, const struct gpq_process *p)
{
    int ret = gpq_process_has_variable(p, s->assignment);

    s->unknown += ret < 0;
    return ret > 0;
}

static int learn_session(const struct gpq_process *p, void *user)
{
    struct sweep *s = user;

    if (in_session(s, p))
        s->session_is_ours = is_command(s, p) || is_marked(s, p);
    return s->session_is_ours;
}

static int kill_if_ours(const struct gpq_process *p, void *user)
{
    struct sweep *s = user;
    int pidfd, fault;

    if (p->pid == s->self || (!(s->session_is_ours && in_session(s, p)) && !is_marked(s, p)))
        return 0;
    pidfd = gpq_process_open(p->pid, p->ticks);
    if (pidfd == -ESRCH)
        return 0;
    if (pidfd < 0)
        return pidfd;
    fault = gpq_process_signal(pidfd, SIGKILL);
    if (fault) {
        s->denied += fault == -EPERM;
        (void)close(pidfd);
        return 0;
    }
    s->killed[s->n++] = (struct pollfd){ .fd = pidfd, .events = POLLIN };
    return s->n == ROUND;
}

/* ---- Rounds ---- */

static int64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until each killed process has ended, and closes its pidfd.  Returns how many have not. */
static unsigned wait_for_ends(struct sweep *s, int64_t until)
{
    unsigned left = 0;

    for (unsigned i = 0; i < s->n; i++) {
        int ready;
        do {
            int64_t wait = until - now_ms();
            ready = poll(&s->killed[i], 1, wait > 0 ? (int)wait : 0);
        } while (ready < 0 && errno == EINTR);
        left += ready != 1;
        (void)close(s->killed[i].fd);
    }
    return left;
}

/* One search.  Returns how many it has found, or -errno. */
static int sweep_round(struct sweep *s, int64_t until, unsigned *ret_left)
{
    int ret;

    s->session_is_ours = false;
    s->n = s->denied = s->unknown = 0;
    ret = s->command ? gpq_process_each(learn_session, s) : 0;
    if (ret >= 0)
        ret = gpq_process_each(kill_if_ours, s);
    s->total += s->n;
    *ret_left = wait_for_ends(s, until) + s->denied + s->unknown;
    return ret < 0 ? ret : (int)s->n;
}

int gpq_sweep(const struct gpq_run_id *id, const struct gpq_record *record, int patience_ms,
              struct gpq_swept *ret)
{
    struct sweep s = { .command = record->has_start ? &record->command : NULL, .self = getpid() };
    const int64_t until = now_ms() + patience_ms;
    int found, empty = 0;

    add_assignment(&s, id);
    *ret = (struct gpq_swept){ 0 };
    /* Twice: a process can escape one search by a fork into a number that was passed already. */
    while (empty < 2) {
        found = sweep_round(&s, until, &ret->left);
        ret->killed = s.total;
        if (found < 0)
            return found;
        if (ret->left || (found && now_ms() >= until))
            return -ETIMEDOUT;
        empty = found ? 0 : empty + 1;
    }
    return 0;
}
