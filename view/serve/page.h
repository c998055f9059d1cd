/* SPDX-License-Identifier: MIT */
/* page.h - the live page: the state as text, which a script replaces by later states. */
#ifndef GPV_LIVE_PAGE_H
#define GPV_LIVE_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "view/now/snapshot.h"

/* s NULL: without a state, since a token is asked, or there is none yet. */
void gpv_page_write(const struct gpv_snapshot *s, bool asks_token, FILE *f);

/* The value of Content-Security-Policy: this style, this script, requests to this server. */
enum { GPV_POLICY = 400 };
const char *gpv_page_policy(char ret[GPV_POLICY]);

#endif
