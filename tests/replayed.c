/* SPDX-License-Identifier: MIT */
#include "replayed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sched/core.h"

static char *replay(const char *path, struct gpi_replay *r)
{
    char *text;
    size_t size;
    enum gpi_replay_result result;

    text = gpi_replay_file(path, &size);
    if (!text)
        T_FAIL("%s: %s", path, strerror(errno));
    T_EQ(strlen(text), size);
    T_CHECK(strncmp(text, "# decision log, libgpudispatch ", 31) == 0);
    result = gpi_replay(r, text, size);
    if (result != GPI_REPLAY_EQUAL)
        T_FAIL("%s:%u: %s: the log has \"%s\", a fresh core \"%s\"", path, r->line, r->error,
               r->wanted, r->got);
    return text;
}

char *t_replayed(const char *path, struct gpi_replay *ret)
{
    *ret = (struct gpi_replay){ .cut = true };
    return replay(path, ret);
}

static void keep_stats(struct gpi_sched *core, void *user)
{
    if (!core->plan)
        T_FAIL("%s is of a dispatcher that is not pooled", T_DECISIONS);
    *(struct gpi_plan_stats *)user = *gpi_plan_stats(core->plan);
}

struct gpi_plan_stats t_end_replayed(gpud_dispatcher **d, struct t_log *log)
{
    static const char end[] = "\n# end\n";
    struct gpi_plan_stats stats = { 0 };
    struct gpi_replay r = { .cut = true, .end = keep_stats, .user = &stats };
    size_t size;
    char *text;

    t_end(d, log);
    text = replay(T_DECISIONS, &r);
    size = strlen(text);
    T_CHECK(size >= strlen(end) && strcmp(text + size - strlen(end), end) == 0);
    T_CHECK(!r.was_cut && !r.torn);
    free(text);
    T_EQ(unlink(T_DECISIONS), 0);
    return stats;
}
