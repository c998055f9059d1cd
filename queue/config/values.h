/* SPDX-License-Identifier: MIT */
/*
 * values.h - texts of options and settings as numbers.
 *
 * The command line and the config file have the same texts.  Each function returns 0, or
 * GPQ_EINVAL with *e filled and its outputs unchanged.  The text of the error begins with
 * the value, such as: '12x': expected a duration such as 90, 1.5s, 5m or 1h30m.  The caller
 * puts the name of the option before it.  Blanks are refused.
 */
#ifndef GPQ_CONFIG_VALUES_H
#define GPQ_CONFIG_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/store.h"

enum {
    GPQ_VALUE_GPUS = 16,         /* GPUs of a task */
    GPQ_VALUE_WHOLE = 10000,     /* the share of a whole GPU */
    GPQ_VALUE_RETRIES = 1000000, /* of one cause */
};

/* Decimal digits, from least to most. */
int gpq_value_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret,
                     struct gpq_error *e);

/*
 * Seconds without a unit, or numbers with the units d, h, m, s, ms and us, the largest first
 * and each once: 90, 1.5s, 500ms, 5m, 1h30m, 2d.  The last number may have up to nine
 * decimal places.  At most 100 years.
 */
int gpq_value_duration(const char *text, uint64_t *ret_ns, struct gpq_error *e);

/*
 * Bytes: a number with a unit, as in Python's memory="10GiB".  K, M, G and T, and KiB to TiB
 * are powers of 1024; kB, MB, GB and TB are powers of 1000; B is a byte.  A number without a
 * unit is bytes; if it is below 1 MiB and not 0 it is refused, since a person who writes 40
 * means 40G.  The number may have up to nine decimal places.  At most 2^62.
 */
int gpq_value_size(const char *text, uint64_t *ret_bytes, struct gpq_error *e);

/*
 * A time in ns since 1970: RFC 3339 with its zone, or without one in local time
 * (2026-01-31T22:00:00+01:00, 2026-01-31T22:00, 2026-01-31); 22:00, the next one in local
 * time after now_ns; or +2h, a duration after now_ns.  A local time of a named day that the
 * clocks skip is refused.  If the clocks show it twice, either may be returned.
 */
int gpq_value_time(const char *text, uint64_t now_ns, uint64_t *ret_ns, struct gpq_error *e);

/* A number of whole GPUs, up to GPQ_VALUE_GPUS, whose share is GPQ_VALUE_WHOLE; or a part of
 * one, 0.0001 to 0.9999. */
int gpq_value_gpus(const char *text, uint32_t *ret_gpus, uint32_t *ret_share, struct gpq_error *e);

/* A compute capability as the library has it: 8.6 is 806, and 9 is 900. */
int gpq_value_compute(const char *text, uint32_t *ret, struct gpq_error *e);

/*
 * The retries of each cause; causes that are not named have none.  2 is for error, timeout
 * and crash; 2:crash,timeout for these two; 2:crash,1:oom has a number for each; 2,1:oom is
 * 2 for error, timeout and crash, and 1 for oom.
 */
int gpq_value_retries(const char *text, uint32_t ret[GPQ_CAUSES], struct gpq_error *e);

/* yes, true, on or 1; no, false, off or 0. */
int gpq_value_bool(const char *text, bool *ret, struct gpq_error *e);

#endif
