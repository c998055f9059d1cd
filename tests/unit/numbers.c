/* SPDX-License-Identifier: MIT */
/* numbers.c - a GPU's number by PCI address, and when the driver's list in /proc and NVML agree on
 * it. */
#include "harness.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/numbers.h"
#include "gpudispatch/device.h"

static struct gpi_device row[8];

static void gpu(uint32_t place, uint32_t index, const char *pci)
{
    row[place] =
        (struct gpi_device){ .kind = GPUD_DEVICE_GPU, .index = index, .mig_index = GPI_UNKNOWN32 };
    (void)snprintf(row[place].pci, sizeof(row[place].pci), "%s", pci);
}

static void instance(uint32_t place, uint32_t index, const char *pci)
{
    gpu(place, index, pci);
    row[place].kind = GPUD_DEVICE_MIG;
    row[place].mig_index = 0;
}

/* As the kernel writes them: four digits of domain, or as many as it needs, in lower case. */
static void list(const char *pci)
{
    char path[64];

    (void)mkdir("gpus", 0700);
    (void)snprintf(path, sizeof(path), "gpus/%s", pci);
    T_EQ(mkdir(path, 0700), 0);
}

static void unlist(const char *pci)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "gpus/%s", pci);
    T_EQ(rmdir(path), 0);
}

static void three(void)
{
    gpu(0, 0, "00000000:0A:00.0");
    gpu(1, 1, "00000000:3B:00.0");
    gpu(2, 2, "00010000:01:00.0");
}

T_CASE(by_address)
{
    gpu(0, 0, "00010000:01:00.0");
    gpu(1, 1, "00000000:3B:00.0");
    instance(2, 1, "00000000:3B:00.0"); /* counts for nothing */
    gpu(3, 2, "00000000:0a:00.0");
    gpu(4, 3, "00000000:0A:1f.0");
    T_EQ(gpi_number_of(row, 5, 0), 3);
    T_EQ(gpi_number_of(row, 5, 1), 2);
    T_EQ(gpi_number_of(row, 5, 3), 0);
    T_EQ(gpi_number_of(row, 5, 4), 1);
    for (uint32_t i = 0; i < 5; i++)
        /* without an address: first, in NVML's order */
        gpu(i, i, i == 4 ? "00000000:01:00.0" : "nowhere");
    for (uint32_t i = 0; i < 5; i++)
        T_EQ(gpi_number_of(row, 5, i), i);
}

static int certain(uint32_t place)
{
    return gpi_number_is_certain(&row[place], gpi_number_of(row, 3, place), "gpus");
}

T_CASE(driver_and_nvml_agree)
{
    three();
    list("0000:3b:00.0");
    list("10000:01:00.0");
    list("0000:0a:00.0");
    for (uint32_t i = 0; i < 3; i++)
        T_CHECK(certain(i));
    T_CHECK(!gpi_number_is_certain(&row[0], 0, "gpus/0000:0a:00.0"));
    T_CHECK(!gpi_number_is_certain(&row[0], 0, "elsewhere"));
}

/* The driver knows of one more: it is excluded, or may not be opened.  Those before it keep their
 * numbers. */
T_CASE(driver_lists_more)
{
    three();
    list("0000:3b:00.0");
    list("10000:01:00.0");
    list("0000:0a:00.0");
    list("0000:2b:00.0");
    T_CHECK(certain(0));
    T_CHECK(!certain(1));
    T_CHECK(!certain(2));
    unlist("0000:2b:00.0");
    list("else");
    T_CHECK(!certain(0));
    unlist("else");
    T_CHECK(certain(2));
}

/* One was taken from the bus since NVML enumerated them. */
T_CASE(driver_lists_less)
{
    three();
    list("0000:3b:00.0");
    list("10000:01:00.0");
    for (uint32_t i = 0; i < 3; i++)
        T_CHECK(!certain(i));
    list("0000:0b:00.0");
    T_CHECK(!certain(0));
}

/* NVML counts one before them that cannot be opened, or in an order of its own; an instance; no
 * address. */
T_CASE(nvml_counts_otherwise)
{
    three();
    list("0000:3b:00.0");
    list("10000:01:00.0");
    list("0000:0a:00.0");
    for (uint32_t i = 0; i < 3; i++)
        row[i].index = i + 1;
    for (uint32_t i = 0; i < 3; i++)
        T_CHECK(!certain(i));
    three();
    row[0].index = 1;
    row[1].index = 0;
    T_CHECK(!certain(0) && !certain(1));
    three();
    row[0].kind = GPUD_DEVICE_MIG;
    row[1].pci[0] = '\0';
    T_CHECK(!certain(0) && !certain(1));
}
