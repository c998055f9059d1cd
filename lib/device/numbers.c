/* SPDX-License-Identifier: MIT */
#include "device/numbers.h"

#include <dirent.h>
#include <stdio.h>

#include "device/kin.h"
#include "gpudispatch/device.h"

/* "0000:3b:00.0" of the kernel, "00000000:3B:00.0" of NVML; 0: it is neither. */
static uint64_t address(const char *pci)
{
    unsigned domain, bus, device, function;
    char more;

    if (sscanf(pci, "%8x:%2x:%2x.%1x%c", &domain, &bus, &device, &function, &more) != 4)
        return 0;
    return (uint64_t)domain << 24 | bus << 16 | device << 8 | function;
}

uint32_t gpi_number_of(const struct gpi_device *row, uint32_t n, uint32_t place)
{
    const uint64_t own = address(row[place].pci);
    uint32_t number = 0;

    for (uint32_t i = 0; i < n; i++) {
        const uint64_t other = address(row[i].pci);
        number += !gpi_device_is_instance(&row[i]) && (other < own || (other == own && i < place));
    }
    return number;
}

static bool is_known(const struct gpi_device *row, uint32_t n, uint64_t pci)
{
    for (uint32_t i = 0; i < n; i++)
        if (address(row[i].pci) == pci)
            return true;
    return false;
}

/* How many GPUs the folder lists; UINT32_MAX: it cannot be read, or has one that NVML has not. */
static uint32_t count_listed(const struct gpi_device *row, uint32_t n, const char *directory)
{
    const struct dirent *entry;
    uint32_t count = 0;
    DIR *d = opendir(directory);

    while (d && count != UINT32_MAX && (entry = readdir(d)) != NULL)
        if (entry->d_name[0] != '.')
            count = is_known(row, n, address(entry->d_name)) ? count + 1 : UINT32_MAX;
    if (d)
        (void)closedir(d);
    return d ? count : UINT32_MAX;
}

bool gpi_numbers_agree(const struct gpi_device *row, uint32_t n, const char *directory)
{
    for (uint32_t i = 0; i < n; i++)
        if (row[i].kind != GPUD_DEVICE_GPU || row[i].mig_parts || !address(row[i].pci) ||
            gpi_number_of(row, n, i) != row[i].index)
            return false;
    return n > 0 && count_listed(row, n, directory) == n;
}
