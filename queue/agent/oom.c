/* SPDX-License-Identifier: MIT */
/* oom.c - finds attempts without memory, and gives their retries more. */
#include "queue/agent/oom.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/agent/lookup.h"
#include "queue/agent/fit.h"
#include "queue/agent/needs.h"
#include "queue/agent/said.h"

#define MIB (UINT64_C(1) << 20)
enum { KILLED = 128 + SIGKILL, SHARE_WHOLE = 10000 };

/* ---- The log ---- */

/* Each of them alone: names of errors that nothing else has. */
static const char *const names[] = {
    "CUDA_ERROR_OUT_OF_MEMORY",  "cudaErrorMemoryAllocation",  "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED", "OOM when allocating tensor", "hipErrorOutOfMemory",
    "HIP out of memory",
};
/* In one line with "out of memory", in any case: a program without a GPU says that, too. */
static const char *const words[] = {
    "cuda", "cudnn", "cublas", "nccl", "gpu", "RESOURCE_EXHAUSTED"
};

static bool has(const char *line, size_t size, const char *text)
{
    return memmem(line, size, text, strlen(text)) != NULL;
}

static bool has_any_case(const char *line, size_t size, const char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i + n <= size; i++)
        if (!strncasecmp(line + i, text, n))
            return true;
    return false;
}

static bool is_oom(const char *line, size_t size)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (has(line, size, names[i]))
            return true;
    if (!has_any_case(line, size, "out of memory"))
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (has_any_case(line, size, words[i]))
            return true;
    return false;
}

bool gpq_oom_in_log(const char *data, size_t size)
{
    while (size != 0) {
        const char *end = memchr(data, '\n', size);
        size_t n = end ? (size_t)(end - data) : size;
        if (is_oom(data, n))
            return true;
        n += end != NULL;
        data += n;
        size -= n;
    }
    return false;
}

/* ---- The end ---- */

bool gpq_oom_in_record(const struct gpq_record *record)
{
    const struct gpq_run_end *end = &record->end;
    if (!record->has_end || end->oom_kills == 0 || end->hard != 0)
        return false;
    return (end->how == GPQ_RUN_KILLED && end->status == SIGKILL) ||
           (end->how == GPQ_RUN_EXITED && end->status == KILLED);
}

static bool failed(const struct gpq_end *end)
{
    return end->outcome == GPQ_OUTCOME_ERROR || end->outcome == GPQ_OUTCOME_CRASHED;
}

void gpq_oom_judge(struct gpq_agent *a, const struct gpq_run_id *run,
                   const struct gpq_record *record, struct gpq_end *end, char *text, size_t room,
                   char **ret_said)
{
    bool kernel = failed(end) && gpq_oom_in_record(record);
    size_t used = strlen(text);
    struct gpq_tail tail = { NULL, 0 };
    if (end->outcome != GPQ_OUTCOME_SUCCESS)
        tail = gpq_tail_read(a, run);
    *ret_said = gpq_said(tail.data, tail.size);
    end->oom = kernel || (failed(end) && gpq_oom_in_log(tail.data, tail.size));
    free(tail.data);
    if (end->oom)
        (void)snprintf(text + used, room - used, "%s",
                       kernel ? ": the machine was out of memory" : ": a GPU was out of memory");
}

/* ---- The retry ---- */

/* The most whole MiB that fit, between those of *r and `most`, which do not fit. */
static uint64_t most_memory(struct gpq_agent *a, const struct gpud_request *r, uint64_t most)
{
    struct gpud_request more = *r;
    uint64_t least = r->memory;
    while (most - least > MIB) {
        more.memory = least + (most - least) / 2;
        if (gpq_fits(a, &more))
            least = more.memory;
        else
            most = more.memory;
    }
    least -= least % MIB;
    return least > r->memory ? least : r->memory;
}

/* Twice the memory, or as many MiB as a device has. */
static void enlarge(struct gpq_agent *a, struct gpud_request *r)
{
    struct gpud_request more = *r;
    more.share = SHARE_WHOLE;
    if (r->devices == 0 || !gpq_fits(a, &more))
        return;
    r->share = SHARE_WHOLE;
    if (r->memory == 0) /* it is unknown, and the task has its devices alone */
        return;
    more.memory = r->memory <= INT64_MAX / 2 ? r->memory * 2 : INT64_MAX;
    r->memory = gpq_fits(a, &more) ? more.memory : most_memory(a, r, more.memory);
}

struct larger {
    struct gpq_agent *a;
    char *text; /* of the larger shape */
};

static int read_retries(const struct gpq_spec *spec, void *user)
{
    *(bool *)user = spec->retries[GPQ_CAUSE_OOM] != 0;
    return 0;
}

/* A shape that is no needs stays as it is. */
static int read_shape(const struct gpq_shape *shape, void *user)
{
    struct larger *larger = user;
    struct gpq_needs needs;
    struct gpq_error e = { 0 };
    if (gpq_needs_parse(shape->request, &needs, &e) < 0)
        return 0;
    for (uint32_t i = 0; !needs.class_name && i < needs.n; i++)
        enlarge(larger->a, &needs.request[i]);
    larger->text = gpq_needs_write(&needs);
    gpq_needs_free(&needs);
    return larger->text ? 0 : GPQ_ENOMEM;
}

int gpq_oom_complete(struct gpq_agent *a, struct gpq_end *end, struct gpq_error *e)
{
    const struct gpq_engine *o = a->store->engine;
    struct larger larger = { .a = a };
    struct gpq_task task;
    bool retries = false;
    end->oom = end->oom && failed(end);
    int code = end->oom ? gpq_task_look(a->store, end->task, &task, e) : 0;
    if (code > 0)
        code = o->spec(a->store, task.spec, read_retries, &retries, e);
    if (code == 0 && retries)
        code = o->shape(a->store, task.shape, read_shape, &larger, e);
    if (code == GPQ_ENOMEM)
        gpq_fail(e, code, "no memory for the needs of a retry");
    end->shape = (struct gpq_bytes){ larger.text, larger.text ? strlen(larger.text) : 0 };
    if (code == 0)
        code = o->complete(a->store, end, e);
    free(larger.text);
    end->shape = (struct gpq_bytes){ 0 };
    return code;
}
