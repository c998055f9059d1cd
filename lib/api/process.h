/* SPDX-License-Identifier: MIT */
/* process.h - what gpud_init leaves behind in the host (the one static in lib/), or what a
 * dispatcher without it has of its own: a spawner, and who owns it. */
#ifndef GPI_API_PROCESS_H
#define GPI_API_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpudispatch/dispatch.h"
#include "os/process.h"

struct gpi_process {
    /* a page that reads zero in a forked child; NULL = never initialised */
    _Atomic uint32_t *alive;
    struct gpud_definition *definition; /* with their names, in one block */
    uint32_t n_definitions;
    int door;                /* socket to the spawner */
    pid_t spawner;
    int spawner_pidfd;       /* -1 where the system has none */
    bool orphan;             /* the spawner is no child of ours: a program of its own */
    struct gpi_credentials credentials;
    int program;             /* O_PATH fd of the host's program, or -1 */
    char **argv;             /* its arguments, in one block, or NULL */
    int program_errno;       /* why either is missing */
    bool cuda;               /* CUDA was in use at gpud_init: what is forked cannot use it */
    bool threads;            /* there were several then */
    uint64_t resident;       /* bytes of memory it had then */
    _Atomic uint32_t dispatchers; /* alive now, monitors included */
    _Atomic uint32_t slots;       /* of the dispatchers alive now, but those that were removed */
};

/* The record that gpud_init and gpud_fini write.  Its `alive` is NULL while it is empty. */
struct gpi_process *gpi_process_here(void);

/* The state of this process, or NULL when gpud_init was not called in it (a forked child: not). */
struct gpi_process *gpi_process(void);

/* Whether it was called in a process that this one was forked from. */
bool gpi_process_forked(void);

/* Whether the credentials are others than at gpud_init: what its spawner forks has those. */
bool gpi_process_changed(const struct gpi_process *p);

/* Takes one of the places that its spawner has for dispatchers and monitors; 0 or EFULL. */
int gpi_process_enter(struct gpi_process *p, struct gpud_error *e);
void gpi_process_leave(struct gpi_process *p);

/* Takes places that a spawner has for keepers, and gives them back; 0 or EFULL. */
int gpi_process_seat(_Atomic uint32_t *slots, uint32_t n, struct gpud_error *e);
void gpi_process_unseat(_Atomic uint32_t *slots, uint32_t n);

/* A spawner for one dispatcher or monitor: the bundled program. Needs no gpud_init, and copies
 * nothing of the host. 0; ENOPROGRAM, ENOTEXEC, EOTHERVERSION, ENOANSWER, EPROTOCOL, ENOMEM,
 * ESYSTEM. */
int gpi_process_spawn(struct gpi_process **ret, struct gpud_error *e);

/* "the spawner could not be started", with the call that was refused: one text, since host and
 * spawner may try the same call. */
int gpi_process_refused(struct gpud_error *e, int sys_errno);

/* Waits for the spawner's reply: it serves, or the call that it was refused.  `path` is that of the
 * program, NULL for one that was forked. */
int gpi_process_hear(struct gpi_process *p, const char *path, struct gpud_error *e);

/* Ends the spawner, if it is ours to end, and frees; NULL is fine. */
void gpi_process_unspawn(struct gpi_process *p);

/* Ends the spawner and closes and frees what belongs to it; `ours` is false in a forked child. */
void gpi_process_release(struct gpi_process *p, bool ours);

#endif
