/* SPDX-License-Identifier: MIT */
/* create.c - the birth of a dispatcher, pooled or not, and its end. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/check.h"
#include "api/choose.h"
#include "api/class.h"
#include "api/options.h"
#include "api/process.h"
#include "api/start.h"
#include "api/surroundings.h"
#include "base/failure.h"
#include "base/refused.h"
#include "base/versioned.h"
#include "host/dispatcher.h"
#include "host/monitor.h"
#include "os/fds.h"
#include "os/message.h"
#include "wire/control.h"

_Static_assert(GPI_DEVICE_SIZE == GPI_DEVICE_NAMES && GPI_DEVICES == GPI_DEVICE_SET &&
                   GPI_DEVICE_NAME_SIZE == GPI_DEVICE_NAME && GPI_DEVICE_UUID_SIZE == GPI_UUID_SIZE,
               "one length for device names");

/* ---- birth ---- */

/* The parts of a new dispatcher. */
struct draft {
    struct gpi_start start; /* too much for the stack of a host's thread */
    struct gpi_settings set;
    struct gpi_process *own; /* a spawner of its own */
    bool entered;            /* the spawner of gpud_init keeps a place for it */
    uint32_t seated;         /* and this many for its slots */
    const char *log; /* a file that this call has created, and nothing else needs yet */
    struct gpi_birth birth;
    struct gpi_choice choice;
};

/* Creates the file of option decision_log.  It fails for a file that exists, also for a link: so a
 * log replaces no other file, and two dispatchers never write to one. */
static int create_log(struct draft *x, const struct gpud_options *o, struct gpud_error *e)
{
    int fd;

    if (!o->decision_log || !*o->decision_log)
        return 0;
    fd = open(o->decision_log, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0)
        x->log = o->decision_log;
    x->birth.log_fd = gpi_fd_lift(fd);
    if (x->birth.log_fd >= 0)
        return 0;
    return gpi_fail(e, GPUD_ESYSTEM, errno, "decision_log", "decision_log %s cannot be created",
                    o->decision_log);
}

/* The spawner that its workers, and its monitor, come from. */
static int find_spawner(struct draft *x, struct gpi_process *p, struct gpud_error *e)
{
    struct gpi_birth *b = &x->birth;
    int r =
        x->start.own_spawner ? gpi_process_spawn(&x->own, e) : gpi_process_enter(gpi_process(), e);

    if (r)
        return r;
    x->entered = !x->own;
    p = x->own ? x->own : p;
    b->alive = p->alive;
    b->door = p->door;
    b->spawner_pidfd = p->spawner_pidfd;
    b->own = x->own;
    b->places = &p->slots;
    return gpi_monitor_connect(&b->connection, b->door, e);
}

static int choose_devices(struct draft *x, const struct gpud_options *o, struct gpud_error *e)
{
    const struct gpi_quiet quiet = { x->set.pool.foreign_memory, x->set.pool.foreign_load };
    int r = gpi_choose_devices(&x->choice, o->devices ? o->devices : "cpu:1",
                               x->set.class.devices_per_worker, x->birth.connection, NULL, &quiet,
                               e);

    return r ? r : gpi_choice_visible(&x->choice, o->visible, e);
}

/* A pooled dispatcher may have no device at all. */
static int choose_pool(struct draft *x, const struct gpud_options *o, struct gpud_error *e)
{
    const struct gpi_quiet quiet = { x->set.pool.foreign_memory, x->set.pool.foreign_load };
    int r = 0;

    if (o->devices)
        r = gpi_choose_devices(&x->choice, o->devices, 1, x->birth.connection, NULL, &quiet, e);
    return r ? r : gpi_choice_pooled(&x->choice, e);
}

/* Takes the places of the slots at the spawner, their descriptors, and their shares of memory. */
static int take_slots(struct draft *x, uint32_t slots, bool lines, struct gpud_error *e)
{
    int r = gpi_process_seat(x->birth.places, slots, e);

    if (r)
        return r;
    x->seated = slots;
    r = gpi_files_check(gpi_files_fixed(&x->birth) + gpi_files_slots(lines, slots),
                        1 + (x->birth.log_fd >= 0), slots,
                        x->birth.set.pooled ? "max_workers" : "devices", e);
    return r ? r : gpi_options_share(&x->birth.set, slots, e);
}

/* The last step, with everything checked. */
static int give_birth(gpud_dispatcher **ret_d, struct draft *x, struct gpud_error *e)
{
    int r;

    x->birth.chosen = &x->choice.selection;
    x->birth.gauge = x->choice.gauge;
    r = gpi_create(ret_d, &x->birth, e);
    x->birth.connection = x->birth.log_fd = -1;
    if (r)
        return r;
    x->log = NULL;
    x->choice.gauge = NULL;
    x->entered = false;
    x->seated = 0;
    x->own = NULL;
    return 0;
}

/* Ends the parts that no dispatcher has taken.  BYE makes the spawner end the monitor. */
static void discard(struct draft *x)
{
    const struct gpi_control bye = { .kind = GPI_CTL_BYE };

    gpi_choice_fini(&x->choice);
    if (x->birth.connection >= 0)
        (void)gpi_message_send(x->birth.connection, &bye, sizeof bye, NULL, 0);
    gpi_fd_close(&x->birth.connection);
    gpi_fd_close(&x->birth.log_fd);
    if (x->log)
        (void)unlink(x->log);
    if (x->seated)
        gpi_process_unseat(x->birth.places, x->seated);
    gpi_process_unspawn(x->own);
    if (x->entered)
        gpi_process_leave(gpi_process());
    free(x);
}

static int create(gpud_dispatcher **ret_d, const struct gpud_options *o, struct gpi_process *p,
                  struct draft *x, struct gpud_error *e)
{
    struct gpi_birth *b = &x->birth;
    int r;

    r = gpi_start_choose(&x->start, o, p, e);
    if (r == 0)
        r = gpi_options_read(&x->set, o, e);
    if (r == 0)
        r = gpi_surroundings_read(&x->start.launch, o, e);
    if (r)
        return r;
    gpi_class_birth(&b->class, &x->start, &x->set.class, o);
    b->set = x->set.pool;
    b->remark = x->start.remark;
    b->remark_level = x->start.remark_level;
    /* the text of the list is checked before a process is made for it */
    r = gpi_choice_reads(o->devices ? o->devices : "cpu:1", e);
    if (r > 0)
        r = gpi_surroundings_on_gpus(o->env, e);
    if (r >= 0)
        r = create_log(x, o, e);
    if (r == 0)
        r = find_spawner(x, p, e);
    if (r == 0)
        r = choose_devices(x, o, e);
    if (r == 0)
        r = take_slots(x, x->choice.selection.n_slots, x->start.launch.stdio == GPUD_STDIO_EVENTS,
                       e);
    return r ? r : give_birth(ret_d, x, e);
}

/* Its classes come later, with definitions, programs and surroundings.  So each slot must have the
 * descriptors that the worker of any class needs. */
static int create_pooled(gpud_dispatcher **ret_d, const struct gpud_options *o,
                         struct gpi_process *p, struct draft *x, struct gpud_error *e)
{
    struct gpi_birth *b = &x->birth;
    int r = gpi_start_allowed(p, "", e);

    if (r == 0)
        r = gpi_options_read(&x->set, o, e);
    if (r == 0 && o->devices)
        r = gpi_choice_reads(o->devices, e);
    if (r < 0)
        return r;
    x->start.own_spawner = gpi_start_needs_own(p);
    b->set = x->set.pool;
    b->class.launch = &x->start.launch;
    b->class.program_fd = b->class.setup_fd = -1;
    r = create_log(x, o, e);
    if (r == 0)
        r = find_spawner(x, p, e);
    if (r == 0)
        r = choose_pool(x, o, e);
    if (r)
        return r;
    gpi_options_pool(&b->set, x->choice.selection.n);
    r = take_slots(x, gpi_seats(&b->set), true, e);
    return r ? r : give_birth(ret_d, x, e);
}

int gpud_dispatcher_create(gpud_dispatcher **ret_d, const struct gpud_options *options,
                           struct gpud_error *reterr)
{
    struct gpi_process *p = gpi_process();
    struct gpud_options o;
    struct draft *x;
    int r;

    r = gpi_check_place(reterr);
    if (r)
        return r;
    gpi_refused_forget();
    if (!ret_d || !options)
        return gpi_fail_null(reterr, ret_d ? "options" : "ret_d");
    r = gpi_versioned_read(&o, sizeof o, options, offsetof(struct gpud_options, queue_size));
    if (r)
        return gpi_fail_size(reterr, r, "options", options->struct_size, sizeof o);
    x = calloc(1, sizeof *x);
    if (!x)
        return gpi_fail(reterr, GPUD_ENOMEM, 0, "", "no memory for options");
    x->birth.connection = x->birth.log_fd = -1;
    r = (o.pooled ? create_pooled : create)(ret_d, &o, p, x, reterr);
    discard(x);
    return r;
}

/* ---- end ---- */

int gpud_dispatcher_destroy(gpud_dispatcher **d, uint64_t *ret_uncollected)
{
    struct gpi_process *p = gpi_process(), *own;
    bool ours = false;
    int r;

    if (d && *d)
        ours = gpi_check(*d, NULL) == 0;
    if (ret_uncollected && !ours)
        *ret_uncollected = 0;
    if (!d || !*d)
        return 0;
    own = (*d)->own;
    r = gpi_destroy(*d, ret_uncollected);
    if (r)
        return r;
    *d = NULL;
    if (own)
        gpi_process_unspawn(own);
    else if (ours && p)
        gpi_process_leave(p);
    return 0;
}
