/* SPDX-License-Identifier: MIT */
/*
 * scenario.h - small whole programs, from gpud_init to gpud_fini, that account for every task.
 *
 * A scenario runs in a process of its own (the host).  It ends with 0 and its report filled; what
 * it finds wrong is in the report's text.
 */
#ifndef FAULT_SCENARIO_H
#define FAULT_SCENARIO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct report {
    _Atomic uint64_t accepted, refused, delivered;
    _Atomic uint32_t lost, doubled, wrong, leaked, hung;
    _Atomic uint32_t ended; /* came to its end */
    char text[400];         /* the first thing that was wrong */
};

struct host;
struct gpud_options;
struct scenario {
    const char *name;
    uint32_t devices, drive;
    uint64_t grace;
    uint32_t setup_fails; /* so many first lives of slot 0 fail in setup */
    void (*work)(struct host *h);
    void (*tune)(struct host *h, struct gpud_options *o); /* or NULL */
    bool light; /* fewer kills, unless --long: what it shares with others is tried there */
    bool other_program; /* no gpud_init: a spawner of its own */
};
extern const struct scenario scenarios[];
extern const unsigned n_scenarios;
/* as many tasks as asked for, one after the other or in heaps */
extern const struct scenario storm_scenarios[2];

/* In this program when it has been executed as a worker. */
_Noreturn void scenario_worker(void);

/* Runs it.  `strict`: no fault that may change an outcome is injected.  Does not return. */
_Noreturn void scenario_host(const struct scenario *s, struct report *r, bool strict,
                             uint32_t storm_tasks);

#endif
