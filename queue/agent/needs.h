/* SPDX-License-Identifier: MIT */
/*
 * needs.h - the needs of a task, as JSON and as the dispatcher's request.
 *
 *     {"gpus":1,"share":5000,"memory":8589934592,"cpus":1,"host_memory":0,"compute":800,
 *      "on":"gpu:0,gpu:1","not_on":"","or":[{"gpus":2,"memory":...}]}
 *
 * All members are optional.  gpus [1 if the machine has a GPU, else 0], cpus [1], share [10000 with
 * gpus, else 0].  Sizes are bytes, share is in 1/10,000 of one device.  "or" has up to three
 * further variants, in order.
 *
 * The shape of a task is the same with all members, and with "class" for a task of a class of
 * workers.
 */
#ifndef GPQ_AGENT_NEEDS_H
#define GPQ_AGENT_NEEDS_H

#include <jansson.h>

#include <gpudispatch/gpudispatch.h>

#include "queue/agent/agent.h"
#include "queue/agent/fields.h"

/* The class of commands, whose tasks the agent runs itself. */
#define GPQ_COMMANDS "command"

enum { GPQ_VARIANTS = 4 };

struct gpq_needs {
    struct gpud_request request[GPQ_VARIANTS]; /* linked by `next`; texts belong to `json` */
    uint32_t n;
    const char *class_name; /* NULL = GPQ_COMMANDS; only its pointer is kept */
    json_t *json;           /* a reference */
};

/* Reads them; EINVAL names member, value and range.  `devices`: GPUs that there are.  NULL: all
 * defaults.  The record must not be copied. */
int gpq_needs_read(json_t *json, const struct gpq_at *at, uint32_t devices, struct gpq_needs *ret,
                   struct gpq_error *e);
/* The same from the bytes of a shape, which gpq_needs_write has made. */
int gpq_needs_parse(struct gpq_bytes shape, struct gpq_needs *ret, struct gpq_error *e);
/* Canonical: members sorted, defaults written.  NULL: no memory. */
json_t *gpq_needs_json(const struct gpq_needs *n);
/* The same as text, which the caller frees. */
char *gpq_needs_write(const struct gpq_needs *n);
/* In words, as far as there is room: "2 GPUs, 40 GiB", "0.5 of a GPU or no GPU, 8 CPU slots".
 * Members at their defaults are left out. */
const char *gpq_needs_text(const struct gpq_needs *n, char *ret, size_t size);
/* Completes the names of devices in "on" and "not_on": a number, or the beginning of a UUID,
 * becomes the name or UUID that the dispatcher knows.  Names of devices that are not here are
 * refused, unless they may come. */
int gpq_needs_names(struct gpq_agent *a, json_t *needs, bool allow_wait, const struct gpq_at *at,
                    struct gpq_error *e);
/*
 * Whether the dispatcher could ever start a task of this class with these needs, which count for
 * commands only.  EREFUSED: no device that is here could ever hold them, with the numbers; with
 * `allow_wait` that is no failure.  Or no task of such a class can run here (classes.h).  Without a
 * dispatcher everything is fine.
 */
int gpq_needs_check(struct gpq_agent *a, const struct gpq_needs *n, const char *class_name,
                    bool allow_wait, const struct gpq_at *at, struct gpq_error *e);
void gpq_needs_free(struct gpq_needs *n);

#endif
