/* SPDX-License-Identifier: MIT */
#include "device/numa.h"

#include <stdio.h>

#include "device/device.h"

uint32_t gpi_numa_node(const char *root, const char *pci)
{
    unsigned domain, bus, device, function;
    char path[512];
    int node = -1;
    FILE *file;

    if (sscanf(pci, "%8x:%2x:%2x.%1x", &domain, &bus, &device, &function) != 4)
        return GPI_UNKNOWN32;
    /* The kernel writes four digits of the domain, and more only where it has more. */
    (void)snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%04x:%02x:%02x.%x/numa_node", root,
                   domain, bus, device, function);
    file = fopen(path, "re");
    if (!file)
        return GPI_UNKNOWN32;
    if (fscanf(file, "%d", &node) != 1)
        node = -1;
    (void)fclose(file);
    return node >= 0 ? (uint32_t)node : GPI_UNKNOWN32; /* -1: the kernel does not know it, either */
}
