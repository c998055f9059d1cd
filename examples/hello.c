/* SPDX-License-Identifier: MIT */
/* hello.c - the smallest program: two workers run four tasks.  It prints "hello 1" to "hello 4".
 * cc -std=c11 -Wall -Wextra hello.c -o hello $(pkg-config --cflags --libs gpudispatch) */
#include <gpudispatch/gpudispatch.h>
#include <stdio.h>
static int greet(gpud_task *t, void *state) /* runs in a worker process */
{
    char text[64];
    int size = snprintf(text, sizeof text, "hello %d", *(const int *)gpud_task_data(t)) + 1;
    return (void)state, gpud_task_result_set(t, text, (size_t)size); /* the host gets the text */
}
int main(void)
{
    int n = 1, r = 0;
    struct gpud_definition definition = GPUD_DEFINITION("greet", NULL, greet, NULL);
    struct gpud_options options = { .struct_size = sizeof options, .devices = "cpu:2" };
    struct gpud_task_desc task = { .struct_size = sizeof task, .data = &n, .size = sizeof n };
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpud_event e = GPUD_EVENT_INIT;
    gpud_dispatcher *d = NULL;
    if (gpud_init(&definition, 1, &error) || gpud_dispatcher_create(&d, &options, &error))
        return fprintf(stderr, "hello: %s\n", error.text), 1;
    for (; n <= 4 && r == 0; n++)
        r = gpud_dispatcher_submit(d, &task, 0, NULL, NULL); /* copies the data */
    r = r ? r : gpud_dispatcher_close(d, GPUD_FINISH_ALL, GPUD_NEVER); /* no more tasks */
    while (r >= 0 && (r = gpud_dispatcher_poll(d, &e, 1, GPUD_NEVER)) > 0)
        if (e.kind == GPUD_EVENT_OUTCOME) /* in the order in which the tasks end */
            puts(e.outcome == GPUD_OUTCOME_SUCCESS ? e.result : e.text);
    return gpud_dispatcher_destroy(&d, NULL) || gpud_fini() || r != GPUD_EEND;
}
