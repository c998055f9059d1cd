/* SPDX-License-Identifier: MIT */
/*
 * devices.c - the option "devices": what it means, and how a bad one is refused.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/select.h"

enum { MAX = 1024 };

static char names[MAX][GPI_DEVICE_NAMES];

/* On a machine without GPUs: how many slots there are, with the names of each one's devices; or a
 * code. */
static int list_devices(const char *text, uint32_t per_worker, char (*sets)[GPI_DEVICE_NAMES],
                        uint32_t max, struct gpud_error *e)
{
    const struct gpi_device_field none = { .row = NULL };
    struct gpi_selection s;
    int r = gpi_device_select(&s, text, per_worker, max, &none, e);

    if (r)
        return r;
    for (uint32_t i = 0; i < s.n_slots; i++)
        gpi_selection_names(&s, i, sets[i]);
    r = (int)s.n_slots;
    gpi_selection_fini(&s);
    return r;
}

/* The names as one text: "cpu:0 cpu:1". */
static const char *sets_of(uint32_t per_worker, const char *devices, uint32_t max)
{
    static char text[MAX * GPI_DEVICE_NAMES];
    struct gpud_error error = GPUD_ERROR_INIT;
    int n = list_devices(devices, per_worker, names, max, &error);
    size_t at = 0;

    if (n < 0)
        T_FAIL("\"%s\" is refused: %s", devices, error.text);
    text[0] = '\0';
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? " " : "", names[i]);
    return text;
}

static const char *listed(const char *devices, uint32_t max)
{
    return sets_of(1, devices, max);
}

T_CASE(good_ones)
{
    T_TEXT(listed("cpu:1", MAX), "cpu:0");
    T_TEXT(listed("cpu:3", MAX), "cpu:0 cpu:1 cpu:2");
    T_TEXT(listed("cpu:2/2", MAX), "cpu:0 cpu:0 cpu:1 cpu:1");
    T_TEXT(listed("cpu:1/3", MAX), "cpu:0 cpu:0 cpu:0");
    T_TEXT(listed("cpu:1,cpu:2", MAX), "cpu:0 cpu:1 cpu:2");
    T_TEXT(listed("cpu:2/2,cpu:1,cpu:1/2", MAX), "cpu:0 cpu:0 cpu:1 cpu:1 cpu:2 cpu:3 cpu:3");
    T_EQ(list_devices("cpu:1024", 1, names, MAX, NULL), 1024);
    T_TEXT(names[1023], "cpu:1023");
    T_EQ(list_devices("cpu:32/32", 1, names, MAX, NULL), 1024);
    T_TEXT(names[1023], "cpu:31");
    T_EQ(list_devices("cpu:1/1024", 1, names, MAX, NULL), 1024);
    T_TEXT(names[1023], "cpu:0");
    T_EQ(list_devices("cpu:5", 1, names, 5, NULL), 5);
}

/* The text names the entry by its place and as it was written. */
static void refused(const char *devices, uint32_t max, unsigned position, const char *entry)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    char wanted[128];

    (void)snprintf(wanted, sizeof(wanted), "entry %u, \"%s\"", position, entry);
    T_EQ(list_devices(devices, 1, names, max, &error), GPUD_EDEVICE);
    T_EQ(error.code, GPUD_EDEVICE);
    T_TEXT(error.field, "devices");
    if (!strstr(error.text, wanted))
        T_FAIL("\"%s\": the text is \"%s\" and lacks %s", devices, error.text, wanted);
    T_EQ(list_devices(devices, 1, names, max, NULL), GPUD_EDEVICE);
}

T_CASE(bad_ones)
{
    static const char *const bad[] = {
        "", "cpu", "cpu:", "cpu:0", "cpu:00", "cpu:x", "cpu:-1", "cpu:+1", "cpu: 1", "cpu :1",
        "cpu:1 1", "cpu:1 /2", "cpu:1/",
        "cpu:1/0", "cpu:1/x", "cpu:1/2/3", "cpu:/2", "cpu:1025", "cpu:1/1025", "cpu:4294967297",
        "cpu:18446744073709551617",
        "cpu:99999999999999999999999999", "CPU:1", "cpux1", "cpu:1x", "cpu:0x10", "gpu:1", "0",
        "all", "cpu:1;cpu:1",
    };

    for (size_t i = 0; i < T_LENGTH(bad); i++) {
        char list[256];

        refused(bad[i], MAX, 1, bad[i]);
        (void)snprintf(list, sizeof(list), "cpu:1,%s", bad[i]);
        refused(list, MAX, 2, bad[i]);
        (void)snprintf(list, sizeof(list), "cpu:2/3,cpu:4,%s,cpu:1", bad[i]);
        refused(list, MAX, 3, bad[i]);
    }
    refused("cpu:1,", MAX, 2, "");
    refused(",cpu:1", MAX, 1, "");
    refused(",", MAX, 1, "");
    refused("cpu:1,,cpu:1", MAX, 2, "");
}

/* Blanks and tabs around entries are none of theirs; the text of an error has the entry without
 * them. */
T_CASE(blanks)
{
    T_TEXT(listed(" cpu:1", MAX), "cpu:0");
    T_TEXT(listed("cpu:1\t ", MAX), "cpu:0");
    T_TEXT(listed("cpu:2, cpu:1/2", MAX), "cpu:0 cpu:1 cpu:2 cpu:2");
    T_TEXT(listed("  cpu:2/2 ,\tcpu:1 , cpu:1", MAX), "cpu:0 cpu:0 cpu:1 cpu:1 cpu:2 cpu:3");
    refused("cpu:1, cpu:x , cpu:1", MAX, 2, "cpu:x");
    refused("cpu:1 ,  cpu: 1\t", MAX, 2, "cpu: 1");
    refused("cpu:2, cpu:2 , cpu:1 ", 4, 3, "cpu:1");
    refused(" ", MAX, 1, "");
    refused("cpu:1, ", MAX, 2, "");
    refused("\t,cpu:1", MAX, 1, "");
    refused("cpu:1, \t ,cpu:1", MAX, 2, "");
    refused("cpu:1\n", MAX, 1, "cpu:1\n");
    refused("cpu:2, fake:1", MAX, 2, "fake:1");
}

T_CASE(too_many)
{
    refused("cpu:5", 4, 1, "cpu:5");
    refused("cpu:2,cpu:2,cpu:1", 4, 3, "cpu:1");
    refused("cpu:1024/1024", MAX, 1, "cpu:1024/1024");
    refused("cpu:1024,cpu:1", MAX, 2, "cpu:1");
    refused("cpu:1", 0, 1, "cpu:1");
}

/* C15: a very long entry is refused with a text that fits. */
T_CASE(long_entries)
{
    enum { LENGTH = 1 << 20 };
    struct gpud_error error = GPUD_ERROR_INIT;
    char *text = malloc(LENGTH + 1);

    T_CHECK(text);
    memset(text, '0', LENGTH);
    text[LENGTH] = '\0';
    T_EQ(list_devices(text, 1, names, MAX, &error), GPUD_EDEVICE);
    T_CMP(strlen(error.text), <, sizeof(error.text));
    memcpy(text, "cpu:", 4);
    T_EQ(list_devices(text, 1, names, MAX, &error), GPUD_EDEVICE);
    memset(text, ',', LENGTH);
    T_EQ(list_devices(text, 1, names, MAX, &error), GPUD_EDEVICE);
    free(text);
}

/* Neighbours of the whole list; workers per device are workers per set. */
T_CASE(sets)
{
    T_TEXT(sets_of(2, "cpu:4", MAX), "cpu:0,cpu:1 cpu:2,cpu:3");
    T_TEXT(sets_of(4, "cpu:4", MAX), "cpu:0,cpu:1,cpu:2,cpu:3");
    T_TEXT(sets_of(2, "cpu:1,cpu:3", MAX), "cpu:0,cpu:1 cpu:2,cpu:3");
    T_TEXT(sets_of(2, "cpu:4/2", MAX), "cpu:0,cpu:1 cpu:0,cpu:1 cpu:2,cpu:3 cpu:2,cpu:3");
    T_TEXT(sets_of(2, "cpu:2/2,cpu:2", 3), "cpu:0,cpu:1 cpu:0,cpu:1 cpu:2,cpu:3");
    T_EQ(list_devices("cpu:1024", GPI_DEVICE_SET, names, MAX, NULL), 64);
    T_TEXT(names[63], "cpu:1008,cpu:1009,cpu:1010,cpu:1011,cpu:1012,cpu:1013,cpu:1014,cpu:1015,"
                      "cpu:1016,cpu:1017,cpu:1018,cpu:1019,cpu:1020,cpu:1021,cpu:1022,cpu:1023");
    T_EQ(list_devices("cpu:1024,cpu:1024", 2, names, MAX, NULL), 1024);
}

/* C15: what cannot be cut into sets is refused, with the numbers. */
T_CASE(bad_sets)
{
    static const struct {
        uint32_t per_worker;
        const char *devices, *field, *words;
    } bad[] = {
        { 2, "cpu:3", "devices_per_worker",
          "the number of devices is 3, expected a multiple of 2 (devices_per_worker)" },
        { 16, "cpu:15", "devices_per_worker",
          "the number of devices is 15, expected a multiple of 16 (devices_per_worker)" },
        { 3, "cpu:1,cpu:1", "devices_per_worker",
          "the number of devices is 2, expected a multiple of 3 (devices_per_worker)" },
        { 2, "cpu:1,cpu:1/2", "devices",
          "entry 2, \"cpu:1/2\", has 2 workers per device, but the others in its set of 2 have 1" },
        { 2, "cpu:4/3", "devices", "makes too many workers, the maximum is 5" },
    };

    for (size_t i = 0; i < T_LENGTH(bad); i++) {
        struct gpud_error error = GPUD_ERROR_INIT;

        T_EQ(list_devices(bad[i].devices, bad[i].per_worker, names, 5, &error), GPUD_EDEVICE);
        T_TEXT(error.field, bad[i].field);
        if (!strstr(error.text, bad[i].words))
            T_FAIL("\"%s\" in %u: the text is \"%s\"", bad[i].devices, bad[i].per_worker,
                   error.text);
    }
}
