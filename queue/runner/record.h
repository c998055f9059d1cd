/* SPDX-License-Identifier: MIT */
/*
 * record.h - the record of one run, run/ID.ATTEMPT, in up to five lines of text.
 *
 *     gpudispatch-run version=1 run=12.44.3.NONCE boot=ID sum=...    head: the agent; port=N if the
 *                                                                    command has a port
 *     runner pid=... ticks=... sum=...                               the runner, from here on
 *     start pid=... ticks=... monotonic=... wall=... sum=...         before the command is released
 *     stop by=PID sum=...                                            if SIGTERM arrived (run.h)
 *     end how=exited status=0 ... sum=...                            after all of it
 *
 * Each line has a checksum and is written by one call.  A last line without its newline is torn,
 * and counts as not written; any other line that is not whole is damage.
 *
 * All of it is less than one block of a disk (GPQ_RECORD_MOST), which the head allocates: the end
 * needs no space on a full disk.  XXX This does not hold where each write takes a new block (Btrfs,
 * ZFS); the runner tries again for a minute there.
 */
#ifndef GPQ_RUNNER_RECORD_H
#define GPQ_RUNNER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "queue/runner/run.h"

enum { GPQ_RECORD_LINE = 1024, GPQ_RECORD_MOST = 4096 };

/* How a run ended. */
#define GPQ_RUN_HOW_MAP(X)                                           \
    X(EXITED, "exited") /* status: the exit status of the command */ \
    X(KILLED, "killed") /* status: the signal */                     \
    X(FAILED, "failed") /* the command could not be executed: step, status: the errno */

/* Which step failed. */
#define GPQ_RUN_STEP_MAP(X)                                                         \
    X(NONE, "none")                                                                 \
    X(RUNNER, "runner")   /* the runner's own preparations: no start is recorded */ \
    X(COMMAND, "command") /* those of the command's process */                      \
    X(CWD, "cwd")         /* its working directory */                               \
    X(PROGRAM, "program") /* its program */

/* Whether the outputs are durable. */
#define GPQ_RUN_OUTPUTS_MAP(X)                                    \
    X(NONE, "none") /* the command has no directory, or failed */ \
    X(SYNCED, "synced")                                           \
    X(FAILED, "failed") /* a failed sync: they must not be published */

#define GPQ_X_HOW(name, text) GPQ_RUN_##name,
#define GPQ_X_STEP(name, text) GPQ_STEP_##name,
#define GPQ_X_OUTPUTS(name, text) GPQ_OUTPUTS_##name,
enum gpq_run_how { GPQ_RUN_HOW_MAP(GPQ_X_HOW) GPQ_RUN_HOWS };
enum gpq_run_step { GPQ_RUN_STEP_MAP(GPQ_X_STEP) GPQ_RUN_STEPS };
enum gpq_run_outputs { GPQ_RUN_OUTPUTS_MAP(GPQ_X_OUTPUTS) GPQ_RUN_OUTPUT_KINDS };
#undef GPQ_X_HOW
#undef GPQ_X_STEP
#undef GPQ_X_OUTPUTS

/* Numbers of the end, in their order in its line. */
#define GPQ_RUN_END_MAP(X)                                                            \
    X(status)                                                                         \
    X(core)      /* 1: with a core dump */                                            \
    X(soft)      /* SIGTERM signals that the runner sent to the process group */      \
    X(hard)      /* 1: SIGUSR1 was received while the first process lived */          \
    X(monotonic) /* CLOCK_MONOTONIC when the first process had exited, in ns */       \
    X(wall)      /* CLOCK_REALTIME, the same */                                       \
    X(log_bytes) /* of output */                                                      \
    X(log_freed) /* of them freed again, behind GPQ_LOG_HEAD */                       \
    X(log_lost)  /* of them never written */                                          \
    X(log_error) /* the first errno of the log; 0 = none */                           \
    X(swept)     /* processes that were killed because they outlived the first one */ \
    X(left)      /* processes below the runner that it may not kill */                \
    X(oom_kills) /* processes of its cgroup that the kernel killed for want of memory */

struct gpq_run_end {
    uint32_t how, step, outputs; /* enum gpq_run_how, gpq_run_step, gpq_run_outputs */
#define GPQ_X_END(name) uint64_t name;
    GPQ_RUN_END_MAP(GPQ_X_END)
#undef GPQ_X_END
};

/* A process.  `ticks`, its start after the boot in clock ticks (proc(5)), distinguishes it from a
 * later one with its number. */
struct gpq_run_process {
    pid_t pid;
    uint64_t ticks;
};

struct gpq_record {
    struct gpq_run_id id;
    char boot[GPQ_BOOT + 1];
    bool has_head, has_runner, has_start, has_stop, has_end;
    bool torn;     /* bytes of an unfinished line follow */
    uint32_t port; /* of the command; 0 = none */
    struct gpq_run_process runner, command;
    uint64_t monotonic, wall; /* of the start */
    uint32_t stop_by;         /* the process that sent SIGTERM; 0 = outside of the namespace */
    struct gpq_run_end end;
};

/* Each writes one line, and returns its length. */
size_t gpq_record_head(char ret[GPQ_RECORD_LINE], const struct gpq_run_id *id, const char *boot,
                       uint32_t port);
size_t gpq_record_runner(char ret[GPQ_RECORD_LINE], const struct gpq_run_process *runner);
size_t gpq_record_start(char ret[GPQ_RECORD_LINE], const struct gpq_run_process *command,
                        uint64_t monotonic, uint64_t wall);
size_t gpq_record_stop(char ret[GPQ_RECORD_LINE], uint32_t by);
size_t gpq_record_end(char ret[GPQ_RECORD_LINE], const struct gpq_run_end *end);

/*
 * Decodes any bytes; *ret has the lines before the first that is not whole.  0; -ENODATA: there is
 * no whole head; -EPROTONOSUPPORT: of another version; -EBADMSG: damaged, as no crash of a process
 * leaves it.
 */
int gpq_record_read(const void *data, size_t size, struct gpq_record *ret);

/* Each returns a constant text, "?" for a value that is none. */
const char *gpq_run_how_text(uint32_t how);
const char *gpq_run_step_text(uint32_t step);

#endif
