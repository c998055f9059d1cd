/* SPDX-License-Identifier: MIT */
/* environment.h - the environment that a submit gives to its commands. */
#ifndef GPQ_CLIENT_ENVIRONMENT_H
#define GPQ_CLIENT_ENVIRONMENT_H

#include <jansson.h>
#include <stdbool.h>

#include "queue/store.h"
#include "tools/cli/verb.h"

/*
 * That of this process, or a few variables of it if `clean`, changed by --env and --unset.  The
 * variables of the task in which this program runs are left out.  *ret is a list of texts, sorted:
 * equal environments are stored once.  GPQ_EINVAL: a wrong --env or --unset; GPQ_ENOMEM.
 */
int gpq_environment(const struct call *call, bool clean, json_t **ret, struct gpq_error *e);

/* Sets the variable of one --env in such a list, which stays sorted. */
int gpq_environment_set(json_t *list, const char *text, struct gpq_error *e);

/* The value of a variable in such a list, NULL: none. */
const char *gpq_environment_value(const json_t *environment, const char *name);

#endif
