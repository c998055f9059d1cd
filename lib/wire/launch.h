/* SPDX-License-Identifier: MIT */
/*
 * launch.h - how the workers of a slot start: forked, or as which program with which arguments;
 * their environment, directory, stdout and stderr.
 *
 * There is one record per class.  The host encodes it once into a sealed memfd, whose fd goes with
 * a keeper's first START for the class; the keeper copies and decodes it then.  Strings have any
 * length, so the record is a row of bytes and not a struct:
 *
 *     head | program | plugin | cwd | stdio_path | argv[0..n_argv) | env[0..n_env)
 *
 * Each of the first four is present only when the head announces it.  Each string has its
 * terminating zero.  No byte lies before, between or after the strings.
 *
 * Decoding is total: any bytes make a record whose strings all end inside it, or fail with EBADMSG.
 */
#ifndef GPI_WIRE_LAUNCH_H
#define GPI_WIRE_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpudispatch/dispatch.h"

#define GPI_LAUNCH_MAX (4u << 20)     /* bytes: twice the argv that Linux allows by default */
#define GPI_LAUNCH_STRINGS (1u << 18) /* of argv, and as many of env */

struct gpi_launch {
    uint32_t start;          /* GPUD_START_FORK or GPUD_START_EXEC: the host has resolved AUTO */
    uint32_t stdio;          /* enum gpud_stdio */
    /* 1 = START carries an fd of the program to execute; 0 = `program` names it */
    uint32_t has_program;
    const char *program;     /* EXEC: absolute path of the program */
    /* EXEC: the plugin for the bundled worker program, which finds it in argv, too */
    const char *plugin;
    const char *cwd;         /* NULL = the keeper's directory */
    const char *stdio_path;  /* with GPUD_STDIO_FILE */
    const char *const *argv; /* EXEC: at least argv[0]; ends with NULL.  NULL = none */
    /* "NAME=value" sets, "NAME" unsets; ends with NULL.  NULL = no change */
    const char *const *env;
    void *block;             /* of a decoded record: the memory of all strings and lists */
};

/* Encodes the record into bytes that the caller frees with free.  Returns 0, or -1 with errno:
 * EINVAL (fields that contradict each other, an empty string, an env entry without a name), E2BIG,
 * ENOMEM. */
int gpi_launch_encode(const struct gpi_launch *l, void **ret_blob, size_t *ret_size);

/* Decodes a record into memory of its own, which the caller frees with free(ret->block); `blob` may
 * change or go afterwards.  Returns 0, or -1 with errno EBADMSG or ENOMEM and *ret untouched. */
int gpi_launch_decode(struct gpi_launch *ret, const void *blob, size_t size);

#endif
