/* SPDX-License-Identifier: MIT */
/* seccomp.h - a system call that is refused, as in a container with a strict profile. */
#ifndef T_SECCOMP_H
#define T_SECCOMP_H

/* From now on the call fails with `err` in this process and in all that it starts.  0, or -1 with
 * errno where no filter can be set.  Several add up. */
int t_deny(int nr, int err);

#endif
