/* SPDX-License-Identifier: MIT */
#include "device/row.h"

#include <string.h>

_Static_assert(GPI_UNKNOWN32 == GPUD_UNKNOWN32 && GPI_UNKNOWN64 == GPUD_UNKNOWN64,
               "one word for what is not known");
_Static_assert(sizeof((struct gpud_device_info *)0)->evidence == GPI_EVIDENCE_SIZE,
               "one length for evidence");

/* Both texts end inside their fields, which have one length. */
#define COPY(to, from)                                                    \
    do {                                                                  \
        _Static_assert(sizeof(to) == sizeof(from), "texts of one length"); \
        memcpy(to, from, sizeof(to));                                     \
    } while (0)

static void fill_identity(struct gpud_device_info *r, const struct gpi_device *d)
{
    r->kind = d->kind;
    COPY(r->name, d->name);
    COPY(r->uuid, d->uuid);
    COPY(r->model, d->model);
    COPY(r->pci, d->pci);
    COPY(r->mig_profile, d->mig_profile);
    COPY(r->parent_uuid, d->parent_uuid);
    r->index = d->index;
    r->compute_major = d->compute_major;
    r->compute_minor = d->compute_minor;
    r->compute_mode = d->compute_mode;
    r->numa_node = d->numa_node;
}

static void fill_unread(struct gpud_device_info *r)
{
    r->memory_used = r->memory_free = r->memory_foreign = GPUD_UNKNOWN64;
    r->throttle = r->ecc_corrected = r->ecc_uncorrected = GPUD_UNKNOWN64;
    r->foreign_processes = r->utilization = r->memory_utilization = r->temperature = GPUD_UNKNOWN32;
    r->power = r->power_limit = r->sm_clock = r->remapped_rows = r->remap_pending =
        r->remap_failed = r->recovery = GPUD_UNKNOWN32;
}

/* The list is sorted by memory, the most first.  A list that is longer than its room is used as far
 * as it goes. */
static void fill_users(struct gpud_device_info *r, const struct gpi_sample *s)
{
    uint32_t listed = s->n_users < GPI_PROCESSES_MAX ? s->n_users : GPI_PROCESSES_MAX;
    uint64_t sum = 0;

    if (!s->users_known || s->n_users == GPI_UNKNOWN32)
        return;
    r->foreign_processes = s->n_users;
    r->foreign_pid = listed ? s->user[0].pid : 0;
    for (uint32_t i = 0; i < listed; i++) {
        if (s->user[i].memory == GPI_UNKNOWN64)
            return;
        sum += s->user[i].memory;
    }
    r->memory_foreign = sum;
}

static void fill_reading(struct gpud_device_info *r, const struct gpi_sample *s)
{
    r->sampled_at = s->at;
    if (s->memory_total != GPI_UNKNOWN64)
        r->memory_total = s->memory_total;
    r->memory_used = s->memory_used;
    r->memory_free = s->memory_free;
    r->utilization = s->utilization;
    r->memory_utilization = s->memory_utilization;
    r->temperature = s->temperature;
    r->power = s->power;
    r->power_limit = s->power_limit;
    r->sm_clock = s->sm_clock;
    r->throttle = s->throttle;
    r->ecc_corrected = s->ecc_corrected;
    r->ecc_uncorrected = s->ecc_uncorrected;
    r->remapped_rows = s->remapped_rows;
    r->remap_pending = s->remap_pending;
    r->remap_failed = s->remap_failed;
    r->recovery = s->recovery;
    fill_users(r, s);
}

void gpi_row_fill(struct gpud_device_info *ret, const struct gpi_device *d,
                  const struct gpi_sample *s, const struct gpi_health *h)
{
    memset(ret, 0, sizeof *ret);
    fill_identity(ret, d);
    fill_unread(ret);
    ret->memory_total = d->memory_total ? d->memory_total : GPUD_UNKNOWN64;
    if (s->at)
        fill_reading(ret, s);
    ret->health = h->state;
    ret->since = h->since;
    COPY(ret->evidence, h->evidence);
    ret->last_xid = h->last_xid;
    ret->xids = h->xids;
    ret->last_xid_at = h->last_xid_at;
}
