/* SPDX-License-Identifier: MIT */
#include "device/numbers.h"

const char *const gpi_numbers_directory = "/proc/driver/nvidia/gpus";
