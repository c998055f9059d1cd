/* SPDX-License-Identifier: MIT */
/* records_place.c - where a page of records begins. */
#include "queue/agent/records_place.h"

#include <stdio.h>
#include <string.h>

#include "queue/files/numbers.h"

static const char *const part_names[] = { "span", "batch", "row" };

static bool read_number(const char **at, char separator, uint64_t most, uint64_t *ret)
{
    if (**at != separator)
        return false;
    *at = gpq_decimal_read(*at + 1, ret);
    return *at && *ret <= most;
}

/* "span 17@9", "batch 12@9", "row 12.44.1.2@9": task, round and number.  9: the next change. */
bool gpq_records_place_read(struct gpq_records_at *p, const char *place)
{
    uint64_t n[4] = { 0 }, number = 0;
    bool there = *place == '\0';
    for (int i = GPQ_PART_SPANS; !there && i <= GPQ_PART_ROWS; i++) {
        const char *at = place + strlen(part_names[i]);
        if (strncmp(place, part_names[i], strlen(part_names[i])) != 0)
            continue;
        p->part = (enum gpq_records_part)i;
        there = read_number(&at, ' ', i == GPQ_PART_SPANS ? INT64_MAX : UINT32_MAX, &n[0]);
        for (int k = 1; there && i == GPQ_PART_ROWS && k < 4; k++)
            there = read_number(&at, '.', UINT32_MAX, &n[k]);
        there = there && read_number(&at, '@', UINT32_MAX, &number) && *at == '\0';
    }
    p->number = (uint32_t)number;
    p->span = n[0];
    p->batch = p->part == GPQ_PART_SPANS ? 0 : (uint32_t)n[0];
    p->row = (struct gpq_attempt){ .task = GPQ_TASK(n[0], n[1]),
                                   .round = (uint32_t)n[2],
                                   .number = (uint32_t)n[3] };
    return there;
}

void gpq_records_place_write(const struct gpq_records_at *p, char place[GPQ_RECORDS_PLACE])
{
    if (p->part == GPQ_PART_ROWS)
        snprintf(place, GPQ_RECORDS_PLACE, "row %u.%u.%u.%u@%u", p->batch,
                 GPQ_NUMBER_OF(p->row.task), p->row.round, p->row.number, p->number);
    else
        snprintf(place, GPQ_RECORDS_PLACE, "%s %llu@%u", part_names[p->part],
                 (unsigned long long)(p->part == GPQ_PART_SPANS ? p->span : p->batch), p->number);
}
