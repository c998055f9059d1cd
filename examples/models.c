/* SPDX-License-Identifier: MIT */
/*
 * models.c - three models on two GPUs, each with room for one model: a loaded model stays until
 * another one needs its place.  Three threads send requests, one thread for each model.
 *
 * cc -std=c11 -Wall -Wextra -pthread models.c -o models $(pkg-config --cflags --libs gpudispatch)
 *
 * It prints a line for each of the models double, triple and square:
 *     double: 100 of 100 answers right
 * The GPUs are fakes of 16 GiB here: set devices to "all" for yours.
 */
#define _POSIX_C_SOURCE 200809L
#include <gpudispatch/gpudispatch.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MODELS = 3, REQUESTS = 100 };
static const char *const names[MODELS] = { "double", "triple", "square" };
static gpud_dispatcher *dispatcher;

static int setup(gpud_worker *w, void **ret_state) /* stands for the load of a model */
{
    struct timespec load = { 0, 20000000 };

    *ret_state = (void *)gpud_worker_setup_data(w, NULL); /* the name of the model */
    return nanosleep(&load, NULL);
}

static unsigned answer(const char *model, unsigned n)
{
    return strcmp(model, "square") == 0 ? n * n : strcmp(model, "triple") == 0 ? 3 * n : 2 * n;
}

static int process(gpud_task *t, void *state)
{
    struct timespec run = { 0, 3000000 };
    unsigned result = answer(state, *(const unsigned *)gpud_task_data(t));

    (void)nanosleep(&run, NULL);
    return gpud_task_result_set(t, &result, sizeof result);
}

static int add_model(const char *name, struct gpud_error *error)
{
    struct gpud_request needs = { .struct_size = sizeof needs, .devices = 1,
                                  .memory = 10ull << 30 }; /* so two do not fit into 16 GiB */
    struct gpud_options of = { .struct_size = sizeof of, .setup_data = name,
                               .setup_size = strlen(name) + 1 };
    struct gpud_class c = {
        .struct_size = sizeof c, .name = name, .needs = &needs, .options = &of,
        .min_residence = GPUD_MS(50), /* an idle model may leave after this time [30 s] */
        .max_wait = GPUD_MS(200), /* a busy one leaves for a request that waits this long [5 min] */
    };
    return gpud_dispatcher_class_add(dispatcher, &c, error);
}

static void *serve(void *name)
{
    struct gpud_task_desc task = { .struct_size = sizeof task, .class_name = name, .awaited = 1 };
    struct gpud_event e = GPUD_EVENT_INIT;
    size_t right = 0;
    uint64_t id;

    for (unsigned n = 0; n < REQUESTS; n++) {
        task.data = &n;
        task.size = sizeof n;
        if (gpud_dispatcher_submit(dispatcher, &task, GPUD_NEVER, &id, NULL) ||
            gpud_dispatcher_wait(dispatcher, id, &e, GPUD_NEVER, NULL))
            break;
        right += e.result && *(const unsigned *)e.result == answer(name, n);
        (void)gpud_event_release(&e); /* wait has lent it */
    }
    return (void *)right;
}

int main(void)
{
    static const struct gpud_definition definition = GPUD_DEFINITION("model", setup, process, NULL);
    struct gpud_options o = { .struct_size = sizeof o, .pooled = 1, .devices = "fake:2" };
    struct gpud_error error = GPUD_ERROR_INIT;
    pthread_t threads[MODELS];
    void *right;
    int n = 0, r;

    r = gpud_init(&definition, 1, &error) || gpud_dispatcher_create(&dispatcher, &o, &error);
    for (; !r && n < MODELS; n++)
        r = add_model(names[n], &error);
    if (r)
        return fprintf(stderr, "models: %s\n", error.text), 1;
    for (n = 0; n < MODELS; n++)
        if (pthread_create(&threads[n], NULL, serve, (void *)names[n]))
            return perror("models"), 1;
    for (n = 0; n < MODELS && pthread_join(threads[n], &right) == 0; n++)
        printf("%s: %zu of %d answers right\n", names[n], (size_t)right, REQUESTS);
    return gpud_dispatcher_destroy(&dispatcher, NULL) || gpud_fini();
}
