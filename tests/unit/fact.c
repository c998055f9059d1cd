/* SPDX-License-Identifier: MIT */
/*
 * fact.c - facts as lines and back, and scripts of a plan: equal, different, broken and no script.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/plan_script.h"

/* ---- lines ---- */

static const char *const lines[] = {
    "plan",
    "plan tasks=8 shapes=3 classes=2 devices=5 runs=9 sets=2 mode=strict passing=naive cpus=7 "
    "host_memory=16GiB headroom=1000 least_headroom=512MiB foreign_memory=0 foreign_load=5000",
    "device 0",
    "device 3 memory=24GiB compute=806",
    "places 1",
    "places 2 d=0,1,65535",
    "class 0",
    "class 1 residence=resident grace=2s min_workers=1 max_workers=3 pinned=1 min_residence=30s "
    "max_wait=300s keep_alive=1ns boot=60s unload=5s run=1s need=devices:1,memory:10GiB",
    "class 2 residence=transient need=devices:2 "
    "need=devices:1,share:2500,cpus:2,compute:900,places:1,memory:0,host_memory:1KiB",
    "warm c=0",
    "warm c=3 d=4,2",
    "@0s submit t=0 c=0 order=18446744073709551615",
    "@1ms submit t=4294967295 c=1 priority=-2147483648 order=0 limit=50ms "
    "need=devices:0,cpus:1,memory:0",
    "@1ns withdraw t=3",
    "@1us end t=3",
    "@1s submit t=1 c=1 order=3 limit=10us stream=1",
    "@1s ends_by t=1 at=2s",
    "@1s end t=3 good=0 run=10us keep_alive=never",
    "@18446744073709551614ns up w=1",
    "@2s leaves w=1",
    "@2s gone w=1",
    "@2s gone w=1 again=3s",
    "@2s state d=1 may=in",
    "@2s state d=1 may=gone",
    "@2s foreign d=0",
    "@2s foreign d=0 memory=1025 load=10000",
    "@2s observed w=0 d=1 memory=5MiB",
    "@2s class_set c=1 what=unpin",
    "@2s queue c=1 n=100",
    "@2s decide",
};

T_CASE(there_and_back)
{
    for (size_t i = 0; i < T_LENGTH(lines); i++) {
        char error[GPI_FACT_ERROR_SIZE], text[GPI_FACT_LINE_SIZE];
        struct gpi_fact f = { 0 };
        if (!gpi_fact_read(&f, lines[i], strlen(lines[i]), error))
            T_FAIL("\"%s\" is refused: %s", lines[i], error);
        T_TEXT(gpi_fact_write(text, &f), lines[i]);
    }
}

/* What the writer leaves out has these values. */
T_CASE(defaults)
{
    char error[GPI_FACT_ERROR_SIZE];
    const char *text = "submit t=1 c=0 order=2 need=devices:1";
    struct gpi_fact f = { .now = 7 };

    T_CHECK(gpi_fact_read(&f, text, strlen(text), error));
    T_EQ(f.now, 7); /* the time of the line before */
    T_CHECK(f.job.limit == GPI_NEVER);
    T_EQ(f.n_requests, 1);
    T_EQ(f.request[0].share, GPI_SHARE_ALL);
    T_CHECK(f.request[0].memory == GPI_MEMORY_ALL);
    T_EQ(f.request[0].places, GPI_PLACES_ANY);
}

T_CASE(refused)
{
    static const struct {
        const char *line, *error;
    } bad[] = {
        { "submi t=1", "submi is no fact of a plan" },
        { "withdraw", "withdraw lacks t" },
        { "withdraw t=1 t=2", "field t stands twice" },
        { "withdraw t=x", "t is x, expected a number below 2^32" },
        { "withdraw t=4294967296", "t is 4294967296, expected a number below 2^32" },
        { "withdraw t=1 d=2", "withdraw has no field d=2" },
        { "withdraw 1", "withdraw has no field 1" },
        { "@5 decide", "@ is followed by 5, expected a time such as @1075ms" },
        { "@never decide", "@ is followed by never, expected a time such as @1075ms" },
        { "@5ms", "expected a fact behind the time" },
        { "@5ms device 0", "device has no time" },
        { "device", "device lacks a number" },
        { "device -1", "the number is -1, expected a number below 2^32" },
        { "device 0 memory=1TiB", "memory is 1TiB, expected bytes such as 24GiB, or all" },
        { "gone w=1 again=1.5s", "again is 1.5s, expected a time such as 20ms, or never" },
        { "gone w=1 again=18446744074s",
          "again is 18446744074s, expected a time such as 20ms, or never" },
        { "state d=0 may=be", "may is be, expected one of: in paused drained out gone" },
        { "places 1 d=0,x", "a device is x, expected up to 128 numbers with commas between them" },
        { "class 0 need=devices:1,cores:2", "a request has no field cores" },
        { "class 0 need=devices:1 need=devices:1 need=devices:1 need=devices:1 need=devices:1",
          "more than 4 variants" },
        { "\x01\xff", "?? is no fact of a plan" },
    };

    for (size_t i = 0; i < T_LENGTH(bad); i++) {
        char error[GPI_FACT_ERROR_SIZE];
        struct gpi_fact f = { 0 };
        T_CHECK(!gpi_fact_read(&f, bad[i].line, strlen(bad[i].line), error));
        T_TEXT(error, bad[i].error);
    }
}

/* ---- scripts ---- */

#define SET_UP                           \
    "plan tasks=2 devices=1 classes=1\n" \
    "device 0 memory=24GiB\n"            \
    "class 0 grace=1s\n"                 \
    "@1s submit t=0 c=0 order=1 limit=1s need=devices:1\n"

static struct gpi_plan_script run(const char *text, enum gpi_plan_script_result wanted)
{
    struct gpi_plan_script s = { .alone = false };
    const enum gpi_plan_script_result result = gpi_plan_script(&s, text, strlen(text));

    if (result != wanted)
        T_FAIL("result %d, not %d: line %u: %s, wanted %s, got %s", (int)result, (int)wanted,
               s.line, s.error, s.wanted, s.got);
    return s;
}

T_CASE(equal)
{
    const struct gpi_plan_script s = run("# a comment\n" SET_UP "decide\n----\nRUN t=0 d=0\n\n"
                                         "@2s end t=0\n",
                                         GPI_PLAN_SCRIPT_EQUAL);

    T_EQ(s.facts, 6);
}

T_CASE(differs)
{
    struct gpi_plan_script s = run(SET_UP "decide\n----\nRUN t=1 d=0\n", GPI_PLAN_SCRIPT_DIFFERS);

    T_EQ(s.line, 7);
    T_TEXT(s.wanted, "RUN t=1 d=0");
    T_TEXT(s.got, "RUN t=0 d=0");
    s = run(SET_UP "decide\n", GPI_PLAN_SCRIPT_DIFFERS);
    T_TEXT(s.wanted, "nothing");
    s = run(SET_UP "----\nRUN t=0 d=0\n", GPI_PLAN_SCRIPT_DIFFERS);
    T_TEXT(s.got, "nothing");
}

T_CASE(rewrites)
{
    char *text = NULL;
    size_t size = 0;
    struct gpi_plan_script s = { .rewritten = open_memstream(&text, &size) };
    const char *old = "# kept\n" SET_UP "decide\n----\nRUN t=7\nBOOT w=3\n\n# last\n@2s end t=0\n";

    T_EQ(gpi_plan_script(&s, old, strlen(old)), GPI_PLAN_SCRIPT_DIFFERS);
    T_EQ(fclose(s.rewritten), 0);
    T_TEXT(text, "# kept\n" SET_UP "decide\n----\nRUN t=0 d=0\n\n# last\n@2s end t=0\n");
    free(text);
}

/* No caller may feed these. */
T_CASE(no_script)
{
    static const struct {
        const char *text, *error;
        uint32_t line;
    } bad[] = {
        { "decide\n", "expected plan first of all", 1 },
        { "plan\nplan\n", "expected plan once", 2 },
        { "plan tasks=0\n", "expected at least one task, shape, class, device and run", 1 },
        { "plan\ndevice 1\n", "not the next device", 2 },
        { "plan\nplaces 1\n", "no set of places has this number", 2 },
        { "plan\n----\n\n----\n", "expected ---- once, behind a fact", 4 },
        { SET_UP "device 0\n", "expected before all facts that have a time", 5 },
        { SET_UP "@0s decide\n", "its time is before that of the fact before", 5 },
        { SET_UP "end t=0\n", "the task does not run", 5 },
        { SET_UP "withdraw t=2\n", "the task does not wait", 5 },
        { SET_UP "up w=0\n", "no worker has this number", 5 },
        { SET_UP "state d=1 may=in\n", "no device has this number", 5 },
        { SET_UP "class_set c=1 what=pin\n", "no class has this number", 5 },
        { SET_UP "submit t=0 c=0 order=2 need=devices:1\n",
          "the task is submitted already, or its number is too large", 5 },
        { SET_UP "submit t=1 c=0 order=1 need=devices:1\n", "another task has this order", 5 },
        { SET_UP "submit t=1 c=0 order=2 need=devices:2\n", "no device could ever hold it", 5 },
        { SET_UP "submit t=1 c=0 order=2 need=devices:1,share:10001\n",
          "a share is at most 10000, and just that of several devices", 5 },
        { SET_UP "decide\n----\nRUN t=0 d=0\n\n@4s decide\n",
          "a task ends by its limit and grace, which is earlier", 9 },
    };

    for (size_t i = 0; i < T_LENGTH(bad); i++) {
        const struct gpi_plan_script s = run(bad[i].text, GPI_PLAN_SCRIPT_BAD);
        T_TEXT(s.error, bad[i].error);
        T_EQ(s.line, bad[i].line);
    }
}
