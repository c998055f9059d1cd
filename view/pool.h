/* SPDX-License-Identifier: MIT */
/*
 * pool.h - the texts and sets of GPUs of a night, each kept once.  Nights beside each other share
 * one.  Views use gpv_keep, gpv_text and their like (records.h).
 */
#ifndef GPV_POOL_H
#define GPV_POOL_H

#include "view/list.h"

struct gpv_pool;

/* The GPUs of an attempt, in ascending order; none of a task that needs none. */
struct gpv_set {
    const uint16_t *gpu;
    uint32_t n;
};

/* A pool of one night, with the empty text only; NULL: no memory. */
struct gpv_pool *gpv_pool_new(void);
struct gpv_pool *gpv_pool_join(struct gpv_pool *p); /* one more night; returns p */
void gpv_pool_leave(struct gpv_pool *p);            /* one night less: the last one frees it */

/* The offset of a text, which is kept once; UINT32_MAX: no memory. */
uint32_t gpv_pool_keep(struct gpv_pool *p, const char *text, size_t size);
/* The offset of a text that was kept; UINT32_MAX: it was not. */
uint32_t gpv_pool_find(const struct gpv_pool *p, const char *text);
const char *gpv_pool_text(const struct gpv_pool *p, uint32_t text);

/* The index of a set, which is kept once; UINT16_MAX: no memory, or 65,535 sets. */
uint16_t gpv_pool_keep_set(struct gpv_pool *p, const uint16_t *gpu, uint32_t count);
bool gpv_pool_is_full(const struct gpv_pool *p);
struct gpv_set gpv_pool_set(const struct gpv_pool *p, uint16_t set);

#endif
