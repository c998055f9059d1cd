/* SPDX-License-Identifier: MIT */
/*
 * script.h - the script of fake devices: their facts, and their incidents with the times.  One
 * grammar serves the devices "fake:N,script=FILE" of users, and the fake libnvidia-ml.so.1 and
 * libcuda.so.1 of the tests.  docs/reference/fake-scripts.md is its reference.
 *
 *     driver version=570.86.15 cuda=12.8
 *     gpu 0 model="Small one" memory=8GiB used=1GiB boot=200ms
 *     gpu 1 mig=1g.10gb*2
 *     at 2s gpu 0 xid 79 lost
 *     when broken gpu 0 xid 94 recovery=reset
 *     gpu 0 hang sample
 *
 * Pure: a parsed script, a time since its start, and the time at which each file of a `when` was
 * first seen determine all results.  The script counts nothing: if a line holds N times ("fail*3"),
 * the caller counts, and starts again whenever `turn` changes.
 *
 * A row is a GPU, or a MIG instance, which follows its GPU: the numbering of an enumeration.  A
 * line about a GPU holds for its instances, too, except for memory, processes and XIDs.
 */
#ifndef GPI_FAKE_SCRIPT_H
#define GPI_FAKE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include "gpudispatch/error.h"

struct gpi_script;

/* Parses a script, which gpi_script_free frees.  `devices` = 0: as many as the text names.  NULL or
 * "": no script, all is well.  Returns 0; GPUD_EDEVICE with line, column and the expected form;
 * GPUD_ENOMEM. */
int gpi_script_parse(struct gpi_script **ret, const char *text, uint32_t devices,
                     struct gpud_error *e);
void gpi_script_free(struct gpi_script *s);

/* ---- devices ---- */

uint32_t gpi_script_gpus(const struct gpi_script *s);
uint32_t gpi_script_rows(const struct gpi_script *s);
/* Writes the identity of a row: kind FAKE, name "fake:1" or "fake:1:0"; compute_mode as at the
 * start. */
void gpi_script_identity(const struct gpi_script *s, uint32_t row, struct gpi_device *ret);
/* Returns the row of GPU `gpu`, or of its instance `part`; GPI_UNKNOWN32 if there is none.  For the
 * GPU itself part is GPI_UNKNOWN32. */
uint32_t gpi_script_row(const struct gpi_script *s, uint32_t gpu, uint32_t part);

/* ---- awaited files ---- */

#define GPI_SCRIPT_TRIGGERS_MAX 64u

/* Returns how many different files the lines await.  `fired` below: for each of them the time since
 * the script's start at which it was first seen, GPI_NEVER until then; NULL = none was. */
uint32_t gpi_script_triggers(const struct gpi_script *s);
/* Checks for the files not seen yet (not pure: access(2)), and notes `t` for each that exists.
 * Returns whether it found one. */
bool gpi_script_look(const struct gpi_script *s, uint64_t *fired, uint64_t t);

/* ---- the state at time t ---- */

struct gpi_script_driver {
    uint32_t state;      /* enum gpud_driver; HUNG: opening it hangs */
    uint32_t cuda_version; /* 12080 = 12.8 */
    /* bytes of a process in ...RunningProcesses_v3: 24, or 32 as in early 535 drivers */
    uint32_t entry_size;
    bool hides_processes, deaf;
    char version[80], nvml_version[80];
};

void gpi_script_driver(const struct gpi_script *s, const uint64_t *fired, uint64_t t,
                       struct gpi_script_driver *ret);

enum gpi_access {
    GPI_ACCESS_OK,
    GPI_ACCESS_DENIED /* like an index that returns NO_PERMISSION */,
    GPI_ACCESS_LOST,
    GPI_ACCESS_RESET,
    GPI_ACCESS_REVOKED
};

struct gpi_script_state {
    uint32_t access;       /* enum gpi_access; independent of the driver's state */
    uint32_t compute_mode;
    /* .at = 0; access decides reading and code; the values are set in any case */
    struct gpi_sample sample;
    uint64_t boot;         /* ns that a worker on it takes before setup, canary included */
    uint64_t late;         /* ns from the death of a process until its memory is free */
    uint32_t canary_fails; /* number of canaries that fail, UINT32_MAX = all */
    uint32_t canary_turn;
};

void gpi_script_state(const struct gpi_script *s, const uint64_t *fired, uint32_t row, uint64_t t,
                      struct gpi_script_state *ret);

/* Counts canaries of one device; zeroed at first.  Returns whether this one fails. */
struct gpi_script_canary { uint32_t turn, done; };
bool gpi_script_canary_fails(struct gpi_script_canary *c, const struct gpi_script_state *now);

/* The behaviour of a call.  `call` is a function's name, `group` the group it belongs to (below,
 * may be NULL): lines may name either.  row = GPI_UNKNOWN32: a call that concerns no device. */
struct gpi_script_call {
    bool hangs;      /* until a later line mends it: evaluate it again */
    int32_t code;    /* the result of the call; 0 = as usual */
    uint32_t times;  /* number of failures, UINT32_MAX = always */
    uint32_t turn;   /* another one for each `fail` in a line */
    uint64_t delay;  /* ns that the call takes */
};

#define GPI_SCRIPT_OPEN "open"           /* loading, and calls about the driver as a whole */
#define GPI_SCRIPT_ENUMERATE "enumerate" /* the identity of devices */
#define GPI_SCRIPT_SAMPLE "sample"       /* the state of devices */
#define GPI_SCRIPT_AWAIT "await"         /* the incidents */
/* a launched kernel: hang = it never ends; fail = its error, which the next sync returns */
#define GPI_SCRIPT_KERNEL "kernel"

void gpi_script_call(const struct gpi_script *s, const uint64_t *fired, uint32_t row,
                     const char *call, const char *group, uint64_t t, struct gpi_script_call *ret);

/* ---- incidents ---- */

/* The position of a reader of all incidents; zeroed = at the start. */
struct gpi_script_cursor {
    uint64_t time;
    uint32_t line, row;
};

/* Returns the next incident before time `until`, in order of time.  Its kind is GPI_INCIDENT_XID,
 * _LOST, _RECOVERY or _DEAF; .device is a row or GPI_UNKNOWN32, .at counts from the script's start.
 * Returns false if no more is before `until`.  The incidents of a file that is seen later than the
 * cursor's time are returned, too, if its time in `fired` is not before an earlier `until`. */
bool gpi_script_incident(const struct gpi_script *s, const uint64_t *fired,
                         struct gpi_script_cursor *c, uint64_t until, struct gpi_incident *ret);

/* Returns when the next line takes effect after t, as far as known now; GPI_NEVER = none does. */
uint64_t gpi_script_next(const struct gpi_script *s, const uint64_t *fired, uint64_t t);

#endif
