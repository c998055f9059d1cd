/* SPDX-License-Identifier: MIT */
/*
 * fault.h - a failed file call as an error of the queue.
 */
#ifndef GPQ_FILES_FAULT_H
#define GPQ_FILES_FAULT_H

#include "queue/store.h"

/*
 * Returns the GPQ_E code of an errno, with or without its minus sign.  EFULL: no space, inodes or
 * quota.  ENOMEM: also no descriptors, since processes release both.  EREFUSED: permissions and
 * names, which a person mends.  ENOTFOUND.  EIO: any other, after which the content of the disk is
 * unknown.
 */
int gpq_code_of_errno(int number);

/* Fills *e with "FORMAT: text of the errno", and returns its code. */
int gpq_fault(struct gpq_error *e, int number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same where one file of a command is at fault, and not the disk: EREFUSED in place of EIO. */
int gpq_fault_of_one(struct gpq_error *e, int number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether a failure is of the memory, the disk or the store, rather than of one file. */
bool gpq_fault_of_all(int code);

/* Of two failures, the one to return: the first one, unless only the later one is of all. */
int gpq_fault_worse(struct gpq_error *e, int first, const struct gpq_error *later, int code);

#endif
