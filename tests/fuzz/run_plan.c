/* SPDX-License-Identifier: MIT */
/* run_plan.c - any bytes as the plan of a runner.  What is read is written again as it was. */
#include "fuzz.h"

#include "queue/runner/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1); /* exactly as long as it is */
    struct gpq_plan p;
    void *again;
    size_t size_again;
    char **environment;

    FUZZ_CHECK(copy);
    if (size)
        memcpy(copy, data, size);
    if (!gpq_plan_read(copy, size, &p)) {
        FUZZ_CHECK(*p.cwd == '/' && *p.log && p.argv[0] && *p.argv[0]);
        FUZZ_CHECK(!gpq_plan_write(&p, &again, &size_again));
        FUZZ_CHECK(size_again == size && !memcmp(again, copy, size));
        free(again);
        environment = gpq_plan_environment(&p);
        FUZZ_CHECK(environment && !strncmp(environment[0], GPQ_RUN_VARIABLE "=", 16));
        for (char **e = environment + 1; *e; e++)
            FUZZ_CHECK(strncmp(*e, GPQ_RUN_VARIABLE "=", 16) != 0);
        free(environment);
        gpq_plan_free(&p);
    }
    free(copy);
    return 0;
}
