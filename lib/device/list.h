/* SPDX-License-Identifier: MIT */
/*
 * list.h - the grammar of option "devices": its entries, one after another.  select.h chooses the
 * devices.
 *
 *     list   = entry *( "," entry )                     no empty entry
 *     entry  = "cpu:" N [ "/" K ]                       N CPU slots
 *            | "fake:" N [ "/" K ] [ ",script=" FILE ]  N fakes
 *            | "all" [ "/" K ]                          every GPU; of one in MIG mode its instances
 *            | "free" [ ":" N ] [ "/" K ]               N of these that no process uses, or each
 *            | [ "gpu:" ] INDEX [ "/" K ]               one GPU
 *            | [ "gpu:" ] INDEX ":" INSTANCE [ "/" K ]  one MIG instance of it
 *            | UUID [ "/" K ]                           "GPU-..." or "MIG-..."
 *
 * Blanks and tabs may surround entries.  The comma before script= is part of the entry.  A UUID may
 * be a beginning that fits one device.
 *
 * N and K are 1 to 1,024 (fakes: at most 256 in a list), and K workers share each device of the
 * entry.  FILE reaches to the next comma or the end.  It may contain "/", so K is behind N, not
 * behind FILE; a name with a comma, or with a blank at its end, cannot be written.  A list has one
 * script at most, for all its fakes.  Fakes and GPUs cannot be in one list, since a monitor reads
 * only one kind of them.
 */
#ifndef GPI_DEVICE_LIST_H
#define GPI_DEVICE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include "gpudispatch/error.h"

#define GPI_DEVICE_MOST 1024u /* N and K of an entry */

enum gpi_entry_kind {
    GPI_ENTRY_CPU,
    GPI_ENTRY_FAKE,
    GPI_ENTRY_ALL,
    GPI_ENTRY_FREE,
    GPI_ENTRY_INDEX,
    GPI_ENTRY_INSTANCE,
    GPI_ENTRY_UUID
};

struct gpi_device_entry {
    const char *text; /* as written, inside the list, without the blanks around it */
    uint32_t length;
    uint32_t position; /* from 1 */
    uint32_t kind;     /* enum gpi_entry_kind */
    uint32_t n;        /* CPU, FAKE, FREE: the number of them; FREE 0: each.  INDEX, INSTANCE: the
                        * GPU's index */
    uint32_t instance; /* INSTANCE */
    uint32_t workers;  /* K, of each of its devices */
    uint32_t word_length; /* UUID: length in `text`, without "/K" */
    const char *script;   /* FAKE: inside the list, not terminated; NULL = none */
    uint32_t script_length;
};

/* An entry in the texts of errors: gpi_fail(..., GPI_ENTRY_FORMAT " is ...", GPI_ENTRY_ARGS(e)) */
#define GPI_ENTRY_SHOWN 64u /* of its characters, at most */
#define GPI_ENTRY_FORMAT "entry %u, \"%.*s\","
#define GPI_ENTRY_ARGS(entry)                                                         \
    (entry)->position,                                                                \
        (int)((entry)->length < GPI_ENTRY_SHOWN ? (entry)->length : GPI_ENTRY_SHOWN), \
        (entry)->text

/* Reads the entry at *at, which moves behind it and its comma, and becomes NULL behind the last.
 * `before` is the entry before it, NULL for the first; ret may be the same.  Returns 0, or
 * GPUD_EDEVICE with an error that names the entry and its position. */
int gpi_device_entry(const char **at, const struct gpi_device_entry *before,
                     struct gpi_device_entry *ret, struct gpud_error *e);

/* The needs of a list, before any enumeration. */
struct gpi_device_needs {
    bool gpus;            /* some entry needs NVML */
    bool readings;        /* some entry chooses by readings */
    uint32_t cpus, fakes; /* the number of them */
    const char *script;   /* the file's name, inside the text, not terminated; NULL = none */
    uint32_t script_length;
};

/* Reads the whole list, as far as that is possible without devices.  Returns 0, or GPUD_EDEVICE
 * with entry and position. */
int gpi_device_needs(const char *text, struct gpi_device_needs *ret, struct gpud_error *e);

#endif
