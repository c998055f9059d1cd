/* SPDX-License-Identifier: MIT */
/* external.h - what tests of external work share: its class, and the calls about grants. */
#ifndef T_EXTERNAL_H
#define T_EXTERNAL_H

#include "pooled.h"

#include <string.h>

#define T_GIB(n) ((uint64_t)(n) << 30)

/* A pooled dispatcher on fakes with the external class "work". */
static inline gpud_dispatcher *outside(const char *devices, const struct gpud_options *of_class)
{
    gpud_dispatcher *d;

    t_init(NULL, t_no_work, NULL);
    d = T_CREATE(.pooled = 1, .devices = devices, .cpus = 4, .max_workers = 8, .queue_size = 64);
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL, .options = of_class));
    return d;
}

#define WORK(d, t, ...) t_submit((d), T_TASK(.tag = (t), .class_name = "work", __VA_ARGS__))

/* Polls until the task has its event number `n`, from 0, of a kind; of REVOKED, with this
 * request. */
static inline const struct gpud_event *t_event_with(gpud_dispatcher *d, struct t_log *log,
                                                    uint32_t kind, uint64_t tag, size_t n,
                                                    uint32_t how)
{
    for (uint64_t began = t_now(); t_now() - began < T_PATIENCE;) {
        size_t left = n;
        for (size_t i = 0; i < log->count; i++)
            if (log->list[i].kind == kind && log->list[i].tag == tag &&
                log->list[i].revoke == how && !left--)
                return &log->list[i];
        (void)t_poll(d, log, T_MS(100));
    }
    T_FAIL("task %llu got no event %s", (unsigned long long)tag, gpud_event_name(kind));
}

static inline const struct gpud_event *t_event_of(gpud_dispatcher *d, struct t_log *log,
                                                  uint32_t kind, uint64_t tag, size_t n)
{
    return t_event_with(d, log, kind, tag, n, 0);
}

static inline struct gpud_event granted(gpud_dispatcher *d, struct t_log *log, uint64_t tag,
                                        size_t n)
{
    return *t_event_of(d, log, GPUD_EVENT_GRANTED, tag, n);
}

/* The event REVOKED number `n` of the task with this request, which has this reason.  One that is
 * not read is replaced by the next one. */
static inline struct gpud_event revoked(gpud_dispatcher *d, struct t_log *log, uint64_t tag,
                                        size_t n, uint32_t why, uint32_t how)
{
    const struct gpud_event *e = t_event_with(d, log, GPUD_EVENT_REVOKED, tag, n, how);

    T_TEXT(gpud_revoked_name(e->revoked), gpud_revoked_name(why));
    return *e;
}

static inline void started(gpud_dispatcher *d, const struct gpud_event *g)
{
    T_OK(gpud_dispatcher_started(d, g->task_id, g->attempt, NULL, NULL));
}

/* Waits for the task's grant number `n`, and starts it. */
static inline struct gpud_event start_granted(gpud_dispatcher *d, struct t_log *log, uint64_t tag,
                                              size_t n)
{
    const struct gpud_event g = granted(d, log, tag, n);

    started(d, &g);
    return g;
}

#define T_END(...) (&(struct gpud_end){ .struct_size = sizeof(struct gpud_end), __VA_ARGS__ })
#define ENDED(d, g, name, ...) ended((d), (g), T_END(.outcome = GPUD_OUTCOME_##name, __VA_ARGS__))

static inline void ended(gpud_dispatcher *d, struct gpud_event g, const struct gpud_end *end)
{
    T_OK(gpud_dispatcher_ended(d, g.task_id, g.attempt, end, NULL));
}

#define T_ADOPTION(...) \
    (&(struct gpud_adoption){ .struct_size = sizeof(struct gpud_adoption), __VA_ARGS__ })
#define T_PROC(...) (&(struct gpud_proc){ .struct_size = sizeof(struct gpud_proc), __VA_ARGS__ })

#endif
