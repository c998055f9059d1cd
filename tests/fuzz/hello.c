/* SPDX-License-Identifier: MIT */
/* hello.c - any text as GPUD_WORKER, any bytes as a program's answer. */
#include "fuzz.h"

#include "wire/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* exactly as long as it is */
    char again[GPI_CALL_SIZE];
    struct gpi_call c, back;
    struct gpi_hello h;
    enum gpi_answer a;

    FUZZ_CHECK(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    if (gpi_call_read(&c, text)) {
        FUZZ_CHECK(c.pid >= 0 && c.hello > 2);
        if (c.protocol == GPI_PROTOCOL) {
            FUZZ_CHECK(c.page > 2 && c.input > 2 && c.result > 2 && c.orders > 2 && c.looks > 2);
            gpi_call_write(again, &c);
            FUZZ_CHECK(gpi_call_read(&back, again) && !memcmp(&back, &c, sizeof(c)));
        }
    }
    free(text);
    a = gpi_hello_read(&h, data, size);
    FUZZ_CHECK(a > GPI_ANSWER_NONE && a < GPI_ANSWERS);
    if (a != GPI_ANSWER_GARBAGE)
        FUZZ_CHECK(h.answer == (uint32_t)a && h.step < GPI_STEPS &&
                   (a != GPI_ANSWER_READY || h.protocol == GPI_PROTOCOL));
    return 0;
}
