/* SPDX-License-Identifier: MIT */
/* pooled.h - what tests of pooled dispatchers share: classes and requests. */
#ifndef T_POOLED_H
#define T_POOLED_H

#include "scripted.h"

#include <string.h>

#define T_CLASS(...) (&(struct gpud_class){ .struct_size = sizeof(struct gpud_class), __VA_ARGS__ })
#define T_REQUEST(...) \
    (&(struct gpud_request){ .struct_size = sizeof(struct gpud_request), __VA_ARGS__ })

static inline void add(gpud_dispatcher *d, const struct gpud_class *class)
{
    struct gpud_error e = GPUD_ERROR_INIT;

    if (gpud_dispatcher_class_add(d, class, &e))
        T_FAIL("class_add: %s: %s: %s", gpud_error_name(e.code), e.field, e.text);
}

/* Returns the row of the class; there are 32 classes at most. */
static inline struct gpud_class_stats t_class(gpud_dispatcher *d, const char *name)
{
    struct gpud_class_stats rows[32];
    const size_t most = sizeof(rows) / sizeof(*rows);

    for (size_t i = 0; i < most; i++)
        rows[i] = (struct gpud_class_stats)GPUD_CLASS_STATS_INIT;
    T_CMP(gpud_dispatcher_classes(d, rows, most), <=, most);
    for (size_t i = 0; i < most; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i];
    T_FAIL("no row of class %s", name);
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
