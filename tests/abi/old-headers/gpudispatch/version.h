/* SPDX-License-Identifier: MIT */
/*
 * version.h - which library this is, at compile time and at run time.
 *
 * Stability: stable (appending only).
 */
#ifndef GPUDISPATCH_VERSION_H
#define GPUDISPATCH_VERSION_H

#if defined(GPUD_BUILDING) && defined(__GNUC__)
#define GPUD_API __attribute__((visibility("default")))
#else
#define GPUD_API
#endif

#define GPUD_VERSION_MAJOR 0
#define GPUD_VERSION_MINOR 1
#define GPUD_VERSION_PATCH 0

/* Number of the API; rises by one with every addition. */
#define GPUD_API_NUMBER 1

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Names the library that is running, as "MAJOR.MINOR.PATCH".
 * Returns: a constant string.
 * Thread: any.  Process: either.  Since: 1.
 */
GPUD_API const char *gpud_version(void);

#ifdef __cplusplus
}
#endif
#endif
