/* SPDX-License-Identifier: MIT */
/* xid.c - any text as the option "xid_rules". */
#include "fuzz.h"

#include "device/xid.h"

static const char *const words[GPI_XID_CLASSES] = {
    [GPI_XID_IGNORE] = "ignore", [GPI_XID_RESTART] = "restart", [GPI_XID_RESET] = "reset",
    [GPI_XID_LOST] = "lost",     [GPI_XID_UNKNOWN] = "suspect", [GPI_XID_TASK] = "task"
};

/* What was read says the same when it is written again. */
static void check_again(const struct gpi_xid_rules *rules)
{
    struct gpi_xid_rules again;
    char text[GPI_XID_RULES_MAX * 16 + 1] = "";
    size_t n = 0;

    for (uint32_t i = 0; i < rules->n; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u=%s", i ? "," : "",
                              rules->rule[i].xid, words[rules->rule[i].class]);
    FUZZ_CHECK(gpi_xid_rules_read(&again, text, NULL) == 0 && again.n == rules->n);
    for (uint32_t i = 0; i < rules->n; i++)
        FUZZ_CHECK(gpi_xid_class(rules, again.rule[i].xid) ==
                   (enum gpi_xid_class)again.rule[i].class);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpi_xid_rules rules = { .n = 77 };
    char *text = malloc(size + 1); /* exactly as long as it is */
    int r;

    FUZZ_CHECK(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    r = gpi_xid_rules_read(&rules, text, &error);
    if (r == 0) {
        FUZZ_CHECK(rules.n <= GPI_XID_RULES_MAX && (rules.n == 0) == !*text);
        for (uint32_t i = 0; i < rules.n; i++)
            FUZZ_CHECK(rules.rule[i].xid >= 1 && rules.rule[i].xid <= GPI_XID_MOST &&
                       rules.rule[i].class < GPI_XID_CLASSES);
        check_again(&rules);
    } else {
        FUZZ_CHECK(r == GPUD_EINVAL && error.code == r && rules.n == 77 &&
                   !strcmp(error.field, "xid_rules"));
        FUZZ_CHECK(strnlen(error.text, sizeof(error.text)) < sizeof(error.text) &&
                   !strncmp(error.text, "entry ", 6));
    }
    FUZZ_CHECK(gpi_xid_rules_read(&rules, text, NULL) == r);
    free(text);
    return 0;
}
