/* SPDX-License-Identifier: MIT */
/* script.c - a stand-in until the parser lands: the word "nonsense" is one. */
#include "device/script.h"

#include <string.h>

#include "base/failure.h"

int gpi_script_parse(struct gpi_script **ret, const char *text, uint32_t devices, struct gpud_error *e)
{
    (void)devices;
    *ret = NULL;
    return strstr(text, "nonsense") ? gpi_fail(e, GPUD_EDEVICE, 0, "devices", "script, line 1, column 1: not a word of scripts") : 0;
}

void gpi_script_free(struct gpi_script *s)
{
    (void)s;
}
