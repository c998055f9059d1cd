/* SPDX-License-Identifier: MIT */
/* queue_jsonl.c - any bytes as a file of JSON objects that are jobs. */
#include "queue_jobs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const command[] = { "run", "{a}", "{gpus}{gpu}", "${b}{{a}}", NULL };

    fuzz_jobs(GPQ_JOBS_JSONL, command, data, size);
    return 0;
}
