/* SPDX-License-Identifier: MIT */
/* device_events.h - all that can happen to a device whose health is judged: readings, incidents,
 * silence, canaries, words. */
#ifndef T_DEVICE_EVENTS_H
#define T_DEVICE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/health.h"

#define D_START (1000 * GPI_S)

enum event {
    XID_IGNORED,
    XID_OF_TASK,
    XID_RESTART,
    XID_RESET,
    XID_LOST,
    XID_UNKNOWN,
    FELL_OFF,
    WORD_RESET,
    WORD_DRAIN,
    WORD_NONE,
    DEAF,
    READ_OK,
    READ_OK_NONE,
    READ_OK_RESET,
    READ_OK_REBOOT,
    READ_OK_P2P,
    READ_OK_DRAIN,
    READ_OK_IMEX,
    READ_OK_PENDING,
    READ_OK_REMAP,
    READ_UNKNOWN,
    READ_LOST,
    READ_RESET,
    READ_REVOKED,
    SILENCE,
    SHORT_SILENCE,
    MONITOR_GONE,
    PASSED,
    FAILED,
    SUSPECTED,
    PUT_OUT,
    RETURNED,
    EVENTS
};

/* d_by: what d_happen is judged by */
extern const struct gpi_health_policy d_policy, d_no_canaries, *d_by;

enum gpi_measure d_happen(struct gpi_health *h, enum event e, uint64_t now);

enum gpi_measure d_incident(struct gpi_health *h, const struct gpi_health_policy *p, uint32_t kind,
                            uint64_t number, uint64_t now);
enum gpi_measure d_reading(struct gpi_health *h, const struct gpi_health_policy *p, uint32_t what,
                           uint32_t code, uint64_t now);
enum gpi_measure d_ok(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t now);
enum gpi_measure d_ok_recovery(struct gpi_health *h, const struct gpi_health_policy *p,
                               uint32_t recovery, uint64_t now);
enum gpi_measure d_ok_remap(struct gpi_health *h, const struct gpi_health_policy *p,
                            uint32_t pending, uint32_t failed, uint64_t now);
struct gpi_sample d_good_sample(uint64_t at);

/* When it asks for something by itself. */
uint64_t d_next_of(const struct gpi_health *h);
bool d_out_of_use(const struct gpi_health *h);

#endif
