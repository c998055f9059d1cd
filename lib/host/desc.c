/* SPDX-License-Identifier: MIT */
/* desc.c - descriptions of tasks: read from records of any version, and checked.        [C15] */
#include <string.h>

#include "base/failure.h"
#include "base/versioned.h"
#include "host/task.h"
#include "sched/retry.h"

static int check_label(const char *label, struct gpud_error *e)
{
    if (!label || strnlen(label, GPI_LABEL_SIZE) < GPI_LABEL_SIZE)
        return 0;
    return gpi_fail(e, GPUD_ELABEL, 0, "label",
                    "task.label \"%.*s...\" is too long, the maximum is %d bytes",
                    (int)GPI_LABEL_SIZE - 1, label, (int)GPI_LABEL_SIZE - 1);
}

static int check_ranges(const struct gpud_task_desc *t, struct gpud_error *e)
{
    const struct {
        const char *field;
        uint32_t value, most;
    } ranges[] = {
        { "max_attempts", t->max_attempts, UINT8_MAX },
        { "retry_causes", t->retry_causes, GPI_RETRY_ALL },
        { "awaited", t->awaited, 1 },
    };

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].value > ranges[i].most)
            return gpi_fail_most(e, "task.", ranges[i].field, ranges[i].value, ranges[i].most);
    if (t->order > INT64_MAX)
        return gpi_fail_most(e, "task.", "order", t->order, INT64_MAX);
    return 0;
}

int gpi_desc_check(const struct gpud_task_desc *t, struct gpud_error *e)
{
    int r;

    if (t->size && !t->data)
        return gpi_fail(e, GPUD_EINVAL, 0, "data", "task.data is NULL, but task.size is %llu",
                        (unsigned long long)t->size);
    r = check_label(t->label, e);
    return r ? r : check_ranges(t, e);
}

int gpi_desc_read(struct gpud_task_desc *to, const void *from, struct gpud_error *e)
{
    uint32_t given;
    int r;

    memcpy(&given, from, sizeof given);
    r = gpi_versioned_read(to, sizeof *to, from, GPI_DESC_LEAST);
    return r ? gpi_fail_size(e, r, "task", given, sizeof *to) : gpi_desc_check(to, e);
}

/* A source of run may write a shorter record, of an older version. */
static int check_length(const struct gpi_offer *o, uint32_t size, struct gpud_error *e)
{
    if (size == o->stride || (o->fed && size < o->stride))
        return 0;
    if (o->fed)
        return gpi_fail(e, GPUD_ESTRUCT, 0, "struct_size",
                        "task.struct_size is %u, the maximum is %u (gpud_callbacks.task_size)",
                        size, o->stride);
    return gpi_fail(e, GPUD_ESTRUCT, 0, "struct_size",
                    "task.struct_size is %u, expected %u as in tasks[0]", size, o->stride);
}

int gpi_desc_offered(const struct gpi_offer *o, size_t i, struct gpud_task_desc *own,
                     const struct gpud_task_desc **ret, struct gpud_error *e)
{
    const char *at = (const char *)o->tasks + i * o->stride;
    uint32_t size;
    int r;

    memcpy(&size, at, sizeof size);
    r = check_length(o, size, e);
    if (r)
        return r;
    *ret = size == sizeof *own ? (const void *)at : own;
    r = *ret == own ? gpi_desc_read(own, at, e) : gpi_desc_check(*ret, e);
    if (r == 0 && o->fed && (*ret)->awaited)
        return gpi_fail(e, GPUD_EINVAL, 0, "awaited",
                        "task.awaited is 1, expected 0: no thread knows the id of a source's task");
    return r;
}
