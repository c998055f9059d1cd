/* SPDX-License-Identifier: MIT */
#include "api/start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/failure.h"
#include "worker/birth.h"
#include "wire/page.h"

#define MUCH (256ull << 20) /* a fork of more is slow: 1 GiB breaks the 5 ms of C8 */

/* ---- what contradicts itself, or the process ---- */

int gpi_start_allowed(const struct gpi_process *p, const char *field, struct gpud_error *e)
{
    if (!p && gpi_process_forked())
        return gpi_fail(e, GPUD_EFORKED, 0, "",
                        "gpud_init was called in the parent process: call it in this process, too");
    if (!p && gpi_birth_awaited()) /* else workers that make dispatchers that start workers */
        return gpi_fail(
            e, GPUD_EPROTOCOL, 0, field,
            "this process was started as a worker: it must call gpud_init, not create a "
            "dispatcher; a host whose argv names itself needs an argument that marks the worker");
    return 0;
}

bool gpi_start_needs_own(const struct gpi_process *p)
{
    return !p || gpi_process_changed(p);
}

static int check(const struct gpud_options *o, const struct gpi_process *p, struct gpud_error *e)
{
    const char *given = o->argv ? "argv" : "plugin";
    const bool other = o->argv || o->plugin;
    int r = gpi_start_allowed(p, given, e);

    if (r)
        return r;
    if (o->start > GPUD_START_EXEC)
        return gpi_fail_most(e, "", "start", o->start, GPUD_START_EXEC);
    if (o->argv && o->plugin)
        return gpi_fail(e, GPUD_EINVAL, 0, "plugin",
                        "argv and plugin are both set: set one of them");
    if (other && o->start == GPUD_START_FORK)
        return gpi_fail(e, GPUD_EINVAL, 0, given,
                        "%s is set, but start is FORK: set start to EXEC or AUTO", given);
    if (o->argv && (!o->argv[0] || !*o->argv[0]))
        return gpi_fail(e, GPUD_EINVAL, 0, "argv", "argv[0] is NULL or empty, expected a program");
    if (o->plugin && !*o->plugin)
        return gpi_fail(e, GPUD_EINVAL, 0, "plugin", "plugin is empty, expected a file");
    if (o->definition && strnlen(o->definition, GPI_NAME_SIZE) == GPI_NAME_SIZE)
        return gpi_fail(e, GPUD_ENODEFINITION, 0, "definition",
                        "definition \"%.*s...\" is too long, the maximum is %u bytes",
                        (int)GPI_NAME_SIZE - 1, o->definition, GPI_NAME_SIZE - 1);
    return 0;
}

static int find_definition(struct gpi_start *s, const struct gpi_process *p,
                           const struct gpud_options *o, struct gpud_error *e)
{
    const char *name = o->definition;
    if (!name && p->n_definitions != 1)
        return gpi_fail(e, GPUD_EINVAL, 0, "definition",
                        "definition is NULL, expected the name of one of the %u definitions",
                        p->n_definitions);
    for (uint32_t i = 0; i < p->n_definitions; i++)
        if (!name || !strcmp(p->definition[i].name, name)) {
            s->definition = i;
            s->name = p->definition[i].name;
            return o->max_batch > 1 && !p->definition[i].process_batch
                       ? gpi_fail(e, GPUD_EINVAL, 0, "max_batch",
                                  "max_batch is %u, but definition %.64s has no process_batch",
                                  o->max_batch, s->name)
                       : 0;
        }
    return gpi_fail(e, GPUD_ENODEFINITION, 0, "definition", "no definition is named \"%.80s\"",
                    name);
}

/* ---- the programs ---- */

static int same_program(struct gpi_start *s, const struct gpi_process *p, struct gpud_error *e)
{
    const int err = p->program_errno, code = err == ENOMEM                    ? GPUD_ENOMEM
                                             : err == EMFILE || err == ENFILE ? GPUD_ESYSTEM
                                                                              : GPUD_ENOPROGRAM;

    if (p->program < 0 || !p->argv || !p->argv[0])
        return gpi_fail(
            e, code, err, "start",
            "gpud_init could not read the program's path and arguments from /proc: set argv");
    s->program_fd = p->program;
    s->launch.has_program = 1;
    s->launch.argv = (const char *const *)p->argv;
    return 0;
}

static int other_program(struct gpi_start *s, const struct gpud_options *o, struct gpud_error *e)
{
    int r;

    s->launch.program = s->program;
    if (o->argv) {
        s->launch.argv = o->argv;
        return gpi_lookup_program(s->program, o->argv[0], "argv", e);
    }
    r = gpi_lookup_plugin(s->plugin, o->plugin, e);
    if (r == 0)
        r = gpi_lookup_worker(s->program, e);
    s->argv[0] = s->program;
    s->argv[1] = s->launch.plugin = s->plugin;
    s->launch.argv = s->argv;
    return r;
}

/* ---- what the user should know ---- */

static void remark_forked(struct gpi_start *s, const struct gpi_process *p)
{
    if (!p->threads && p->resident < MUCH)
        return;
    s->remark_level = GPUD_LEVEL_WARNING;
    if (p->threads)
        snprintf(s->remark, sizeof s->remark,
                 "the host had several threads at gpud_init; a lock that one of them held then "
                 "stays held in forked workers (call it earlier, or start)");
    else
        snprintf(s->remark, sizeof s->remark,
                 "the host had %llu MiB at gpud_init; each forked worker copies its page tables, "
                 "and deaths are reported late (call it earlier, or start)",
                 (unsigned long long)(p->resident >> 20));
}

static void remark_executed(struct gpi_start *s, bool changed)
{
    s->remark_level = GPUD_LEVEL_INFO;
    snprintf(s->remark, sizeof s->remark,
             "%s gpud_init; the host executes workers, it does not fork them (start)",
             changed ? "credentials have changed since" : "CUDA was in use at");
}

int gpi_start_choose(struct gpi_start *ret, const struct gpud_options *o,
                     const struct gpi_process *p, struct gpud_error *e)
{
    const bool other = o->argv || o->plugin, changed = p && gpi_process_changed(p);
    int r = check(o, p, e);

    if (r)
        return r;
    ret->program_fd = -1;
    ret->name = o->definition ? o->definition : "";
    ret->own_spawner = gpi_start_needs_own(p);
    ret->launch.start = GPUD_START_EXEC;
    if (other)
        return other_program(ret, o, e);
    if (!p)
        return gpi_fail(e, GPUD_ENOINIT, 0, "",
                        "call gpud_init first, early in main, or start another program (argv or "
                        "plugin)");
    r = find_definition(ret, p, o, e);
    if (r)
        return r;
    if (o->start == GPUD_START_EXEC || (o->start == GPUD_START_AUTO && (changed || p->cuda))) {
        if (o->start == GPUD_START_AUTO)
            remark_executed(ret, changed);
        return same_program(ret, p, e);
    }
    if (changed)
        return gpi_fail(e, GPUD_ECREDS, 0, "start",
                        "forked workers would have the credentials of gpud_init: call it after "
                        "dropping privileges, or set start to EXEC");
    ret->launch.start = GPUD_START_FORK;
    remark_forked(ret, p);
    return 0;
}
