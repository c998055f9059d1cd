/* SPDX-License-Identifier: MIT */
/*
 * launch.h - how a slot's workers are to be started: forked, or which program with which
 * arguments; environment, directory, where stdout and stderr go.
 *
 * One record per dispatcher, the same for all its slots.  The host encodes it once into a
 * sealed memfd, which travels with each MAKE; the keeper copies and decodes it once.  The
 * strings are of any length, hence bytes and not a struct:
 *
 *     head | program | plugin | cwd | stdio_path | argv[0..n_argv) | env[0..n_env)
 *
 * each of the first four only when the head says so, each string with its terminating zero,
 * nothing before, between or after.
 *
 * Decoding is total: any bytes give a record whose strings all end inside it, or EBADMSG.
 */
#ifndef GPI_WIRE_LAUNCH_H
#define GPI_WIRE_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpudispatch/dispatch.h"

#define GPI_LAUNCH_MAX (4u << 20)     /* bytes: twice what Linux lets an argv have by default */
#define GPI_LAUNCH_STRINGS (1u << 18) /* of argv, and as many of env */

struct gpi_launch {
    uint32_t start;          /* GPUD_START_FORK or GPUD_START_EXEC: AUTO was decided before */
    uint32_t stdio;          /* enum gpud_stdio */
    /* 1 = an fd of the program to execute travels beside; else `program` */
    uint32_t has_program;
    const char *program;     /* EXEC: absolute path of the program */
    /* EXEC: what the bundled worker program is to load; it is in argv, too */
    const char *plugin;
    const char *cwd;         /* NULL = the keeper's */
    const char *stdio_path;  /* with GPUD_STDIO_FILE */
    const char *const *argv; /* EXEC: at least argv[0]; NULL ends.  NULL = none */
    /* "NAME=value" sets, "NAME" unsets; NULL ends.  NULL = nothing changes */
    const char *const *env;
    void *block;             /* of a decoded record: what all of these lie in */
};

/* Gives the record as bytes, ended with free.
 * 0; -1 with errno: EINVAL (fields that contradict each other, an empty string, an env entry
 * without a name), E2BIG, ENOMEM. */
int gpi_launch_encode(const struct gpi_launch *l, void **ret_blob, size_t *ret_size);

/* Reads bytes into a record of its own, ended with free(ret->block); `blob` may go or change.
 * 0; -1 with errno: EBADMSG, ENOMEM; *ret is untouched then. */
int gpi_launch_decode(struct gpi_launch *ret, const void *blob, size_t size);

#endif
