/* SPDX-License-Identifier: MIT */
/*
 * control.h - what host, spawner and keepers say to each other over their SEQPACKET
 * sockets: one fixed record, with fds beside it where the kind says so.
 *
 *   host -> spawner, at the door:      CONNECT (+ socket), QUIT
 *   host -> spawner, own connection:   MAKE (+ GPI_MAKE_FDS fds), BYE
 *   spawner -> host:                   MADE (+ control socket of the keeper), GONE
 *   host -> keeper:                    START, KILL, ALARM, END
 *   keeper -> host:                    STARTED, SWEEPING, EXITED, SPARED
 *
 * A keeper has at most three answers outstanding, so it never blocks in sending.
 */
#ifndef GPI_WIRE_CONTROL_H
#define GPI_WIRE_CONTROL_H

#include <stdint.h>

enum gpi_control_kind {
    GPI_CTL_CONNECT = 0x6701,
    GPI_CTL_QUIT,
    GPI_CTL_MAKE,    /* slot */
    GPI_CTL_BYE,
    GPI_CTL_MADE,    /* slot, pid of the keeper or sys_errno */
    GPI_CTL_GONE,    /* slot, pid of the keeper: it and all it had started are gone */
    GPI_CTL_START,   /* incarnation */
    GPI_CTL_KILL,    /* incarnation, stops as the host saw them, force */
    GPI_CTL_ALARM,   /* incarnation: SIGALRM to the task thread */
    GPI_CTL_END,
    GPI_CTL_STARTED, /* incarnation, pid of the worker or sys_errno */
    GPI_CTL_EXITED,  /* incarnation, exit_kind, exit_status: reaped, and all it had started swept */
    GPI_CTL_SWEEPING, /* incarnation: the worker is dead, what it had started is being killed */
    GPI_CTL_SPARED   /* incarnation: not killed, it had been stopped without the host knowing */
};

struct gpi_control {
    uint32_t kind;
    uint32_t slot;
    uint32_t incarnation;
    int32_t pid;
    uint32_t exit_kind; /* enum gpud_exit */
    int32_t exit_status;
    int32_t sys_errno;
    uint32_t stops;
    uint32_t force;
    uint32_t reserved;
};

/* The fds of MAKE, in this order. */
enum gpi_make_fd {
    GPI_MAKE_PAGE,
    GPI_MAKE_INPUT,
    GPI_MAKE_RESULT,
    GPI_MAKE_ORDERS, /* read end */
    GPI_MAKE_LOOKS,  /* write end */
    GPI_MAKE_OUTPUT, /* write end: stdout and stderr of the worker */
    GPI_MAKE_FDS
};

#endif
