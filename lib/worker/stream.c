/* SPDX-License-Identifier: MIT */
/* stream.c - a wait for a stream that ends at the task's limit: it polls, with pauses that grow. */
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "gpudispatch/cuda.h"
#include "worker/cuda_state.h"
#include "worker/worker.h"

/* a pause is this part of the time waited so far, and the end is noticed that much later */
#define SHARE 16u
#define SHORTEST_NS (5 * GPI_US)   /* below, the thread only yields the CPU */
#define LONGEST_NS (500 * GPI_US)

/* With 50 us of timer slack a sleep of 5 us is too long: the first sleep of a wait removes the
 * slack. */
struct pace {
    uint64_t began;
    long slack; /* of this thread, to restore; 0 = unchanged */
};

static void sharpen(struct pace *p)
{
    if (p->slack)
        return;
    p->slack = prctl(PR_GET_TIMERSLACK);
    if (p->slack > 0)
        (void)prctl(PR_SET_TIMERSLACK, 1);
}

static void take_pause(struct pace *p)
{
    uint64_t pause = gpi_time_min((gpi_now() - p->began) / SHARE, LONGEST_NS);
    const struct timespec t = { .tv_nsec = (long)pause };

    if (pause < SHORTEST_NS) {
        (void)sched_yield();
        return;
    }
    sharpen(p);
    (void)nanosleep(&t, NULL); /* a signal ends it: then the caller polls */
}

/* An expired limit ends neither the work on the stream nor the context. */
static int await_stream(gpud_task *t, gpi_cu_stream stream, struct pace *p, gpi_cu_result *ret)
{
    while ((*ret = t->worker->cuda->call.stream_query(stream)) == GPI_CU_NOT_READY) {
        if (gpud_task_cancelled(t))
            return GPUD_ECANCELLED;
        if (gpud_task_expired(t))
            return GPUD_ETIMEOUT;
        take_pause(p);
    }
    return *ret ? GPUD_EDEVICE : 0;
}

/* Writes the text for process to return with; a text of process itself stays. */
static void note(gpud_task *t, gpi_cu_result r)
{
    if (t->fail_code)
        return;
    gpi_cuda_words(&t->worker->cuda->call, r, t->extra->fail_text, sizeof t->extra->fail_text);
    t->flags |= GPI_CELL_TEXT;
}

/* A thread of the user's own has no context before it calls CUDA: lends it the first device's, for
 * this call. */
static bool lend_context(struct gpi_cuda *c)
{
    gpi_cu_context current = NULL;

    return c->bound && c->call.context_get(&current) == GPI_CU_OK && !current &&
           c->call.context_push(c->first) == GPI_CU_OK;
}

int gpud_cuda_stream_sync(gpud_task *t, void *stream)
{
    struct gpi_cuda *c = t ? t->worker->cuda : NULL;
    struct pace pace = { .began = gpi_now() };
    gpi_cu_context popped;
    gpi_cu_result r;
    bool lent;
    int code;

    if (!t)
        return GPUD_EINVAL;
    if (!c || c->fake)
        return GPUD_ENOTSUP;
    lent = lend_context(c);
    code = await_stream(t, stream, &pace, &r);
    if (lent)
        (void)c->call.context_pop(&popped);
    if (pace.slack > 0)
        (void)prctl(PR_SET_TIMERSLACK, (unsigned long)pace.slack);
    if (code == GPUD_EDEVICE)
        note(t, r);
    return code;
}
