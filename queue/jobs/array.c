/* SPDX-License-Identifier: MIT */
/* array.c - the numbers of an array, and their jobs. */
#include "queue/jobs/array.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "queue/jobs/make.h"
#include "queue/utf8.h"

/* Reads a number without leading zeros, below 2^63; *text is moved behind it. */
static bool number(const char **text, uint64_t *ret)
{
    const char *at = *text;
    uint64_t n = 0;

    if (*at == '0' && at[1] >= '0' && at[1] <= '9')
        return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (n > (INT64_MAX - (uint64_t)(*at - '0')) / 10)
            return false;
        n = 10 * n + (uint64_t)(*at - '0');
    }
    if (at == *text)
        return false;
    *text = at;
    *ret = n;
    return true;
}

/* Reads a number behind this character, if the text has it. */
static bool follows(const char **text, char c, uint64_t *ret)
{
    if (**text != c)
        return true;
    ++*text;
    return number(text, ret);
}

int gpq_array_read(const char *text, struct gpq_array *ret, struct gpq_error *e)
{
    struct gpq_array a = { .step = 1 };
    uint64_t at_once = UINT64_MAX;
    const char *at = text;

    if (!number(&at, &a.first) || *at++ != '-' || !number(&at, &a.last) ||
        !follows(&at, ':', &a.step) || !follows(&at, '%', &at_once) || *at)
        return gpq_fail(e, GPQ_EINVAL,
                        "'%.60s': expected N-M, N-M:STEP or N-M%%K with numbers without "
                        "leading zeros, such as 1-100 or 0-90:10%%4",
                        text);
    if (a.last < a.first)
        return gpq_fail(e, GPQ_EINVAL, "'%.60s': the last number is less than the first", text);
    if (a.step == 0)
        return gpq_fail(e, GPQ_EINVAL, "'%.60s': the step is 0, the minimum is 1", text);
    if (at_once == 0 || (at_once > UINT32_MAX && at_once != UINT64_MAX))
        return gpq_fail(e, GPQ_EINVAL,
                        "'%.60s': %" PRIu64 " tasks at a time, expected 1 to %" PRIu32, text,
                        at_once, UINT32_MAX);
    uint64_t n = (a.last - a.first) / a.step;
    if (n >= GPQ_ARRAY_MOST)
        return gpq_fail(e, GPQ_EINVAL, "'%.60s': these are %" PRIu64 " tasks, the maximum is %u",
                        text, n + 1, GPQ_ARRAY_MOST);
    a.n = (uint32_t)n + 1;
    a.at_once = at_once == UINT64_MAX ? 0 : (uint32_t)at_once;
    *ret = a;
    return 0;
}

static int one(struct gpq_make *m, uint64_t value, gpq_job_fn fn, void *user, struct gpq_error *e)
{
    struct gpq_job job;
    char text[21];
    int size = snprintf(text, sizeof(text), "%" PRIu64, value);

    gpq_make_clear(m);
    int code = gpq_make_one(m, text, (size_t)size, e);
    if (code == 0)
        code = gpq_make_job(m, &job, e);
    return code ? code : fn(&job, user, e);
}

int gpq_array_jobs(const struct gpq_array *array, const struct gpq_jobs_how *how, gpq_job_fn fn,
                   void *user, struct gpq_error *e)
{
    struct gpq_make make;
    int code;

    if (!how->command)
        return gpq_fail(e, GPQ_EINVAL, "expected a command, in which {} is the number");
    code = gpq_make_open(&make, how, e);
    if (code == 0)
        code = gpq_make_has_one(&make, "an array", false, e);
    for (uint32_t i = 0; code == 0 && i < array->n; i++)
        code = one(&make, array->first + i * array->step, fn, user, e);
    gpq_make_free(&make);
    if (code)
        gpq_utf8_clean(e->text);
    return code;
}
