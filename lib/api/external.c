/* SPDX-License-Identifier: MIT */
/* external.c - the exported verbs about external work: validate, delegate. */
#include "host/external.h"

#include "api/check.h"
#include "base/failure.h"
#include "base/versioned.h"

#define RESULT_MOST (64ull << 20)
/* The most that one adopted task may have: the ledgers of the core add these up. */
#define CPUS_MOST (1u << 20)
#define MEMORY_MOST (1ull << 50)
/* The numbers of its later grants rise from here: 0 is no number. */
#define ATTEMPT_MOST INT32_MAX

/* NULL: none is known. */
static int read_proc(struct gpud_proc *ret, const struct gpud_proc *given, struct gpud_error *e)
{
    int r = 0;

    *ret = (struct gpud_proc)GPUD_PROC_INIT;
    if (given)
        r = gpi_versioned_read(ret, sizeof *ret, given, offsetof(struct gpud_proc, session));
    if (r)
        return gpi_fail_size(e, r, "proc", given->struct_size, sizeof *ret);
    if (ret->reserved)
        return gpi_fail_most(e, "proc.", "reserved", ret->reserved, 0);
    if (ret->pid > INT32_MAX)
        return gpi_fail_most(e, "proc.", "pid", ret->pid, INT32_MAX);
    return ret->session > INT32_MAX
               ? gpi_fail_most(e, "proc.", "session", ret->session, INT32_MAX) : 0;
}

int gpud_dispatcher_started(gpud_dispatcher *d, uint64_t task_id, uint32_t attempt,
                            const struct gpud_proc *proc, struct gpud_error *reterr)
{
    struct gpud_proc own;
    int r = gpi_check_pooled(d, reterr);

    if (r == 0)
        r = read_proc(&own, proc, reterr);
    return r ? r : gpi_external_started(d, task_id, attempt, &own, reterr);
}

int gpud_dispatcher_decline(gpud_dispatcher *d, uint64_t task_id, uint32_t attempt,
                            uint64_t not_before, struct gpud_error *reterr)
{
    const int r = gpi_check_pooled(d, reterr);

    if (r)
        return r;
    if (not_before == GPUD_NEVER)
        return gpi_fail(reterr, GPUD_EINVAL, 0, "not_before",
                        "not_before is GPUD_NEVER, expected a time: cancel the task instead");
    return gpi_external_decline(d, task_id, attempt, not_before, reterr);
}

int gpud_dispatcher_progress(gpud_dispatcher *d, uint64_t task_id, uint32_t attempt,
                             double fraction, const char *text, struct gpud_error *reterr)
{
    const int r = gpi_check_pooled(d, reterr);

    if (r)
        return r;
    if (!(fraction >= 0 && fraction <= 1))
        return gpi_fail(reterr, GPUD_EINVAL, 0, "fraction", "fraction is %g, expected 0 to 1",
                        fraction);
    return gpi_external_progress(d, task_id, attempt, fraction, text, reterr);
}

static int lacks(struct gpud_error *e, const char *field, const char *size, uint64_t value)
{
    return gpi_fail(e, GPUD_EINVAL, 0, field, "end.%s is NULL, but end.%s is %llu", field, size,
                    (unsigned long long)value);
}

static int check_end(const struct gpud_end *end, struct gpud_error *e)
{
    if (end->outcome != GPUD_OUTCOME_SUCCESS && end->outcome != GPUD_OUTCOME_ERROR &&
        end->outcome != GPUD_OUTCOME_CRASHED)
        return gpi_fail(e, GPUD_EINVAL, 0, "outcome",
                        "end.outcome is %u, expected SUCCESS, ERROR or CRASHED", end->outcome);
    if (end->outcome == GPUD_OUTCOME_SUCCESS && end->code)
        return gpi_fail(e, GPUD_EINVAL, 0, "code", "end.code is %d, expected 0 with SUCCESS",
                        end->code);
    if (end->outcome == GPUD_OUTCOME_ERROR && end->code <= 0)
        return gpi_fail(e, GPUD_EINVAL, 0, "code",
                        "end.code is %d, expected a positive one with ERROR", end->code);
    if (end->code < 0)
        return gpi_fail(e, GPUD_EINVAL, 0, "code",
                        "end.code is %d, expected 0 or a positive one with CRASHED", end->code);
    if (end->exit_kind > GPUD_EXIT_LOST)
        return gpi_fail_most(e, "end.", "exit_kind", end->exit_kind, GPUD_EXIT_LOST);
    if (end->reserved)
        return gpi_fail_most(e, "end.", "reserved", end->reserved, 0);
    if (end->result_size && !end->result)
        return lacks(e, "result", "result_size", end->result_size);
    if (end->output_size && !end->output)
        return lacks(e, "output", "output_size", end->output_size);
    if (end->result_size > RESULT_MOST)
        return gpi_fail(e, GPUD_ETOOBIG, 0, "result_size",
                        "end.result_size is %llu, the maximum is %llu",
                        (unsigned long long)end->result_size, RESULT_MOST);
    return 0;
}

int gpud_dispatcher_ended(gpud_dispatcher *d, uint64_t task_id, uint32_t attempt,
                          const struct gpud_end *end, struct gpud_error *reterr)
{
    struct gpud_end own;
    int r = gpi_check_pooled(d, reterr);

    if (r)
        return r;
    if (!end)
        return gpi_fail_null(reterr, "end");
    r = gpi_versioned_read(&own, sizeof own, end, offsetof(struct gpud_end, text));
    if (r)
        return gpi_fail_size(reterr, r, "end", end->struct_size, sizeof own);
    r = check_end(&own, reterr);
    return r ? r : gpi_external_ended(d, task_id, attempt, &own, reterr);
}

static int check_adoption(const struct gpud_adoption *a, struct gpud_error *e)
{
    const struct {
        const char *field;
        uint64_t value, most;
    } ranges[] = {
        { "attempts", a->attempts, UINT8_MAX - 1 }, { "given_up", a->given_up, 1 },
        { "share", a->share, GPI_SHARE_ALL },       { "cpus", a->cpus, CPUS_MOST },
        { "memory", a->memory, MEMORY_MOST },       { "host_memory", a->host_memory, MEMORY_MOST },
    };

    if (a->attempt == 0)
        return gpi_fail(e, GPUD_EINVAL, 0, "attempt",
                        "adoption.attempt is 0, expected the number of the grant, from 1");
    if (a->attempt > ATTEMPT_MOST)
        return gpi_fail_most(e, "adoption.", "attempt", a->attempt, ATTEMPT_MOST);
    if (a->attempts >= a->attempt)
        return gpi_fail(e, GPUD_EINVAL, 0, "attempts",
                        "adoption.attempts is %u, expected less than adoption.attempt, %u",
                        a->attempts, a->attempt);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].value > ranges[i].most)
            return gpi_fail_most(e, "adoption.", ranges[i].field, ranges[i].value, ranges[i].most);
    return 0;
}

int gpud_dispatcher_adopt(gpud_dispatcher *d, const struct gpud_task_desc *task,
                          const struct gpud_adoption *adoption, uint64_t *ret_id,
                          struct gpud_error *reterr)
{
    struct gpud_task_desc desc;
    struct gpud_adoption own;
    struct gpud_proc proc;
    int r = gpi_check_pooled(d, reterr);

    if (r)
        return r;
    if (!task || !adoption || !ret_id)
        return gpi_fail_null(reterr, !task ? "task" : !adoption ? "adoption" : "ret_id");
    r = gpi_desc_read(&desc, task, reterr);
    if (r)
        return r;
    r = gpi_versioned_read(&own, sizeof own, adoption, offsetof(struct gpud_adoption, devices));
    if (r)
        return gpi_fail_size(reterr, r, "adoption", adoption->struct_size, sizeof own);
    r = check_adoption(&own, reterr);
    if (r == 0)
        r = read_proc(&proc, own.proc, reterr);
    return r ? r : gpi_external_take_over(d, &desc, &own, &proc, ret_id, reterr);
}
