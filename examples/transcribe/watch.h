/* SPDX-License-Identifier: MIT */
/*
 * watch.h - owns the second thread: it shows progress, tells of Ctrl-C, and with
 * --kill-one shoots a worker.  Needed because gpud_dispatcher_run calls back when
 * something happens, and a clock must also go on when nothing does.
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
    int (*interrupts)(void); /* how often Ctrl-C came */
    int kill_one;
    uint32_t killed;        /* read it after watch_stop */
};

/*
 * Starts the thread.  Call it after gpud_init, as workers are forked without threads.
 * Returns: 0, or an errno value.
 */
int watch_start(struct watch *w, gpud_dispatcher *d, struct report *r, int (*interrupts)(void),
                int kill_one);

/* Ends the thread and waits for it. */
void watch_stop(struct watch *w);

#endif
