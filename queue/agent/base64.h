/* SPDX-License-Identifier: MIT */
/*
 * base64.h - bytes as texts (RFC 4648, with padding).
 */
#ifndef GPQ_AGENT_BASE64_H
#define GPQ_AGENT_BASE64_H

#include <jansson.h>
#include <stdbool.h>

#include "queue/store.h"

/* Bytes as a text of JSON; NULL: they are none that every reader takes, or there is no memory. */
json_t *gpq_bytes_text(struct gpq_bytes bytes);
/* NULL: no memory. */
json_t *gpq_base64_json(struct gpq_bytes bytes);

/* Decodes a text of this length into `ret`, which has room for as many bytes.  False: it is none,
 * or its last bits are not 0. */
bool gpq_base64_read(const char *text, size_t length, void *ret, size_t *ret_size);

#endif
