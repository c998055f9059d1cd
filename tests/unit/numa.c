/* SPDX-License-Identifier: MIT */
/* numa.c - the node beside a GPU, from a made-up sysfs. */
#include "harness.h"

#include <stdio.h>
#include <sys/stat.h>

#include "device/device.h"
#include "device/numa.h"

static void write_node(const char *device, const char *text)
{
    char path[128];
    FILE *out;

    (void)snprintf(path, sizeof path, "sys/bus/pci/devices/%s", device);
    T_EQ(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "sys/bus/pci/devices/%s/numa_node", device);
    out = fopen(path, "we");
    T_CHECK(out);
    (void)fputs(text, out);
    T_EQ(fclose(out), 0);
}

/* NVML writes eight digits of domain and capital letters, the kernel four, or as many as it needs.
 * */
T_CASE(node_beside_a_gpu)
{
    static const char *const folders[] = { "sys", "sys/bus", "sys/bus/pci", "sys/bus/pci/devices" };

    for (unsigned i = 0; i < sizeof folders / sizeof *folders; i++)
        T_EQ(mkdir(folders[i], 0700), 0);
    write_node("0009:01:00.0", "1\n");
    write_node("000f:3b:00.0", "0\n");
    write_node("10000:01:00.0", "3\n");
    write_node("0000:02:00.0", "-1\n");
    write_node("0000:03:00.0", "");
    T_EQ(gpi_numa_node(".", "00000009:01:00.0"), 1);
    T_EQ(gpi_numa_node(".", "0000000F:3B:00.0"), 0);
    T_EQ(gpi_numa_node(".", "000f:3b:00.0"), 0);
    T_EQ(gpi_numa_node(".", "00010000:01:00.0"), 3);
    T_EQ(gpi_numa_node(".", "00000000:01:00.0"), GPI_UNKNOWN32); /* not the one of domain 10000 */
    T_EQ(gpi_numa_node(".", "00000000:02:00.0"), GPI_UNKNOWN32);
    T_EQ(gpi_numa_node(".", "00000000:03:00.0"), GPI_UNKNOWN32);
    T_EQ(gpi_numa_node(".", ""), GPI_UNKNOWN32);
}
