/* SPDX-License-Identifier: MIT */
/*
 * class.c - from the records of a class to its parts: what is read, and what is refused.      [C15]
 */
#include "fixture.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/class.h"
#include "api/option_kinds.h"
#include "api/options.h"
#include "base/clock.h"
#include "host/dispatcher.h"
#include "os/process.h"

#define NAME_63 "a23456789b123456789c123456789d123456789e123456789f123456789g123"

/* ---- a process in which gpud_init was called, without a spawner ---- */

static struct gpud_definition definitions[] = { GPUD_DEFINITION("one", NULL, t_no_work, NULL),
                                                GPUD_DEFINITION("two", NULL, t_no_work, NULL) };
static char program[] = "program";
static char *arguments[] = { program, NULL };
static _Atomic uint32_t alive = 1;

static struct gpi_process *here(void)
{
    static struct gpi_process p;

    p = (struct gpi_process){ .alive = &alive,
                              .definition = definitions,
                              .n_definitions = 2,
                              .program = 0,
                              .argv = arguments };
    gpi_process_credentials(&p.credentials);
    return &p;
}

#define RECORD(type, ...) (&(struct type){ .struct_size = sizeof(struct type), __VA_ARGS__ })
#define REQUEST(...) RECORD(gpud_request, __VA_ARGS__)
#define OPTIONS(...) RECORD(gpud_options, .definition = "two", __VA_ARGS__)
#define PLAIN OPTIONS(.seed = 0)
#define CLASS(...) RECORD(gpud_class, .name = "class", .options = PLAIN, __VA_ARGS__)
#define ANY CLASS(.pinned = 0)
#define NAMED(text) RECORD(gpud_class, .name = (text), .options = PLAIN)
#define NEEDS(...) CLASS(.needs = REQUEST(__VA_ARGS__))
#define OF(o) RECORD(gpud_class, .name = "class", .options = (o))
#define WITH(...) OF(OPTIONS(__VA_ARGS__))

/* The draft is the same for each class. */
static struct gpi_class_draft *read_class(const struct gpud_class *c)
{
    static struct gpi_class_draft x;
    struct gpud_error e = GPUD_ERROR_INIT;

    memset(&x, 0, sizeof x);
    if (gpi_class_read(&x, c, here(), false, &e))
        T_FAIL("refused: %s: %s", e.field, e.text);
    return &x;
}

static void refuse_from(const struct gpud_class *c, const struct gpi_process *p, bool own, int code,
                        const char *field)
{
    static struct gpi_class_draft x;
    struct gpud_error e = GPUD_ERROR_INIT;
    int r;

    memset(&x, 0, sizeof x);
    r = gpi_class_read(&x, c, p, own, &e);
    if (r != code || strcmp(e.field, field) != 0 || !*e.text)
        T_FAIL("%s, field \"%s\", text \"%s\", expected %s of %s", gpud_error_name(r), e.field,
               e.text, gpud_error_name(code), field);
}

static void refuse(const struct gpud_class *c, const char *field)
{
    refuse_from(c, here(), false, GPUD_EINVAL, field);
}

static void check_request(const struct gpi_request *r, const struct gpi_request *wanted)
{
    if (!gpi_request_same(r, wanted))
        T_FAIL("devices %u, share %u, cpus %u, compute %u, places %u, memory %llu, machine %llu",
               r->devices, r->share, r->cpus, r->compute, r->places, (unsigned long long)r->memory,
               (unsigned long long)r->host_memory);
}

/* ---- what is read ---- */

T_CASE(defaults)
{
    const struct gpi_class_birth *b = &read_class(ANY)->birth;

    T_TEXT(b->class_name, "class");
    T_TEXT(b->name, "two");
    T_EQ(b->set.definition, 1);
    T_EQ(b->launch->start, GPUD_START_FORK);
    T_EQ(b->program_fd, -1);
    T_EQ(b->setup_fd, -1);
    T_EQ(b->plan.residence, GPI_RESIDENT);
    T_EQ(b->plan.grace, 2 * GPI_S);
    T_EQ(b->needs.n, 1);
    check_request(
        &b->needs.request[0],
        &(struct gpi_request){ .devices = 1, .share = GPI_SHARE_ALL, .memory = GPI_MEMORY_ALL });
    T_EQ(b->plan.min_workers, 0);
    T_EQ(b->plan.max_workers, UINT32_MAX);
    T_CHECK(!b->plan.pinned);
    T_EQ(b->plan.min_residence, 30 * GPI_S);
    T_EQ(b->plan.max_wait, 300 * GPI_S);
    T_CHECK(b->plan.keep_alive == GPI_NEVER);
    T_EQ(b->plan.boot, 60 * GPI_S);
    T_EQ(b->plan.unload, 5 * GPI_S);
    T_EQ(b->plan.run, GPI_S);
}

/* Each field has its own place. */
T_CASE(fields)
{
    const struct gpi_plan_class *p =
        &read_class(CLASS(.residence = GPUD_RESIDENT, .min_workers = 2, .max_workers = 3,
                          .pinned = 1, .min_residence = T_S(1), .keep_alive = T_S(2),
                          .max_wait = GPUD_NEVER, .boot_seed = T_S(4), .unload_seed = T_S(5),
                          .run_seed = T_S(6)))
             ->birth.plan;

    T_EQ(p->residence, GPI_RESIDENT);
    T_EQ(p->min_workers, 2);
    T_EQ(p->max_workers, 3);
    T_CHECK(p->pinned);
    T_EQ(p->min_residence, T_S(1));
    T_EQ(p->keep_alive, T_S(2));
    T_CHECK(p->max_wait == GPI_NEVER);
    T_EQ(p->boot, T_S(4));
    T_EQ(p->unload, T_S(5));
    T_EQ(p->run, T_S(6));
    T_EQ(read_class(CLASS(.residence = GPUD_TRANSIENT))->birth.plan.residence, GPI_TRANSIENT);
    T_EQ(read_class(CLASS(.min_residence = GPUD_AT_ONCE))->birth.plan.min_residence, 1);
    T_EQ(read_class(WITH(.grace = T_S(7)))->birth.plan.grace, T_S(7));
    T_EQ(read_class(WITH(.task_limit = T_S(8)))->birth.set.task_limit, T_S(8));
    T_TEXT(read_class(NAMED(NAME_63))->birth.class_name, NAME_63);
}

/* The preferred variant is the first one. */
T_CASE(variants)
{
    struct gpud_request one = *REQUEST(.devices = 16, .share = 10000), two, three, four;
    const struct gpi_needs *p;

    two = *REQUEST(.devices = 1, .share = 2500, .memory = 7, .next = &one);
    three = *REQUEST(.devices = 2, .cpus = 3, .compute = 806, .host_memory = 5, .next = &two);
    four = *REQUEST(.cpus = 4, .host_memory = 6, .next = &three);
    p = &read_class(CLASS(.needs = &four))->birth.needs;
    T_EQ(p->n, 4);
    check_request(&p->request[0], &(struct gpi_request){ .cpus = 4, .host_memory = 6 });
    check_request(&p->request[1], &(struct gpi_request){ .devices = 2,
                                                      .share = GPI_SHARE_ALL,
                                                      .cpus = 3,
                                                      .compute = 806,
                                                      .memory = GPI_MEMORY_ALL,
                                                      .host_memory = 5 });
    check_request(&p->request[2],
                  &(struct gpi_request){ .devices = 1, .share = 2500, .memory = 7 });
    check_request(
        &p->request[3],
        &(struct gpi_request){ .devices = 16, .share = GPI_SHARE_ALL, .memory = GPI_MEMORY_ALL });
    refuse(CLASS(.needs = REQUEST(.devices = 1, .next = &four)), "next");
    one.next = &four;
    refuse(CLASS(.needs = &four), "next");
    four.next = &four;
    refuse(CLASS(.needs = &four), "next");
    two = *REQUEST(.devices = 1, .share = 10001);
    refuse(CLASS(.needs = REQUEST(.devices = 1, .next = &two)), "share");
}

/* ---- what is refused ---- */

T_CASE(requests)
{
    refuse(NEEDS(.devices = 0), "devices");
    refuse(NEEDS(.devices = 17), "devices");
    refuse(NEEDS(.devices = 1, .share = 10001), "share");
    refuse(NEEDS(.devices = 2, .share = 9999), "share");
    refuse(NEEDS(.cpus = 1, .share = 1), "share");
    refuse(NEEDS(.cpus = 1, .memory = 1), "memory");
    refuse(NEEDS(.cpus = 1, .compute = 1), "compute");
    (void)read_class(NEEDS(.host_memory = 1));
    (void)read_class(NEEDS(.devices = 1, .share = 1));
    (void)read_class(NEEDS(.devices = 2, .share = 10000));
}

T_CASE(records)
{
    static const char *const times[] = { "min_residence", "keep_alive",  "max_wait",
                                         "boot_seed",     "unload_seed", "run_seed" };

    refuse(NAMED(NULL), "name");
    refuse(NAMED(""), "name");
    refuse(NAMED(NAME_63 "4"), "name");
    refuse(CLASS(.residence = 3), "residence");
    refuse(CLASS(.pinned = 2), "pinned");
    refuse(CLASS(.min_workers = 3, .max_workers = 2), "min_workers");
    refuse(CLASS(.residence = GPUD_TRANSIENT, .min_workers = 1), "min_workers");
    for (size_t i = 0; i < T_LENGTH(times); i++) {
        struct gpud_class c = *ANY;
        uint64_t *time = &c.min_residence + i;

        *time = 30; /* no unit */
        refuse(&c, times[i]);
        *time = (uint64_t)-30;
        refuse(&c, times[i]);
        if (i < 3)
            continue;
        *time = GPUD_NEVER;
        refuse(&c, times[i]);
        *time = GPUD_AT_ONCE;
        refuse(&c, times[i]);
    }
}

T_CASE(struct_sizes)
{
    struct {
        struct gpud_class known;
        uint64_t unknown;
    } longer = { .known = *ANY };
    struct gpud_class c = *ANY;
    struct gpud_request q = *REQUEST(.devices = 1);
    struct gpud_options o = *PLAIN;

    longer.known.struct_size = sizeof longer;
    (void)read_class(&longer.known);
    longer.unknown = 1;
    refuse_from(&longer.known, here(), false, GPUD_EVERSION, "struct_size");
    c.struct_size = 8;
    refuse_from(&c, here(), false, GPUD_ESTRUCT, "struct_size");
    q.struct_size = 8;
    refuse_from(CLASS(.needs = &q), here(), false, GPUD_ESTRUCT, "struct_size");
    o.struct_size = 8;
    refuse_from(OF(&o), here(), false, GPUD_ESTRUCT, "struct_size");
    /* two definitions, and no name */
    refuse(OF(NULL), "definition");
}

/* Each option of the dispatcher is refused in a class, and each option of a class in a dispatcher
 * that has classes. */
T_CASE(kinds)
{
#define X_ROW(option, kind) { #option, GPI_OPTION_##kind, offsetof(struct gpud_options, option) },
    static const struct {
        const char *field;
        enum gpi_option_kind kind;
        size_t at;
    } rows[] = { GPI_OPTION_KINDS(X_ROW) };

    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        struct gpud_options o = *PLAIN, pooled = { .struct_size = sizeof pooled, .pooled = 1 };
        struct gpud_error e = GPUD_ERROR_INIT;
        struct gpi_settings set;

        if (rows[i].kind == GPI_OPTION_BOTH)
            continue;
        ((char *)&o)[rows[i].at] = 1;
        ((char *)&pooled)[rows[i].at] = 1;
        if (rows[i].kind == GPI_OPTION_POOL) {
            refuse(OF(&o), rows[i].field);
            continue;
        }
        T_CODE(gpi_options_read(&set, &pooled, &e), EINVAL);
        T_TEXT(e.field, rows[i].field);
        T_CHECK(strstr(e.text, "pooled"));
    }
    refuse(WITH(.devices_per_worker = 1), "devices_per_worker");
    refuse(WITH(.max_batch = 2), "max_batch"); /* the definition has no process_batch */
    refuse(WITH(.stdio = 5), "stdio");
}

/* Workers on GPUs have variables of the library; others may have their own. */
T_CASE(environment)
{
    static const char *const env[] = { "CUDA_VISIBLE_DEVICES=", NULL };
    struct gpud_class c = *WITH(.env = env);

    refuse(&c, "env");
    c.needs = REQUEST(.cpus = 1);
    (void)read_class(&c);
    c.needs = REQUEST(.cpus = 1, .next = REQUEST(.devices = 1));
    refuse(&c, "env");
}

/* The spawner of a dispatcher makes the workers of all its classes. */
T_CASE(spawners)
{
    static char *const other[] = { program, NULL };
    struct gpi_process *p = here();

    refuse_from(ANY, p, true, GPUD_ECREDS, "start");
    p->credentials.uid[0] ^= 1;
    refuse_from(WITH(.start = GPUD_START_EXEC), p, false, GPUD_ECREDS, "start");
    refuse_from(ANY, NULL, true, GPUD_ENOINIT, "");
    refuse_from(WITH(.argv = (const char *const *)other, .start = GPUD_START_FORK), p, true,
                GPUD_EINVAL, "argv");
}

/* ---- the dispatcher ---- */

T_CASE(pool)
{
    const struct gpi_pool_set given = { .cpus = 3, .host_memory = 4, .max_workers = 5 };
    struct gpi_pool_set s = given, none = { .cpus = 0 };
    struct gpi_settings set;

    gpi_options_pool(&s, 100);
    T_CHECK(memcmp(&s, &given, sizeof s) == 0);
    gpi_options_pool(&none, 0);
    T_CMP(none.cpus, >=, 1);
    T_CMP(none.cpus, <=, sysconf(_SC_NPROCESSORS_CONF));
    T_EQ(none.max_workers, none.cpus);
    T_CMP(none.host_memory, >, 0);
    for (uint32_t devices = 0; devices <= 1024; devices++) {
        s = (struct gpi_pool_set){ .cpus = 30 };
        gpi_options_pool(&s, devices);
        T_EQ(s.max_workers, devices < 8 ? 30 : devices > 255 ? 1023 : 4 * devices);
    }
    T_OK(gpi_options_read(&set, RECORD(gpud_options, .pooled = 1), NULL));
    T_EQ(set.pool.pooled, 1);
    T_EQ(set.pool.mode, GPI_MODE_BACKFILL);
    T_EQ(set.pool.passing, GPI_PASS_LEARNED);
    T_EQ(set.pool.headroom, 1000);
    T_EQ(set.pool.foreign_load, 0);
    T_EQ(set.pool.foreign_memory, 1 << 30);
    T_OK(gpi_options_read(
        &set,
        RECORD(gpud_options, .pooled = 1, .mode = GPUD_MODE_STRICT, .passing = GPUD_PASSING_APART),
        NULL));
    T_EQ(set.pool.mode, GPI_MODE_STRICT);
    T_EQ(set.pool.passing, GPI_PASS_APART);
}

T_CASE(arguments)
{
    static struct gpud_dispatcher d;
    struct gpud_class_stats row = GPUD_CLASS_STATS_INIT;
    struct gpud_error e = GPUD_ERROR_INIT;

    d.alive = &alive;
    T_CODE(gpud_dispatcher_class_add(&d, ANY, &e), EINVAL);
    T_TEXT(e.field, "pooled");
    T_CODE(gpud_dispatcher_class_set(&d, "class", GPUD_CLASS_PAUSE, &e), EINVAL);
    T_TEXT(e.field, "pooled");
    T_CODE(gpud_dispatcher_classes(&d, &row, 1), EINVAL);
    d.set.pooled = 1;
    T_CODE(gpud_dispatcher_class_add(NULL, ANY, &e), EINVAL);
    T_TEXT(e.field, "d");
    T_CODE(gpud_dispatcher_class_add(&d, NULL, &e), EINVAL);
    T_TEXT(e.field, "added");
    T_CODE(gpud_dispatcher_class_set(&d, NULL, GPUD_CLASS_PAUSE, &e), EINVAL);
    T_TEXT(e.field, "name");
    T_CODE(gpud_dispatcher_class_set(&d, "class", GPUD_CLASS_UNPIN + 1, &e), EINVAL);
    T_TEXT(e.field, "what");
    T_CODE(gpud_dispatcher_classes(&d, NULL, 1), EINVAL);
    row.struct_size = 8;
    T_CODE(gpud_dispatcher_classes(&d, &row, 1), ESTRUCT);
    pthread_mutex_init(&d.lock, NULL);
    T_EQ(gpud_dispatcher_classes(&d, NULL, 0), 0);
    pthread_mutex_destroy(&d.lock);
}
