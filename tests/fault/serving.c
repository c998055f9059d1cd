/* SPDX-License-Identifier: MIT */
/* serving.c - the worker's side of every scenario: what its tasks do there, and the points at which
 * it may be killed. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "giving.h"
#include "inject.h"

unsigned char byte_of(uint64_t tag, uint64_t i)
{
    return (unsigned char)(tag * 31 + i * 7 + (i >> 8));
}

static void nap(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

    (void)nanosleep(&t, NULL);
}

static int setup(gpud_worker *w, void **state)
{
    size_t size;
    const struct info *info = gpud_worker_setup_data(w, &size);
    const char *bad;

    fi_phase(FI_SETUP);
    fi_user_point();
    /* By its bare number, so that it is no place for a fault.  [C8] */
    if (atomic_load(&fi_page->daemon) &&
        atomic_load(&fi_page->daemon_slot) == (int)gpud_worker_slot(w) &&
        syscall(SYS_kill, atomic_load(&fi_page->daemon), 0) == 0)
        atomic_store(&fi_page->overlap, 1);
    *state = NULL;
    if (gpud_worker_slot(w) == 0 && size >= sizeof *info &&
        gpud_worker_incarnation(w) <= info->fails)
        return gpud_worker_fail(w, 3, "setup fails for once");
    if (size >= sizeof *info && info->surroundings && (bad = bad_surroundings(w)))
        return gpud_worker_fail(w, 4, bad);
    fi_phase(FI_SERVE);
    return 0;
}

static int work_on(gpud_task *t, const struct order *o)
{
    unsigned char *to;
    sigset_t alarm;
    void *room;
    int r;

    switch ((enum what)o->what) {
    case SOFT:
        while (!gpud_task_expired(t))
            nap(1);
        break;
    case HARD:
        (void)sigemptyset(&alarm);
        (void)sigaddset(&alarm, SIGALRM);
        (void)sigprocmask(SIG_BLOCK, &alarm, NULL);
        for (;;)
            nap(1000);
    case CRASH:
        _exit(9);
    case CRASH_ONCE:
        if (gpud_task_attempt(t) == 1)
            (void)raise(SIGKILL);
        break;
    case ORPHANS: /* a child and a daemon are left behind */
        atomic_store(&fi_page->daemon_slot, (int)gpud_worker_slot(gpud_task_worker(t)));
        if (fork() == 0) {
            if (fork() == 0) {
                (void)setsid();
                atomic_store(&fi_page->daemon, getpid());
            }
            for (;;)
                nap(1000);
        }
        for (int ms = 0; ms < 1000 && !atomic_load(&fi_page->daemon); ms++)
            nap(1); /* a fork may have been refused */
        _exit(9);
    case NAP:
        nap(5);
        break;
    case UNTIL_CANCELLED:
        (void)gpud_task_progress(t, 0.5, "waiting");
        while (!gpud_task_cancelled(t))
            nap(1);
        return 1;
    case LOUD:
        printf("a line of task %u\n", (unsigned)o->tag);
        gpud_worker_log(gpud_task_worker(t), GPUD_LEVEL_INFO, "a log line");
        (void)gpud_task_progress(t, 0.5, "half");
        (void)gpud_task_progress(t, 1, "all");
        break;
    case FAIL_ONCE:
        if (gpud_task_attempt(t) == 1)
            return gpud_task_fail(t, 5, "fails for once");
        break;
    case ECHO:
        break;
    }
    r = gpud_task_result_alloc(t, o->size, &room);
    to = room;
    for (uint64_t i = 0; !r && i < o->size; i++)
        to[i] = byte_of(o->tag, i);
    fi_user_point();
    return r;
}

static int process(gpud_task *t, void *state)
{
    int r;

    (void)state;
    fi_phase(FI_TASK);
    fi_user_point();
    r = work_on(t, gpud_task_data(t));
    fi_phase(FI_SERVE);
    return r;
}

static int process_batch(gpud_task *const *tasks, size_t n, void *state)
{
    (void)state;
    fi_phase(FI_TASK);
    for (size_t i = 0; i < n; i++) {
        fi_user_point();
        (void)work_on(tasks[i], gpud_task_data(tasks[i]));
    }
    fi_phase(FI_SERVE);
    return 0;
}

static void cleanup(gpud_worker *w, void *state)
{
    (void)w, (void)state;
    fi_phase(FI_CLEANUP);
    fi_user_point();
}

const struct gpud_definition definitions[2] = {
    GPUD_DEFINITION("fault", setup, process, cleanup),
    GPUD_DEFINITION_BATCH("batch", setup, process_batch, cleanup),
};
