/* SPDX-License-Identifier: MIT */
/* look.h - one look at the states: waiting.c finds the reasons, and states.c makes the rows. */
#ifndef GPQ_AGENT_LOOK_H
#define GPQ_AGENT_LOOK_H

#include "queue/agent/states.h"

enum { GPQ_CLASS_NAME = 64 };

/* The state of a device, by the reasons of waiting tasks. */
struct gpq_told {
    char wanted_by[GPQ_CLASS_NAME]; /* class for which a worker leaves */
    struct gpud_reason foreign;     /* FOREIGN, or none */
    uint64_t kept_for;              /* task for which it stays free; 0 = none */
    uint32_t kept_shape, gpus;      /* of that task */
    bool in_way;                    /* something on it is in the way of the present task */
};

struct gpq_look {
    struct gpq_spans *spans;
    struct gpud_device_info *device;
    struct gpq_told *told; /* of each device */
    int n;                 /* devices */
};

/* -1: there is no such device. */
int gpq_look_index(const struct gpq_look *l, const char *device);

/* Sees the reasons of waiting tasks, and notes the states of devices that follow from them. */
void gpq_waiting_look(struct gpq_agent *a, struct gpq_look *l);

#endif
