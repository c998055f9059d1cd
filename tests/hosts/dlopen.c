/* SPDX-License-Identifier: MIT */
/*
 * dlopen.c - a host that does not link the library: it opens it, uses it, and closes it again.
 * A program of its own, without the harness, which links it; the runner starts `hosts_dlopen CASE`.
 */
#define _GNU_SOURCE
#include <gpudispatch/gpudispatch.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            (void)fprintf(stderr, "dlopen.c:%d: not so: %s\n", __LINE__, #condition); \
            _exit(1);                                                       \
        }                                                                   \
    } while (0)

/* What this host uses; the workers are copies of it and find the same addresses. */
static struct {
    __typeof__(gpud_init) *init;
    __typeof__(gpud_fini) *fini;
    __typeof__(gpud_dispatcher_create) *create;
    __typeof__(gpud_dispatcher_submit) *submit;
    __typeof__(gpud_dispatcher_poll) *poll;
    __typeof__(gpud_dispatcher_destroy) *destroy;
    __typeof__(gpud_task_data) *data;
    __typeof__(gpud_task_result_set) *result_set;
    __typeof__(gpud_task_expired) *expired;
} lib;

enum { TASKS = 200, CRASH = 1000, LATE };

static int process(gpud_task *t, void *state)
{
    unsigned n;

    (void)state;
    memcpy(&n, lib.data(t), sizeof(n));
    if (n == CRASH)
        (void)kill(getpid(), SIGKILL);
    while (n == LATE && !lib.expired(t))
        (void)pause();
    n *= n;
    return lib.result_set(t, &n, sizeof(n));
}

static void take(void *library, const char *name, void *place)
{
    void *symbol = dlsym(library, name);

    CHECK(symbol);
    memcpy(place, &symbol, sizeof(symbol));
}

static void *open_library(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        (void)fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    take(library, "gpud_init", &lib.init);
    take(library, "gpud_fini", &lib.fini);
    take(library, "gpud_dispatcher_create", &lib.create);
    take(library, "gpud_dispatcher_submit", &lib.submit);
    take(library, "gpud_dispatcher_poll", &lib.poll);
    take(library, "gpud_dispatcher_destroy", &lib.destroy);
    take(library, "gpud_task_data", &lib.data);
    take(library, "gpud_task_result_set", &lib.result_set);
    take(library, "gpud_task_expired", &lib.expired);
    return library;
}

static int is_mapped(void)
{
    FILE *in = fopen("/proc/self/maps", "re");
    char line[1024];
    int found = 0;

    CHECK(in);
    while (fgets(line, sizeof(line), in))
        found |= strstr(line, "gpudispatch.so") != NULL || strstr(line, "memfd:gpud") != NULL;
    (void)fclose(in);
    return found;
}

static void submit(gpud_dispatcher *d, unsigned n)
{
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;

    task.data = &n;
    task.size = sizeof(n);
    task.tag = n;
    task.limit = n == LATE ? 20000000 : 0;
    CHECK(lib.submit(d, &task, 0, NULL, NULL) == 0);
}

static void check(const struct gpud_event *e, unsigned *seen)
{
    const uint32_t wanted = e->tag == CRASH  ? GPUD_OUTCOME_CRASHED
                            : e->tag == LATE ? GPUD_OUTCOME_TIMEOUT
                                             : GPUD_OUTCOME_SUCCESS;

    CHECK(e->outcome == wanted);
    CHECK(wanted != GPUD_OUTCOME_SUCCESS || *(const unsigned *)e->result == e->tag * e->tag);
    CHECK(seen[e->tag]++ == 0);
}

static void work(void)
{
    const struct gpud_definition definition = GPUD_DEFINITION("square", NULL, process, NULL);
    struct gpud_options options = GPUD_OPTIONS_INIT;
    unsigned seen[LATE + 1] = { 0 }, count = 0;
    gpud_dispatcher *d = NULL;

    options.devices = "cpu:2";
    CHECK(lib.init(&definition, 1, NULL) == 0);
    CHECK(lib.create(&d, &options, NULL) == 0);
    for (unsigned n = 0; n < TASKS; n++)
        submit(d, n);
    submit(d, CRASH);
    submit(d, LATE);
    while (count < TASKS + 2) {
        struct gpud_event e[16] = { { .struct_size = sizeof(e[0]) } };
        int n = lib.poll(d, e, 16, 20000000000U);

        CHECK(n > 0);
        for (int i = 0; i < n; i++)
            if (e[i].kind == GPUD_EVENT_OUTCOME) {
                check(&e[i], seen);
                count++;
            }
    }
    CHECK(lib.destroy(&d, NULL) == 0);
    CHECK(lib.fini() == 0);
}

/* The library is opened, used and closed ten times; each time it is gone afterwards, with all it
 * had. */
static void opened_and_closed(void)
{
    CHECK(!is_mapped());
    for (int round = 0; round < 10; round++) {
        void *library = open_library();

        CHECK(is_mapped());
        work();
        CHECK(dlclose(library) == 0);
        CHECK(!is_mapped());
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--list"))
        puts("opened_and_closed 60");
    else if (argc == 2 && !strcmp(argv[1], "opened_and_closed"))
        opened_and_closed();
    else
        return 2;
    return 0;
}
