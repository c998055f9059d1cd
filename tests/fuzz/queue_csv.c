/* SPDX-License-Identifier: MIT */
/* queue_csv.c - any bytes as a CSV file of jobs. */
#include "queue_jobs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const command[] = { "run", "{a}", "{gpus}{gpu}", "${b}{{a}}", NULL };

    fuzz_jobs(GPQ_JOBS_CSV, command, data, size);
    return 0;
}
