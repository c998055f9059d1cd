/* SPDX-License-Identifier: MIT */
/* kin.c - whom an incident concerns. */
#include "harness.h"

#include <stdio.h>

#include "device/kin.h"
#include "device/xid.h"
#include "gpudispatch/device.h"

static struct gpi_device device(uint32_t kind, uint32_t index, uint32_t mig, const char *uuid)
{
    struct gpi_device d = { .kind = kind, .index = index, .mig_index = mig };

    (void)snprintf(d.uuid, sizeof(d.uuid), "%s", uuid);
    return d;
}

/* A lost device marks every handle on that physical GPU; a contained fault its instance alone. */
T_CASE(concerns)
{
    const struct gpi_device gpu = device(GPUD_DEVICE_GPU, 0, GPI_UNKNOWN32, "GPU-0"),
                            other = device(GPUD_DEVICE_GPU, 1, GPI_UNKNOWN32, "GPU-1"),
                            a = device(GPUD_DEVICE_MIG, 0, 0, "MIG-a"),
                            b = device(GPUD_DEVICE_MIG, 0, 1, "MIG-b"),
                            cpu = device(GPUD_DEVICE_CPU, 0, 0, "cpu:0"),
                            fake = device(GPUD_DEVICE_FAKE, 0, GPI_UNKNOWN32, "GPU-f0"),
                            fake2 = device(GPUD_DEVICE_FAKE, 1, GPI_UNKNOWN32, "GPU-f1"),
                            part = device(GPUD_DEVICE_FAKE, 1, 0, "MIG-f0"),
                            part2 = device(GPUD_DEVICE_FAKE, 1, 1, "MIG-f1");
    const struct gpi_incident contained = { .kind = GPI_INCIDENT_XID, .number = 94 },
                              uncontained = { .kind = GPI_INCIDENT_XID, .number = 95 },
                              lost = { .kind = GPI_INCIDENT_LOST },
                              fell = { .kind = GPI_INCIDENT_XID, .number = 79 },
                              word = { .kind = GPI_INCIDENT_RECOVERY, .number = 1 };
    struct gpi_xid_rules rules;

    T_CHECK(gpi_incident_concerns(&contained, NULL, &a, &a));
    T_CHECK(!gpi_incident_concerns(&contained, NULL, &a, &b));
    T_CHECK(!gpi_incident_concerns(&contained, NULL, &a, &gpu));
    T_CHECK(gpi_incident_concerns(&contained, NULL, &gpu, &a)); /* told of the whole GPU */
    T_CHECK(gpi_incident_concerns(&uncontained, NULL, &a, &b));
    T_CHECK(gpi_incident_concerns(&fell, NULL, &a, &b));
    T_CHECK(gpi_incident_concerns(&lost, NULL, &a, &b));
    T_CHECK(gpi_incident_concerns(&word, NULL, &a, &b));
    T_CHECK(!gpi_incident_concerns(&lost, NULL, &gpu, &other));
    T_CHECK(!gpi_incident_concerns(&lost, NULL, &other, &a));
    T_CHECK(gpi_incident_concerns(&contained, NULL, NULL, &a)); /* nobody knows where: all */
    T_CHECK(gpi_incident_concerns(&lost, NULL, NULL, &fake));
    T_CHECK(!gpi_incident_concerns(&lost, NULL, NULL, &cpu));
    T_CHECK(gpi_incident_concerns(&lost, NULL, &fake, &fake));
    T_CHECK(!gpi_incident_concerns(&lost, NULL, &fake, &fake2));
    T_CHECK(!gpi_incident_concerns(&lost, NULL, &fake, &gpu));
    T_CHECK(gpi_incident_concerns(&lost, NULL, &part, &part2));
    T_CHECK(!gpi_incident_concerns(&contained, NULL, &part, &part2));
    T_CHECK(gpi_incident_concerns(&contained, NULL, &fake2, &part2));
    T_EQ(gpi_xid_rules_read(&rules, "94=reset,95=restart", NULL), 0);
    T_CHECK(gpi_incident_concerns(&contained, &rules, &a, &b));
    T_CHECK(!gpi_incident_concerns(&uncontained, &rules, &a, &b));
}
