/* SPDX-License-Identifier: MIT */
/* numa.h - the NUMA node beside a GPU. */
#ifndef GPI_DEVICE_NUMA_H
#define GPI_DEVICE_NUMA_H

#include <stdint.h>

/* Returns the node of the CPUs beside the GPU at this PCI address, read from sysfs below `root`
 * (""); GPI_UNKNOWN32 = not known.  NVML is no source for it: on Grace it returns the node that
 * consists of the GPU's own memory, which has no CPU. */
uint32_t gpi_numa_node(const char *root, const char *pci);

#endif
