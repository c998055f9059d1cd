/* SPDX-License-Identifier: MIT */
/*
 * hello.h - how a program that a keeper has executed becomes a worker.
 *
 * The keeper puts one variable, GPUD_WORKER, into the program's environment: the number of the
 * protocol, the pid of the started process, and the numbers of the inherited fds.  The program's
 * gpud_init finds the variable, removes it, and replies once, with one record through the pipe
 * `hello`.  If the program cannot be executed at all, the child of the keeper writes that record
 * itself.  If the pipe ends without a record, the program never reached gpud_init.
 *
 * The two sides may be of different versions.  The first three numbers of the variable and the
 * record therefore never change; all numbers behind them may change with the protocol.
 */
#ifndef GPI_WIRE_HELLO_H
#define GPI_WIRE_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/page.h"

/* rises with every change of the page or the messages, from the first release on */
#define GPI_PROTOCOL GPI_PAGE_VERSION

#define GPI_CALL_VARIABLE "GPUD_WORKER"
#define GPI_CALL_SIZE 192u /* of the variable's value */

/* The content of the variable. */
struct gpi_call {
    uint32_t protocol;
    int32_t pid; /* the started process; if another one reads this, it is a child of it */
    int32_t hello;
    /* valid only with this library's protocol: */
    int32_t keeper;
    uint32_t incarnation;
    int32_t page, input, result, orders, looks, setup;
};

/* Writes the variable's value; `to` has GPI_CALL_SIZE bytes. */
void gpi_call_write(char *to, const struct gpi_call *c);

/* Reads a value.  Returns false unless the first three numbers are there (with this library's
 * protocol: all of them), every fd above 2. */
bool gpi_call_read(struct gpi_call *ret, const char *text);

/* The result of a start. */
enum gpi_answer {
    GPI_ANSWER_NONE,    /* no record: the program has not reached gpud_init */
    GPI_ANSWER_READY,   /* a worker of this library's protocol: setup follows */
    GPI_ANSWER_STEP,    /* `step` failed with sys_errno */
    GPI_ANSWER_VERSION, /* gpud_init is of another protocol: `protocol`, `api` */
    /* gpud_init was called in `pid`, a child of the started process */
    GPI_ANSWER_WRAPPED,
    GPI_ANSWER_THREAD,  /* gpud_init was called on a thread other than the main one */
    GPI_ANSWER_GARBAGE, /* never sent: the bytes that arrived are no handshake */
    GPI_ANSWERS
};

/* The steps that can fail: before the program's first instruction, in its gpud_init, and in a
 * spawner before it serves. */
enum gpi_step { GPI_STEP_EXEC, GPI_STEP_ENV, GPI_STEP_MAP, GPI_STEP_SPAWNER, GPI_STEPS };

#define GPI_HELLO_MAGIC 0x48445047u /* "GPDH" */

struct gpi_hello {
    uint32_t magic;
    uint32_t answer; /* enum gpi_answer */
    uint32_t protocol, api;
    int32_t sys_errno;
    int32_t pid;
    uint32_t step; /* enum gpi_step */
    uint32_t call; /* enum gpi_sys of base/refused.h: the failed call; any number may arrive */
};

/* Reads the bytes from the pipe: one whole record, or GARBAGE.  Never returns NONE. */
enum gpi_answer gpi_hello_read(struct gpi_hello *ret, const void *bytes, size_t size);

/* The end of a text about GARBAGE: "PROGRAM sent an unexpected reply: ...". */
#define GPI_HELLO_UNEXPECTED "sent an unexpected reply: is it a gpudispatch worker?"

/* Writes the text about VERSION: the program's protocol and API, and those of this library. */
void gpi_hello_other_version(char *to, size_t size, const char *program, uint32_t protocol,
                             uint32_t api);

#endif
