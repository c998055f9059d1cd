/* SPDX-License-Identifier: MIT */
/*
 * external.h - external work in the host: tasks that the host's own code runs, on devices that the
 * core grants.
 *
 * Such a task is QUEUED in its record until it has its outcome.  The core knows whether it waits,
 * is granted, or has started.  Its grant record has the facts that events and calls need.
 *
 *   grants.c    grants as the core orders them, and the events GRANTED and REVOKED
 *   external.c  the calls about granted tasks, and their outcomes
 *   adopt.c     work that runs already
 *   endings.c   the texts of these outcomes
 *   families.c  the processes of a task, among those that a device lists
 */
#ifndef GPI_HOST_EXTERNAL_H
#define GPI_HOST_EXTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "gpudispatch/external.h"
#include "host/dispatcher.h"
#include "host/event.h"
#include "host/task.h"
#include "sched/sched.h"

/* The entries of one kind in the ring, oldest first: some are skipped, and then the last one is
 * delivered, if an event waits. */
struct gpi_entries {
    uint32_t skipped;
    bool waits;
};

/* By the index of a task.  The entries of the ring outlive the task. */
struct gpi_grant {
    uint32_t number; /* of its present grant, or of held work; 0: none */
    uint32_t place;  /* among the tasks that have devices */
    uint32_t variant, n_devices;
    uint16_t device[GPI_DEVICES];
    uint64_t since;  /* when it was granted; from its start on, when it started */
    uint32_t pid, session; /* of its processes; 0: none is known */
    struct gpi_entries granted, revoked;
    /* The event REVOKED that waits. */
    uint32_t revoked_number, why, how;
    struct gpi_device_set revoked_on;
    uint64_t by;
};

/* How a granted task has ended, as the caller saw it.  The outcome takes the memory. */
struct gpi_ending_outside {
    uint32_t task;
    enum gpi_ended how;
    int32_t code;
    uint64_t ended_at;
    struct gpi_detail *detail;
    void *result; /* malloc; NULL: none */
    uint64_t result_size;
};

/* A task that runs already. */
struct gpi_adopted {
    struct gpi_sched_adoption core;
    uint16_t device[GPI_DEVICES];
    uint32_t pid, session;
};

static inline bool gpi_class_is_external(const struct gpi_class *c)
{
    return c->plan.residence == GPI_EXTERNAL && c->name && *c->name;
}

static inline bool gpi_task_is_external(const gpud_dispatcher *d, const struct gpi_task *t)
{
    return d->outside.of && gpi_class_is_external(&d->class[t->class]);
}

static inline bool gpi_grant_has(const struct gpi_grant *g, uint32_t device)
{
    for (uint32_t i = 0; i < g->n_devices; i++)
        if (g->device[i] == device)
            return true;
    return false;
}

/* The host has named processes of the task. */
static inline bool gpi_family_known(const struct gpi_grant *g)
{
    return g->pid || g->session;
}

/* grants.c */
/* Makes room for grants, once.  Returns 0, or -1 without memory. */
int gpi_grants_init(gpud_dispatcher *d);
void gpi_grants_fini(gpud_dispatcher *d);
/* Actions of the core. */
void gpi_grant_begin(gpud_dispatcher *d, const struct gpi_sched_action *a);
void gpi_grant_on(gpud_dispatcher *d, const struct gpi_sched_action *a);
void gpi_grant_revoke(gpud_dispatcher *d, const struct gpi_sched_action *a);
/* The task runs already: it has these devices. */
void gpi_grant_take_over(gpud_dispatcher *d, uint32_t task, const struct gpi_adopted *a);
/* The task has no devices any more, if it had any. */
void gpi_grant_over(gpud_dispatcher *d, uint32_t task);
/* Its events that wait are not delivered.  But the end of a grant is, unless the record goes: the
 * next event may grant its devices to another task. */
void gpi_grant_silence(gpud_dispatcher *d, uint32_t task);
void gpi_grant_forget(gpud_dispatcher *d, uint32_t task); /* the record goes */
/* Fills the note for an entry of the ring.  Returns false if the entry is to be skipped. */
bool gpi_grant_read(gpud_dispatcher *d, uint32_t entry, struct gpi_note *ret);
/* Counts the tasks of the class that have devices and no outcome. */
uint32_t gpi_grants_of(const gpud_dispatcher *d, uint32_t class);

/* external.c */
int gpi_external_started(gpud_dispatcher *d, uint64_t id, uint32_t attempt,
                         const struct gpud_proc *proc, struct gpud_error *e);
int gpi_external_decline(gpud_dispatcher *d, uint64_t id, uint32_t attempt, uint64_t not_before,
                         struct gpud_error *e);
int gpi_external_progress(gpud_dispatcher *d, uint64_t id, uint32_t attempt, double fraction,
                          const char *text, struct gpud_error *e);
int gpi_external_ended(gpud_dispatcher *d, uint64_t id, uint32_t attempt,
                       const struct gpud_end *end, struct gpud_error *e);
/* Returns EINVAL unless the time is in this range. */
int gpi_external_check_time(const char *field, uint64_t at, uint64_t from, uint64_t now,
                            struct gpud_error *e);
/* Hands a task to the core that was accepted just now, and runs already. */
void gpi_external_enter(gpud_dispatcher *d, struct gpi_task *t, const struct gpi_sched_task *what,
                        const struct gpi_adopted *a);
/* The core has ended an attempt of it. */
void gpi_external_over(gpud_dispatcher *d, const struct gpi_sched_end *e);
/* The core knows the work that had started no more: CLOSE with LEAVE. */
void gpi_external_leave(gpud_dispatcher *d);

/* adopt.c */
int gpi_external_take_over(gpud_dispatcher *d, const struct gpud_task_desc *task,
                       const struct gpud_adoption *adoption, const struct gpud_proc *proc,
                       uint64_t *ret_id, struct gpud_error *e);

/* endings.c */
/* Writes the text of an attempt that has started, before the record loses its limit. */
void gpi_ending_words(gpud_dispatcher *d, struct gpi_task *t, const struct gpi_sched_end *e,
                      const struct gpi_ending_outside *x);

/* families.c */
/* Returns the index of the task that has this process, or GPI_NONE. */
uint32_t gpi_family_of(const gpud_dispatcher *d, uint32_t pid);

#endif
