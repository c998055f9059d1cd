/* SPDX-License-Identifier: MIT */
#include "device/visible.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/failure.h"
#include "device/numbers.h"
#include "gpudispatch/device.h"

#define VARIABLE "CUDA_VISIBLE_DEVICES"

uint32_t gpi_uuid_find(const char *beginning, size_t length, const struct gpi_device *row,
                       uint32_t n, uint32_t *places, uint32_t max)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (length > strlen(row[i].uuid) || strncasecmp(row[i].uuid, beginning, length) != 0)
            continue;
        if (length == strlen(row[i].uuid)) { /* a whole UUID means this device alone */
            if (max)
                places[0] = i;
            return 1;
        }
        if (found < max)
            places[found] = i;
        found++;
    }
    return found;
}

/* Lists the GPUs' places, in the order of PCI addresses; without one, in NVML's. */
static uint32_t gpus_in_order(uint32_t *places, const struct gpi_device *row, uint32_t n)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++)
        if (row[i].kind == GPUD_DEVICE_GPU) {
            places[gpi_number_of(row, n, i)] = i;
            count++;
        }
    return count;
}

struct entry {
    const char *text;
    size_t length;
    unsigned position;
};

static int bad(const struct entry *entry, struct gpud_error *e, const char *what)
{
    return gpi_fail(e, GPUD_EDEVICE, 0, VARIABLE, VARIABLE ", entry %u, \"%.*s\", %s",
                    entry->position, (int)(entry->length < 64 ? entry->length : 64), entry->text,
                    what);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Reads the entry at `at`, without blanks around it.  Returns its end. */
static const char *entry_at(const char *at, struct entry *ret)
{
    const char *end = at + strcspn(at, ","), *to = end;

    while (at < to && is_blank(*at))
        at++;
    while (at < to && is_blank(to[-1]))
        to--;
    ret->text = at;
    ret->length = (size_t)(to - at);
    ret->position++;
    return end;
}

static bool all_digits(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return length > 0;
}

/* Finds the row that an entry means. */
static int resolve(const struct entry *entry, const struct gpi_device *row, uint32_t n,
                   const uint32_t *gpus, uint32_t n_gpus, uint32_t *ret, struct gpud_error *e)
{
    uint64_t number = 0;
    uint32_t found, places[1];

    if (all_digits(entry->text, entry->length)) {
        for (size_t i = 0; i < entry->length; i++)
            number = number > UINT32_MAX ? number : number * 10 + (uint64_t)(entry->text[i] - '0');
        if (number >= n_gpus)
            return gpi_fail(e, GPUD_EDEVICE, 0, VARIABLE,
                            VARIABLE
                            ", entry %u, \"%.*s\", is not a GPU of this machine, which has %u, "
                            "from 0",
                            entry->position, (int)(entry->length < 64 ? entry->length : 64),
                            entry->text, n_gpus);
        *ret = gpus[number];
        return 0;
    }
    if (entry->length < 4 ||
        (strncasecmp(entry->text, "GPU-", 4) != 0 && strncasecmp(entry->text, "MIG-", 4) != 0))
        return bad(entry, e, "is neither a number nor a UUID (GPU-..., MIG-...)");
    found = gpi_uuid_find(entry->text, entry->length, row, n, places, 1);
    if (found != 1)
        return bad(entry, e,
                   found ? "matches more than one device" : "matches no device of this machine");
    *ret = places[0];
    return 0;
}

/* Returns whether one of the two is the other, or a part of it. */
static bool overlap(const struct gpi_device *a, const struct gpi_device *b)
{
    if (a->index != b->index)
        return false;
    return a->kind != GPUD_DEVICE_MIG || b->kind != GPUD_DEVICE_MIG || a->mig_index == b->mig_index;
}

int gpi_visible_read(struct gpi_visible *ret, const char *text, const struct gpi_device *row,
                     uint32_t n, struct gpud_error *e)
{
    uint32_t gpus[GPI_GPUS_MAX];
    const uint32_t n_gpus = gpus_in_order(gpus, row, n);
    struct gpi_visible v = { .n = 0 };
    struct entry entry = { .position = 0 };

    if (!text) {
        v.n = n_gpus;
        memcpy(v.place, gpus, n_gpus * sizeof gpus[0]);
    }
    for (const char *end = text; text; text = *end ? end + 1 : NULL) {
        uint32_t place = 0;
        int r;
        end = entry_at(text, &entry);
        if (entry.length == 0 || (entry.length > 1 && entry.text[0] == '-' &&
                                  all_digits(entry.text + 1, entry.length - 1)))
            break; /* the list is cut here, as CUDA does */
        r = resolve(&entry, row, n, gpus, n_gpus, &place, e);
        if (r)
            return r;
        for (uint32_t i = 0; i < v.n; i++)
            if (overlap(&row[v.place[i]], &row[place]))
                return bad(&entry, e, "repeats the device of an earlier entry");
        if (v.n < GPI_GPUS_MAX) /* always: no two are the same */
            v.place[v.n++] = place;
    }
    *ret = v;
    return 0;
}
