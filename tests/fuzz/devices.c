/* SPDX-License-Identifier: MIT */
/*
 * devices.c - any text as the option "devices" and any as CUDA_VISIBLE_DEVICES, on machines of
 * several kinds, with any number of slots allowed and of devices in a set. Input: two bytes for
 * slots and set, one for the machine, then the texts with '|' between.
 */
#include "fuzz.h"

#include "device/select.h"
#include "gpudispatch/device.h"

enum { MAX = 1024, ROWS = 8 };

static const struct gpi_driver drivers[] = {
    { .state = GPUD_DRIVER_OK, .gpus = 6, .unreadable = 1 },
    { .state = GPUD_DRIVER_NOT_LOADED, .text = "not loaded" }
};

/* GPUs, or fakes: number 1 has two instances, number 3 could have some. */
static uint32_t machine(struct gpi_device *row, uint32_t kind)
{
    const uint32_t part = kind == GPUD_DEVICE_FAKE ? GPUD_DEVICE_FAKE : GPUD_DEVICE_MIG;
    static const uint32_t index[] = { 0, 1, 1, 1, 2, 3, 4 };

    for (uint32_t i = 0; i < 7; i++) {
        const int instance = i == 2 || i == 3;
        row[i] = (struct gpi_device){ .kind = instance ? part : kind,
                                      .index = index[i],
                                      .mig_index = instance ? i - 2 : GPI_UNKNOWN32 };
        (void)snprintf(row[i].name, sizeof(row[i].name), instance ? "gpu:%u:%u" : "gpu:%u",
                       index[i], i - 2);
        (void)snprintf(row[i].uuid, sizeof(row[i].uuid), "%s-%u%u", instance ? "MIG" : "GPU", i % 3,
                       i);
        (void)snprintf(row[i].pci, sizeof(row[i].pci), "0000:%02x", 0x40 - index[i] % 3);
    }
    row[1].mig_parts = 2;
    row[5].mig_parts = GPI_UNKNOWN32;
    row[4].compute_mode = 3;
    return 7;
}

static void check_selection(const struct gpi_selection *s, uint32_t max, uint32_t per_worker,
                            const struct gpi_device_field *f)
{
    FUZZ_CHECK(s->n_slots > 0 && s->n_slots <= max && s->per_worker == per_worker &&
               s->n >= per_worker && s->n % per_worker == 0);
    for (uint32_t i = 0; i < s->n_slots; i++) {
        char names[GPI_DEVICE_NAMES];
        memset(names, 'x', sizeof(names));
        gpi_selection_names(s, i, names);
        FUZZ_CHECK(strnlen(names, sizeof(names)) < sizeof(names) && *names);
        for (uint32_t k = 0; k < per_worker; k++)
            FUZZ_CHECK(s->slot[i].device[k] < s->n &&
                       s->slot[i].device[k] == s->slot[i].device[0] + k);
    }
    for (uint32_t i = 0; i < s->n; i++) {
        const struct gpi_selected *d = &s->device[i];
        FUZZ_CHECK((d->place == GPI_NO_ROW) == (d->device.kind == GPUD_DEVICE_CPU));
        FUZZ_CHECK(d->place == GPI_NO_ROW || (d->place < f->n && d->device.mig_parts == 0));
        for (uint32_t k = i < 64 ? 0 : i - 64; k < i; k++)
            FUZZ_CHECK(strcmp(s->device[k].device.uuid, d->device.uuid) != 0);
    }
}

static void check_error(const struct gpud_error *e, int r)
{
    FUZZ_CHECK(r == GPUD_EDEVICE && e->code == r);
    FUZZ_CHECK(strnlen(e->text, sizeof(e->text)) < sizeof(e->text) && *e->text);
    FUZZ_CHECK(!strcmp(e->field, "devices") || !strcmp(e->field, "devices_per_worker") ||
               !strcmp(e->field, "CUDA_VISIBLE_DEVICES"));
}

/* What can be told before agrees with what is chosen. */
static void check_needs(const char *text, int r, const struct gpi_selection *s)
{
    struct gpi_device_needs needs = { .cpus = 77 };
    struct gpud_error e = GPUD_ERROR_INIT;
    int early = gpi_device_needs(text, &needs, &e);
    uint32_t cpus = 0;

    if (early) {
        check_error(&e, early);
        FUZZ_CHECK(r == early && needs.cpus == 77);
        return;
    }
    FUZZ_CHECK(!(needs.gpus && needs.fakes) && needs.fakes <= GPI_GPUS_MAX);
    FUZZ_CHECK(!needs.script ||
               (needs.fakes && needs.script_length &&
                strnlen(needs.script, needs.script_length) == needs.script_length));
    for (uint32_t i = 0; r == 0 && i < s->n; i++)
        cpus += s->device[i].device.kind == GPUD_DEVICE_CPU;
    FUZZ_CHECK(r || cpus == needs.cpus);
    FUZZ_CHECK(r || (cpus < s->n) == (needs.gpus || needs.fakes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gpi_device rows[ROWS];
    struct gpud_error error = GPUD_ERROR_INIT;
    static struct gpi_sample samples[GPI_GPUS_MAX]; /* some are free, some have no reading */
    struct gpi_device_field field = { .row = rows, .sample = samples, .quiet = { 1, 0 } };
    struct gpi_selection s, again;
    uint16_t wanted;
    uint8_t kind;
    char *text;
    uint32_t max, per_worker;
    int r;

    fuzz_take(&wanted, sizeof(wanted), &data, &size);
    fuzz_take(&kind, sizeof(kind), &data, &size);
    max = wanted % (MAX + 1);
    per_worker = 1 + wanted / (MAX + 1) % GPI_DEVICE_SET;
    if (kind % 4) {
        field.n = machine(rows, kind % 4 == 1 ? GPUD_DEVICE_FAKE : GPUD_DEVICE_GPU);
        field.driver = &drivers[kind % 4 == 3 && kind % 8 > 4];
    }
    for (uint32_t i = 0; i < field.n; i++)
        samples[i] = (struct gpi_sample){ .at = i % 3, .users_known = 1, .n_users = i % 2,
                                          .user = { { .pid = 7, .memory = i } } };
    text = malloc(size + 1); /* exactly as long as it is */
    FUZZ_CHECK(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    field.visible = strchr(text, '|');
    if (field.visible)
        text[field.visible++ - text] = '\0';
    r = gpi_device_select(&s, text, per_worker, max, &field, &error);
    if (r == 0)
        check_selection(&s, max, per_worker, &field);
    else
        check_error(&error, r);
    check_needs(text, r, &s);
    FUZZ_CHECK(gpi_device_select(&again, text, per_worker, max, &field, NULL) == r &&
               again.n == s.n && again.n_slots == s.n_slots);
    gpi_selection_fini(&s);
    gpi_selection_fini(&again);
    free(text);
    return 0;
}
