/* SPDX-License-Identifier: MIT */
/* failure.h - filling the error record that a failing call hands out. */
#ifndef GPI_BASE_FAILURE_H
#define GPI_BASE_FAILURE_H

#include "gpudispatch/error.h"

/* Fills *e (NULL is fine) as far as its struct_size goes.  Behind the text come the call that was
 * refused, where it was noted (refused.h), and the errno's own text.  Returns code. */
int gpi_fail(struct gpud_error *e, int code, int sys_errno, const char *field, const char *format,
             ...) __attribute__((format(printf, 5, 6)));

#endif
