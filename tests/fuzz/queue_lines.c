/* SPDX-License-Identifier: MIT */
/* queue_lines.c - any bytes as a jobs file of lines, and of paths. */
#include "queue_jobs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const command[] = { "run", "x{}", "{gpu}", NULL };

    fuzz_jobs(GPQ_JOBS_LINES, command, data, size);
    fuzz_jobs(GPQ_JOBS_FILES, command, data, size);
    return 0;
}
