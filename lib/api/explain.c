/* SPDX-License-Identifier: MIT */
/* explain.c - the exported verbs about tasks that wait: validate, delegate. */
#include "host/explain.h"

#include "api/check.h"
#include "base/failure.h"
#include "base/versioned.h"
#include "gpudispatch/sched.h"
#include "host/task.h"

static int check_rows(const struct gpud_reason *rows, size_t n, const size_t *ret_n,
                      struct gpud_error *e)
{
    if (!ret_n)
        return gpi_fail_null(e, "ret_n");
    if (n && !rows)
        return gpi_fail(e, GPUD_EINVAL, 0, "rows", "rows is NULL, but n is %zu", n);
    if (n && !gpi_versioned_sized(rows[0].struct_size, offsetof(struct gpud_reason, task_id)))
        return gpi_fail_size(e, GPUD_ESTRUCT, "rows[0]", rows[0].struct_size, sizeof *rows);
    return 0;
}

int gpud_dispatcher_explain(gpud_dispatcher *d, uint64_t task_id,
                            const struct gpud_task_desc *task, struct gpud_reason *rows, size_t n,
                            size_t *ret_n, struct gpud_error *reterr)
{
    struct gpi_reason_rows out = { .rows = rows, .n = n };
    struct gpud_task_desc own;
    int r = gpi_check_pooled(d, reterr);

    if (r == 0)
        r = check_rows(rows, n, ret_n, reterr);
    if (r)
        return r;
    if (!task_id == !task)
        return gpi_fail(reterr, GPUD_EINVAL, 0, "task",
                        "task_id is %llu and task is %s, expected an id and NULL, or 0 and a task",
                        (unsigned long long)task_id, task ? "set" : "NULL");
    out.stride = n ? rows[0].struct_size : 0;
    r = task ? gpi_desc_read(&own, task, reterr) : 0;
    if (r == 0)
        r = gpi_explain(d, task_id, task ? &own : NULL, &out, reterr);
    if (r == 0)
        *ret_n = out.count;
    return r;
}

int gpud_dispatcher_check(gpud_dispatcher *d, const struct gpud_task_desc *task,
                          struct gpud_error *reterr)
{
    struct gpud_task_desc own;
    int r = gpi_check(d, reterr);

    if (r)
        return r;
    if (!task)
        return gpi_fail_null(reterr, "task");
    r = gpi_desc_read(&own, task, reterr);
    return r ? r : gpi_task_check(d, &own, reterr);
}
