/* SPDX-License-Identifier: MIT */
/* directory.c - a folder of the test case, in place of lib/device/directory.c where a test links
 * the static library. */
#include "device/numbers.h"

const char *const gpi_numbers_directory = "driver/gpus";
