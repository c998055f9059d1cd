/* SPDX-License-Identifier: MIT */
/*
 * control.h - the messages between host, spawner and keepers on their SEQPACKET sockets: one fixed
 * record each, with fds beside it where its kind needs them.
 *
 *   host -> spawner, at the door:     CONNECT (+ socket), QUIT
 *   host -> spawner, own connection:  MAKE (+ GPI_MAKE_FDS fds), MONITOR (+ its end of a socket),
 *                                     DROP, BYE
 *   spawner -> host:                  MADE (+ control socket of the keeper), GONE, UNFIT
 *   host -> keeper:                   START (+ the fds of a class, if the keeper's last START was
 *                                     for another one), KILL, ALARM, AWAIT, END
 *   keeper -> host:                   STARTED, ANSWERED, STOPPED, CONTINUED, OVERDUE, SWEEPING,
 *                                     EXITED, SPARED, DENIED, UNFIT
 *
 * A keeper has at most ten messages unread by the host, so it never blocks in sending.
 */
#ifndef GPI_WIRE_CONTROL_H
#define GPI_WIRE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPI_CONNECTIONS_MAX 256 /* of dispatchers and monitors, per spawner at a time */
#define GPI_KEEPERS_MAX 1024    /* slots of these dispatchers together */

enum gpi_control_kind {
    GPI_CTL_CONNECT = 0x6701,
    GPI_CTL_QUIT,
    GPI_CTL_MAKE, /* slot */
    GPI_CTL_BYE,
    GPI_CTL_MADE,  /* slot, pid of the keeper or sys_errno */
    GPI_CTL_GONE,  /* slot, pid of the keeper: the keeper and all processes below it are gone */
    GPI_CTL_START, /* incarnation; at = stop_limit, GPI_NEVER: none; force = fds come with it */
    GPI_CTL_KILL,  /* incarnation, stops as the host knows them, force; at, number, cell */
    GPI_CTL_ALARM, /* incarnation: the keeper sends SIGALRM to the task thread */
    GPI_CTL_END,
    /* incarnation, pid of the worker or sys_errno: the keeper's first message on this worker,
     * though a doorbell of the worker may arrive earlier */
    GPI_CTL_STARTED,
    /* incarnation, exit_kind, exit_status; force = the keeper killed it.  The worker is reaped, and
     * all it had started is swept.  Of an executed program also: answer, step, version, api,
     * sys_errno, call */
    GPI_CTL_EXITED,
    GPI_CTL_SWEEPING, /* incarnation: the worker is dead; the keeper kills all it had started */
    /* incarnation: the keeper did not kill.  The host did not know of a stop of the worker, or the
     * worker's task had ended */
    GPI_CTL_SPARED,
    /* incarnation: the executed program has reached gpud_init, and its version fits */
    GPI_CTL_ANSWERED,
    GPI_CTL_UNFIT,     /* sys_errno, call: the sender cannot serve any more and exits */
    GPI_CTL_STOPPED,   /* incarnation: the worker is stopped; not repeated before CONTINUED */
    GPI_CTL_CONTINUED, /* incarnation: the worker runs again */
    /* incarnation: the worker was stopped for stop_limit, and the keeper has killed it */
    GPI_CTL_OVERDUE,
    /* incarnation, ways (enum gpi_way) in which the kernel refused to kill the worker, sys_errno.
     * If it refused all of them the keeper exits next, and the worker dies with it */
    GPI_CTL_DENIED,
    /* no reply: the monitor itself writes to its socket, which ends where none could be started;
     * the monitor lives as long as the connection */
    GPI_CTL_MONITOR,
    /* slot, pid of a stopped keeper: the spawner kills it and replies GONE; the keeper's worker
     * dies with it */
    GPI_CTL_DROP,
    GPI_CTL_AWAIT /* incarnation: the host has read STOPPED and waits for CONTINUED */
};

struct gpi_control {
    uint32_t kind;
    uint32_t slot;
    uint32_t incarnation;
    int32_t pid;
    uint32_t exit_kind; /* enum gpud_exit */
    int32_t exit_status;
    int32_t sys_errno; /* of MADE, STARTED, UNFIT, DENIED; in EXITED: of the handshake */
    uint32_t stops;
    uint32_t force;
    uint32_t answer;  /* enum gpi_answer */
    uint32_t step;    /* enum gpi_step */
    uint32_t version; /* the protocol of the executed program */
    uint32_t api;     /* the GPUD_API_NUMBER of the executed program */
    uint32_t cell;   /* with at: no kill if this cell's end word has the send number `number` */
    uint32_t call;   /* with sys_errno: enum gpi_sys of base/refused.h; any number may arrive */
    uint32_t ways;
    uint64_t at;     /* of KILL, 0 = now; of START: stop_limit */
    uint64_t number;
};

/* The fds of MAKE, in this order. */
enum gpi_make_fd {
    GPI_MAKE_PAGE,
    GPI_MAKE_INPUT,
    GPI_MAKE_RESULT,
    GPI_MAKE_ORDERS, /* read end */
    GPI_MAKE_LOOKS,  /* write end */
    GPI_MAKE_OUTPUT, /* write end: stdout of the workers */
    GPI_MAKE_ERRORS, /* write end: their stderr with option stdio EVENTS; may be that of OUTPUT */
    GPI_MAKE_FDS
};

/* The fds of START, in this order. */
enum gpi_class_fd {
    GPI_CLASS_LAUNCH, /* a memfd: launch.h */
    GPI_CLASS_SETUP,  /* memory with the setup data: their own, or the input arena again */
    GPI_CLASS_FDS,    /* then, if the launch record needs them: */
    /* stdout and stderr of the host, with option stdio INHERIT; the program, if has_program */
    GPI_CLASS_FDS_MAX = GPI_CLASS_FDS + 3
};

/* Return whether `size` bytes that arrived are a message that this sender may send to this
 * receiver.  The receiver breaks with a sender of anything else. */
bool gpi_control_of_keeper(const struct gpi_control *c, size_t size);
bool gpi_control_of_spawner(const struct gpi_control *c, size_t size, uint32_t slots);
bool gpi_control_for_keeper(const struct gpi_control *c, size_t size, size_t fds);
bool gpi_control_for_spawner(const struct gpi_control *c, size_t size, size_t fds);

#endif
