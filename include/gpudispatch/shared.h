/* SPDX-License-Identifier: MIT */
/*
 * shared.h - memory that the host fills once and every worker sees, for setup data that is
 * too large to copy: weights, tables, a vocabulary.
 *
 * It costs its size once per machine, however many workers and dispatchers map it: the host
 * writes it, option setup_shared hands it to a dispatcher, and gpud_worker_setup_data gives its
 * address in each worker, read-only.  It is no part of the payload budget.
 *
 *     gpud_shared *weights = NULL;
 *     gpud_shared_create(size, &weights, &error);
 *     read_weights(gpud_shared_data(weights), size);
 *     options.setup_shared = weights;
 *     gpud_dispatcher_create(&d, &options, &error);
 *     gpud_shared_destroy(&weights);    (or later, or after a second dispatcher)
 *
 * The mistake people make: writing after gpud_dispatcher_create.  Workers see that as it happens,
 * half done, at any moment.
 *
 * Lifetime: from create to destroy for the host; the memory itself goes with the last dispatcher
 * that was given it.
 *
 * Stability: stable (appending only).
 */
#ifndef GPUDISPATCH_SHARED_H
#define GPUDISPATCH_SHARED_H

#include "error.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes `size` bytes of shared memory, all zero, taken from the system now, on this thread.
 * Returns: 0 and *ret_shared; GPUD_EINVAL (size 0, or ret_shared NULL), GPUD_ENOMEM (machine or
 * memory cgroup have not so much left), GPUD_ESYSTEM (such as a file size limit below it); on
 * failure *ret_shared is untouched.
 * Owns: gives *ret_shared, ended with gpud_shared_destroy.
 * Thread: any.  From callbacks: yes.  Process: host, also before gpud_init.  Since: 1.
 */
GPUD_API int gpud_shared_create(uint64_t size, gpud_shared **ret_shared, struct gpud_error *reterr);

/*
 * Gives the address of the memory, aligned to a page, to be written before a dispatcher gets it.
 * Returns: the address; NULL for NULL, and in a process forked from the one that made it, where
 * it is not mapped.  Workers get theirs from gpud_worker_setup_data.
 * Owns: lends it until gpud_shared_destroy.  Thread: any.  Process: host.  Since: 1.
 */
GPUD_API void *gpud_shared_data(gpud_shared *s);

/* Gives the size as it was created; 0 for NULL.  Thread: any.  Process: host.  Since: 1. */
GPUD_API uint64_t gpud_shared_size(const gpud_shared *s);

/*
 * Ends the host's view; *s becomes NULL.  Dispatchers that were given it, and their workers,
 * keep it until they end.  In a process forked from the host it only frees.
 * Returns: 0, also for NULL.  Thread: one.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_shared_destroy(gpud_shared **s);

#ifdef __cplusplus
}
#endif
#endif
