/* SPDX-License-Identifier: MIT */
/* program.c - the bundled worker program: a worker that loads a plugin, or the spawner of a host
 * that has not called gpud_init. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/definitions.h"
#include "api/process.h"
#include "base/versioned.h"
#include "base/failure.h"
#include "gpudispatch/plugin.h"
#include "keeper/spawner.h"
#include "monitor/monitor.h"
#include "os/message.h"
#include "wire/hello.h"
#include "worker/birth.h"

#define LEAST_SIZE 24u /* up to n_definitions */

/* ---- a plugin ---- */

/* The object stays loaded: its code is the worker. */
static int load(const char *path, struct gpud_definition **ret, size_t *ret_n, struct gpud_error *e)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    struct gpud_error why = GPUD_ERROR_INIT;
    const struct gpud_plugin *p;

    if (!object)
        return gpi_fail(e, GPUD_EPLUGIN, 0, "plugin", "%s", dlerror());
    p = dlsym(object, "gpud_plugin");
    if (!p)
        return gpi_fail(e, GPUD_EPLUGIN, 0, "plugin",
                        "%.100s has no symbol gpud_plugin: define it with GPUD_PLUGIN of plugin.h",
                        path);
    if (!gpi_versioned_sized(p->struct_size, LEAST_SIZE))
        return gpi_fail(e, GPUD_EPLUGIN, 0, "struct_size",
                        "%.100s: gpud_plugin.struct_size is %u, expected %zu", path, p->struct_size,
                        sizeof *p);
    if (p->abi != GPUD_PLUGIN_ABI)
        return gpi_fail(e, GPUD_EPLUGIN, 0, "abi", "%.100s has plugin ABI %u, expected %u", path,
                        p->abi, GPUD_PLUGIN_ABI);
    *ret_n = p->n_definitions;
    if (gpi_definitions_copy(ret, p->definitions, p->n_definitions, &why))
        return gpi_fail(e, GPUD_EPLUGIN, 0, "definitions", "%.100s: %.110s", path, why.text);
    return 0;
}

/* ---- the spawner ---- */

/* "DOOR HOST": numbers of the socket and of the host's pidfd. */
static int run_spawner(const char *fds, struct gpud_error *e)
{
    static struct gpi_spawner_plan plan; /* in a process of its own */
    char *end;
    long door, host;

    door = strtol(fds, &end, 10);
    host = strtol(end, &end, 10);
    if (*end || door < 3 || host < 3 || door > INT32_MAX || host > INT32_MAX)
        return gpi_fail(e, GPUD_EINVAL, 0, "argv", "--spawner is an option for the library alone");
    (void)fcntl((int)door, F_SETFD, FD_CLOEXEC);
    (void)fcntl((int)host, F_SETFD, FD_CLOEXEC);
    plan = (struct gpi_spawner_plan){ .door = (int)door,
                                      .host_fd = (int)host,
                                      .monitor = gpi_monitor_run };
    gpi_spawner_run(&plan);
}

/* ---- both ---- */

int gpud_worker_main(int argc, char **argv, struct gpud_error *reterr)
{
    struct gpud_error own = GPUD_ERROR_INIT,
                      *e = reterr && reterr->struct_size >= sizeof own ? reterr : &own;
    struct gpud_definition *definitions = NULL;
    size_t n = 0;
    struct gpi_worker_plan plan;
    struct gpi_call call;
    bool called;
    int r;

    if (argc == 3 && !strcmp(argv[1], "--spawner"))
        return run_spawner(argv[2], e);
    called = gpi_birth_called(&call);
    if (called && !gpi_birth_ours(&call)) {
        gpi_birth_decline(&call);
        called = false;
    }
    if (called)
        /* first: what the object does while it is loaded is bounded by the setup limit */
        gpi_birth_answer(&plan, &call);
    r = argc == 2 ? load(argv[1], &definitions, &n, e)
                  : gpi_fail(e, GPUD_EINVAL, 0, "argv", "expected one argument, the plugin");
    if (called && r)
        gpi_birth_fail(&plan, r, e->text);
    if (called)
        gpi_birth_run(&plan, definitions, n);
    return r;
}
