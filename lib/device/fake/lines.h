/* SPDX-License-Identifier: MIT */
/* lines.h - a parsed script: parse.c makes it, script.c evaluates it. */
#ifndef GPI_FAKE_LINES_H
#define GPI_FAKE_LINES_H

#include "device/device.h"
#include "device/fake/script.h"

/* The settings: key in a script, form of the value, value without a line. */
#define GPI_SETTING_MAP(X)                            \
    X(ACCESS, NULL, NONE, GPI_ACCESS_OK)                 \
    X(USED, "used", SIZE_OR_PERCENT, 0)               \
    X(TEMPERATURE, "temperature", NUMBER, 40)         \
    X(POWER, "power", WATTS, 60000)                   \
    X(POWER_LIMIT, "power-limit", WATTS, 300000)      \
    X(UTILIZATION, "utilization", PERCENT, 0)         \
    X(MEMORY_UTILIZATION, "memory-utilization", PERCENT, 0) \
    X(CLOCK, "clock", NUMBER, 1200)                   \
    X(THROTTLE, "throttle", THROTTLE, 0)              \
    X(ECC_CORRECTED, "ecc-corrected", NUMBER, 0)      \
    X(ECC_UNCORRECTED, "ecc-uncorrected", NUMBER, 0)  \
    X(REMAPPED, "remapped", NUMBER, 0)                \
    X(REMAP_PENDING, "remap-pending", YES_NO, 0)      \
    X(REMAP_FAILED, "remap-failed", YES_NO, 0)        \
    X(RECOVERY, "recovery", RECOVERY, 0)              \
    X(MODE, "mode", MODE, 0)                          \
    X(BOOT, "boot", TIME, 0)                          \
    X(LATE, "late", TIME, 0)                          \
    X(CANARY, "canary", CANARY, 0)                    \
    X(STATE, "state", STATE, 0)                       \
    X(PROCESSES, "processes", PROCESSES, 0)

#define GPI_X_SETTING(name, key, how, otherwise) GPI_SET_##name,
enum gpi_setting { GPI_SETTING_MAP(GPI_X_SETTING) GPI_SETTINGS };
#undef GPI_X_SETTING

/* From here on settings belong to the driver, and no GPU has them. */
#define GPI_SETTINGS_OF_DRIVER GPI_SET_STATE

enum gpi_verb {
    GPI_VERB_SET,
    GPI_VERB_XID,
    GPI_VERB_FOREIGN,
    GPI_VERB_GONE,
    GPI_VERB_HANG,
    GPI_VERB_SLOW,
    GPI_VERB_FAIL,
    GPI_VERB_MEND,
    GPI_VERB_DEAF
};

#define GPI_SCRIPT_CALL_SIZE 64u

/* One effect of one line. */
struct gpi_effect {
    uint64_t offset;      /* ns after the script's start, or after its file was first seen */
    uint64_t value;       /* of a setting; the XID; a process's memory; a delay; a code */
    /* used: 1 = value is percent; foreign: growth, bytes per second; fail: number of times */
    uint64_t more;
    uint32_t pid;
    uint32_t trigger;     /* index of the file; GPI_UNKNOWN32 = none */
    uint32_t first, last; /* GPUs; first == GPI_UNKNOWN32: the driver */
    uint32_t part;        /* the instance; GPI_UNKNOWN32 = the GPU itself */
    uint32_t line, column;
    uint8_t verb, setting;
    bool begins;          /* the line has a beginning */
    char call[GPI_SCRIPT_CALL_SIZE];
};

#define GPI_PARTS_MAX 7u

struct gpi_script_part {
    char uuid[GPI_UUID_SIZE], profile[32];
    uint64_t memory;
};

struct gpi_script_gpu {
    char uuid[GPI_UUID_SIZE], model[96], pci[32];
    uint64_t memory; /* GPI_UNKNOWN64: that of the machine */
    uint32_t major, minor_cc, numa, minor, cuda; /* GPI_UNKNOWN32: not in the script */
    uint32_t parts;
    uint32_t line; /* of its last uuid, cuda or mig, for errors about clashes */
    struct gpi_script_part part[GPI_PARTS_MAX];
};

struct gpi_script {
    uint32_t gpus, triggers;
    size_t effects, room;
    struct gpi_effect *effect;
    char version[80], nvml[80];
    uint32_t cuda_version, entry_size;
    char *trigger[GPI_SCRIPT_TRIGGERS_MAX];
    struct gpi_script_gpu gpu[GPI_GPUS_MAX];
};

#endif
