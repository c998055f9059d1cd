/* SPDX-License-Identifier: MIT */
#include "api/surroundings.h"

#include <string.h>

#include "base/failure.h"

/* What every worker is told by us, and those on GPUs and fakes. */
static const char *const ours[] = { "GPUD_SLOT", "GPUD_INCARNATION", "GPUD_DEVICES",
                                    "GPUD_DEVICE_UUIDS", "GPUD_WORKER" };
static const char *const ours_on_gpus[] = { "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER" };

static bool is_one_of(const char *pair, const char *const *names, size_t count)
{
    const size_t n = strcspn(pair, "=");

    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == n && !strncmp(names[i], pair, n))
            return true;
    return false;
}

static int check_env(const char *const *env, struct gpud_error *e)
{
    for (size_t i = 0; env && env[i]; i++) {
        if (!env[i][0] || env[i][0] == '=')
            return gpi_fail(e, GPUD_EINVAL, 0, "env",
                            "env[%zu], \"%.80s\", names no variable, expected NAME=VALUE or NAME",
                            i, env[i]);
        if (is_one_of(env[i], ours, sizeof ours / sizeof *ours))
            return gpi_fail(e, GPUD_EINVAL, 0, "env",
                            "env[%zu], \"%.80s\": the library sets this variable in each worker", i,
                            env[i]);
    }
    return 0;
}

int gpi_surroundings_on_gpus(const char *const *env, struct gpud_error *e)
{
    for (size_t i = 0; env && env[i]; i++)
        if (is_one_of(env[i], ours_on_gpus, sizeof ours_on_gpus / sizeof *ours_on_gpus))
            return gpi_fail(e, GPUD_EINVAL, 0, "env",
                            "env[%zu], \"%.80s\": the library sets this variable in each worker on "
                            "a GPU or a fake",
                            i, env[i]);
    return 0;
}

int gpi_surroundings_read(struct gpi_launch *l, const struct gpud_options *o, struct gpud_error *e)
{
    if (o->stdio > GPUD_STDIO_EVENTS)
        return gpi_fail_most(e, "", "stdio", o->stdio, GPUD_STDIO_EVENTS);
    if (o->stdio == GPUD_STDIO_FILE && (!o->stdio_path || !*o->stdio_path))
        return gpi_fail(e, GPUD_EINVAL, 0, "stdio_path", "stdio is FILE, but stdio_path is %s",
                        o->stdio_path ? "empty" : "NULL");
    if (o->stdio != GPUD_STDIO_FILE && o->stdio_path)
        return gpi_fail(e, GPUD_EINVAL, 0, "stdio_path",
                        "stdio_path is \"%.80s\", but stdio is not FILE", o->stdio_path);
    if (o->cwd && !*o->cwd)
        return gpi_fail(e, GPUD_EINVAL, 0, "cwd", "cwd is empty, expected a directory");
    l->stdio = o->stdio;
    l->stdio_path = o->stdio_path;
    l->cwd = o->cwd;
    l->env = o->env;
    return check_env(o->env, e);
}
