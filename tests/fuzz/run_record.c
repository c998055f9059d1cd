/* SPDX-License-Identifier: MIT */
/*
 * run_record.c - any bytes as the record of a run, as they are and with each line's checksum added.
 * What is read is written so that it is read as the same.
 */
#include "fuzz.h"

#include "queue/runner/find.h"

enum { ROOM = 16384 };

/* CRC-32, as in record.c. */
static unsigned checksum(const uint8_t *data, size_t size)
{
    uint32_t sum = UINT32_MAX;

    for (size_t i = 0; i < size; i++) {
        sum ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum & 1 ? sum >> 1 ^ UINT32_C(0xedb88320) : sum >> 1;
    }
    return ~sum;
}

static size_t add_sums(uint8_t ret[ROOM], const uint8_t *data, size_t size)
{
    size_t used = 0;

    for (const uint8_t *at = data, *end = data + size, *stop; at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            break;
        size_t n = (size_t)(stop - at);
        if (used + n + 32 > ROOM)
            break;
        memcpy(ret + used, at, n);
        used += n;
        used += (size_t)snprintf((char *)ret + used, ROOM - used, " sum=%08x\n", checksum(at, n));
    }
    return used;
}

static size_t encode(char ret[GPQ_RECORD_MOST], const struct gpq_record *r)
{
    size_t used = gpq_record_head(ret, &r->id, r->boot, r->port);

    if (r->has_runner)
        used += gpq_record_runner(ret + used, &r->runner);
    if (r->has_start)
        used += gpq_record_start(ret + used, &r->command, r->monotonic, r->wall);
    if (r->has_stop)
        used += gpq_record_stop(ret + used, r->stop_by);
    if (r->has_end)
        used += gpq_record_end(ret + used, &r->end);
    return used;
}

static void read_one(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1); /* exactly as long as it is */
    char text[GPQ_RECORD_MOST];
    struct gpq_record r, again;
    struct gpq_claimed c;
    int fault;

    FUZZ_CHECK(copy);
    if (size)
        memcpy(copy, data, size);
    fault = gpq_record_read(copy, size, &r);
    free(copy);
    FUZZ_CHECK(fault || r.has_head);
    FUZZ_CHECK(!r.has_runner || r.has_head);
    FUZZ_CHECK(!(r.has_start || r.has_end) || r.has_runner);
    FUZZ_CHECK(!r.has_stop || r.has_start);
    if (!r.has_head)
        return;
    c.id = r.id;
    memcpy(c.boot, r.boot, sizeof(c.boot));
    FUZZ_CHECK(gpq_run_judge(&c, &r, fault, false, r.boot) != GPQ_FOUND_RUNNING);
    FUZZ_CHECK(!gpq_record_read(text, encode(text, &r), &again));
    FUZZ_CHECK(gpq_run_same(&r.id, &again.id) && !strcmp(r.boot, again.boot));
    FUZZ_CHECK(r.has_end == again.has_end && r.has_start == again.has_start);
    FUZZ_CHECK(r.has_stop == again.has_stop && r.stop_by == again.stop_by);
    FUZZ_CHECK(!memcmp(&r.end, &again.end, sizeof(r.end)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t text[ROOM];

    read_one(data, size);
    read_one(text, add_sums(text, data, size));
    return 0;
}
