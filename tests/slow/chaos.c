/* SPDX-License-Identifier: MIT */
/*
 * chaos - kills workers at random moments, and counts.
 *
 *     chaos [--rounds R] [--tasks T] [--workers W] [--kills K] [--classes C] [--seed S] [--json]
 *
 * Each round gives T tasks (nearly all empty, some of 1-5 ms so that kills hit running ones) and,
 * meanwhile, kills K workers at random moments of the round, BUSY ones where there are any.  Half
 * the rounds make a dispatcher of their own, the others share one.  With C classes the dispatchers
 * are pooled: they have W fake devices, and tasks of all classes, some with requests of their own.
 * Meanwhile classes are unloaded or paused, and devices drained.  Every accepted task must be
 * delivered exactly once [C1], only running ones are charged [C2], and in the end no file, thread,
 * child or mapping is left [C19].  Exit 1 when anything is lost, doubled, leaked or hangs.
 */
#include "fixture.h"

#include "lots.h"
#include "snapshot.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_WORKERS = 64, MAX_CLASSES = 8, WATCHDOG_S = 60 };

static struct {
    uint64_t rounds, tasks, workers, kills, classes, seed;
    int json;
} want = { .rounds = 20, .tasks = 10000, .workers = 8, .kills = 3, .seed = 1 };

static const char *const names[MAX_CLASSES] = { "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7" };

static struct {
    uint64_t accepted, delivered, doubled, lost, strange, success, crashed, deaths, returned;
    _Atomic uint64_t kills; /* two threads kill */
} total;

struct round {
    gpud_dispatcher *d;
    uint64_t number, next, random;
    uint64_t source_random; /* the source has a thread of its own */
    unsigned char *seen;
    /* Half of the kills come when so many outcomes have come, from the callback ... */
    uint64_t outcomes, kill_at[32];
    unsigned kills;
    /* ... the others from a thread, at moments that have nothing to do with the host's work. */
    uint64_t thread_kills, thread_random, duration;
    _Atomic int over;
};

static _Atomic uint64_t progress_of_all; /* what the watchdog looks at */

/* ---- worker ---- */

static int process(gpud_task *t, void *state)
{
    uint64_t work = gpud_task_size(t) ? *(const uint64_t *)gpud_task_data(t) : 0;

    (void)state;
    if (work)
        nap(work);
    return 0;
}

/* ---- killer ---- */

/* Kills a random worker, a busy one where there is one. */
static void kill_one(gpud_dispatcher *d, uint64_t random)
{
    struct gpud_slot_stats rows[MAX_WORKERS] = { { .struct_size = sizeof(rows[0]) } };
    int n = gpud_dispatcher_slots(d, rows, MAX_WORKERS), busy = 0, alive = 0, i;
    uint64_t pick;

    for (i = 0; i < n; i++) {
        alive += rows[i].pid != 0;
        busy += rows[i].pid && rows[i].task_id;
    }
    if (!alive)
        return;
    pick = random % (uint64_t)(busy ? busy : alive);
    for (i = 0; i < n; i++)
        if (rows[i].pid && (!busy || rows[i].task_id) && !pick--)
            break;
    atomic_fetch_add(&total.kills, 1);
    (void)kill((pid_t)rows[i].pid, SIGKILL); /* it may be dying already */
}

/* A class with a worker comes and goes, unless the last one has not gone yet. */
static void pass_by(gpud_dispatcher *d, uint64_t *random)
{
    const struct gpud_request half = {
        .struct_size = sizeof(half), .devices = 1, .share = 5000, .memory = 7ull << 30
    };
    const struct gpud_class class = { .struct_size = sizeof(class),
                                      .name = "guest",
                                      .needs = &half,
                                      .min_workers = 1,
                                      .options = T_OPTIONS(.setup_data = "guest",
                                                           .setup_size = 5) };
    const int r = gpud_dispatcher_class_add(d, &class, NULL);

    T_CHECK(r == 0 || r == GPUD_EBUSY || r == GPUD_ECLOSED);
    nap(below(random, T_MS(2)));
    if (r == 0)
        T_OK(gpud_dispatcher_class_remove(d, "guest", (uint32_t)below(random, 3), NULL));
}

/* Takes a class or a device away from the plan, and gives it back. */
static void disturb(gpud_dispatcher *d, uint64_t *random)
{
    const char *class = names[below(random, want.classes)];
    char device[16];

    (void)snprintf(device, sizeof(device), "fake:%u", (unsigned)below(random, want.workers));
    switch (below(random, 4)) {
    case 3:
        pass_by(d, random);
        break;
    case 0:
        T_OK(gpud_dispatcher_class_set(d, class, GPUD_CLASS_UNLOAD, NULL));
        break;
    case 1:
        T_OK(gpud_dispatcher_class_set(
            d, class, once_in(random, 2) ? GPUD_CLASS_PAUSE : GPUD_CLASS_DRAIN, NULL));
        nap(below(random, T_MS(2)));
        T_OK(gpud_dispatcher_class_set(d, class, GPUD_CLASS_RESUME, NULL));
        break;
    default:
        T_OK(gpud_dispatcher_device_drain(d, device));
        nap(below(random, T_MS(2)));
        T_OK(gpud_dispatcher_device_return(d, device));
    }
}

static void *killer(void *arg)
{
    struct round *r = arg;
    uint64_t random = r->thread_random;

    for (uint64_t i = 0; i < r->thread_kills && !atomic_load(&r->over); i++) {
        nap(below(&random, 2 * r->duration / r->thread_kills + 1));
        if (!atomic_load(&r->over))
            kill_one(r->d, lot(&random));
        if (!atomic_load(&r->over) && want.classes)
            disturb(r->d, &random);
    }
    return NULL;
}

/* ---- host ---- */

/* One task in 16 of a transient class has a request of its own: a quarter of a device, two devices,
 * or one whole device. */
static void choose_class(struct gpud_task_desc *task, uint64_t random)
{
    static const struct gpud_request quarter = { .struct_size = sizeof(quarter), .devices = 1,
                                                 .share = 2500, .memory = 3ull << 30 },
                                     whole = { .struct_size = sizeof(whole), .devices = 1 },
                                     wide = { .struct_size = sizeof(wide), .devices = 2,
                                              .memory = 3ull << 30, .next = &whole };
    const uint64_t class = random % want.classes;

    task->class_name = names[class];
    if (class % 2 && random / 4096 % 16 == 0)
        task->request = random / 65536 % 2 ? &quarter : want.workers > 1 ? &wide : &whole;
}

static int source(struct gpud_task_desc *task, size_t n, void *user)
{
    static _Thread_local uint64_t work;
    struct round *r = user;

    (void)n;
    if (r->next == want.tasks)
        return 0;
    task->tag = r->next++;
    if (want.classes)
        choose_class(task, lot(&r->source_random));
    work = task->tag * 2654435761u + r->number;
    if (work % 251 == 0) {
        work = 1000000 + work / 251 % 4000000;
        task->data = &work;
        task->size = sizeof(work);
    }
    return 1;
}

static int outcome(const struct gpud_event *e, void *user)
{
    struct round *r = user;

    total.delivered++;
    atomic_fetch_add(&progress_of_all, 1);
    if (e->tag >= want.tasks)
        total.strange++;
    else if (r->seen[e->tag]++)
        total.doubled++;
    total.success += e->outcome == GPUD_OUTCOME_SUCCESS;
    total.crashed += e->outcome == GPUD_OUTCOME_CRASHED;
    total.strange += e->outcome != GPUD_OUTCOME_SUCCESS && e->outcome != GPUD_OUTCOME_CRASHED;
    r->outcomes++;
    for (unsigned i = 0; i < r->kills; i++)
        if (r->outcomes == r->kill_at[i])
            kill_one(r->d, lot(&r->random));
    return 0;
}

static void add_class(gpud_dispatcher *d, uint64_t i)
{
    const struct gpud_request half = {
        .struct_size = sizeof(half), .devices = 1, .share = 5000, .memory = 7ull << 30
    };
    const struct gpud_class class = {
        .struct_size = sizeof(class),
        .name = names[i],
        .residence = i % 2 ? GPUD_TRANSIENT : GPUD_RESIDENT,
        .needs = &half,
        .min_residence = T_MS(1),
        .max_wait = T_MS(5),
        .boot_seed = T_MS(1),
        .options = T_OPTIONS(.backoff = T_US(100), .backoff_cap = T_MS(5),
                             .failures_in_a_row = 1000000),
    };

    T_OK(gpud_dispatcher_class_add(d, &class, NULL));
}

/* One class in two is transient; the devices have room for two workers each. */
static gpud_dispatcher *create_pooled(uint64_t number)
{
    char devices[32];
    gpud_dispatcher *d;

    (void)snprintf(devices, sizeof(devices), "fake:%" PRIu64, want.workers);
    d = T_CREATE(.pooled = 1, .devices = devices, .drive = number % 4 == 3);
    for (uint64_t i = 0; i < want.classes; i++)
        add_class(d, i);
    return d;
}

static gpud_dispatcher *create(uint64_t number)
{
    char devices[32];

    if (want.classes)
        return create_pooled(number);
    (void)snprintf(devices, sizeof(devices), "cpu:%" PRIu64, want.workers);
    /* Kills between tasks are charged to the slot: no slot may be given up for them here. */
    return T_CREATE(.devices = devices, .drive = number % 4 == 3, .backoff = T_US(100),
                    .backoff_cap = T_MS(5), .failures_in_a_row = 1000000);
}

static void account(gpud_dispatcher *d)
{
    struct gpud_stats s = t_stats(d);

    total.accepted += s.accepted;
    total.deaths += s.deaths;
    total.returned += s.returned;
}

static void one_round(gpud_dispatcher *d, uint64_t number)
{
    static uint64_t last_duration = 10000000;
    struct round r = {
        .d = d, .number = number, .random = want.seed * 1000003 + number, .duration = last_duration
    };
    uint64_t start = t_now();
    pthread_t thread;
    int code;

    r.seen = calloc(1, want.tasks);
    if (!r.seen)
        abort();
    r.kills = (unsigned)want.kills / 2;
    r.thread_kills = want.kills - r.kills;
    r.thread_random = ~r.random;
    r.source_random = r.random + 1;
    for (unsigned i = 0; i < r.kills; i++)
        r.kill_at[i] = 1 + lot(&r.random) % want.tasks;
    if (pthread_create(&thread, NULL, killer, &r))
        abort();
    code = gpud_dispatcher_run(d, source, T_CALLBACKS(.on_success = outcome, .on_error = outcome),
                               &r, NULL);
    atomic_store(&r.over, 1);
    (void)pthread_join(thread, NULL);
    last_duration = t_now() - start < T_MS(490) ? t_now() - start : T_MS(490);
    if (code || r.next != want.tasks)
        T_FAIL("run of round %" PRIu64 " answers %d (%s)", number, code, gpud_error_name(code));
    for (uint64_t i = 0; i < want.tasks; i++)
        total.lost += !r.seen[i];
    free(r.seen);
}

/* Ends the program when no outcome has come for a long time. */
static void *watchdog(void *arg)
{
    uint64_t seen = 0, since = t_now();

    (void)arg;
    for (;;) {
        uint64_t now_seen = atomic_load(&progress_of_all);

        if (now_seen != seen) {
            seen = now_seen;
            since = t_now();
        } else if (t_now() - since > T_S(WATCHDOG_S)) {
            printf(want.json ? "{\"hung\": 1, \"delivered\": %" PRIu64 ", \"kills\": %" PRIu64 "}\n"
                             : "hung: %" PRIu64 " delivered, %" PRIu64 " kills\n",
                   total.delivered, atomic_load(&total.kills));
            (void)fflush(NULL);
            _exit(1);
        }
        t_pass(T_S(1));
    }
    return NULL;
}

static void parse(int argc, char **argv)
{
    static const struct {
        const char *name;
        uint64_t *value;
    } options[] = { { "--rounds", &want.rounds },
                    { "--tasks", &want.tasks },
                    { "--workers", &want.workers },
                    { "--kills", &want.kills },
                    { "--classes", &want.classes },
                    { "--seed", &want.seed } };

    for (int i = 1; i < argc; i++) {
        int known = !strcmp(argv[i], "--json");

        want.json |= known;
        for (size_t n = 0; n < T_LENGTH(options) && !known && i + 1 < argc; n++)
            if (!strcmp(argv[i], options[n].name)) {
                *options[n].value = strtoull(argv[++i], NULL, 10);
                known = 1;
            }
        if (!known) {
            (void)fprintf(stderr, "usage: chaos [--rounds R] [--tasks T] [--workers W] [--kills K] "
                                  "[--classes C] [--seed S] [--json]\n");
            exit(2);
        }
    }
    if (!want.tasks || !want.workers || want.workers > MAX_WORKERS || want.kills > 32 ||
        want.classes > MAX_CLASSES)
        exit(2);
}

static void report(double seconds, unsigned leaked)
{
    static const char json[] =
        "{\"rounds\": %" PRIu64 ", \"tasks\": %" PRIu64 ", \"workers\": %" PRIu64
        ", \"seed\": %" PRIu64 ", \"accepted\": %" PRIu64 ", \"delivered\": %" PRIu64
        ", \"doubled\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"strange\": %" PRIu64
        ", \"leaked\": %u, \"success\": %" PRIu64 ", \"kills\": %" PRIu64
        ", \"kills_that_hit_a_running_task\": %" PRIu64 ", \"deaths\": %" PRIu64
        ", \"returned\": %" PRIu64 ", \"hung\": 0, \"seconds\": %.1f}\n";
    static const char text[] =
        "%" PRIu64 " rounds of %" PRIu64 " tasks on %" PRIu64 " workers, seed %" PRIu64
        "\naccepted %" PRIu64 "\ndelivered %" PRIu64 "\ndoubled %" PRIu64 "\nlost %" PRIu64
        "\nstrange %" PRIu64 "\nleaked %u\nsuccess %" PRIu64 "\nkills %" PRIu64 "\ncrashed %" PRIu64
        " (kills that hit a running task)\ndeaths %" PRIu64 "\nreturned %" PRIu64
        "\nhung 0\nseconds %.1f\n";

    printf(want.json ? json : text, want.rounds, want.tasks, want.workers, want.seed,
           total.accepted, total.delivered, total.doubled, total.lost, total.strange, leaked,
           total.success, atomic_load(&total.kills), total.crashed, total.deaths, total.returned,
           seconds);
}

/* For a count of all faults that were injected. */
static void tell_results(void)
{
    const char *path = getenv("GPUD_TEST_RESULTS");
    FILE *f = path && *path ? fopen(path, "ae") : NULL;

    if (!f)
        return;
    fprintf(f, "faults %" PRIu64 "\n", atomic_load(&total.kills));
    (void)fclose(f);
}

static void *nothing(void *arg)
{
    return arg;
}

static unsigned above(unsigned after, unsigned before)
{
    return after > before ? after - before : 0;
}

int main(int argc, char **argv)
{
    gpud_dispatcher *shared;
    struct t_counts before, after;
    uint64_t start, i;
    pthread_t thread;
    unsigned leaked;

    parse(argc, argv);
    /* A sanitizer's own thread appears with the first. */
    if (T_SANITIZED && !pthread_create(&thread, NULL, nothing, NULL))
        (void)pthread_join(thread, NULL);
    before = t_counts_take();
    t_init(NULL, process, NULL);
    if (pthread_create(&thread, NULL, watchdog, NULL))
        return 2;
    before.threads++;
    start = t_now();
    shared = create(0);
    for (i = 0; i < want.rounds; i++) {
        gpud_dispatcher *own = i % 2 ? create(i) : NULL;

        one_round(own ? own : shared, i);
        if (own) {
            account(own);
            t_destroy(&own, NULL);
        }
    }
    account(shared);
    t_end(&shared, NULL);
    after = t_counts_later(&before);
    leaked = above(after.files, before.files) + above(after.threads, before.threads) +
             above(after.children, before.children) + above(after.mappings, before.mappings);
    report((double)(t_now() - start) / 1e9, leaked);
    tell_results();
    return total.lost || total.doubled || total.strange || leaked ||
           total.delivered != total.accepted || total.accepted != want.rounds * want.tasks;
}
