/* SPDX-License-Identifier: MIT */
/* plugin.c - squares numbers in workers that the installed program runs. */
#include <gpudispatch/gpudispatch.h>
#include <gpudispatch/plugin.h>

static int square(gpud_task *t, void *state)
{
    const unsigned *n = gpud_task_data(t);
    unsigned result = *n * *n;

    (void)state;
    return gpud_task_result_set(t, &result, sizeof result);
}

static const struct gpud_definition definitions[] = { GPUD_DEFINITION("square", NULL, square,
                                                                      NULL) };
GPUD_PLUGIN(definitions);
