/* SPDX-License-Identifier: MIT */
/* script.c - any text as a script of fake devices, with any number of devices, looked at in any
 * moment. */
#include "fuzz.h"

#include "base/clock.h"
#include "device/fake/script.h"
#include "fakes/cuda_order.h"

static void check_row(const struct gpi_script *s, const uint64_t *fired, uint32_t row, uint64_t t)
{
    struct gpi_script_state x;
    struct gpi_script_call call;
    struct gpi_device d;

    gpi_script_identity(s, row, &d);
    FUZZ_CHECK(gpi_script_row(s, d.index, d.mig_index) == row);
    FUZZ_CHECK(strlen(d.uuid) == 40 && memchr(d.model, 0, sizeof(d.model)) &&
               memchr(d.pci, 0, sizeof(d.pci)) && memchr(d.mig_profile, 0, sizeof(d.mig_profile)));
    gpi_script_state(s, fired, row, t, &x);
    FUZZ_CHECK(x.access <= GPI_ACCESS_REVOKED && x.sample.reading < GPI_READ_COUNT);
    FUZZ_CHECK(x.sample.memory_total == d.memory_total &&
               x.sample.memory_used <= x.sample.memory_total);
    FUZZ_CHECK(x.sample.memory_free == x.sample.memory_total - x.sample.memory_used);
    for (uint32_t i = 1; i < x.sample.n_users && i < GPI_PROCESSES_MAX; i++)
        FUZZ_CHECK(x.sample.user[i].memory <= x.sample.user[i - 1].memory);
    gpi_script_call(s, fired, row, "cuCtxSynchronize", GPI_SCRIPT_SAMPLE, t, &call);
    FUZZ_CHECK(call.code >= 0 && (call.code == 0) == (call.turn == 0));
}

/* All incidents in pieces of time are those in one piece. */
static void check_incidents(const struct gpi_script *s, const uint64_t *fired, uint64_t t)
{
    struct gpi_script_cursor whole = { 0, 0, 0 }, pieces = { 0, 0, 0 };
    struct gpi_incident a, b;
    uint64_t last = 0;

    for (unsigned n = 0; n < 64 && gpi_script_incident(s, fired, &whole, GPI_NEVER, &a); n++) {
        if (!gpi_script_incident(s, fired, &pieces, t, &b)) {
            FUZZ_CHECK(a.at >= t);
            FUZZ_CHECK(gpi_script_incident(s, fired, &pieces, GPI_NEVER, &b));
        }
        FUZZ_CHECK(!memcmp(&a, &b, sizeof(a)));
        FUZZ_CHECK(a.kind && a.at >= last &&
                   (a.device < gpi_script_rows(s) || a.device == GPI_UNKNOWN32));
        last = a.at;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpi_script *s = NULL;
    struct gpi_script_driver driver;
    uint8_t numbers[2];
    uint64_t t, seen;
    char *text;
    int code;

    fuzz_take(numbers, sizeof(numbers), &data, &size);
    t = (uint64_t)(numbers[0] % 16) * GPI_S;
    seen = numbers[0] & 16 ? GPI_S : GPI_NEVER;
    text = malloc(size + 1); /* exactly as long as it is */
    FUZZ_CHECK(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    code = gpi_script_parse(&s, text, numbers[1] % 9, &error);
    free(text);
    if (code) {
        FUZZ_CHECK(code == GPUD_EDEVICE && error.code == code && !s &&
                   !strcmp(error.field, "script"));
        FUZZ_CHECK(strnlen(error.text, sizeof(error.text)) < sizeof(error.text) &&
                   strstr(error.text, "expected"));
        return 0;
    }
    for (uint32_t i = 0; i < GPI_SCRIPT_TRIGGERS_MAX; i++)
        fired[i] = seen;
    FUZZ_CHECK(gpi_script_triggers(s) <= GPI_SCRIPT_TRIGGERS_MAX &&
               gpi_script_rows(s) <= GPI_GPUS_MAX);
    for (uint32_t row = 0; row < gpi_script_rows(s); row += 1 + row / 4)
        check_row(s, fired, row, t);
    for (uint32_t n = 0, all = 0; n < gpi_script_gpus(s) && gpi_script_gpus(s) < 32; n++) {
        FUZZ_CHECK(fake_cuda_gpu(s, n) < gpi_script_gpus(s) && !(all & 1u << fake_cuda_gpu(s, n)));
        all |= 1u << fake_cuda_gpu(s, n);
    }
    gpi_script_driver(s, fired, t, &driver);
    FUZZ_CHECK(driver.entry_size == 24 || driver.entry_size == 32);
    FUZZ_CHECK(gpi_script_next(s, fired, t) > t);
    check_incidents(s, fired, t);
    gpi_script_free(s);
    return 0;
}
