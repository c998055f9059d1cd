/* SPDX-License-Identifier: MIT */
/* runner_oom.c - the events of a cgroup, and a run during which they count a kill. */
#include "harness.h"

#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/runner/oom.h"

T_CASE(counts)
{
    static const struct {
        const char *text;
        uint64_t count;
    } texts[] = {
        { "low 0\nhigh 0\nmax 4\noom 2\noom_kill 17\noom_group_kill 1\n", 17 },
        { "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3 },
        { "oom_kill 0", 0 },
        { "oom_kill 18446744073709551615", GPQ_OOM_UNKNOWN },
        { "oom_kill x\n", GPQ_OOM_UNKNOWN },
        { "oom_kill 1x\n", GPQ_OOM_UNKNOWN },
        { "oom_kill \n", GPQ_OOM_UNKNOWN },
        { "x oom_kill 1\n", GPQ_OOM_UNKNOWN },
        { "\n\n", GPQ_OOM_UNKNOWN },
        { "", GPQ_OOM_UNKNOWN },
    };

    for (size_t i = 0; i < T_LENGTH(texts); i++)
        T_EQ(gpq_oom_count(texts[i].text), texts[i].count);
}

T_CASE(paths)
{
    static const struct {
        const char *text, *path; /* NULL: none */
    } texts[] = {
        { "0::/user.slice/u 1\n", "/sys/fs/cgroup/user.slice/u 1/memory.events" },
        { "0::/\n", "/sys/fs/cgroup/memory.events" },
        { "5:cpu,memory:/a\n3:pids:/b\n0::/c\n", "/sys/fs/cgroup/memory/a/memory.oom_control" },
        { "5:memory:/\n", "/sys/fs/cgroup/memory/memory.oom_control" },
        { "3:pids,memory2:/b\n0::/c", "/sys/fs/cgroup/c/memory.events" },
        { "1:name=memory:/b\n", NULL },
        { "0::", NULL },
        { "5:memory\n", NULL },
        { "memory:/\n", NULL },
        { "x\n\n", NULL },
        { "", NULL },
    };
    char path[64];

    for (size_t i = 0; i < T_LENGTH(texts); i++) {
        bool ok = gpq_oom_path(texts[i].text, path, sizeof(path));
        T_EQ(ok, texts[i].path != NULL);
        if (ok)
            T_TEXT(path, texts[i].path);
    }
    T_CHECK(!gpq_oom_path("0::/a/path/that/is/longer/than/the/room/for/it/of/sixty-four/bytes\n",
                          path, sizeof(path)));
}

/* The kernel's kill, played by the command. */
static uint64_t kills_of(const char *script)
{
    char assignment[GPQ_PATH + 32], *environment[] = { assignment, NULL };
    struct rig r;
    uint64_t ret;

    rig_open(&r, script);
    (void)snprintf(assignment, sizeof(assignment), "GPQ_TEST_EVENTS=%s/events", r.here);
    rig_start_with(&r, T_STOPPING_RUNNER, environment);
    rig_end(&r);
    ret = r.found.record.end.oom_kills;
    rig_close(&r);
    return ret;
}

static void write_events(const char *text)
{
    FILE *f = fopen("events", "w");

    T_CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

T_CASE(a_kill_while_it_runs)
{
    write_events("max 1\noom_kill 4\n");
    T_EQ(kills_of("echo oom_kill 6 >events; kill -9 $$"), 2);
}

T_CASE(no_kill_while_it_runs)
{
    write_events("max 1\noom_kill 4\n");
    T_EQ(kills_of("kill -9 $$"), 0);
}

T_CASE(no_events)
{
    T_EQ(kills_of("echo oom_kill 1 >events; kill -9 $$"), 0);
}

T_CASE(events_that_are_reset)
{
    write_events("oom_kill 4\n");
    T_EQ(kills_of("echo oom_kill 1 >events"), 0);
}
