/* SPDX-License-Identifier: MIT */
/*
 * queue_values.c - any text as a number, a duration, a size, a time and so on.
 *
 * A text that is refused changes no output, and the error begins with it.  A value is in its range.
 */
#include "fuzz.h"

#include "queue/config/values.h"

#define KEPT UINT64_C(77)
#define NOW UINT64_C(1769891415000000000)

static void expect(int code, bool unchanged, const struct gpq_error *e)
{
    FUZZ_CHECK(code == 0 || (code == GPQ_EINVAL && unchanged && e->code == code));
    FUZZ_CHECK(code == 0 || (e->text[0] == '\'' && strstr(e->text, "': ")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gpq_error e = { 0 };
    uint64_t n = KEPT;
    uint32_t small = KEPT, share = KEPT, retries[GPQ_CAUSES] = { KEPT };
    bool yes = true;
    char *text = malloc(size + 1);

    FUZZ_CHECK(text);
    if (size != 0)
        memcpy(text, data, size);
    text[size] = '\0';
    int code = gpq_value_number(text, 1, 1000, &n, &e);
    expect(code, n == KEPT, &e);
    FUZZ_CHECK(code < 0 || (n >= 1 && n <= 1000));
    n = KEPT;
    code = gpq_value_duration(text, &n, &e);
    expect(code, n == KEPT, &e);
    FUZZ_CHECK(code < 0 || n <= UINT64_C(36600) * 86400 * 1000000000);
    n = KEPT;
    code = gpq_value_size(text, &n, &e);
    expect(code, n == KEPT, &e);
    FUZZ_CHECK(code < 0 || n <= UINT64_C(1) << 62);
    n = KEPT;
    code = gpq_value_time(text, NOW, &n, &e);
    expect(code, n == KEPT, &e);
    FUZZ_CHECK(code < 0 || n <= INT64_MAX);
    code = gpq_value_gpus(text, &small, &share, &e);
    expect(code, small == KEPT && share == KEPT, &e);
    FUZZ_CHECK(code < 0 || (small <= GPQ_VALUE_GPUS && share >= 1 && share <= GPQ_VALUE_WHOLE));
    small = KEPT;
    code = gpq_value_compute(text, &small, &e);
    expect(code, small == KEPT, &e);
    code = gpq_value_retries(text, retries, &e);
    expect(code, retries[0] == KEPT && retries[1] == 0, &e);
    for (int i = 0; code == 0 && i < GPQ_CAUSES; i++)
        FUZZ_CHECK(retries[i] <= GPQ_VALUE_RETRIES);
    expect(gpq_value_bool(text, &yes, &e), yes, &e);
    free(text);
    return 0;
}
