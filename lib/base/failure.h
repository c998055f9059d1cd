/* SPDX-License-Identifier: MIT */
/* failure.h - filling the error record that a failing call hands out. */
#ifndef GPI_BASE_FAILURE_H
#define GPI_BASE_FAILURE_H

#include <stddef.h>
#include <stdint.h>

#include "gpudispatch/error.h"

/* Fills *e (NULL is fine) as far as its struct_size goes.  Behind the text come the call that was
 * refused, where it was noted (refused.h), and the errno's own text.  Returns code. */
int gpi_fail(struct gpud_error *e, int code, int sys_errno, const char *field, const char *format,
             ...) __attribute__((format(printf, 5, 6)));

/* The texts that several calls share.  Each returns the code. */
/* EINVAL: "source is NULL". */
int gpi_fail_null(struct gpud_error *e, const char *field);
/* EINVAL: "task.awaited is 2, the maximum is 1"; `record` is "task." or "". */
int gpi_fail_most(struct gpud_error *e, const char *record, const char *field, uint64_t value,
                  uint64_t most);
/* ESTRUCT or EVERSION: "options.struct_size is 9, expected 296"; `record` is "options". */
int gpi_fail_size(struct gpud_error *e, int code, const char *record, uint32_t given,
                  size_t expected);

#endif
