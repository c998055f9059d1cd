/* SPDX-License-Identifier: MIT */
/*
 * queue_template.c - any text as a template, and as the values in one.
 *
 * A text without columns is spelled again as it was.  Values come through submit and start as they
 * are, beside names of the start.
 */
#include "fuzz.h"

#include "queue/jobs/template.h"
#include "queue/utf8.h"

static const char *const values[GPQ_STARTS] = { "0,1", "2", "20000", "1.2", "{out}" };

/* Fills a template: each name that is not one of the start has the value. */
static void fill(const char *text, bool any_name, const char *value, struct gpq_texts *raw,
                 bool *ret_starts)
{
    struct gpq_texts parts = { 0 };

    FUZZ_CHECK(gpq_template_read(text, any_name, &parts) && parts.n % 2 == 1);
    const char **slots = calloc(parts.n, sizeof(*slots));
    FUZZ_CHECK(slots);
    for (size_t i = 0; i < parts.n / 2; i++) {
        const char *name = gpq_texts_get(&parts, 2 * i + 1);
        slots[i] = gpq_start_named(name, strlen(name)) == GPQ_STARTS ? value : NULL;
    }
    *ret_starts = false;
    FUZZ_CHECK(gpq_template_fill(&parts, slots, SIZE_MAX, raw, ret_starts) == 0);
    free(slots);
    gpq_texts_free(&parts);
}

/* The text that the start must make of a filled one: each mark is the value of its name. */
static char *marks_replaced(const char *raw)
{
    struct gpq_texts out = { 0 };

    for (; *raw; raw++) {
        unsigned mark = (unsigned char)*raw - 0xf8U;
        const char *piece = mark < GPQ_STARTS ? values[mark] : raw;
        FUZZ_CHECK(gpq_texts_add(&out, piece, mark < GPQ_STARTS ? strlen(piece) : 1));
    }
    FUZZ_CHECK(gpq_texts_end(&out));
    free(out.at);
    return out.data;
}

static void check(const char *text, bool any_name, const char *value)
{
    struct gpq_texts raw = { 0 }, out = { 0 };
    bool starts;

    fill(text, any_name, value, &raw, &starts);
    FUZZ_CHECK(gpq_template_write(gpq_texts_get(&raw, 0), &out));
    const char *sent = gpq_texts_get(&out, 0);
    FUZZ_CHECK(starts == (gpq_template_starts(sent) != 0));
    FUZZ_CHECK(any_name || !strcmp(sent, text));
    char *started = gpq_template_start(sent, values);
    char *expected = marks_replaced(gpq_texts_get(&raw, 0));
    FUZZ_CHECK(started && !strcmp(started, expected));
    free(started);
    free(expected);
    gpq_texts_free(&raw);
    gpq_texts_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    FUZZ_CHECK(text);
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    size = strlen(text);
    if (gpq_utf8_fault(text, size) == size) {
        check(text, false, "");
        check(text, true, "{gpu}$");
        check(text, true, "{{");
        if (size < 256) {
            check("{a}{gpu}{b}", true, text);
            check("{a}${{port}}{b}{c}", true, text);
        }
    }
    free(text);
    return 0;
}
