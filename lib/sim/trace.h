/* SPDX-License-Identifier: MIT */
/*
 * trace.h - traces: a day of tasks in JSON lines, played by the plan in virtual time.
 *
 * Each line is one JSON object.  Empty lines and lines that begin with '#' are comments.  Times are
 * seconds from the start, sizes are GiB; both may have decimals.  The reader refuses a field that
 * it does not know.  Below, parentheses have the value of a field that is left out.
 *
 * The first line is the world.  Its fields:
 *
 *     devices   list of {"name", "memory_gib" (80), "cc": compute capability such as "9.0" (0.0),
 *               "resident": the class that has a worker there at the start}.  A class whose workers
 *               need N devices has a worker on each N devices that name it, in their order
 *     classes   object: name of the class to its fields, see below
 *     policy    {"queue": "backfill" (default) or "strict",
 *                "passing": "learned" (default), "apart", "promise" or "naive",
 *                "cpus": CPU slots (0), "host_memory_gib" (no bound),
 *                "headroom": part of a device's memory that stays free (0.1; and 0.5 GiB at least,
 *                unless it is 0),
 *                "foreign_memory_gib" (1), "foreign_load": from 0 to 1 (0: off)}
 *     write     which lines the output has beside the summary: a list of "devices", "tasks" and
 *               "promises" (all)
 *
 * A request has these fields, of a class or a task.  A task takes missing fields from its class,
 * and a variant takes them from the object that has it:
 *
 *     devices          how many (1), 16 at most; 0: CPU slots alone
 *     share            part of one device (1.0), in steps of 1/10000
 *     memory_gib       of each device (0: unknown, so each device is for this task alone)
 *     cpus             CPU slots (0; 1 if it has no device)
 *     host_memory_gib  of the machine (0)
 *     compute          the least compute capability, such as "9.0"
 *     on, not_on       lists of names of devices
 *     variants         list of at most 4 objects of these fields, preferred first
 *
 * A class has the fields of a request, and:
 *
 *     resident, transient   true: its tasks run in workers, which stay, or go when others want
 *               their place.  A class with boot_s is transient if it is not resident.  Any other
 *               class is external: it has no workers.  All workers of a resident class have the
 *               request of the class, so its tasks have none of their own
 *     boot_s, unload_s (0)  how long workers take; the plan gets them as seeds
 *     boots_fail (0)        so many boots fail first, at their end.  The class boots again after
 *               1 s, then 2 s.  After 3 failures in a row it has failed: its tasks end no_worker
 *     pinned (false), min_workers (0), max_workers (no bound), min_residence_s (30),
 *     max_wait_s (300), keep_alive_s (never), run_seed_s (1), grace_s (0)
 *
 * Each further line is one event.  Events of one second apply in the order of the file, after all
 * that happens on its own at that second (a task ends, a worker is up), and before the decision.
 *
 *     {"at", "task": id, "class" (external, one device), "priority" (0), the fields of a request,
 *      "run_s" (0), "limit_s" (none), "fail": "error" or "crash", "max_attempts" (1),
 *      "keep_alive_s" (as its class), "repeat": N, "every_s" (0)}
 *               The task ends after run_s.  A run that is longer than limit_s ends at limit_s:
 *               timeout.  A crash takes its worker along.  A task that crashed, or lost its device,
 *               is attempted max_attempts times at most, in its old place.  With `repeat` the line
 *               has N tasks, ID.0, ID.1 ..., each every_s after the one before
 *     {"at", "cancel": id}
 *     {"at", "device": name, "state": "offline", "online", "paused", "resumed", "drained", "gone"}
 *               An offline device loses its workers and runs; one that is gone never returns.  A
 *               paused one starts nothing; a drained one unloads its workers, too
 *     {"at", "device": name, "foreign_gib" (0), "load" (0)}
 *               A reading: the memory that other processes have there, and their use, from 0 to 1
 *     {"at", "class": name, "set": "pause", "resume", "drain", "load", "unload", "pin", "unpin"}
 *
 * The plan has no exclusive batches yet: the reader refuses "batch".
 *
 * The output is JSON lines in order of time:
 *
 *     {"t", "device", "state", "class"}   At this second the device has a new state: idle, booting,
 *               ready, busy, draining, unloading, paused, drained, offline or gone.  Where several
 *               apply to its workers and runs, it is the first of offline or gone, unloading,
 *               draining, drained or paused, booting, busy, ready, idle.  "class" is that of a
 *               worker which has this state
 *     {"t", "task", "queued", "start", "end", "devices", "attempt", "outcome"}   The task has
 *               ended: success, error, crashed, timeout, cancelled, no_worker; or refused, since no
 *               device could ever hold it.  "start" is that of the last attempt.  Tasks that still
 *               wait follow at the end: waiting, without "end".  "waited_for" is the first reason
 *               that the plan had after the decision at its submit, or has at the end: memory,
 *               share, cpus, foreign, never, enough (its class has workers enough, until the task
 *               is late); or one that names a task: behind, head, busy; or a class: drained,
 *               paused, fault, min_residence, max_wait, pinned, seats, boot, unload, occupied.
 *               Then the device, if there is one: "boot llm on g0"
 *     {"t", "task", "promise", "why"}   The task starts by this time; null: no time is known any
 *               more.  "why" is first, or the cause of a new promise: order (a task that comes
 *               before it), device (one is lost, paused or drained, or has less memory), class (it
 *               is paused) or workers
 *     the summary: "makespan" (the end of the last task), "tasks", "outcomes", "utilisation" (the
 *               part of the makespan in which the device had a task), "wait" (until the first
 *               start: of all tasks, and by the devices of the first variant), "boots",
 *               "evictions" (workers that the plan unloaded), "passed", "promise_renewed",
 *               "decisions", "scans"; on request "ns_per_decision", which differs from run to run
 */
#ifndef GPI_SIM_TRACE_H
#define GPI_SIM_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct gpi_trace_options {
    FILE *out;
    bool time;      /* measure the decisions */
    uint32_t *line; /* receives the line that is played, for a message about an abort; or NULL */
};

/* Plays the trace of a file, and writes the output.  Returns: 0; -1 if the trace cannot be read
 * or played: the reason is on stderr. */
int gpi_trace_play(const char *path, const struct gpi_trace_options *options);

#endif
