/* SPDX-License-Identifier: MIT */
#include "device/numbers.h"

#include <dirent.h>
#include <stdio.h>

#include "device/kin.h"
#include "gpudispatch/device.h"

/* Reads "0000:3b:00.0" of the kernel or "00000000:3B:00.0" of NVML; returns 0 for other texts. */
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

/* Returns how many GPUs the folder lists before this one; UINT32_MAX: it cannot be read, does not
 * list this one, or has an entry of another kind. */
static uint32_t count_before(uint64_t own, const char *directory)
{
    const struct dirent *entry;
    bool listed = false, strange = false;
    uint32_t count = 0;
    DIR *d = opendir(directory);

    while (d && (entry = readdir(d)) != NULL) {
        const uint64_t other = address(entry->d_name);
        if (entry->d_name[0] == '.')
            continue;
        listed |= other == own;
        strange |= !other;
        count += other < own;
    }
    if (d)
        (void)closedir(d);
    return listed && !strange ? count : UINT32_MAX;
}

bool gpi_number_is_certain(const struct gpi_device *gpu, uint32_t number, const char *directory)
{
    return gpu->kind == GPUD_DEVICE_GPU && address(gpu->pci) && gpu->index == number &&
           count_before(address(gpu->pci), directory) == number;
}
