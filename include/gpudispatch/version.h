/* SPDX-License-Identifier: MIT */
/*
 * version.h - the version of the library, at compile time and at run time.
 *
 * GPUD_VERSION_MAJOR, GPUD_VERSION_MINOR and GPUD_VERSION_PATCH are the version of the
 * headers that a program was compiled with.  gpud_version returns the version of the
 * library that the program runs with.
 *
 * Stability: stable (appending only).
 */
#ifndef GPUDISPATCH_VERSION_H
#define GPUDISPATCH_VERSION_H

/* Marks the functions that the shared library exports. */
#if defined(GPUD_BUILDING) && defined(__GNUC__)
#define GPUD_API __attribute__((visibility("default")))
#else
#define GPUD_API
#endif

/* The version of these headers. */
#define GPUD_VERSION_MAJOR 0
#define GPUD_VERSION_MINOR 1
#define GPUD_VERSION_PATCH 0

/*
 * The number of the API, which rises by one with every addition.  "Since: 1" in a comment
 * means that the function exists from this number on.
 */
#define GPUD_API_NUMBER 1

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns the version of the running library, as "MAJOR.MINOR.PATCH".
 *
 * Returns: a constant string.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: GPUD_VERSION_MAJOR, GPUD_API_NUMBER.
 */
GPUD_API const char *gpud_version(void);

#ifdef __cplusplus
}
#endif
#endif
