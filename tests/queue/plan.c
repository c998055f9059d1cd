/* SPDX-License-Identifier: MIT */
/* plan.c - what a runner is to run: written, read, and refused. */
#include "harness.h"

#include "draw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/runner/plan.h"
#include "queue/store.h"

#define RUN "run=12.44.3.00112233445566778899aabbccddeeff"

static char *argv[] = { "prog", "", "a b", "x=y\nz", NULL };
static char *environment[] = { "PATH=/bin", "EMPTY=", "odd", "", NULL };
static char *variables[] = { "CUDA_VISIBLE_DEVICES=1,2", NULL };
static char *defaults[] = { "OMP_NUM_THREADS=4", "MKL_NUM_THREADS=4", NULL };
static char *words[] = { "train.py", "a b", NULL };
static char *none[] = { NULL };

static const struct gpq_plan full = {
    .id = { GPQ_TASK(12, 44), 3, "00112233445566778899aabbccddeeff" },
    .cwd = "/home/user with space",
    .out = "/state/work/12.44.3",
    .log = "log/12.44.3",
    .key = "k=v",
    .log_limit = UINT64_MAX,
    .descriptors = 1024,
    .port = 20007,
    .argv = argv,
    .environment = environment,
    .variables = variables,
    .defaults = defaults,
    .words = words,
};

static void expect_list(char **a, char **b)
{
    size_t i = 0;

    for (; a[i] && b[i]; i++)
        T_TEXT(a[i], b[i]);
    T_CHECK(!a[i] && !b[i]);
}

T_CASE(written_and_read)
{
    struct gpq_plan p;
    void *data;
    size_t size;

    T_EQ(gpq_plan_write(&full, &data, &size), 0);
    T_EQ(gpq_plan_read(data, size, &p), 0);
    free(data); /* the plan has a copy */
    T_CHECK(gpq_run_same(&p.id, &full.id));
    T_TEXT(p.cwd, full.cwd);
    T_TEXT(p.out, full.out);
    T_TEXT(p.log, full.log);
    T_TEXT(p.key, full.key);
    T_EQ(p.log_limit, full.log_limit);
    T_EQ(p.port, full.port);
    T_EQ(p.descriptors, full.descriptors);
    expect_list(p.argv, argv);
    expect_list(p.environment, environment);
    expect_list(p.variables, variables);
    expect_list(p.defaults, defaults);
    expect_list(p.words, words);
    gpq_plan_free(&p);
}

T_CASE(least)
{
    char *one[] = { "a", NULL };
    struct gpq_plan p, least = { .id = full.id, .cwd = "/", .log = "l", .argv = one };
    void *data;
    size_t size;

    T_EQ(gpq_plan_write(&least, &data, &size), 0);
    T_EQ(gpq_plan_read(data, size, &p), 0);
    T_CHECK(!p.out && !p.key && !p.log_limit && !p.port && !p.descriptors);
    expect_list(p.environment, none);
    expect_list(p.words, none);
    gpq_plan_free(&p);
    free(data);
}

T_CASE(not_valid)
{
    char *empty[] = { "", NULL }, *no_value[] = { "NAME", NULL }, *no_name[] = { "=x", NULL };
    char *many[GPQ_PLAN_VARIABLES + 2];
    struct gpq_plan p[11];
    void *data = NULL;
    size_t size;

    for (size_t i = 0; i < T_LENGTH(many); i++)
        many[i] = i < T_LENGTH(many) - 1 ? "A=1" : NULL;
    for (size_t i = 0; i < T_LENGTH(p); i++)
        p[i] = full;
    p[0].cwd = "home";
    p[1].out = "work";
    p[2].log = "";
    p[3].argv = none;
    p[4].argv = empty;
    p[5].variables = no_value;
    p[6].defaults = no_name;
    p[7].variables = many;
    p[8].id.nonce[3] = 'g';
    p[9].id.attempt = 0;
    p[10].port = 65536;
    for (size_t i = 0; i < T_LENGTH(p); i++)
        T_EQ(gpq_plan_write(&p[i], &data, &size), -EINVAL);
    T_CHECK(!data);
}

T_CASE(too_large)
{
    char *big = malloc(GPQ_PLAN_MOST + 1), *list[] = { "a", big, NULL };
    struct gpq_plan p = full;
    void *data = NULL;
    size_t size;

    T_CHECK(big);
    memset(big, 'b', GPQ_PLAN_MOST);
    big[GPQ_PLAN_MOST] = 0;
    p.argv = list;
    T_EQ(gpq_plan_write(&p, &data, &size), -E2BIG);
    T_EQ(gpq_plan_read(big, GPQ_PLAN_MOST + 1, &p), -EBADMSG);
    T_CHECK(!data);
    free(big);
}

T_CASE(cut_at_each_byte)
{
    struct gpq_plan p;
    void *data;
    size_t size;

    T_EQ(gpq_plan_write(&full, &data, &size), 0);
    for (size_t n = 0; n < size; n++) {
        char *copy = malloc(n ? n : 1);
        T_CHECK(copy);
        memcpy(copy, data, n);
        T_EQ(gpq_plan_read(copy, n, &p), -EBADMSG);
        free(copy);
    }
    free(data);
}

#define TEXT(s) s, sizeof(s) /* with its last NUL byte */

T_CASE(texts_that_are_none)
{
    static const struct {
        const char *data;
        size_t size;
        int ret;
    } wrong[] = {
        { TEXT("gpudispatch-plan=2\0" RUN), -EPROTONOSUPPORT },
        { TEXT("gpudispatch-plan=11"), -EPROTONOSUPPORT },
        { TEXT("gpudispatch-plan"), -EBADMSG },
        { TEXT("gpudispatch-plan=1"), -EBADMSG },
        { TEXT(""), -EBADMSG },
        { TEXT("gpudispatch-plan=1\0" RUN "\0cwd=/\0log=l\0log_limit=0\0argv=1\0a\0environment=0\0"
               "variables=0\0defaults=0\0end\0end"),
          -EBADMSG },
        { TEXT("gpudispatch-plan=1\0" RUN "\0cwd=/\0log=l\0log_limit=0\0argv=99999999999\0a\0end"),
          -EBADMSG },
        { TEXT("gpudispatch-plan=1\0" RUN "\0cwd=/\0log=l\0log_limit=00\0argv=1\0a\0"
               "environment=0\0variables=0\0defaults=0\0end"),
          -EBADMSG },
        { TEXT("gpudispatch-plan=1\0" RUN "\0cwd=/\0log=l\0log_limit=0\0port=0\0argv=1\0a\0"
               "environment=0\0variables=0\0defaults=0\0end"),
          -EBADMSG },
        { TEXT("gpudispatch-plan=1\0" RUN "\0cwd=/\0log=l\0log_limit=0\0port=65536\0argv=1\0a\0"
               "environment=0\0variables=0\0defaults=0\0end"),
          -EBADMSG },
        { TEXT("gpudispatch-plan=1\0" RUN "\0cwd=/\0log=l\0log_limit=0\0argv=1\0a\0"
               "environment=0\0variables=0\0defaults=0\0words=0\0end"),
          -EBADMSG },
        { TEXT("gpudispatch-plan=1\0" RUN "\0log=l\0cwd=/\0log_limit=0\0argv=1\0a\0environment=0\0"
               "variables=0\0defaults=0\0end"),
          -EBADMSG },
        { TEXT("gpudispatch-plan=1\0" RUN "\0cwd=/\0log=l\0log_limit=0\0argv=1\0a\0environment=0\0"
               "variables=0\0defaults=0\0end"),
          0 },
    };
    struct gpq_plan p;

    for (size_t i = 0; i < T_LENGTH(wrong); i++) {
        T_EQ(gpq_plan_read(wrong[i].data, wrong[i].size, &p), wrong[i].ret);
        if (!wrong[i].ret)
            gpq_plan_free(&p);
    }
}

T_CASE(random_changes)
{
    struct gpq_plan p;
    uint64_t seed = 7;
    void *data;
    size_t size, read = 0;

    T_EQ(gpq_plan_write(&full, &data, &size), 0);
    for (size_t i = 0; i < t_rounds(200000, 20000); i++) {
        char copy[1024];
        T_CMP(size, <=, sizeof(copy));
        memcpy(copy, data, size);
        for (uint64_t n = 1 + draw(&seed) % 3; n; n--)
            copy[draw(&seed) % size] =
                (char)(draw(&seed) % 4 ? "=\0019a"[draw(&seed) % 4] : (int)draw(&seed));
        if (gpq_plan_read(copy, size, &p))
            continue;
        read++;
        gpq_plan_free(&p);
    }
    T_CMP(read, >, 0);
    free(data);
}

static const char *value_in(char **list, const char *name)
{
    const char *found = NULL;
    size_t n = strlen(name);

    for (; *list; list++)
        if (!strncmp(*list, name, n) && (*list)[n] == '=') {
            T_CHECK(!found); /* once */
            found = *list + n + 1;
        }
    return found;
}

T_CASE(environment_of_a_plan)
{
    char *given[] = {
        "A=1", "GPUDISPATCH_KEY=old", "GPUDISPATCH_OUT=old", "B=2", "AB=3", "GPUDISPATCH_PORT=1234",
        NULL
    };
    char *set[] = { "B=7", "GPUDISPATCH_TASK=forged", NULL }, *preset[] = { "A=9", "C=5", NULL };
    struct gpq_plan p = full;
    char **list;

    p.key = NULL;
    p.environment = given;
    p.variables = set;
    p.defaults = preset;
    list = gpq_plan_environment(&p);
    T_CHECK(list);
    T_TEXT(list[0], "GPUDISPATCH_RUN=12.44.3.00112233445566778899aabbccddeeff");
    T_TEXT(value_in(list, "GPUDISPATCH_TASK"), "12.44");
    T_TEXT(value_in(list, "GPUDISPATCH_ATTEMPT"), "3");
    T_TEXT(value_in(list, "GPUDISPATCH_OUT"), full.out);
    T_TEXT(value_in(list, "GPUDISPATCH_PORT"), "20007");
    T_CHECK(!value_in(list, "GPUDISPATCH_KEY"));
    T_TEXT(value_in(list, "A"), "1");
    T_TEXT(value_in(list, "B"), "7");
    T_TEXT(value_in(list, "AB"), "3");
    T_TEXT(value_in(list, "C"), "5");
    free(list);
}
