/* SPDX-License-Identifier: MIT */
/* embedded.h - the style sheet and the script of a page, from the files beside it (embed.py). */
#ifndef GPV_EMBEDDED_H
#define GPV_EMBEDDED_H

#include <stddef.h>

struct gpv_embedded {
    const unsigned char *text;
    size_t size;
    const char *hash; /* "sha256-...": the policy of a page allows this text and no other */
};

extern const struct gpv_embedded gpv_page_style, gpv_page_script;
/* Of the live page (view/serve): the style sheet of the report, and its own one behind it. */
extern const struct gpv_embedded gpv_live_style, gpv_live_script;

#endif
