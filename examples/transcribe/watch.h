/* SPDX-License-Identifier: MIT */
/*
 * watch.h - owns the second thread, which prints progress, reports Ctrl-C, and with --kill-one
 * kills a worker.  gpud_dispatcher_run calls its callbacks only when an event occurs, and progress
 * needs a clock that runs also between events.
 */
#ifndef TRANSCRIBE_WATCH_H
#define TRANSCRIBE_WATCH_H

#include <gpudispatch/gpudispatch.h>
#include <pthread.h>

#include "report.h"

struct watch {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int over;               /* under lock */
    gpud_dispatcher *dispatcher;
    struct report *report;
    int (*interrupts)(void); /* returns the number of interrupts by Ctrl-C */
    int kill_one;
    uint32_t killed;        /* read it after watch_stop */
};

/*
 * Starts the thread.  Call it after gpud_init, so that no worker is forked from a process with
 * threads.
 * Returns: 0, or an errno value.
 */
int watch_start(struct watch *w, gpud_dispatcher *d, struct report *r, int (*interrupts)(void),
                int kill_one);

/* Ends the thread and waits for it. */
void watch_stop(struct watch *w);

#endif
