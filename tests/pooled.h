/* SPDX-License-Identifier: MIT */
/* pooled.h - what tests of pooled dispatchers share: classes and requests. */
#ifndef T_POOLED_H
#define T_POOLED_H

#include "scripted.h"

#define T_CLASS(...) (&(struct gpud_class){ .struct_size = sizeof(struct gpud_class), __VA_ARGS__ })
#define T_REQUEST(...) \
    (&(struct gpud_request){ .struct_size = sizeof(struct gpud_request), __VA_ARGS__ })

static inline void add(gpud_dispatcher *d, const struct gpud_class *class)
{
    struct gpud_error e = GPUD_ERROR_INIT;

    if (gpud_dispatcher_class_add(d, class, &e))
        T_FAIL("class_add: %s: %s: %s", gpud_error_name(e.code), e.field, e.text);
}

/* Why a task like this would not start now: the first reason. */
static inline struct gpud_reason t_reason(gpud_dispatcher *d, const struct gpud_task_desc *task)
{
    struct gpud_reason row = GPUD_REASON_INIT;
    size_t n;

    T_OK(gpud_dispatcher_explain(d, 0, task, &row, 1, &n, NULL));
    return row;
}

#endif
