/* SPDX-License-Identifier: MIT */
/* entry.h - the object Dispatcher, and what each file of its methods needs.  From the top:
 * dispatcher.c has the type; poll.c, submit.c, classes.c and external.c have methods; entry.c
 * calls none of them. */
#ifndef CORE_ENTRY_H
#define CORE_ENTRY_H

#include "core.h"
#include "history.h"

#define CORE_EVENTS_MAX 256

/* The name of a slot's devices as a string, made once and again when the name changes. */
struct core_name {
    char text[64];
    PyObject *string;
};

struct core_dispatcher {
    PyObject_HEAD
    gpud_dispatcher *d;
    PyObject *shared; /* a list: what option setup_shared names, here and of each class */
    struct gpud_event *events;
    struct core_name *names;
    struct core_history *history;
    uint32_t n_names;
    int wake_fd;
    int fd;
    bool pooled;
    _Atomic int users; /* calls that are inside */
    _Atomic int woken; /* wake() was called since the last poll */
    _Atomic unsigned long caller; /* the thread inside attend, as Python numbers them, or 0 */
    _Atomic unsigned long reader; /* the same, once it may read */
    _Atomic bool settling; /* it unpickles */
    _Atomic int resting;          /* the pool's thread waits for its end, not for a time */
    _Atomic uint64_t attended_at; /* when the last one ended; 0 = the pool's thread is needed */
    /* By number of the class: tasks in the library whose OUTCOME has not come out of it. */
    _Atomic uint32_t live[CORE_NUMBERS];
};

static inline struct core_state *state_of(struct core_dispatcher *self)
{
    return core_state_of(Py_TYPE((PyObject *)self));
}

/* The handle for one call; NULL and an exception after destroy. */
gpud_dispatcher *core_enter(struct core_dispatcher *self);
void core_leave(struct core_dispatcher *self);
/* None, or NULL and an exception where r is the code of a failure. */
PyObject *core_answer(struct core_dispatcher *self, int r, const struct gpud_error *why);

/* The monotonic clock in ns, the end of a timeout, and what is left of it; GPUD_NEVER stays. */
uint64_t core_now(void);
uint64_t core_until(uint64_t timeout);
uint64_t core_left(uint64_t until);

#endif
