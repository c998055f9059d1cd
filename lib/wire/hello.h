/* SPDX-License-Identifier: MIT */
/*
 * hello.h - how a program that a keeper has executed becomes a worker.
 *
 * The keeper puts one variable, GPUD_WORKER, into the program's environment: the protocol's number,
 * the pid that was started, and the numbers of the fds that wait there.  The program's gpud_init
 * finds it, removes it, and answers once, with one record through the pipe `hello`.  The keeper
 * itself writes that record when the program cannot be executed at all.  No record: the program
 * never came to gpud_init.
 *
 * The two sides may be of different versions, so the first three numbers of the variable and the
 * record stay as they are for ever; what comes after them belongs to the protocol's number.
 */
#ifndef GPI_WIRE_HELLO_H
#define GPI_WIRE_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/page.h"

/* rises with every change of what crosses, from the first release on */
#define GPI_PROTOCOL GPI_PAGE_VERSION

#define GPI_CALL_VARIABLE "GPUD_WORKER"
#define GPI_CALL_SIZE 192u /* of its value */

/* What the variable says. */
struct gpi_call {
    uint32_t protocol;
    int32_t pid; /* that was started: another one that reads this is a child of it */
    int32_t hello;
    /* only when the protocol is ours: */
    int32_t keeper;
    uint32_t incarnation;
    int32_t page, input, result, orders, looks, setup;
};

/* Writes the variable's value; `to` has GPI_CALL_SIZE bytes. */
void gpi_call_write(char *to, const struct gpi_call *c);

/* Reads one.  False when it is none: the first three numbers, and the others if the protocol is
 * ours, must be there, fds above 2. */
bool gpi_call_read(struct gpi_call *ret, const char *text);

/* What became of a start. */
enum gpi_answer {
    GPI_ANSWER_NONE,    /* no word: gpud_init has not been reached */
    GPI_ANSWER_READY,   /* a worker of our protocol: setup comes next */
    GPI_ANSWER_STEP,    /* `step` could not be done: sys_errno tells why */
    GPI_ANSWER_VERSION, /* gpud_init is of another protocol: `protocol`, `api` */
    GPI_ANSWER_WRAPPED, /* gpud_init was called in `pid`, a child of the process that was started */
    GPI_ANSWER_THREAD,  /* gpud_init was called on another thread than the main one */
    GPI_ANSWER_GARBAGE, /* never sent: something came that is no hello */
    GPI_ANSWERS
};

/* What is done between fork and the program's first instruction; and by its gpud_init; and what a
 * spawner does before it serves. */
enum gpi_step { GPI_STEP_EXEC, GPI_STEP_ENV, GPI_STEP_MAP, GPI_STEP_SPAWNER, GPI_STEPS };

#define GPI_HELLO_MAGIC 0x48445047u /* "GPDH" */

struct gpi_hello {
    uint32_t magic;
    uint32_t answer; /* enum gpi_answer */
    uint32_t protocol, api;
    int32_t sys_errno;
    int32_t pid;
    uint32_t step; /* enum gpi_step */
    uint32_t call; /* enum gpi_sys of base/refused.h: which was refused; any number may come */
};

/* Reads what came through the pipe: one whole record, or GARBAGE.  Never NONE. */
enum gpi_answer gpi_hello_read(struct gpi_hello *ret, const void *bytes, size_t size);

/* The end of a text about GARBAGE: "PROGRAM sent an unexpected reply: ...". */
#define GPI_HELLO_UNEXPECTED "sent an unexpected reply: is it a gpudispatch worker?"

/* Writes the text about VERSION: the program's protocol and API, and those of this library. */
void gpi_hello_other_version(char *to, size_t size, const char *program, uint32_t protocol,
                             uint32_t api);

#endif
