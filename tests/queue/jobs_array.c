/* SPDX-License-Identifier: MIT */
/* jobs_array.c - the numbers of an array, and their jobs. */
#include "harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/jobs/array.h"

static const struct {
    const char *text;
    struct gpq_array array;
} good[] = {
    { "1-100", { 1, 100, 1, 100, 0 } },
    { "0-0", { 0, 0, 1, 1, 0 } },
    { "0-90:10%4", { 0, 90, 10, 10, 4 } },
    { "1-10:4", { 1, 10, 4, 3, 0 } },
    { "1-1000000%4294967295", { 1, 1000000, 1, 1000000, UINT32_MAX } },
    { "9223372036854775806-9223372036854775807", { INT64_MAX - 1, INT64_MAX, 1, 2, 0 } },
    { "0-9223372036854775807:9223372036854775807", { 0, INT64_MAX, INT64_MAX, 2, 0 } },
};

T_CASE(numbers)
{
    for (size_t i = 0; i < T_LENGTH(good); i++) {
        struct gpq_array a;
        struct gpq_error e;
        T_EQ(gpq_array_read(good[i].text, &a, &e), 0);
        T_EQ(a.first, good[i].array.first);
        T_EQ(a.last, good[i].array.last);
        T_EQ(a.step, good[i].array.step);
        T_EQ(a.n, good[i].array.n);
        T_EQ(a.at_once, good[i].array.at_once);
    }
}

#define NO_ARRAY                                                                            \
    "expected N-M, N-M:STEP or N-M%K with numbers without leading zeros, such as 1-100 or " \
    "0-90:10%4"

static const struct {
    const char *text, *error;
} bad[] = {
    { "", NO_ARRAY },
    { "5", NO_ARRAY },
    { "1-", NO_ARRAY },
    { "-1-5", NO_ARRAY },
    { "01-10", NO_ARRAY },
    { "1-10:", NO_ARRAY },
    { "1-10%", NO_ARRAY },
    { "1-10%4:2", NO_ARRAY },
    { "1-10 ", NO_ARRAY },
    { "1-9223372036854775808", NO_ARRAY },
    { "5-4", "the last number is less than the first" },
    { "1-5:0", "the step is 0, the minimum is 1" },
    { "1-5%0", "0 tasks at a time, expected 1 to 4294967295" },
    { "1-5%4294967296", "4294967296 tasks at a time, expected 1 to 4294967295" },
    { "1-1000001", "these are 1000001 tasks, the maximum is 1000000" },
    { "0-9223372036854775807", "these are 9223372036854775808 tasks, the maximum is 1000000" },
};

T_CASE(bad_numbers)
{
    for (size_t i = 0; i < T_LENGTH(bad); i++) {
        struct gpq_array a;
        struct gpq_error e;
        char text[256];
        T_EQ(gpq_array_read(bad[i].text, &a, &e), GPQ_EINVAL);
        (void)snprintf(text, sizeof(text), "'%s': %s", bad[i].text, bad[i].error);
        T_TEXT(e.text, text);
    }
}

static int note(const struct gpq_job *job, void *user, struct gpq_error *e)
{
    char *ret = user;

    (void)e;
    T_EQ(job->line, 0);
    (void)sprintf(ret + strlen(ret), "%s|%s%s ", job->argv[1],
                  job->n_options ? job->options[0].value : "", job->replace ? "|replace" : "");
    return 0;
}

T_CASE(jobs)
{
    const struct gpq_array a = { 8, 12, 2, 3, 0 };
    const struct gpq_job_option name = { "name", "n{}" };
    struct gpq_jobs_how how = { .command = (const char *[]){ "a", "{}-{gpu}", NULL },
                                .texts = &name,
                                .n_texts = 1 };
    char text[256] = "";
    struct gpq_error e;

    T_EQ(gpq_array_jobs(&a, &how, note, text, &e), 0);
    T_TEXT(text, "8-{gpu}|n8|replace 10-{gpu}|n10|replace 12-{gpu}|n12|replace ");
    *text = 0;
    how = (struct gpq_jobs_how){ .command = (const char *[]){ "a", "b", NULL } };
    T_EQ(gpq_array_jobs(&a, &how, note, text, &e), 0); /* $GPUDISPATCH_TASK differs */
    T_TEXT(text, "b| b| b| ");
    how.command = (const char *[]){ "a", "{i}", NULL };
    T_EQ(gpq_array_jobs(&a, &how, note, text, &e), GPQ_EINVAL);
    T_TEXT(e.text, "{i}: an array has no names, only {}; {{i}} is the text itself");
    how.command = NULL;
    T_EQ(gpq_array_jobs(&a, &how, note, text, &e), GPQ_EINVAL);
    T_TEXT(e.text, "expected a command, in which {} is the number");
}
