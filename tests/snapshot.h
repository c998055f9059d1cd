/* SPDX-License-Identifier: MIT */
/*
 * snapshot.h - everything about this process that a library must leave as it found it, as text
 * with one fact a line: open files, threads, children, the library's shared pages, signal
 * dispositions and mask, directory, umask, locale, environment.         [C13] [C19]
 */
#ifndef T_SNAPSHOT_H
#define T_SNAPSHOT_H

struct t_snapshot {
    char *text;
};

void t_snapshot_take(struct t_snapshot *s);

/* Fails, naming each difference, when the process is not as it was.  Frees `before`. */
void t_snapshot_compare(struct t_snapshot *before);

/* Counts of this process, for programs that report them: open files, threads, children,
 * mappings of the library's memfds. */
struct t_counts {
    unsigned files, threads, children, mappings;
};
struct t_counts t_counts_take(void);
/* The same once the threads that were joined since `before` are out of sight. */
struct t_counts t_counts_later(const struct t_counts *before);

/* Files of the library's that have a name in /dev/shm: it never gives one, so that whatever dies
 * leaves nothing there. (By its name: other programs have theirs there, and come and go.) */
unsigned t_named_shared_memory(void);

#endif
