/* SPDX-License-Identifier: MIT */
/*
 * cuda_scene.h - a worker with the fake libcuda.so.1, and the case as its host and keeper: it
 * starts the worker with a page of its own making, one life after the other, sends tasks and looks
 * at how they have ended.
 *
 *     struct c_scene s;
 *     c_open(&s, "gpus 2\n", "0");            the fake's script, the worker's devices
 *     c_start_well(&s);
 *     T_EQ(c_run(&s, LAUNCH, "fails_700").code, GPUD_EDEVICE);
 *     c_close(&s);
 */
#ifndef T_CUDA_SCENE_H
#define T_CUDA_SCENE_H

#include "harness.h"

#include <stdbool.h>

#include "wire/page.h"

/* As a script names device and MIG instance by their numbers. */
#define C_UUID(d) "GPU-fa4e000" d "-0000-4000-8000-00000000000" d
#define C_MIG(d, i) "MIG-fa4e000" d "-000" i "-4000-8000-00000000000" d

/* What a task does.  LAUNCH: a kernel whose name is the task's data. */
enum {
    PLAIN,
    LAUNCH,
    LAUNCH_AND_FAIL,
    LAUNCH_AND_RETURN,
    LEAVE_PENDING,
    LOOK,
    WAIT_FOR_STREAM,
    BLOCK,
    LAUNCH_ON_SECOND,
    THREAD,
    FULL,
    NO_STREAM
};
/* What it notes, in words. */
enum {
    SETUPS,
    CALLS,
    FLAGS,
    CONTEXTS,
    CURRENT,
    PINNED,
    REFUSED,
    PENDING,
    SIGNALS,
    STARTED,
    DEVICES_SEEN
};

/* What the next life finds; c_open sets what is usual. */
struct c_with {
    const char *library; /* which fake; NULL = none */
    const char *uuid0;
    bool linked, runtime;
};
extern struct c_with c_with;

struct c_scene {
    struct gpi_page *page;
    char *input;
    int orders[2], looks[2];
    uint64_t number;
    pid_t worker;
    size_t size;
    unsigned char *result;
};

void c_open(struct c_scene *s, const char *script, const char *devices);
void c_close(struct c_scene *s);
void *c_shared_memory(size_t size);

/* A new life, with what the host clears for it; and waits until its setup has gone well. */
void c_start(struct c_scene *s);
void c_start_well(struct c_scene *s);
/* A life that does not come to setup: gives what was said of it. */
const char *c_refused(struct c_scene *s);
/* Waits for its end; gives the wait status, or the exit status, which it must have. */
int c_reap(struct c_scene *s);
int c_exit_status(struct c_scene *s);

void c_wait_for(const struct c_scene *s, const char *what, bool (*come)(const struct c_scene *s));
bool c_set_up(const struct c_scene *s);
bool c_has_ended(const struct c_scene *s); /* the task sent last */

/* Puts a task into its cell; tells the worker of all that were put. */
void c_put(struct c_scene *s, uint64_t tag, const char *kernel, uint64_t limit);
void c_ring(struct c_scene *s);
/* Both, and waits: how it has ended. */
struct gpi_ending c_run(struct c_scene *s, uint64_t tag, const char *kernel);
/* How task n, which has ended, did. */
struct gpi_ending c_ending_of(struct c_scene *s, uint64_t n);
const char *c_text_of(const struct c_scene *s, uint64_t n);
/* Fails unless the text has that part. */
void c_says(const char *text, const char *part);

#endif
