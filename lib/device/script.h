/* SPDX-License-Identifier: MIT */
/*
 * script.h - the script of fake devices: what they are and what happens to them, and when.  One
 * grammar for the devices "fake:N,script=FILE" of users and for the fake libnvidia-ml.so.1 and
 * libcuda.so.1 of the tests.  docs/reference/fake-scripts.md is its reference.
 *
 *     driver version=570.86.15 cuda=12.8
 *     gpu 0 model="Small one" memory=8GiB used=1GiB boot=200ms
 *     gpu 1 mig=1g.10gb*2
 *     at 2s gpu 0 xid 79 lost
 *     when broken gpu 0 xid 94 recovery=reset
 *     gpu 0 hang sample
 *
 * Pure: a parsed script, a time since its start, and when each file of a `when` was first seen give
 * all there is. Nothing is counted here: where a line holds for so many times ("fail*3"), the one
 * who asks counts, and begins again whenever `turn` is another.
 *
 * A row is a GPU, or a MIG instance, which comes behind its GPU: the numbering of an
 * enumeration. What a line says of a GPU holds for its instances, too, but memory, processes and
 * XIDs.
 */
#ifndef GPI_DEVICE_SCRIPT_H
#define GPI_DEVICE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include "gpudispatch/error.h"

struct gpi_script;

/* Parses; *ret is ended with gpi_script_free. `devices` = 0: as many as the text speaks of. NULL or
 * "": no script, all is well. 0; GPUD_EDEVICE with line, column and what was expected; GPUD_ENOMEM.
 */
int gpi_script_parse(struct gpi_script **ret, const char *text, uint32_t devices,
                     struct gpud_error *e);
void gpi_script_free(struct gpi_script *s);

/* ---- what there is ---- */

uint32_t gpi_script_gpus(const struct gpi_script *s);
uint32_t gpi_script_rows(const struct gpi_script *s);
/* Who row i is: kind FAKE, name "fake:1" or "fake:1:0"; compute_mode as at the start. */
void gpi_script_identity(const struct gpi_script *s, uint32_t row, struct gpi_device *ret);
/* The row of GPU `gpu`, and of its instance `part`; GPI_UNKNOWN32 when there is none. For the GPU
 * itself part is GPI_UNKNOWN32. */
uint32_t gpi_script_row(const struct gpi_script *s, uint32_t gpu, uint32_t part);
/* The GPU that is number `n` where CUDA orders by its own taste (CUDA_DEVICE_ORDER is not
 * PCI_BUS_ID). */
uint32_t gpi_script_cuda_gpu(const struct gpi_script *s, uint32_t n);

/* ---- files that are waited for ---- */

#define GPI_SCRIPT_TRIGGERS_MAX 64u

/* How many different files its lines wait for.  `fired` below: for each of them when it was first
 * seen, counted from the script's start, GPI_NEVER until then; NULL = none was. */
uint32_t gpi_script_triggers(const struct gpi_script *s);
/* Looks for the files not seen yet (not pure: access(2)) and notes `t` for those that are there.
 * Whether one was found. */
bool gpi_script_look(const struct gpi_script *s, uint64_t *fired, uint64_t t);

/* ---- how it is at time t ---- */

struct gpi_script_driver {
    uint32_t state;      /* enum gpud_driver; HUNG: hangs in being opened */
    uint32_t cuda_version; /* 12080 */
    /* of a process as written by ...RunningProcesses_v3: 24, or 32 as by early 535 */
    uint32_t entry_size;
    bool hides_processes, deaf;
    char version[80], nvml_version[80];
};

void gpi_script_driver(const struct gpi_script *s, const uint64_t *fired, uint64_t t,
                       struct gpi_script_driver *ret);

enum gpi_access {
    GPI_ACCESS_OK,
    GPI_ACCESS_DENIED /* as an index answered with NO_PERMISSION */,
    GPI_ACCESS_LOST,
    GPI_ACCESS_RESET,
    GPI_ACCESS_REVOKED
};

struct gpi_script_state {
    uint32_t access;       /* enum gpi_access; says nothing of the driver's state */
    uint32_t compute_mode;
    /* .at = 0; reading and code by access; the values are filled in any case */
    struct gpi_sample sample;
    uint64_t boot;         /* how long a worker on it takes before setup, canary included */
    uint64_t late;         /* memory is back so long after the death of its process */
    uint32_t canary_fails; /* so many canaries, UINT32_MAX = all */
    uint32_t canary_turn;
};

void gpi_script_state(const struct gpi_script *s, const uint64_t *fired, uint32_t row, uint64_t t,
                      struct gpi_script_state *ret);

/* Counts canaries of one device: zeroed at first.  Whether this one fails. */
struct gpi_script_canary { uint32_t turn, done; };
bool gpi_script_canary_fails(struct gpi_script_canary *c, const struct gpi_script_state *now);

/* What a call does. `call` is a function's name, `group` what it belongs to (below, may be NULL):
 * lines may name either. row = GPI_UNKNOWN32: a call that concerns no device. */
struct gpi_script_call {
    bool hangs;      /* until a later line mends it: ask again */
    int32_t code;    /* to be answered with; 0 = as usual */
    uint32_t times;  /* so many times, UINT32_MAX = always */
    uint32_t turn;   /* another one for each line that says `fail` */
    uint64_t delay;  /* takes so long */
};

#define GPI_SCRIPT_OPEN "open"           /* loading, and asking about the driver as a whole */
#define GPI_SCRIPT_ENUMERATE "enumerate" /* who it is */
#define GPI_SCRIPT_SAMPLE "sample"       /* how it is */
#define GPI_SCRIPT_AWAIT "await"         /* what happens to it */
/* what a kernel does once it was launched: hang = it never ends; fail = its error, told by the
 * next sync */
#define GPI_SCRIPT_KERNEL "kernel"

void gpi_script_call(const struct gpi_script *s, const uint64_t *fired, uint32_t row,
                     const char *call, const char *group, uint64_t t, struct gpi_script_call *ret);

/* ---- what happens ---- */

/* Where somebody stands who hears of all that happens; zeroed = at the start. */
struct gpi_script_cursor {
    uint64_t time;
    uint32_t line, row;
};

/* The next thing that happens before time `until`, in order of time. Kinds XID, LOST, RECOVERY and
 * DEAF; .device is a row or GPI_UNKNOWN32, .at counts from the script's start. False: nothing more
 * before `until`. A file seen later than the cursor's time is heard of, too, if its time in `fired`
 * is not before an `until` asked with. */
bool gpi_script_incident(const struct gpi_script *s, const uint64_t *fired,
                         struct gpi_script_cursor *c, uint64_t until, struct gpi_incident *ret);

/* When the next line takes effect after t, as far as is known now; GPI_NEVER = none does. */
uint64_t gpi_script_next(const struct gpi_script *s, const uint64_t *fired, uint64_t t);

#endif
