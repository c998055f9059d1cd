/* SPDX-License-Identifier: MIT */
/*
 * logs.h - compares the logs that dispatchers wrote while a case ran: what their cores ordered, and
 * what a fresh core orders for the same facts.
 */
#ifndef T_LOGS_H
#define T_LOGS_H

#include <stddef.h>
#include <stdint.h>

struct t_logs {
    unsigned equal, differ; /* logs */
    uint64_t lines;         /* of the equal ones */
    char difference[500];   /* the first, with its file and line */
};

/* Adds the logs of a directory to *sum.  In a build without assertions there is none. */
void t_logs_compare(struct t_logs *sum, const char *directory);

#endif
