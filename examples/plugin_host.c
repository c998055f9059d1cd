/* SPDX-License-Identifier: MIT */
/*
 * plugin_host.c - the host's half of a program whose workers run a shared object, here plugin.c.
 *
 * cc -std=c11 -Wall -Wextra plugin_host.c -o plugin_host $(pkg-config --cflags --libs gpudispatch)
 *
 * ./plugin_host ./plugin.so PATTERN FILE... prints for each file the number of matching lines, or
 * the reason why there is none:
 *     12 /etc/services
 *     /etc/shadow: ERROR Permission denied
 * It does not call gpud_init.  The workers run none of its code, so the host may be large, have
 * threads and use CUDA.  Exit status: 0 if all files were counted, 1 if some were not, 2 if the
 * run could not begin.
 */
#include <gpudispatch/gpudispatch.h>
#include <stdio.h>
#include <string.h>

static int submit(gpud_dispatcher *d, const char *name, int number)
{
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;

    task.data = name;
    task.size = strlen(name) + 1;
    task.tag = (uint64_t)number; /* the event has the same tag, which identifies the file */
    return gpud_dispatcher_submit(d, &task, 0, NULL, NULL);
}

/* Prints one event.  Returns 1 for a file that was counted. */
static int print_event(const struct gpud_event *e, char **names)
{
    uint64_t matches;

    if (e->kind == GPUD_EVENT_SETUP_FAILURE)
        fprintf(stderr, "plugin_host: %s cannot start: %s\n", e->device, e->text);
    if (e->kind != GPUD_EVENT_OUTCOME)
        return 0;
    if (e->outcome != GPUD_OUTCOME_SUCCESS || e->result_size != sizeof matches) {
        printf("%s: %s %s\n", names[e->tag], gpud_outcome_name(e->outcome), e->text);
        return 0;
    }
    /* Another program has written the result, so the size was checked first. */
    memcpy(&matches, e->result, sizeof matches);
    printf("%llu %s\n", (unsigned long long)matches, names[e->tag]);
    return 1;
}

int main(int argc, char **argv)
{
    struct gpud_options options = GPUD_OPTIONS_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpud_event e = GPUD_EVENT_INIT;
    gpud_dispatcher *d = NULL;
    int r, counted = 0;

    if (argc < 4) {
        fprintf(stderr, "usage: plugin_host PLUGIN PATTERN FILE...\n");
        return 2;
    }
    options.plugin = argv[1];
    options.definition = "count";
    options.setup_data = argv[2];
    options.setup_size = strlen(argv[2]) + 1;
    options.devices = "cpu:2";
    options.queue_size = (uint32_t)argc; /* room for all tasks before the first poll */
    options.failures_in_a_row = 1;       /* a second try would meet the same bad pattern */
    if (gpud_dispatcher_create(&d, &options, &error)) {
        fprintf(stderr, "plugin_host: %s\n", error.text);
        return 2;
    }
    for (int i = 3; i < argc; i++)
        if ((r = submit(d, argv[i], i))) {
            fprintf(stderr, "plugin_host: %s: %s\n", argv[i], gpud_error_text(r));
            return 2;
        }
    (void)gpud_dispatcher_close(d, GPUD_FINISH_ALL, GPUD_NEVER);
    while ((r = gpud_dispatcher_poll(d, &e, 1, GPUD_NEVER)) > 0)
        counted += print_event(&e, argv);
    (void)gpud_dispatcher_destroy(&d, NULL);
    if (r != GPUD_EEND)
        fprintf(stderr, "plugin_host: %s\n", gpud_error_text(r));
    return r == GPUD_EEND && counted == argc - 3 ? 0 : 1;
}
