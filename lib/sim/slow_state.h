/* SPDX-License-Identifier: MIT */
/*
 * slow_state.h - the records of the slow model.  Private to its files.
 *
 * A place is a device, a job a task, a hand a worker.
 */
#ifndef GPI_SIM_SLOW_STATE_H
#define GPI_SIM_SLOW_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/slow.h"

#define NEVER UINT64_MAX
#define NONE UINT32_MAX
#define SETS 8u

struct place {
    struct gpi_plan_has has;
    enum gpi_plan_may may;
    uint64_t foreign;
    uint32_t load;
    bool in_set[SETS];
};

enum state { GONE, WAITS, RUNS };
enum grant { NO_GRANT, GRANTED, REVOKED };

struct job {
    enum state state;
    enum grant grant;
    struct gpi_plan_task what;
    struct gpi_request request[GPI_VARIANTS];
    uint64_t promise;
    uint32_t variant, n_devices;
    uint16_t device[16];
    uint64_t begun, end_by, plausible, queued_at;
    uint64_t beyond[16]; /* its request, on each device */
    uint32_t hand;
    bool told;  /* that it is hopeless */
    bool ahead; /* the caller may have older tasks of the class */
};

struct times {
    uint32_t n;
    uint64_t last[32], p50;
};

struct class
{
    struct gpi_plan_class set;
    uint32_t n;
    uint64_t ratio[32];
    struct times boot, run;
    uint64_t again;
    bool paused, to_load;
    uint32_t behind; /* tasks in the caller's queue */
    uint64_t mean;   /* how long one of them takes; 0 = unknown */
};

enum hand_state { NO_HAND, BOOTS, UP, LEAVES, UNLOADS };

struct hand {
    enum hand_state state;
    uint32_t class, job;
    struct gpi_request need;
    uint32_t n_devices;
    uint16_t device[16];
    uint64_t since, used, keep; /* since it is up, or boots; idle since; for this long */
    uint64_t beyond[16];
    bool leaves; /* its class or a device of it drains */
    bool dies;   /* it goes without an order */
};

struct gpi_slow {
    struct gpi_plan_settings set;
    uint64_t now;
    struct hand *hand;
    struct place *place;
    uint32_t n_places;
    struct job *job; /* of tasks; then of each class its load task */
    uint32_t n_jobs;
    uint32_t happened; /* since the last decision: a bit per enum gpi_promise */
    struct class *class;
    uint32_t *order, n_order; /* the first tasks of the waiting shapes, in order */
    uint32_t *head;           /* index in `order` of the head of each device; NONE */
    uint32_t culprit;
    bool *lacks; /* of each in `order`: nothing but CPU slots or host memory */
    bool *can;   /* of each in `order`: it could start */
};

struct used {
    uint64_t share, memory, end, plausible, firm;
    uint32_t runs, n_firm;
    uint32_t alone, firm_alone; /* with all of its memory; of these, workers that stay */
};

static inline bool gpi_slow_is_on(const struct hand *h, uint32_t d)
{
    for (uint32_t i = 0; h->state != NO_HAND && i < h->n_devices; i++)
        if (h->device[i] == d)
            return true;
    return false;
}

/* slow.c */
uint64_t gpi_slow_plausible(const struct gpi_slow *m, const struct job *j);
int gpi_slow_compare(const void *a, const void *b);
uint32_t gpi_slow_hands(const struct gpi_slow *m, uint32_t class);
uint32_t gpi_slow_least_hands(const struct class *c);
uint64_t gpi_slow_all_usable(const struct gpi_slow *m, uint32_t d);
bool gpi_slow_is_hopeless(const struct gpi_slow *m, const struct job *j);
void gpi_slow_count_loads(struct gpi_slow *m);

/* slow_devices.c */
uint64_t gpi_slow_usable(const struct gpi_slow *m, uint32_t d);
uint64_t gpi_slow_beyond(const struct hand *h, uint32_t d);
bool gpi_slow_stays(const struct gpi_slow *m, const struct hand *h);
struct used gpi_slow_used(const struct gpi_slow *m, uint32_t d);
bool gpi_slow_is_clear(const struct gpi_slow *m, const struct place *p);
/* The share of the device that the worker would use beside another one of the class for the
 * request. */
uint32_t gpi_slow_share_of(const struct gpi_slow *m, const struct hand *h, uint32_t class,
                           const struct gpi_request *r, uint32_t d);
/* Whether the CPU slots let no further worker for the request run beside those of its class. */
bool gpi_slow_is_staffed(const struct gpi_slow *m, uint32_t class, const struct gpi_request *r);
bool gpi_slow_may_use(const struct gpi_slow *m, uint32_t class, const struct gpi_request *r,
                      uint32_t d);
bool gpi_slow_has_memory(const struct gpi_slow *m, uint32_t class, const struct gpi_request *r,
                         uint32_t d);
bool gpi_slow_fits(const struct gpi_slow *m, uint32_t class, const struct gpi_request *r,
                   uint32_t d);
uint32_t gpi_slow_queued(const struct gpi_slow *m, uint32_t class);
bool gpi_slow_wants(const struct gpi_slow *m, uint32_t class);
bool gpi_slow_begins(const struct gpi_slow *m, const struct job *j);
bool gpi_slow_suits(const struct gpi_slow *m, const struct hand *h, const struct job *j);
bool gpi_slow_does(const struct gpi_slow *m, const struct hand *h, const struct job *j);
bool gpi_slow_is_warm(const struct gpi_slow *m, const struct job *j, uint32_t d);

/* slow_order.c */
bool gpi_slow_in_reach(const struct gpi_slow *m, const struct job *j, const struct gpi_request *r);
void gpi_slow_find_heads(struct gpi_slow *m);
bool gpi_slow_has_run(const struct gpi_slow *m);
bool gpi_slow_uses(const struct gpi_slow *m, uint32_t task, uint32_t d);
/* Whether it keeps devices for the variant, if it has `more`: enough of them do, or workers go for
 * it. */
bool gpi_slow_claims(const struct gpi_slow *m, const struct job *j, uint32_t variant,
                     uint32_t more);
bool gpi_slow_strictly_first(const struct gpi_slow *m, uint32_t i);
bool gpi_slow_needs_host(const struct job *j);
uint64_t gpi_slow_promise_of(const struct gpi_slow *m, uint32_t head);
uint64_t gpi_slow_takes(const struct gpi_slow *m, const struct job *j);
bool gpi_slow_is_head(const struct gpi_slow *m, uint32_t i);
bool gpi_slow_host_has(const struct gpi_slow *m, uint32_t i, const struct gpi_request *r,
                       bool for_life);
/* The first that boots on the device: by age, but one that no worker serves comes before a further
 * worker.  It passes no class of another kind.  `walk` takes them by age, until it is true. */
uint32_t gpi_slow_memory_head(const struct gpi_slow *m, uint32_t d);
bool gpi_slow_walk(const struct gpi_slow *m, uint32_t *head, uint32_t k, bool served);
bool gpi_slow_is_open(const struct gpi_slow *m, uint32_t i, uint32_t d, bool rest);
bool gpi_slow_serves(const struct gpi_slow *m, const struct hand *h, const struct job *j);
bool gpi_slow_could_work(const struct gpi_slow *m, uint32_t i);
bool gpi_slow_may_work(const struct gpi_slow *m, uint32_t i, const struct hand *h);
bool gpi_slow_may_boot(const struct gpi_slow *m, uint32_t i, const struct gpi_request *r,
                       uint32_t d);
bool gpi_slow_could_start(struct gpi_slow *m, uint32_t i);

/* slow_evict.c */
/* Whether workers could go, so that it would have devices. */
bool gpi_slow_could_evict(const struct gpi_slow *m, uint32_t i);
/* Whether no worker that stays does for the task, or will. */
bool gpi_slow_is_cold(const struct gpi_slow *m, uint32_t task);
/* Whether a worker does for it, or will. */
bool gpi_slow_is_served(const struct gpi_slow *m, uint32_t task);
/* Whether it is cold, and has waited for max_wait. */
bool gpi_slow_is_pressed(const struct gpi_slow *m, uint32_t task);
/* Whether the caller may have older tasks of the worker's class than the model knows. */
bool gpi_slow_is_ahead(const struct gpi_slow *m, const struct hand *h);
/* Whether the worker, which has a task, may be, or must be, in the way of a pressed task.  `heads`:
 * only of one that would have the device. */
bool gpi_slow_is_due(const struct gpi_slow *m, uint32_t hand, bool heads);
/* Whether a pressed task may lack a run, and the worker may go for it. */
bool gpi_slow_run_is_due(const struct gpi_slow *m, uint32_t hand);
bool gpi_slow_must_be_due(const struct gpi_slow *m, uint32_t hand);
/* Whether runs of idle workers could be free for it.  It lacks nothing else. */
bool gpi_slow_could_free_run(const struct gpi_slow *m, uint32_t i);
/* Whether the worker, which leaves, may do so for a task that needs its place, or its run. */
bool gpi_slow_goes_for_place(struct gpi_slow *m, uint32_t hand);
bool gpi_slow_goes_for_run(struct gpi_slow *m, uint32_t hand);

/* slow_grants.c */
void gpi_slow_revoke(struct job *j);
const char *gpi_slow_how_breaks(const struct gpi_slow *m, const struct gpi_plan_action *a,
                                uint32_t i);
const char *gpi_slow_revoke_breaks(struct gpi_slow *m, const struct gpi_plan_action *a);
const char *gpi_slow_grants_break(struct gpi_slow *m);

#endif
