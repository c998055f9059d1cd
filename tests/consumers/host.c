/* SPDX-License-Identifier: MIT */
/* host.c - a program that uses an installed library: 20 numbers come back squared, from two workers
 * of its own, or from those of the plugin that it is given. */
#include <gpudispatch/gpudispatch.h>
#include <stdio.h>

#define TASKS 20u

static int square(gpud_task *t, void *state)
{
    const unsigned *n = gpud_task_data(t);
    unsigned result = *n * *n;

    (void)state;
    return gpud_task_result_set(t, &result, sizeof result);
}

static int submit(gpud_dispatcher *d)
{
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;
    int r = 0;

    for (unsigned n = 0; n < TASKS && r == 0; n++) {
        task.data = &n;
        task.size = sizeof n;
        task.tag = n;
        r = gpud_dispatcher_submit(d, &task, 0, NULL, NULL);
    }
    return r ? r : gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0);
}

/* How many came back right. */
static unsigned collect(gpud_dispatcher *d)
{
    struct gpud_event e = GPUD_EVENT_INIT;
    unsigned right = 0;

    while (gpud_dispatcher_poll(d, &e, 1, GPUD_NEVER) > 0) {
        if (e.kind == GPUD_EVENT_OUTCOME && e.outcome == GPUD_OUTCOME_SUCCESS &&
            *(const unsigned *)e.result == e.tag * e.tag)
            right++;
        else if (e.text && *e.text)
            (void)fprintf(stderr, "%s\n", e.text);
    }
    return right;
}

int main(int argc, char **argv)
{
    static const struct gpud_definition definitions[] = { GPUD_DEFINITION("square", NULL, square,
                                                                          NULL) };
    struct gpud_options options = GPUD_OPTIONS_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;
    unsigned right;

    options.devices = "cpu:2";
    options.plugin = argc > 1 ? argv[1] : NULL;
    if ((argc == 1 && gpud_init(definitions, 1, &error)) ||
        gpud_dispatcher_create(&d, &options, &error)) {
        (void)fprintf(stderr, "%s: %s\n", gpud_error_name(error.code), error.text);
        return 1;
    }
    right = submit(d) ? 0 : collect(d);
    if (gpud_dispatcher_destroy(&d, NULL) || (argc == 1 && gpud_fini()))
        return 1;
    (void)printf("%u of %u, version %s\n", right, TASKS, gpud_version());
    return right == TASKS ? 0 : 1;
}
