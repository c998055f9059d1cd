/* SPDX-License-Identifier: MIT */
/* left.h - when a batch will be done, as a range from the ends of its own tasks. */
#ifndef GPQ_CLIENT_LEFT_H
#define GPQ_CLIENT_LEFT_H

#include "queue/client/session.h"

/* With fewer ends than this nothing is said. */
enum { GPQ_LEFT_LEAST = 5 };

/*
 * The time left for `waiting` tasks.  `ended` has the times of the newest n ends in order, of
 * `total` since `from`.  The least and the greatest of three rates: over all ends, over the last
 * half and over the last quarter of those n, each up to now.  False: too few ends.
 */
bool gpq_left(const uint64_t *ended, size_t n, uint64_t total, uint64_t from, uint64_t now,
              uint64_t waiting, uint64_t *ret_least, uint64_t *ret_most);

/* "3-4 h", "-" if nothing is known.  Reads the ends of the tasks. */
char *gpq_left_of_batch(struct gpq_session *s, const json_t *batch, char ret[48]);

#endif
