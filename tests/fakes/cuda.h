/* SPDX-License-Identifier: MIT */
/*
 * cuda.h - what the files of the fake libcuda.so.1 share: the devices as the script has them, and
 * how each call is entered. It is hidden: the calls and the counts alone are the library's.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "device/fake/script.h"

enum {
    NOT_INITIALIZED = 3,
    OUT_OF_MEMORY = 2,
    INVALID_VALUE = 1,
    INVALID_DEVICE = 101,
    INVALID_HANDLE = 400,
    ALREADY_REGISTERED = 712,
    NOT_REGISTERED = 713
};
enum { DEVICES = 64, KERNELS = 64, RANGES = 64 };

extern unsigned fake_cuda_calls, fake_cuda_flags, fake_cuda_pinned, fake_cuda_refused,
    fake_cuda_contexts;

#pragma GCC visibility push(hidden)

struct running {
    bool there;
    void *stream;
    uint64_t until;
    const volatile int *stop; /* of an endless one */
    bool hangs;               /* by the script */
};

struct device {
    uint32_t row;
    unsigned refs, flags;
    int error; /* of its context, sticky */
    struct running running[KERNELS];
    uint64_t used; /* memory */
    struct gpi_script_canary canary;
};

struct fake {
    pid_t owner;
    struct gpi_script *script;
    uint64_t began;
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    struct device device[DEVICES];
    int n;
    /* per kind of call: how often it has failed, by which line */
    uint32_t failed[512], failed_turn[512];
    struct {
        char *at;
        size_t size;
    } range[RANGES];
    struct gpi_script_canary *canary; /* of all processes, where the script is a file */
};
extern struct fake fake;

uint64_t f_now(void);
/* Takes its time; false when a signal came. */
bool f_passes(uint64_t duration);
/* What the script has for a call, and for a device, now. */
struct gpi_script_call f_says(uint32_t row, const char *call, const char *group);
struct gpi_script_state f_state_of(uint32_t row);
/* `fail CALL CODE*N`: the N first ones of each such line. */
int f_failure(const char *call, const struct gpi_script_call *c);
int f_enter_on(uint32_t row, const char *call, const char *group);
bool f_is_device(int i);
/* Whose context it is in which this thread works; NULL: none. */
struct device *f_current(void);

#pragma GCC visibility pop

#define ENTER_ON(row, group)                                 \
    do {                                                     \
        int entered = f_enter_on((row), __func__, (group));  \
        if (entered)                                         \
            return entered;                                  \
    } while (0)
#define ENTER() ENTER_ON(GPI_UNKNOWN32, NULL)

/* A call that works in the current context. */
#define ENTER_CONTEXT(d)                                     \
    do {                                                     \
        (d) = f_current();                                   \
        ENTER_ON((d) ? (d)->row : GPI_UNKNOWN32, NULL);      \
        if (!(d))                                            \
            return GPI_CU_INVALID_CONTEXT;                   \
        if ((d)->error)                                      \
            return (d)->error;                               \
    } while (0)

#endif
