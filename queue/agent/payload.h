/* SPDX-License-Identifier: MIT */
/*
 * payload.h - the content of a task in the store.
 *
 * The arguments of a command are a list of texts, each with its NUL byte.  A payload is the bytes
 * for a worker and one more byte, which is not NUL: so the last byte tells the two apart.
 */
#ifndef GPQ_AGENT_PAYLOAD_H
#define GPQ_AGENT_PAYLOAD_H

#include <stdbool.h>

#include "queue/store.h"

#define GPQ_PAYLOAD_END 'p'

static inline bool gpq_is_argv(struct gpq_bytes content)
{
    return content.size != 0 && ((const char *)content.data)[content.size - 1] == '\0';
}

/* The bytes of a content that is no list of arguments. */
static inline struct gpq_bytes gpq_payload_of(struct gpq_bytes content)
{
    return (struct gpq_bytes){ content.data, content.size != 0 ? content.size - 1 : 0 };
}

#endif
