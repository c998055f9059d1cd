/* SPDX-License-Identifier: MIT */
/* devices.c - any text as the option "devices", with any number of slots allowed. */
#include "fuzz.h"

#include "device/list.h"

enum { MAX = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char names[MAX][GPI_DEVICE_NAME];
    struct gpud_error error = GPUD_ERROR_INIT;
    uint16_t wanted;
    char *text;
    uint32_t max;
    int n;

    fuzz_take(&wanted, sizeof(wanted), &data, &size);
    max = wanted % (MAX + 1);
    text = malloc(size + 1); /* exactly as long as it is */
    FUZZ_CHECK(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    memset(names, 'x', sizeof(names));
    n = gpi_device_list(text, names, max, &error);
    if (n > 0) {
        FUZZ_CHECK((uint32_t)n <= max);
        for (int i = 0; i < n; i++)
            FUZZ_CHECK(strnlen(names[i], GPI_DEVICE_NAME) < GPI_DEVICE_NAME && !strncmp(names[i], "cpu:", 4));
    } else {
        FUZZ_CHECK(n == GPUD_EDEVICE && error.code == n);
        FUZZ_CHECK(strnlen(error.text, sizeof(error.text)) < sizeof(error.text) && *error.text);
        FUZZ_CHECK(!strcmp(error.field, "devices"));
    }
    FUZZ_CHECK(gpi_device_list(text, names, max, NULL) == n);
    free(text);
    return 0;
}
