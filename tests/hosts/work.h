/* SPDX-License-Identifier: MIT */
/*
 * work.h - what every kind of host does with the library: real work, and a look at what is left.
 *
 *     h_init();
 *     gpud_dispatcher *d = T_CREATE(.devices = "cpu:2");
 *     h_work(d);
 *     t_end(&d, NULL);
 *
 * The work is 200 tasks whose results are checked, one task that kills its worker, and one that
 * passes its limit.  That nothing of the host has changed is checked around every case, and
 * around h_host_untouched, by tests/snapshot.c.                         [C1] [C13] [C19]
 */
#ifndef H_WORK_H
#define H_WORK_H

#include "fixture.h"

/* Words and numbers of t_page from here on belong to work.c. */
enum { H_WORDS = 200, H_NUMBERS = 4000 };

/* What a task does, by its tag. */
enum { H_SQUARE, H_CRASH, H_LATE, H_GATE, H_DAEMON, H_ECHO };
#define H_TAG(verb, n) ((uint64_t)(verb) << 32 | (uint64_t)(n))

/* H_GATE tasks add to this one, then wait for that one to be 1. */
enum { H_STARTED = H_WORDS, H_OPEN, H_DAEMONS, H_READY };
enum { H_DAEMON_PID = H_NUMBERS };

int h_process(gpud_task *t, void *state);

/* gpud_init with h_process as "square" and, with another result, as "cube". */
void h_init(void);

/* The work; leaves nothing uncollected.  Threads may do it at the same time, each with its own d.
 */
void h_work(gpud_dispatcher *d);

/* gpud_init, create with two slots, the work, destroy, gpud_fini. */
void h_host(void);

/* The same with a leak check around it: for hosts that have changed what belongs to a process. */
void h_host_untouched(void);

/* From the next gpud_init on each worker that crashes in the work says this to stdout and to stderr
 * first, and its tail must hold just that. */
void h_last_words(const char *text);

/* Runs `host` in a forked process and waits until it has ended well: for hosts that change what
 * cannot be changed back. */
void h_in_child(void (*host)(void *user), void *user);

/* ---- a host as another program, and all that belongs to it ---- */

struct h_family {
    pid_t host;
    char mark[64]; /* in the environment of all of them */
};

/* Starts it; it says that it is ready by t_word_add(H_READY). */
struct h_family h_family_start(const char *program, const char *argument);

/* Waits for the host's end; gives the wait status. */
int h_family_reap(const struct h_family *f);

/* Fails when anything with the mark lives 1 s from now [C11]; `except` may. */
void h_family_gone(const struct h_family *f, pid_t except);

#endif
