/* SPDX-License-Identifier: MIT */
/*
 * stamp.h - the state of the files that a command names, as one text.
 *
 * A line that names a regular file with another size or time than at its success is not joined
 * [Q6].  The client makes the stamp at the submit, and the runner at the success.  Equal bytes mean
 * that nothing has changed.
 *
 *     stamp=1
 *     48213 1732842000123456789 train.py       size, time of its last change in ns, name
 *
 * The names, in their order and each once, are these words of the arguments, if they are regular
 * files: each argument, the words of an argument with blanks, quotes or one of ;&|<>() in it, which
 * divide words, and the part of each of them behind its first '='.  No names are words that begin
 * with '-', have a control character or more than 1,023 bytes, or stand behind a '>': files that
 * the line writes.  Of the program's own name only one
 * with a slash counts, and none if the next argument is an option such as -c or -lc, as of a shell.
 * The first 1,024 words count, and of the files the first 64.
 *
 * A shell's variables, patterns and tildes are not expanded, and directories do not count.
 */
#ifndef GPQ_FILES_STAMP_H
#define GPQ_FILES_STAMP_H

#include <stdbool.h>

#include "queue/store.h"

enum { GPQ_STAMP_WORDS = 1024, GPQ_STAMP_NAME = 1024, GPQ_STAMP_FILES = 64 };
#define GPQ_STAMP_MOST ((size_t)65535) /* bytes of a stamp */

/* The stamp of a command that names no file. */
#define GPQ_STAMP_NONE "stamp=1\n"

/* The words of arguments that may name files; a NULL pointer ends both lists.  One block, which the
 * caller frees.  NULL: no memory. */
char **gpq_stamp_words(char *const *argv);

/* Returns the stamp of the words that are regular files, below the directory `cwd` if they are
 * relative.  The caller frees it.  NULL: no memory.  Waits for the file systems of the files. */
char *gpq_stamp_make(char *const *words, const char *cwd);

/* Whether two stamps differ.  Then *ret_name, unless that is NULL, is the name of the first file
 * that differs: with a size or time of its own in `after`, or only there, or only in `before`.
 * Without such a file it is "". */
bool gpq_stamp_differs(struct gpq_bytes before, struct gpq_bytes after,
                       char ret_name[GPQ_STAMP_NAME]);

#endif
