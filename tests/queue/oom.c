/* SPDX-License-Identifier: MIT */
/* oom.c - ends for want of memory, by the log, the record and the cgroup. */
#include "desk.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "queue/agent/oom.h"

T_CASE(texts_of_logs)
{
    static const struct {
        const char *log;
        bool oom;
    } logs[] = {
        { "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has",
          true },
        { "line\nRuntimeError: CUDA error: out of memory\nline\n", true },
        { "cuInit failed: CUDA_ERROR_OUT_OF_MEMORY", true },
        { "error 2 (cudaErrorMemoryAllocation) at x.cu:7", true },
        { "ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory", true },
        { "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes",
          true },
        { "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`",
          true },
        { "OOM when allocating tensor with shape[9]", true },
        { "torch.OutOfMemoryError: HIP out of memory.", true },
        { "", false },
        { "java.lang.OutOfMemoryError: Java heap space", false },
        { "grpc: RESOURCE_EXHAUSTED: quota", false },
        { "out of memory", false },
        { "out of memory\nCUDA 12.4\n", false },
        { "CUDA 12.4\nfork: Cannot allocate memory", false },
        { "cuda_out_of_memory_test passed", false },
    };

    for (size_t i = 0; i < T_LENGTH(logs); i++)
        if (gpq_oom_in_log(logs[i].log, strlen(logs[i].log)) != logs[i].oom)
            T_FAIL("%s", logs[i].log);
    T_CHECK(!gpq_oom_in_log("CUDA_ERROR_OUT_OF_MEMORY", 23));
    T_CHECK(gpq_oom_in_log("\0\0CUDA\0out of memory\0", 21));
}

T_CASE(records)
{
    static const struct {
        uint32_t how;
        uint64_t status, oom_kills, hard;
        bool oom;
    } ends[] = {
        { GPQ_RUN_KILLED, SIGKILL, 1, 0, true },
        { GPQ_RUN_EXITED, 137, 2, 0, true },
        { GPQ_RUN_KILLED, SIGKILL, 0, 0, false },
        { GPQ_RUN_KILLED, SIGKILL, 1, 1, false }, /* by the agent */
        { GPQ_RUN_KILLED, SIGSEGV, 1, 0, false },
        { GPQ_RUN_EXITED, 1, 1, 0, false },
        { GPQ_RUN_EXITED, 0, 1, 0, false },
        { GPQ_RUN_FAILED, 9, 1, 0, false },
    };

    for (size_t i = 0; i < T_LENGTH(ends); i++) {
        struct gpq_record r = { .has_end = true,
                                .end = { .how = ends[i].how,
                                         .status = ends[i].status,
                                         .oom_kills = ends[i].oom_kills,
                                         .hard = ends[i].hard } };
        T_EQ(gpq_oom_in_record(&r), ends[i].oom);
        r.has_end = false;
        T_CHECK(!gpq_oom_in_record(&r));
    }
}

/* ---- The needs of a retry ---- */

static int read_request(const struct gpq_shape *shape, void *user)
{
    (void)snprintf(user, 1024, "%.*s", (int)shape->request.size, (const char *)shape->request.data);
    return 0;
}

static int read_shape_of(const struct gpq_task *t, void *user)
{
    *(uint32_t *)user = t->shape;
    return 0;
}

/* Needs of the retry of a task with these needs and causes; without an agent's devices. */
static const char *retried(const char *needs, const char *retries, uint32_t outcome)
{
    static char text[1024];
    const struct gpq_engine *o;
    const uint64_t id = GPQ_TASK(1, 1);
    struct gpq_error e = { 0 };
    struct gpq_end end = {
        .task = id, .attempt = 1, .outcome = outcome, .oom = true, .ended = 2000
    };
    uint32_t shape = 0;

    t_desk_open();
    o = t_desk.store->engine;
    (void)snprintf(text, sizeof(text),
                   "{'do':'submit','specs':[{'cwd':'/','needs':%s,'retries':%s}],"
                   "'tasks':[{'argv':['true']}]}",
                   needs, retries);
    json_decref(t_ask_ok(text));
    T_EQ(o->begin(t_desk.store, &e), 0);
    T_EQ(o->claim(t_desk.store, 1000, id, NULL, "run", &e), 1);
    T_EQ(gpq_oom_complete(&t_desk, &end, &e), 0);
    T_EQ(o->commit(t_desk.store, &e), 0);
    T_EQ(o->tasks(t_desk.store, &(struct gpq_select){ .tasks = &id, .n_tasks = 1 }, 0, false,
                  read_shape_of, &shape, &e),
         0);
    T_EQ(o->shape(t_desk.store, shape, read_request, text, &e), 0);
    t_desk_close();
    T_EQ(remove("queue.db"), 0);
    for (char *c = text; *c; c++)
        *c = *c == '"' ? '\'' : *c;
    return text;
}

#define NEEDS(gpus, memory) \
    "'compute':0,'cpus':1,'gpus':" gpus ",'host_memory':0,'memory':" memory ",'not_on':'','on':''"

T_CASE(needs_of_a_retry)
{
    T_TEXT(retried("{'gpus':1,'share':5000,'memory':1000}", "{'oom':1}", GPQ_OUTCOME_ERROR),
           "{" NEEDS("1", "2000") ",'share':10000}");
    T_TEXT(retried("{'gpus':1,'share':5000}", "{'oom':1}", GPQ_OUTCOME_CRASHED),
           "{" NEEDS("1", "0") ",'share':10000}");
    T_TEXT(retried("{'gpus':1,'memory':9223372036854775807}", "{'oom':1}", GPQ_OUTCOME_ERROR),
           "{" NEEDS("1", "9223372036854775807") ",'share':10000}");
    T_TEXT(retried("{'gpus':0}", "{'oom':1}", GPQ_OUTCOME_ERROR), "{" NEEDS("0", "0") "}");
    T_TEXT(retried("{'gpus':2,'memory':7,'or':[{'gpus':1,'memory':5,'share':2}]}", "{'oom':1}",
                   GPQ_OUTCOME_ERROR),
           "{" NEEDS("2", "14") ",'or':[{" NEEDS("1", "10") ",'share':10000}],'share':10000}");
    /* by another cause */
    T_TEXT(retried("{'gpus':1,'share':5000,'memory':9}", "{'error':1}", GPQ_OUTCOME_ERROR),
           "{" NEEDS("1", "9") ",'share':5000}");
    T_TEXT(retried("{'gpus':1,'memory':9}", "{'oom':1,'timeout':1}", GPQ_OUTCOME_TIMEOUT),
           "{" NEEDS("1", "9") ",'share':10000}");
}
