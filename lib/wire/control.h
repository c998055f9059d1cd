/* SPDX-License-Identifier: MIT */
/*
 * control.h - what host, spawner and keepers say to each other over their SEQPACKET
 * sockets: one fixed record, with fds beside it where the kind says so.
 *
 *   host -> spawner, at the door:      CONNECT (+ socket), QUIT
 *   host -> spawner, own connection:   MAKE (+ GPI_MAKE_FDS fds, and one of the program to
 *   execute), MONITOR (+ its end of
 *                                      a socket), DROP, BYE
 *   spawner -> host:                   MADE (+ control socket of the keeper), GONE, UNFIT
 *   host -> keeper:                    START, KILL, ALARM, AWAIT, END
 *   keeper -> host:                    STARTED, ANSWERED, STOPPED, CONTINUED, OVERDUE, SWEEPING,
 *                                      EXITED, SPARED, DENIED, UNFIT
 *
 * A keeper has at most ten answers outstanding, so it never blocks in sending.
 */
#ifndef GPI_WIRE_CONTROL_H
#define GPI_WIRE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPI_CONNECTIONS_MAX 256 /* dispatchers and monitors of one spawner at a time */
#define GPI_KEEPERS_MAX 1024    /* slots of these dispatchers together */

enum gpi_control_kind {
    GPI_CTL_CONNECT = 0x6701,
    GPI_CTL_QUIT,
    GPI_CTL_MAKE, /* slot */
    GPI_CTL_BYE,
    GPI_CTL_MADE,  /* slot, pid of the keeper or sys_errno */
    GPI_CTL_GONE,  /* slot, pid of the keeper: it and all it had started are gone */
    GPI_CTL_START, /* incarnation; at = stop_limit, GPI_NEVER: none */
    GPI_CTL_KILL,  /* incarnation, stops as the host saw them, force; at, number, cell */
    GPI_CTL_ALARM, /* incarnation: SIGALRM to the task thread */
    GPI_CTL_END,
    GPI_CTL_STARTED, /* incarnation, pid of the worker or sys_errno; before any other word
                        of it, but the worker may be faster */
    GPI_CTL_EXITED, /* incarnation, exit_kind, exit_status: force = we had killed it; reaped, and all it had started swept; of a
                        program that was executed: answer, step, version, api, sys_errno */
    GPI_CTL_SWEEPING, /* incarnation: the worker is dead, what it had started is being killed */
    /* incarnation: not killed, it had been stopped without the host knowing, or its task had
     * ended */
    GPI_CTL_SPARED,
    /* incarnation: the program that was executed has come to gpud_init, and fits */
    GPI_CTL_ANSWERED,
    GPI_CTL_UNFIT,     /* sys_errno, call: the sender cannot serve any more, and ends */
    GPI_CTL_STOPPED,   /* incarnation: the worker is stopped; not said again before CONTINUED */
    GPI_CTL_CONTINUED, /* incarnation: the worker has gone on */
    GPI_CTL_OVERDUE,   /* incarnation: the worker was stopped for stop_limit, and has been killed */
    GPI_CTL_DENIED,    /* incarnation, ways (enum gpi_way) in which the worker could not be killed,
                        sys_errno; with all of them the keeper ends next: the worker dies with it */
    /* no answer: the monitor speaks at its socket, which ends where there is none; it lives as
     * long as the connection */
    GPI_CTL_MONITOR,
    GPI_CTL_DROP, /* slot, pid of the keeper: it is stopped: kill it; GONE answers.  A worker that it
                        has dies with it */
    GPI_CTL_AWAIT /* incarnation: STOPPED has been read: say when the worker goes on */
};

struct gpi_control {
    uint32_t kind;
    uint32_t slot;
    uint32_t incarnation;
    int32_t pid;
    uint32_t exit_kind; /* enum gpud_exit */
    int32_t exit_status;
    int32_t sys_errno; /* MADE, STARTED, UNFIT; and of EXITED with its answer */
    uint32_t stops;
    uint32_t force;
    uint32_t answer;  /* enum gpi_answer */
    uint32_t step;    /* enum gpi_step */
    uint32_t version; /* of its protocol */
    uint32_t api;     /* number of its API */
    uint32_t cell;   /* with at: not if this cell says that the task of this number has ended */
    uint32_t call;   /* with sys_errno: enum gpi_sys of base/refused.h; any number may come */
    uint32_t ways;
    uint64_t at;     /* 0 = now */
    uint64_t number;
};

/* The fds of MAKE, in this order. */
enum gpi_make_fd {
    GPI_MAKE_PAGE,
    GPI_MAKE_INPUT,
    GPI_MAKE_RESULT,
    GPI_MAKE_ORDERS, /* read end */
    GPI_MAKE_LOOKS,  /* write end */
    GPI_MAKE_OUTPUT, /* stdout of the worker: a write end, or the host's */
    GPI_MAKE_ERRORS, /* stderr of the worker: the same write end, or the host's */
    GPI_MAKE_LAUNCH, /* a memfd: launch.h */
    GPI_MAKE_SETUP,  /* what the setup data lie in: shared memory, or the input arena once more */
    GPI_MAKE_FDS,
    GPI_MAKE_PROGRAM = GPI_MAKE_FDS /* where that says so: an fd of the program to execute */
};

/* Whether `size` bytes that came are a word that this one says to that one. What is not is
 * nonsense: whoever reads it has nothing more to do with the one who said it. */
bool gpi_control_of_keeper(const struct gpi_control *c, size_t size);
bool gpi_control_of_spawner(const struct gpi_control *c, size_t size, uint32_t slots);
bool gpi_control_for_keeper(const struct gpi_control *c, size_t size);
bool gpi_control_for_spawner(const struct gpi_control *c, size_t size, size_t fds);

#endif
