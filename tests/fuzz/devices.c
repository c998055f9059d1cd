/* SPDX-License-Identifier: MIT */
/* devices.c - any text as the option "devices", with any number of slots allowed and of devices in a set. */
#include "fuzz.h"

#include "device/select.h"

enum { MAX = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char names[MAX][GPI_DEVICE_NAMES];
    struct gpud_error error = GPUD_ERROR_INIT;
    uint16_t wanted;
    char *text;
    uint32_t max, per_worker;
    int n;

    fuzz_take(&wanted, sizeof(wanted), &data, &size);
    max = wanted % (MAX + 1);
    per_worker = 1 + wanted / (MAX + 1) % GPI_DEVICE_SET;
    text = malloc(size + 1); /* exactly as long as it is */
    FUZZ_CHECK(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    memset(names, 'x', sizeof(names));
    n = gpi_device_list(text, per_worker, names, max, &error);
    if (n > 0) {
        FUZZ_CHECK((uint32_t)n <= max);
        for (int i = 0; i < n; i++)
            FUZZ_CHECK(strnlen(names[i], GPI_DEVICE_NAMES) < GPI_DEVICE_NAMES && !strncmp(names[i], "cpu:", 4));
    } else {
        FUZZ_CHECK(n == GPUD_EDEVICE && error.code == n);
        FUZZ_CHECK(strnlen(error.text, sizeof(error.text)) < sizeof(error.text) && *error.text);
        FUZZ_CHECK(!strncmp(error.field, "devices", 7));
    }
    FUZZ_CHECK(gpi_device_list(text, per_worker, names, max, NULL) == n);
    free(text);
    return 0;
}
