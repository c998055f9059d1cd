/* SPDX-License-Identifier: MIT */
/* definitions.c - the worker's side of tests/python, where no Python runs. */
#include <gpudispatch/gpudispatch.h>

static int echo(gpud_task *t, void *state)
{
    (void)state;
    return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
}

extern __attribute__((visibility("default"))) const struct gpud_definition t_definitions[];
const struct gpud_definition t_definitions[] = { GPUD_DEFINITION("echo", NULL, echo, NULL) };
