/* SPDX-License-Identifier: MIT */
/* self.h - the program that this process runs: its file and its arguments, to be run again. */
#ifndef GPI_OS_SELF_H
#define GPI_OS_SELF_H

#include <stddef.h>

/* A lifted O_PATH fd of the program's file, good for execveat also when the file has been deleted
 * or replaced since.  -1 with errno. */
int gpi_self_program(void);

/* The arguments, as the kernel knows them, in one block ended with free; NULL ends the list.
 * NULL with errno: /proc is missing, or they are longer than `max` bytes. */
char **gpi_self_argv(size_t max);

#endif
