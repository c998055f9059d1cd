/* SPDX-License-Identifier: MIT */
/* giving.h - between the scenarios: how tasks are given, and their outcomes accounted for. */
#ifndef FAULT_GIVING_H
#define FAULT_GIVING_H

#include <gpudispatch/gpudispatch.h>

#include "scenario.h"

#define MS(n) ((uint64_t)(n) * 1000000u)
#define BIT(name) (1u << GPUD_OUTCOME_##name)
#define KEPT_MAX 64u
#define PATIENCE_S 20

enum what { ECHO, SOFT, HARD, CRASH, CRASH_ONCE, ORPHANS, NAP, UNTIL_CANCELLED, LOUD, FAIL_ONCE };

struct order {
    uint64_t tag;
    uint32_t what, size; /* of the result */
};

/* What a setup is given. */
struct info {
    uint32_t fails, surroundings;
};

struct host {
    const struct scenario *s;
    struct report *r;
    gpud_dispatcher *d;
    gpud_shared *shared;
    struct info info;
    bool strict, closed, keep;
    uint64_t now, until;
    _Atomic uint32_t outcomes;
    _Atomic uint32_t unheard;
    uint32_t progress, n_kept;
    uint32_t storm_tasks;
    uint64_t last_id;
    struct gpud_event kept[KEPT_MAX];
    char spawner[480];
};

uint64_t now(void);
__attribute__((format(printf, 2, 3))) void wrong(struct report *r, const char *format, ...);
/* Codes that a call may answer with when a request to the system was refused. */
void check_refusal(struct host *h, const char *call, int code, const struct gpud_error *e);

/* Gives a task, which may end so; 0: it was not taken. */
uint64_t give(struct host *h, struct gpud_task_desc *t, uint64_t wait, unsigned may);
uint64_t submit(struct host *h, uint64_t tag, enum what what, uint32_t size, uint64_t limit,
                unsigned may);
/* A source has given one; and the last of its n was not taken. */
void expect(struct host *h, uint64_t tag, uint32_t size, unsigned may);
void expect_no_more(struct host *h, uint64_t n);

void check_result(struct host *h, const struct gpud_event *e);
/* Waiting threads tell of theirs while others poll. */
void on_outcome(struct host *h, const struct gpud_event *e);
void unheard(struct host *h, uint64_t tag, int code); /* wait for it gave up */
/* polls once; false at the end of all events */
bool look(struct host *h, uint64_t wait);
void collect(struct host *h, uint32_t n);
void finish(struct host *h, uint32_t how, uint64_t limit);
/* Kept events: the first few while the dispatcher lives, the others later. */
void release(struct host *h, uint32_t left);
void count_lost(struct host *h, uint32_t n);

/* The worker's side: "fault" and "batch"; byte i of a task's result. */
extern const struct gpud_definition definitions[2];
unsigned char byte_of(uint64_t tag, uint64_t i);

void work_wait(struct host *h), work_fd(struct host *h), work_batch(struct host *h),
    work_exec(struct host *h), work_monitor(struct host *h);
void tune_batch(struct host *h, struct gpud_options *o),
    tune_surroundings(struct host *h, struct gpud_options *o),
    tune_exec(struct host *h, struct gpud_options *o),
    tune_own(struct host *h, struct gpud_options *o);
const char *bad_surroundings(const gpud_worker *w);

#endif
