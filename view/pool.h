/* SPDX-License-Identifier: MIT */
/*
 * pool.h - the texts and sets of GPUs that nights keep, each once.  Nights beside each other share
 * one.  gpv_keep, gpv_text and their like (records.h) take a night; only records.c needs these.
 */
#ifndef GPV_POOL_H
#define GPV_POOL_H

#include "view/records.h"

/* A pool of one night, with the empty text only; NULL: no memory. */
struct gpv_pool *gpv_pool_new(void);
struct gpv_pool *gpv_pool_join(struct gpv_pool *p); /* one more night; returns p */
void gpv_pool_leave(struct gpv_pool *p);            /* one night less: the last one frees it */

/* The offset of a text that was kept; GPV_NONE: it was not. */
uint32_t gpv_pool_find(const struct gpv_pool *p, const char *text);

#endif
