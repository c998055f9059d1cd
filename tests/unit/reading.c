/* SPDX-License-Identifier: MIT */
/* reading.c - what host and monitor may say to each other, at each edge.
 * [C17] */
#include "harness.h"

#include "gpudispatch/device.h"
#include "wire/reading.h"

#include <string.h>

enum { DEVICES = 3 };

static const uint32_t kinds[] = { GPI_RDG_OPEN,    GPI_RDG_ENUMERATE, GPI_RDG_SAMPLE,
                                  GPI_RDG_DRIVER,  GPI_RDG_DEVICE,    GPI_RDG_ENUMERATED,
                                  GPI_RDG_SAMPLED, GPI_RDG_INCIDENT,  GPI_RDG_LISTENS };
enum { KINDS = T_LENGTH(kinds) };

/* A good one of each kind. */
static struct gpi_reading_message good(uint32_t kind)
{
    struct gpi_reading_message m = { .kind = kind };

    switch (kind) {
    case GPI_RDG_OPEN:
        m.provider = GPI_PROVIDER_FAKE;
        m.n = 1;
        break;
    case GPI_RDG_DEVICE:
        m.u.identity.kind = GPUD_DEVICE_GPU;
        (void)strcpy(m.u.identity.name, "gpu:0");
        break;
    case GPI_RDG_INCIDENT:
        m.u.incident.kind = GPI_INCIDENT_XID;
        break;
    default:
        break;
    }
    return m;
}

static bool said(struct gpi_reading_message m, size_t size)
{
    return gpi_reading_of_monitor(&m, size, DEVICES);
}

static bool whole(struct gpi_reading_message m)
{
    return said(m, gpi_reading_size(m.kind));
}

/* Each kind goes one way, at exactly its length. */
T_CASE(ways_and_lengths)
{
    union {
        struct gpi_reading_message m;
        char bytes[sizeof(struct gpi_reading_message) + 8];
    } in;

    for (unsigned i = 0; i < KINDS; i++) {
        const struct gpi_reading_message m = good(kinds[i]);
        bool to_monitor = i < 3;

        memset(&in, 0, sizeof(in));
        in.m = m;
        for (size_t size = 0; size <= sizeof(in); size++) {
            T_EQ(gpi_reading_for_monitor(&in.m, size),
                 to_monitor && size == gpi_reading_size(m.kind));
            T_EQ(said(m, size), !to_monitor && size == gpi_reading_size(m.kind));
        }
    }
    T_EQ(gpi_reading_size(GPI_RDG_OPEN - 1), 0);
    T_EQ(gpi_reading_size(GPI_RDG_LISTENS + 1), 0);
    in.m = (struct gpi_reading_message){ .kind = GPI_RDG_LISTENS + 1 };
    for (size_t size = 0; size <= sizeof(in); size++)
        T_CHECK(!gpi_reading_for_monitor(&in.m, size) && !said(in.m, size));
}

T_CASE(opens)
{
    static union {
        struct gpi_reading_message m;
        char bytes[sizeof(struct gpi_reading_message) + GPI_SCRIPT_MAX];
    } in;
    const size_t head = gpi_reading_size(GPI_RDG_OPEN);

    in.m = good(GPI_RDG_OPEN);
    memset(in.bytes + head, 'x', sizeof(in) - head);
    T_CHECK(gpi_reading_for_monitor(&in.m, head + GPI_SCRIPT_MAX));
    T_CHECK(!gpi_reading_for_monitor(&in.m, head + GPI_SCRIPT_MAX + 1));
    in.bytes[head + 100] = 0;
    T_CHECK(gpi_reading_for_monitor(&in.m, head + 100));
    T_CHECK(!gpi_reading_for_monitor(&in.m, head + 101));
    in.m.n = GPI_GPUS_MAX;
    T_CHECK(gpi_reading_for_monitor(&in.m, head));
    in.m.n = GPI_GPUS_MAX + 1;
    T_CHECK(!gpi_reading_for_monitor(&in.m, head));
    in.m.n = 0;
    T_CHECK(!gpi_reading_for_monitor(&in.m, head));
    in.m.provider = GPI_PROVIDER_NVML;
    T_CHECK(gpi_reading_for_monitor(&in.m, head));
    T_CHECK(gpi_reading_for_monitor(&in.m, head + 100)); /* the only GPUs that it opens */
    T_CHECK(!gpi_reading_for_monitor(&in.m, head + 101));
    in.m.n = 1;
    T_CHECK(!gpi_reading_for_monitor(&in.m, head));
    in.m.provider = GPI_PROVIDER_FAKE + 1;
    T_CHECK(!gpi_reading_for_monitor(&in.m, head));
}

T_CASE(devices_in_range)
{
    struct gpi_reading_message m = good(GPI_RDG_SAMPLE);

    m.device = GPI_GPUS_MAX - 1;
    T_CHECK(gpi_reading_for_monitor(&m, gpi_reading_size(m.kind)));
    m.device++;
    T_CHECK(!gpi_reading_for_monitor(&m, gpi_reading_size(m.kind)));

    m = good(GPI_RDG_DEVICE);
    m.device = GPI_GPUS_MAX - 1;
    T_CHECK(whole(m));
    m.device++;
    T_CHECK(!whole(m));

    m = good(GPI_RDG_SAMPLED);
    m.device = DEVICES - 1;
    T_CHECK(whole(m));
    m.device++;
    T_CHECK(!whole(m));

    m = good(GPI_RDG_INCIDENT);
    m.u.incident.device = DEVICES - 1;
    T_CHECK(whole(m));
    m.u.incident.device++;
    T_CHECK(!whole(m));
    m.u.incident.device = GPI_UNKNOWN32;
    T_CHECK(whole(m));

    m = good(GPI_RDG_ENUMERATED);
    m.n = GPI_GPUS_MAX;
    T_CHECK(whole(m));
    m.n++;
    T_CHECK(!whole(m));
}

T_CASE(only_words_with_a_meaning)
{
    struct gpi_reading_message m;

    for (uint32_t v = 0; v < 20; v++) {
        m = good(GPI_RDG_DRIVER);
        m.u.driver.state = v;
        T_EQ(whole(m), v < GPUD_DRIVER_COUNT);
        m = good(GPI_RDG_DEVICE);
        m.u.identity.kind = v;
        T_EQ(whole(m), v == GPUD_DEVICE_GPU || v == GPUD_DEVICE_MIG || v == GPUD_DEVICE_FAKE);
        m = good(GPI_RDG_SAMPLED);
        m.u.sample.reading = v;
        T_EQ(whole(m), v < GPI_READ_COUNT);
        m = good(GPI_RDG_INCIDENT);
        m.u.incident.kind = v;
        T_EQ(whole(m), v >= GPI_INCIDENT_XID && v <= GPI_INCIDENT_DEAF);
        m.u.incident.kind = GPI_INCIDENT_RECOVERY;
        m.u.incident.number = v;
        T_CHECK(whole(m)); /* a newer driver's too */
    }
    m = good(GPI_RDG_DEVICE);
    m.u.identity.name[0] = 0;
    T_CHECK(!whole(m));
}

/* A newer driver's numbers are no fault: unknown, but for its recovery actions. */
T_CASE(numbers_without_a_meaning)
{
    struct gpi_reading_message m = good(GPI_RDG_SAMPLED);

    m.u.sample.recovery = 77;
    m.u.sample.utilization = 101;
    m.u.sample.memory_utilization = 100;
    m.u.sample.users_known = 0xff00;
    T_CHECK(gpi_reading_of_monitor(&m, gpi_reading_size(m.kind), DEVICES));
    T_EQ(m.u.sample.recovery, 77); /* it asks for something: not to be taken for none */
    T_EQ(m.u.sample.utilization, GPI_UNKNOWN32);
    T_EQ(m.u.sample.memory_utilization, 100);
    T_EQ(m.u.sample.users_known, 1);
}

T_CASE(texts_end_and_are_printable)
{
    struct gpi_reading_message m = good(GPI_RDG_DRIVER);

    memset(m.u.driver.text, 'x', sizeof(m.u.driver.text));
    (void)strcpy(m.u.driver.driver_version, "a\x1b[31m\xc3\xa9\x7f~ ");
    m.u.driver.driver_version[20] = 'z'; /* behind the end */
    T_CHECK(gpi_reading_of_monitor(&m, gpi_reading_size(m.kind), 0));
    T_EQ(strnlen(m.u.driver.text, sizeof(m.u.driver.text)), sizeof(m.u.driver.text) - 1);
    T_TEXT(m.u.driver.driver_version, "a?[31m???~ ");
    T_EQ(m.u.driver.driver_version[20], 0);
}
