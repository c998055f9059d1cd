/* SPDX-License-Identifier: MIT */
/*
 * utf8.h - whether bytes are UTF-8 (RFC 3629): no surrogates, nothing longer than it must be, and
 * nothing above U+10FFFF.
 */
#ifndef GPQ_UTF8_H
#define GPQ_UTF8_H

#include <stddef.h>

/* Returns the place of the first byte that begins no character; `size` if there is none. */
size_t gpq_utf8_fault(const char *text, size_t size);
/* Replaces bytes that are not UTF-8, and control characters, by question marks: values in texts of
 * errors may have been cut. */
void gpq_utf8_clean(char *text);

#endif
