/* SPDX-License-Identifier: MIT */
/*
 * watch.c - owns the loop of the second thread.
 */
#include "watch.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

/* Ten progress lines per second show life and cost little. */
enum { TICK_NS = 100000000, NS_PER_SECOND = 1000000000 };

/* A worker is killed after this many files have ended, in a short list after a quarter. */
enum { KILL_AFTER_FILES = 5, KILL_AFTER_PART = 4 };

static int is_mid_run(struct watch *w)
{
    struct gpud_stats stats = GPUD_STATS_INIT;
    size_t part = w->report->list->n / KILL_AFTER_PART;
    uint64_t after = part < KILL_AFTER_FILES ? part : KILL_AFTER_FILES;
    return gpud_dispatcher_stats(w->dispatcher, &stats) == 0 && stats.delivered >= after;
}

/* Kills the first worker that is busy with a file.  Returns the number of workers killed. */
static uint32_t kill_a_busy_worker(struct watch *w)
{
    struct gpud_slot_stats rows[WORKERS_MAX] = { { .struct_size = sizeof rows[0] } };
    int slots = gpud_dispatcher_slots(w->dispatcher, rows, WORKERS_MAX);
    for (int i = 0; i < slots && i < WORKERS_MAX; i++) {
        const struct gpud_slot_stats *row = &rows[i];
        if (row->state != GPUD_SLOT_BUSY || row->pid <= 0 || row->task_id == 0)
            continue;
        if (kill((pid_t)row->pid, SIGKILL) != 0)
            continue;
        report_note(w->report, "killed worker %u (process %lld) while it worked on %s",
                    (unsigned)row->slot, (long long)row->pid, row->label);
        return 1;
    }
    return 0;
}

static void tell_interrupts(struct watch *w, int *told)
{
    int now = w->interrupts();
    if (now == *told)
        return;
    if (now == 1)
        report_note(w->report, "interrupted: ending what runs; once more to cancel that too");
    else if (*told < 2)
        report_note(w->report, "interrupted again: cancelling");
    *told = now;
}

static void tick(struct watch *w, int *told)
{
    tell_interrupts(w, told);
    if (w->kill_one && w->killed == 0 && is_mid_run(w))
        w->killed = kill_a_busy_worker(w);
    report_progress(w->report, w->dispatcher);
}

static struct timespec next_tick(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += TICK_NS;
    if (t.tv_nsec >= NS_PER_SECOND) {
        t.tv_nsec -= NS_PER_SECOND;
        t.tv_sec++;
    }
    return t;
}

static void *watch_main(void *user)
{
    struct watch *w = user;
    int told = 0;
    pthread_mutex_lock(&w->lock);
    while (!w->over) {
        struct timespec until = next_tick();
        if (pthread_cond_timedwait(&w->wake, &w->lock, &until) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&w->lock);
        tick(w, &told);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Makes a condition with CLOCK_MONOTONIC, so that a change of the date delays no tick. */
static void init_wake(pthread_cond_t *wake)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

int watch_start(struct watch *w, gpud_dispatcher *d, struct report *r, int (*interrupts)(void),
                int kill_one)
{
    *w = (struct watch){
        .dispatcher = d, .report = r, .interrupts = interrupts, .kill_one = kill_one
    };
    pthread_mutex_init(&w->lock, NULL);
    init_wake(&w->wake);
    int error = pthread_create(&w->thread, NULL, watch_main, w);
    if (error != 0) {
        pthread_cond_destroy(&w->wake);
        pthread_mutex_destroy(&w->lock);
    }
    return error;
}

void watch_stop(struct watch *w)
{
    pthread_mutex_lock(&w->lock);
    w->over = 1;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
}
