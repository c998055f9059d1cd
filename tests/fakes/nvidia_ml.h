/* SPDX-License-Identifier: MIT */
/*
 * nvidia_ml.h - what the files of the fake libnvidia-ml.so.1 share: the script's state, how a call
 * obeys it, and records that are written by the offsets of their fields.
 */
#ifndef FAKE_NVIDIA_ML_H
#define FAKE_NVIDIA_ML_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "device/fake/script.h"

/* NVML's codes. */
enum {
    OK = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    FUNCTION_NOT_FOUND = 13,
    GPU_IS_LOST = 15,
    RESET_REQUIRED = 16,
    OPERATING_SYSTEM = 17,
    VERSION_MISMATCH = 18,
    ARGUMENT_VERSION_MISMATCH = 25,
    UNKNOWN = 999
};

enum { TURNS = 512, HELD = 64 };

#define EXPORTED __attribute__((visibility("default")))

extern atomic_uint fake_nvml_calls, fake_nvml_forbidden;

struct turn {
    char call[64];
    uint32_t row, turn, done;
};

/* A process that has died, and when that was seen. */
struct dead {
    char uuid[96];
    int pid;
    uint64_t at;
};

struct fake {
    pthread_mutex_t lock; /* of what two threads write; never held in a call that waits */
    struct gpi_script *script;
    uint64_t zero;
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    uint32_t turns, dead;
    struct turn turn[TURNS];
    struct dead died[HELD];
    bool initialized;
    char row[GPI_GPUS_MAX]; /* a handle is the address of one */
};
extern struct fake fake;

/* Time, and the files seen until then. */
uint64_t f_now(uint64_t *ret_fired);
struct gpi_script_state f_state_of(uint32_t row);
struct gpi_script_driver f_driver(void);
struct gpi_device f_identity(uint32_t row);
bool f_is_part(uint32_t row);

/* What comes before a call does anything: its code, 0 = it goes on. */
int f_obey(const char *call, const char *group, uint32_t row);
int f_of_access(uint32_t row);
void f_rest(uint64_t duration);
uint32_t f_row_of(const void *handle);

/* In each function of a device: `row`, or its answer. */
#define DEVICE(group)                                                      \
    const uint32_t row = f_row_of(device);                                 \
    const int obeyed = row == GPI_UNKNOWN32 ? INVALID_ARGUMENT             \
                       : !fake.initialized  ? UNINITIALIZED                \
                                            : f_obey(__func__, group, row); \
    if (obeyed)                                                            \
    return obeyed
#define DRIVER(group)                                               \
    const int obeyed = f_obey(__func__, group, GPI_UNKNOWN32);        \
    if (obeyed || (!fake.initialized && strcmp(__func__, "nvmlInit_v2") != 0)) \
        return obeyed ? obeyed : UNINITIALIZED

void f_put32(void *to, size_t at, uint32_t value);
void f_put64(void *to, size_t at, uint64_t value);
int f_text(char *to, uint32_t size, const char *what);
/* A setting that may be unknown. */
int f_number(uint32_t *to, uint32_t value);

#endif
