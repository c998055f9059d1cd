/* SPDX-License-Identifier: MIT */
/*
 * jobs_memory.c - readers whose Nth allocation fails, for each N: they fail with ENOMEM, and
 * nothing leaks (AddressSanitizer sees it).  Where jansson has no memory, it may as well report
 * that the line is no JSON.
 */
#include "failing.h"
#include "harness.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "queue/jobs/array.h"
#include "queue/jobs/template.h"

static int take(const struct gpq_job *job, void *user, struct gpq_error *e)
{
    (void)job;
    (void)user;
    (void)e;
    return 0;
}

static const char *const known[] = { "gpus", NULL };
static const char *const one[] = { "run", "{}", "{gpu}", NULL };
static const struct gpq_job_option text = { "name", "n" };

static int read_file(const struct gpq_jobs_how *how, const char *data, struct gpq_error *e)
{
    size_t half = strlen(data) / 2;
    struct gpq_jobs *r;
    int code = gpq_jobs_open(how, take, NULL, &r, e);

    if (code)
        return code;
    (void)gpq_jobs_feed(r, data, half, e);
    (void)gpq_jobs_feed(r, data + half, strlen(data) - half, e);
    code = gpq_jobs_end(r, NULL, e);
    gpq_jobs_close(r);
    return code;
}

static int lines(struct gpq_error *e)
{
    const struct gpq_jobs_how how = { .command = one, .texts = &text, .n_texts = 1 };
    int code = read_file(&how, "a\nb\n", e);

    return code ? code : read_file(&(struct gpq_jobs_how){ 0 }, "a {gpu}\nb {{gpu}}\n", e);
}

static int csv(struct gpq_error *e)
{
    static const char *const columns[] = { "run", "{a}", "{gpu}", NULL };
    const struct gpq_jobs_how how = { .format = GPQ_JOBS_CSV, .command = columns, .known = known };

    return read_file(&how, "a,gpus\n{gpu},2\n\"3\",\n", e);
}

static int jsonl(struct gpq_error *e)
{
    static const char *const members[] = { "run", "{a}", NULL };
    struct gpq_jobs_how how = { .format = GPQ_JOBS_JSONL, .command = members, .known = known };
    int code = read_file(&how, "{\"a\":1,\"gpus\":2}\n{\"a\":\"b\"}\n", e);

    how.command = NULL;
    return code ? code : read_file(&how, "{\"argv\":[\"a\",\"{{gpu}}\"],\"gpus\":2}\n", e);
}

static int array(struct gpq_error *e)
{
    const struct gpq_array a = { .first = 1, .last = 2, .step = 1, .n = 2 };

    return gpq_array_jobs(&a, &(struct gpq_jobs_how){ .command = one }, take, NULL, e);
}

static int start(struct gpq_error *e)
{
    static const char *const values[GPQ_STARTS] = { "0", "1", "2", "3", "4" };
    char *got = gpq_template_start("{gpu} {{port}} {task}", values);

    (void)e;
    free(got);
    return got ? 0 : GPQ_ENOMEM;
}

static void fail_each(int (*run)(struct gpq_error *e), unsigned least)
{
    struct gpq_error e;
    unsigned n = 1;

    for (;; n++) {
        fail_at = n;
        int code = run(&e);
        bool over = fail_at > 0;
        fail_at = 0;
        if (over) {
            T_EQ(code, 0);
            break;
        }
        if (code != GPQ_ENOMEM && !(code == GPQ_EINVAL && run == jsonl))
            T_FAIL("allocation %u: %d: %s", n, code, e.text);
    }
    T_CMP(n, >, least);
}

T_CASE(each_allocation_fails)
{
    json_set_alloc_funcs(malloc, free);
    fail_each(lines, 10);
    fail_each(csv, 10);
    fail_each(jsonl, 30);
    fail_each(array, 6);
    fail_each(start, 1);
}
