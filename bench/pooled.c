/* SPDX-License-Identifier: MIT */
#include "pooled.h"

#include <stdlib.h>

#include "report.h"

static int add(struct b_ours *o, const struct b_pooled_class *c, int cpu)
{
    const struct b_life life = { .cpu = cpu, .boot = c->boot, .unload = c->unload };
    struct gpud_options options = GPUD_OPTIONS_INIT;
    struct gpud_request needs = GPUD_REQUEST_INIT;
    struct gpud_class class = GPUD_CLASS_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    int rc;

    options.definition = "model";
    options.setup_data = &life;
    options.setup_size = sizeof(life);
    options.sent_ahead = c->sent_ahead;
    options.task_limit = c->task_limit;
    options.grace = c->grace;
    needs.devices = c->devices;
    needs.share = c->share;
    needs.memory = c->memory;
    class.name = c->name;
    class.residence = c->residence;
    class.needs = &needs;
    class.options = &options;
    class.min_workers = c->workers;
    class.max_workers = c->workers;
    class.min_residence = c->min_residence;
    class.max_wait = c->max_wait;
    class.boot_seed = c->boot;
    class.unload_seed = c->unload;
    class.run_seed = c->run;
    rc = gpud_dispatcher_class_add(o->d, &class, &error);
    return rc ? b_ours_complain("gpud_dispatcher_class_add", rc, &error) : 0;
}

static int add_all(struct b_ours *o, const struct b_pooled_class *class, unsigned n, int cpu)
{
    const char **names = calloc(n, sizeof(*names));
    unsigned i, workers = 0;

    if (!names)
        return b_complain("out of memory");
    o->names = names;
    for (i = 0; i < n; i++) {
        names[i] = class[i].name;
        workers += class[i].workers;
        if (add(o, &class[i], cpu))
            return -1;
    }
    o->n_names = n;
    return workers > 0 ? b_ours_wait_ready(o, workers, GPUD_DRIVE_CALLER) : 0;
}

int b_pooled_open(struct b_ours *o, const struct b_pooled_options *options,
                  const struct b_pooled_class *class, unsigned n)
{
    struct gpud_options wanted = GPUD_OPTIONS_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    int rc;

    wanted.pooled = 1;
    wanted.devices = options->devices;
    wanted.decision_log = options->log;
    wanted.queue_size = options->queue_size;
    wanted.drive = GPUD_DRIVE_CALLER;
    wanted.log_level = GPUD_LEVEL_ERROR;
    rc = b_ours_create(o, &wanted, &error);
    if (rc)
        (void)b_ours_complain("gpud_dispatcher_create", rc, &error);
    else
        rc = add_all(o, class, n, options->cpu);
    if (rc)
        b_pooled_close(o);
    return rc ? -1 : 0;
}

void b_pooled_close(struct b_ours *o)
{
    b_ours_close(o);
    free((void *)o->names);
    o->names = NULL;
}
