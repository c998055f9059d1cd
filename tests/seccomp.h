/* SPDX-License-Identifier: MIT */
/* seccomp.h - system calls that fail in this process and in each that it starts from now on, as
 * under the filter of a container.  Several add up; none can be taken back. */
#ifndef T_SECCOMP_H
#define T_SECCOMP_H

#include <stdint.h>

/* System call `number` fails with errno `err`.  0, or -1 with errno where no filter can be set. */
int t_deny(int number, int err);
/* The same only where the lower half of argument `index` is `value`. */
int t_deny_where(int number, unsigned index, uint32_t value, int err);

#endif
