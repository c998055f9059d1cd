/* SPDX-License-Identifier: MIT */
/* view_log.c - any bytes as a decision log: reading is total.  [V5] [V9] */
#include "view_night.h"

#include "view/read/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gpv_night *night = gpv_night_new();
    struct gpv_log *log = night ? gpv_log_new(night) : NULL;
    char *text = text_of(data, size);

    FUZZ_CHECK(log);
    FUZZ_CHECK(gpv_log_read(log, text, size) == 0);
    FUZZ_CHECK(gpv_log_end(log) == 0);
    FUZZ_CHECK(gpv_night_end(night, 0) == 0);
    gpv_log_free(log);
    check_night(night);
    free(text);
    return 0;
}
