/* SPDX-License-Identifier: MIT */
/*
 * queue_config.c - any bytes as a config file.
 *
 * A file that is refused has its place in the text of the error.  Each value of one that is read
 * stands in it, is of the kind of its key, and begins and ends with no blank.
 */
#include "fuzz.h"

#include "queue/config/check.h"

static void check_section(const struct gpq_config *c, const struct gpq_section *s, size_t size)
{
    struct gpq_error e;

    FUZZ_CHECK(gpq_config_section(c, s->kind, s->name) == s);
    for (int i = 0; i < GPQ_KEYS; i++) {
        const char *value = s->entry[i].value;
        if (!value)
            continue;
        FUZZ_CHECK(gpq_keys[i].section == s->kind);
        FUZZ_CHECK(value >= c->text && value < c->text + size && *value);
        FUZZ_CHECK(!strchr(" \t", value[0]) && !strchr(" \t", value[strlen(value) - 1]));
        FUZZ_CHECK(gpq_key_check((enum gpq_key)i, value, &e) == 0);
        FUZZ_CHECK(s->entry[i].line >= s->line);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gpq_config c;
    struct gpq_error e = { 0 };
    int code = gpq_config_parse("/etc/config", data, size, &c, &e);

    if (code < 0) {
        FUZZ_CHECK(code == GPQ_EINVAL && !strncmp(e.text, "/etc/config:", 12));
        return 0;
    }
    FUZZ_CHECK(c.n >= 1 && c.section[0].kind == GPQ_SECTION_TOP);
    for (size_t i = 0; i < c.n; i++)
        check_section(&c, &c.section[i], size);
    gpq_config_free(&c);
    return 0;
}
