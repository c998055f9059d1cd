/* SPDX-License-Identifier: MIT */
/*
 * mixed.c - a mixed batch: each picture is a task for a CPU, and then a task for a part of a GPU.
 * Both are classes of one dispatcher, which divides two GPUs and two CPU slots among them.
 *
 * cc -std=c11 -Wall -Wextra mixed.c -o mixed $(pkg-config --cflags --libs gpudispatch)
 *
 * It prints the tasks of each class, and the sum of all results:
 *     shrink: 40 done
 *     label: 40 done
 *     sum of 40 labels: 230
 * The GPUs are fakes of 16 GiB here: set devices to "all" for yours.
 */
#define _POSIX_C_SOURCE 200809L
#include <gpudispatch/gpudispatch.h>
#include <stdio.h>
#include <time.h>

enum { PICTURES = 40, SHRINKERS = 2, LABELLERS = 8, LABEL = 1000 };

static int work(gpud_task *t, long ms, unsigned result) /* stands for yours */
{
    struct timespec time = { 0, ms * 1000000 };

    (void)nanosleep(&time, NULL);
    return gpud_task_result_set(t, &result, sizeof result);
}

static int shrink(gpud_task *t, void *state) /* runs in a worker without a GPU */
{
    (void)state;
    return work(t, 2, *(const unsigned *)gpud_task_data(t) + 10);
}

static int label(gpud_task *t, void *state) /* runs in one of several workers of a GPU */
{
    (void)state;
    return work(t, 8, *(const unsigned *)gpud_task_data(t) % 11 + 1);
}

static int add_classes(gpud_dispatcher *d, struct gpud_error *error)
{
    struct gpud_request cpu = { .struct_size = sizeof cpu, .cpus = 1 }; /* of a running task */
    struct gpud_request part = { .struct_size = sizeof part, .devices = 1,
                                 .memory = 3ull << 30, /* of a worker, as long as it lives */
                                 .share = 2500 };      /* of a running task: 25 % of a GPU */
    struct gpud_options of = GPUD_OPTIONS_INIT;
    struct gpud_class c = { .struct_size = sizeof c, .options = &of };
    int r;

    c.name = of.definition = "shrink";
    c.needs = &cpu;
    r = gpud_dispatcher_class_add(d, &c, error);
    c.name = of.definition = "label";
    c.needs = &part;
    return r ? r : gpud_dispatcher_class_add(d, &c, error);
}

static int submit(gpud_dispatcher *d, const char *name, uint64_t tag, const unsigned *n)
{
    struct gpud_task_desc task = { .struct_size = sizeof task, .class_name = name, .tag = tag,
                                   .data = n, .size = sizeof *n };
    return gpud_dispatcher_submit(d, &task, 0, NULL, NULL); /* the queue has room for 1,024 */
}

int main(void)
{
    static const struct gpud_definition definitions[] = {
        GPUD_DEFINITION("shrink", NULL, shrink, NULL), GPUD_DEFINITION("label", NULL, label, NULL)
    };
    struct gpud_options options = { .struct_size = sizeof options, .pooled = 1,
                                    .devices = "fake:2", .cpus = 2,
                                    .max_workers = SHRINKERS + LABELLERS };
    struct gpud_class_stats row[2] = { GPUD_CLASS_STATS_INIT }; /* the first has the struct_size */
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpud_event e = GPUD_EVENT_INIT;
    gpud_dispatcher *d = NULL;
    unsigned left = PICTURES, sum = 0;

    if (gpud_init(definitions, 2, &error) || gpud_dispatcher_create(&d, &options, &error) ||
        add_classes(d, &error))
        return fprintf(stderr, "mixed: %s\n", error.text), 1;
    for (unsigned n = 0; n < PICTURES; n++)
        (void)submit(d, "shrink", n, &n); /* its tag is n, and then LABEL + n */
    while (left > 0 && gpud_dispatcher_poll(d, &e, 1, GPUD_NEVER) > 0) {
        int good = e.kind == GPUD_EVENT_OUTCOME && e.outcome == GPUD_OUTCOME_SUCCESS;
        if (good && e.tag < LABEL && submit(d, "label", e.tag + LABEL, e.result) == 0)
            continue; /* its second task is on its way */
        sum += good ? *(const unsigned *)e.result : 0;
        left -= e.kind == GPUD_EVENT_OUTCOME;
    }
    (void)gpud_dispatcher_classes(d, row, 2);
    for (int i = 0; i < 2; i++)
        printf("%s: %llu done\n", row[i].name, (unsigned long long)row[i].done);
    printf("sum of %d labels: %u\n", PICTURES, sum);
    return gpud_dispatcher_destroy(&d, NULL) || gpud_fini();
}
