/* SPDX-License-Identifier: MIT */
/* create.c - creates a dispatcher, and frees one, whether or not all its parts were made. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failure.h"
#include "host/act.h"
#include "host/class.h"
#include "host/core.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/patience.h"
#include "host/slot.h"
#include "host/task.h"
#include "os/fds.h"
#include "os/memory.h"

/* Requests to the spawner: its socket holds some hundred of them, and each carries fds. */
#define MAKES_AT_A_TIME 32u

/* Small results wait in size classes of up to 4 KiB.  With this much memory per task the pool
 * always has room, in any order of sizes: it is the sum of the class sizes, since each class can
 * grow to hold all results. */
#define POOL_PER_TASK 14080u
#define POOL_CLASSES 16u

static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* ---- parts ---- */

static int init_locks(gpud_dispatcher *d)
{
    pthread_condattr_t a;

    if (pthread_mutex_init(&d->lock, NULL))
        return -1;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&d->intake.room, &a);
    pthread_condattr_destroy(&a);
    return 0;
}

static int init_loop(gpud_dispatcher *d, const struct gpi_birth *b)
{
    (void)b;
    return gpi_drive_init(d) ? GPUD_ESYSTEM : 0;
}

static int init_tasks(gpud_dispatcher *d, const struct gpi_birth *b)
{
    (void)b;
    if (gpi_tasks_init(d))
        return GPUD_ENOMEM;
    gpi_submit_init(d);
    return 0;
}

static int init_arena(gpud_dispatcher *d, const struct gpi_birth *b)
{
    (void)b;
    d->arena.input_fd = gpi_memory_create("gpud-input", d->set.input_size);
    if (d->arena.input_fd < 0)
        return GPUD_ESYSTEM;
    d->arena.input_ro_fd = gpi_memory_readonly(d->arena.input_fd);
    d->arena.input = gpi_memory_map(d->arena.input_fd, d->set.input_size, true);
    if (d->arena.input_ro_fd < 0 || !d->arena.input ||
        gpi_chunks_init(&d->arena.input_chunks, d->arena.input, d->set.input_size))
        return GPUD_ESYSTEM;
    if (gpi_classes_pin(d))
        d->arena.input_chunks.barrier = (uint32_t)(GPI_PIN_PIECE / GPI_CHUNK);
    return 0;
}

static int init_pool(gpud_dispatcher *d, const struct gpi_birth *b)
{
    (void)b;
    d->arena.pool_size =
        round_up((uint64_t)d->n_tasks * POOL_PER_TASK, GPI_CHUNK) + POOL_CLASSES * GPI_CHUNK;
    d->arena.pool = gpi_memory_private(d->arena.pool_size);
    return !d->arena.pool ||
                   gpi_chunks_init(&d->arena.pool_chunks, d->arena.pool, d->arena.pool_size)
               ? GPUD_ESYSTEM
               : 0;
}

static int init_own_blocks(gpud_dispatcher *d, const struct gpi_birth *b)
{
    int fresh; /* ignored: records touch their blocks when first used */

    (void)b;
    d->arena.own_off =
        gpi_chunks_alloc(&d->arena.input_chunks, (uint64_t)d->n_tasks * GPI_OWN_SIZE, &fresh);
    return d->arena.own_off == GPI_CHUNKS_NONE ? GPUD_ETOOBIG : 0;
}

static int copy_setup_data(gpud_dispatcher *d, const struct gpi_birth *b)
{
    return d->set.pooled ? 0 : gpi_class_copy_setup(d, &d->class[0], &b->class);
}

/* Sets how many bytes task data can have beside the own blocks and the setup data. */
static int measure_room(gpud_dispatcher *d, const struct gpi_birth *b)
{
    (void)b;
    d->arena.base = gpi_chunks_used(&d->arena.input_chunks);
    d->arena.most = d->set.input_size - round_up((uint64_t)d->n_tasks * GPI_OWN_SIZE, GPI_CHUNK) -
                    round_up(d->class[0].setup.size, GPI_CHUNK);
    return d->arena.most < GPI_CHUNK || d->arena.most > d->set.input_size ? GPUD_EINVAL : 0;
}

static int keep_setup_memory(gpud_dispatcher *d, const struct gpi_birth *b)
{
    return d->set.pooled ? 0 : gpi_class_keep_setup(&d->class[0], &b->class);
}

static int keep_program(gpud_dispatcher *d, const struct gpi_birth *b)
{
    return d->set.pooled ? 0 : gpi_class_keep_launch(&d->class[0], &b->class);
}

/* Without the devices that are added later. */
static struct gpi_plan_settings plan_settings(const struct gpi_pool_set *set)
{
    return (struct gpi_plan_settings){
        .mode = (enum gpi_mode)set->mode,
        .passing = (enum gpi_passing)set->passing,
        .cpus = set->cpus,
        .host_memory = set->host_memory,
        .headroom = set->headroom,
        .least_headroom = GPI_LEAST_HEADROOM,
        .foreign_memory = set->foreign_memory,
        .foreign_load = set->foreign_load,
        .place_sets = GPI_PLACES_MOST,
    };
}

static int init_core(gpud_dispatcher *d, const struct gpi_birth *b)
{
    const bool pooled = d->set.pooled;
    struct gpi_sched_settings set = {
        .pool = {
            .slots = pooled ? gpi_seats(&d->set) : GPI_SLOTS_MAX,
            .devices = pooled ? GPI_POOL_DEVICES : GPI_SLOTS_MAX * GPI_DEVICES,
            .tasks = d->n_tasks,
            .classes = pooled ? GPI_CLASSES_MAX : 1,
            .setup_concurrency = d->set.setup_concurrency,
            .makes = MAKES_AT_A_TIME,
            .canary_limit = GPI_CANARY_LIMIT_NS,
            .memory_wait = d->set.memory_wait,
            .reply_limit = gpi_spawner_patience,
            .pooled = pooled,
            .kill_limit = d->set.kill_limit,
            .plan = plan_settings(&d->set),
        },
        /* pooled: of no class, but the log of the core has them */
        .class = { .batch = 1, .restart.failures_in_a_row = 1 },
    };

    (void)b;
    if (!pooled)
        gpi_class_settings(&d->class[0], &set.class);
    return gpi_core_create(d, &set);
}

static int init_slots(gpud_dispatcher *d, const struct gpi_birth *b)
{
    uint16_t slot[GPI_SLOTS_MAX];
    uint32_t gauge = GPI_NO_GAUGE;
    int r;

    if (gpi_slots_init(d) || gpi_devices_init(d) || gpi_events_init(d))
        return GPUD_ESYSTEM;
    r = b->gauge ? gpi_gauge_adopt(d, b->gauge, &gauge) : 0;
    if (r == 0 && d->set.pooled)
        r = gpi_slots_add_seats(d, gpi_seats(&d->set));
    if (r == 0)
        r = gpi_slots_add(d, b->chosen, gauge, slot);
    return r;
}

/* Opens the dispatcher's connection to the spawner: one end is sent through the door. */
static int connect_spawner(gpud_dispatcher *d, const struct gpi_birth *b)
{
    int r = d->spawner.fd < 0 ? gpi_monitor_connect(&d->spawner.fd, b->door, NULL) : 0;

    if (r)
        return r;
    if (gpi_drive_watch(d, d->spawner.fd, GPI_FD_SPAWNER, 0))
        return GPUD_ESYSTEM;
    if (b->spawner_pidfd < 0)
        return 0;
    d->spawner.pidfd = gpi_fd_lift(fcntl(b->spawner_pidfd, F_DUPFD_CLOEXEC, 3));
    return d->spawner.pidfd >= 0 &&
                   gpi_drive_watch(d, d->spawner.pidfd, GPI_FD_SPAWNER_DEATH, 0) == 0
               ? 0
               : GPUD_ESYSTEM;
}

/* ---- the whole ---- */

void gpi_free(gpud_dispatcher *d)
{
    gpi_keep_leave(d);
    gpi_events_fini(d);
    gpi_tasks_fini(d);
    gpi_gauges_fini(d);
    gpi_slots_fini(d);
    gpi_devices_fini(d);
    gpi_places_fini(d);
    gpi_drive_close(d, &d->spawner.fd);
    gpi_drive_close(d, &d->spawner.pidfd);
    gpi_pollable_fini(d);
    gpi_drive_fini(d);
    gpi_core_destroy(d);
    gpi_fd_close(&d->log_fd);
    gpi_chunks_fini(&d->arena.input_chunks);
    gpi_chunks_fini(&d->arena.pool_chunks);
    gpi_memory_unmap(d->arena.input, d->set.input_size);
    gpi_memory_unmap(d->arena.pool, d->arena.pool_size);
    gpi_fd_close(&d->arena.input_fd);
    gpi_fd_close(&d->arena.input_ro_fd);
    gpi_classes_fini(d);
    while (d->why_no_worker) {
        struct gpi_reason *before = d->why_no_worker->before;
        free(d->why_no_worker);
        d->why_no_worker = before;
    }
    if (*d->alive) { /* a forked child would wait for threads that it lacks */
        pthread_cond_destroy(&d->intake.room);
        pthread_mutex_destroy(&d->lock);
    }
    free(d);
}

static int failed(gpud_dispatcher *d, int code, const char *what, struct gpud_error *reterr)
{
    int err = errno;

    for (uint32_t i = 0; i < d->dev.n_gauges; i++)
        d->dev.gauge[i] = NULL; /* the caller's, unless create succeeds */
    gpi_free(d);
    if ((code == GPUD_ESYSTEM || code == GPUD_ENOMEM) && err)
        return gpi_fail(reterr, err == ENOMEM ? GPUD_ENOMEM : GPUD_ESYSTEM, err, what, "%s", what);
    return gpi_fail(reterr, code, 0, what, "%s: %s", what, gpud_error_text(code));
}

/* Makes the parts in this order.  If one fails, the error names the option or object at fault. */
static int make_parts(gpud_dispatcher *d, const struct gpi_birth *b, struct gpud_error *reterr)
{
    static const struct {
        int (*make)(gpud_dispatcher *d, const struct gpi_birth *b); /* 0 or a code */
        const char *what;
    } parts[] = {
        { init_loop, "event loop" },
        { init_tasks, "queue_size" },
        { init_arena, "payload_budget" },
        { init_pool, "queue_size" },
        { init_own_blocks, "queue_size" },
        { copy_setup_data, "setup_size" },
        { measure_room, "payload_budget" },
        { keep_setup_memory, "setup_shared" },
        { keep_program, "start" },
        { init_core, "queue_size" },
        { init_slots, "devices" },
        { connect_spawner, "spawner" },
    };

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        int r = parts[i].make(d, b);
        if (r)
            return failed(d, r, parts[i].what, reterr);
    }
    return 0;
}

/* Makes a dispatcher without parts, which gpi_free can free. */
static gpud_dispatcher *found(const struct gpi_birth *b)
{
    gpud_dispatcher *d = calloc(1, sizeof *d);

    if (!d || gpi_classes_init(d, b) || init_locks(d)) {
        if (d)
            gpi_classes_fini(d);
        free(d);
        return NULL;
    }
    d->set = b->set;
    d->alive = b->alive;
    d->own = b->own;
    d->places = b->places;
    d->act = gpi_act;
    /* Queued tasks, lent outcomes, and the tasks of one source call that arrive after the last
     * start. */
    d->n_tasks = b->set.queue_size + GPI_EVENTS_MAX + GPI_FED_AT_ONCE;
    if (b->set.pooled) /* and held external work */
        d->n_tasks += b->set.max_workers;
    d->arena.input_fd = d->arena.input_ro_fd = d->spawner.pidfd = d->loop.epoll = d->loop.wake =
        d->loop.lib_fd = -1;
    d->pollable.outer = d->pollable.news = d->pollable.alarm = -1;
    d->spawner.fd = b->connection;
    d->log_fd = b->log_fd;
    d->close.at = GPI_NEVER;
    d->now = gpi_now();
    d->stats.count.payload_budget = b->set.payload_budget;
    return d;
}

int gpi_create(gpud_dispatcher **ret_d, const struct gpi_birth *b, struct gpud_error *reterr)
{
    gpud_dispatcher *d = found(b);
    int r;

    if (!d) {
        int connection = b->connection, log_fd = b->log_fd;
        gpi_fd_close(&connection);
        gpi_fd_close(&log_fd);
        return gpi_fail(reterr, GPUD_ENOMEM, 0, "", "no memory for a dispatcher");
    }
    r = make_parts(d, b, reterr);
    if (r)
        return r;
    if (b->remark_level)
        gpi_log(d, b->remark_level, GPUD_NO_SLOT, "%s", b->remark);
    for (uint32_t i = 0; i < d->n_slots && !d->set.pooled; i++)
        gpi_hear_slot(d, &d->slot[i], GPI_EV_WANT, 0);
    gpi_decide(d);
    gpi_devices_rouse(d);
    if (d->set.drive == GPUD_DRIVE_THREAD && gpi_drive_start_thread(d))
        return failed(d, GPUD_ESYSTEM, "drive", reterr);
    *ret_d = d;
    return 0;
}
