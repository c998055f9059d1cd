/* SPDX-License-Identifier: MIT */
/*
 * answer.h - the replies: GET of /, /data, /events and /metrics, and refusals of all else.
 *
 * The program has no request that changes anything.  Logs and environments are in no snapshot, and
 * so in no reply.                                                                          [V6]
 */
#ifndef GPV_ANSWER_H
#define GPV_ANSWER_H

#include "view/serve/readers.h"

struct gpv_serve {
    struct gpv_feed feed;
    struct gpv_readers readers;
};

/* A handler of libmicrohttpd; `user` is a struct gpv_serve. */
enum MHD_Result gpv_answer(void *user, struct MHD_Connection *connection, const char *url,
                           const char *method, const char *version, const char *upload,
                           size_t *upload_size, void **state);

#endif
