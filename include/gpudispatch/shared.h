/* SPDX-License-Identifier: MIT */
/*
 * shared.h - memory that the host fills once and every worker reads: setup data that is
 * too large to copy, such as weights, tables or a vocabulary.
 *
 * Shared memory costs its size once per machine, no matter how many workers and
 * dispatchers map it.  The host writes it and passes it to a dispatcher with option
 * setup_shared.  In each worker gpud_worker_setup_data returns its address, read-only.
 * It is not part of the payload budget.
 *
 * Smallest use:
 *
 *     gpud_shared *weights = NULL;
 *     gpud_shared_create(size, &weights, &error);
 *     read_weights(gpud_shared_data(weights), size);
 *     options.setup_shared = weights;
 *     gpud_dispatcher_create(&d, &options, &error);
 *     gpud_shared_destroy(&weights);    (or later, or after a second dispatcher)
 *
 * The mistake people make: writing after gpud_dispatcher_create.  Workers see such a
 * write while it happens, half done, at any moment.
 *
 * Lifetime: the host sees the memory from gpud_shared_create to gpud_shared_destroy.  The
 * memory itself exists until the last dispatcher that uses it has ended.
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
 * Creates shared memory, all zero.
 *
 * The call takes all pages from the system at once, on the calling thread.  A later write
 * therefore never meets a lack of memory (SIGBUS).  The call needs no gpud_init.
 *
 * Parameters:
 *   size        bytes, 1 or more
 *   ret_shared  receives the shared memory; untouched on failure
 *   reterr      filled on failure; may be NULL
 * Returns: 0 and *ret_shared.
 * Errors:
 *   GPUD_EINVAL   size is 0, or ret_shared is NULL
 *   GPUD_ENOMEM   machine or memory cgroup has fewer than size bytes left
 *   GPUD_ESYSTEM  the system refused memory of this size: it exceeds the file size limit
 *                 (ulimit -f), no descriptor is free, or a call is denied; sys_errno and
 *                 the text name the cause
 * Owns: hands over *ret_shared, which gpud_shared_destroy ends.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: option setup_shared, gpud_worker_setup_data.
 */
GPUD_API int gpud_shared_create(uint64_t size, gpud_shared **ret_shared,
                                struct gpud_error *reterr);

/*
 * Returns the address of shared memory in the host, to write it.
 *
 * Write before you pass s to a dispatcher.  Workers get their own address from
 * gpud_worker_setup_data.
 *
 * Returns: the address, aligned to a page.  NULL if s is NULL, and in a process that was
 * forked from the creator of s, where the memory is not mapped.
 * Owns: lends the memory until gpud_shared_destroy.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_shared_size.
 */
GPUD_API void *gpud_shared_data(gpud_shared *s);

/*
 * Returns the size of shared memory.
 *
 * Returns: the bytes that gpud_shared_create received; 0 if s is NULL.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_shared_data.
 */
GPUD_API uint64_t gpud_shared_size(const gpud_shared *s);

/*
 * Ends the host's view of shared memory, and sets *s to NULL.
 *
 * Dispatchers that use the memory, and their workers, keep it until they end.  In a
 * process that was forked from the creator of s the call only frees.
 *
 * Returns: 0, also if s or *s is NULL.
 * Thread: one.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_shared_create.
 */
GPUD_API int gpud_shared_destroy(gpud_shared **s);

#ifdef __cplusplus
}
#endif
#endif
