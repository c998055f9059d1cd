/* SPDX-License-Identifier: MIT */
/*
 * work.h - the tasks that the dispatcher has, by its ids and by those of the store.
 *
 * A task of the store may have several: one that was withdrawn waits for its outcome while the task
 * is submitted again.  Only the last one is found by the task.
 */
#ifndef GPQ_AGENT_WORK_H
#define GPQ_AGENT_WORK_H

#include "queue/agent/agent.h"

enum gpq_phase {
    GPQ_INSIDE,    /* waits in the dispatcher */
    GPQ_GRANTED,   /* its devices are granted, and its claim is not committed */
    GPQ_STARTING,  /* claimed; its runner is not started */
    GPQ_RUNS,      /* its runner was started, or adopted */
    GPQ_ENDED,     /* the runner has ended; the store does not know it yet */
    GPQ_WITHDRAWN, /* cancelled in the dispatcher, since the store has it no more */
};

struct gpq_unit {
    uint64_t id;   /* of the dispatcher */
    uint64_t task; /* of the store */
    uint32_t shape, phase;
    uint32_t grant;   /* number of the grant */
    uint32_t attempt; /* of the store */
    bool evicted;     /* its device is drained at once: it returns to its place */
    bool faulty;      /* ... and it is not a person who has drained it */
    bool cancelled;   /* its running attempt is cancelled */
    bool alone;       /* it is not in the books of the dispatcher: its adoption was refused, or it
                         waits for its claim */
    bool stopped;     /* its command ended after a stop (run.h), and is LOST unless the dispatcher
                         judges otherwise */
    bool stuck;       /* processes of its killed runner did not end at once */
    bool shell;       /* its command is a line that a shell runs */
    bool lost;        /* its grant was over before its start was reported */
    bool gone;        /* the dispatcher has given its outcome, and knows it no more */
    bool concluded;   /* its end is noted without that outcome */
    bool decided;     /* the dispatcher's outcome came while its runner lives (phase KILL) */
    uint32_t verdict; /* that outcome */
    struct gpq_class *class; /* of workers; NULL: it is a command */
    void *result;     /* that its worker has set; freed with it */
    size_t result_size;
    uint64_t limit;   /* of the task, where the dispatcher does not enforce it, or for its worker */
    char *devices;    /* of the grant, or of its worker, as the store keeps it: JSON */
    struct gpq_run_id run;
    struct gpq_watched runner; /* pidfd; fd -1: none */
    uint16_t port;             /* of its command (ports.h); 0 = none */
    pid_t child;               /* the runner, if this agent has started it; else 0 */
    int32_t status;            /* of the end: exit status, or minus the signal */
    uint64_t ready;            /* since when the task was READY; 0 = not known */
    uint64_t allowed;          /* its time limit, ns; 0 = none */
    uint64_t since;            /* wall time of the start of its command */
    uint64_t started, ended;   /* the same, of its end */
    bool oom;                  /* it ended for want of memory (oom.h) */
    bool outputs;              /* durable, to be published */
    char *stamp;               /* of a success (stamp.h) */
    char *said;                /* the last line that it printed before a bad end (said.h) */
    char text[256];            /* why it ended so, if the runner knows better than the dispatcher */
    struct gpq_unit *next_id, *next_task;
};

int gpq_work_open(struct gpq_agent *a);
void gpq_work_close(struct gpq_agent *a);

/* Each returns NULL for none; gpq_work_add without memory. */
struct gpq_unit *gpq_work_add(struct gpq_agent *a, uint64_t id, uint64_t task);
struct gpq_unit *gpq_work_by_id(struct gpq_agent *a, uint64_t id);
struct gpq_unit *gpq_work_of(struct gpq_agent *a, uint64_t task);
/* Unlinks it by its task: another one may be added. */
void gpq_work_withdrawn(struct gpq_agent *a, struct gpq_unit *u);
/* It has another number, which is that of the dispatcher. */
void gpq_work_renumber(struct gpq_agent *a, struct gpq_unit *u, uint64_t id);
void gpq_work_remove(struct gpq_agent *a, struct gpq_unit *u);
/* How many are started and not stored: STARTING, RUNS or ENDED. */
size_t gpq_work_started(const struct gpq_agent *a);
/* Calls fn for each; fn may remove it. */
void gpq_work_each(struct gpq_agent *a,
                   void (*fn)(struct gpq_agent *a, struct gpq_unit *u, void *user), void *user);

#endif
