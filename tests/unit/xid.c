/* SPDX-License-Identifier: MIT */
/* xid.c - the table of XIDs against the catalog's actions, and what the user says otherwise. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/xid.h"

/* Numbers and ranges, as the catalog has them: an action of its own each. */
struct wanted {
    enum gpi_xid_class class;
    const char *numbers;
};

static const struct wanted catalog[] = {
    { GPI_XID_TASK, "13 31 68" },
    { GPI_XID_RESTART, "8 11 25 32 39-41 60 69-72 75-77 80 82-86 88 89 94 96-105 126-135 139" },
    { GPI_XID_IGNORE, "14 37 38 43 44 63 66 67 92 93 106 107 121 137 141 152 153 157 160 161" },
    { GPI_XID_RESET, "46 62 64 95 109 110 119 120 136 140 143 155 156 158" },
    { GPI_XID_LOST, "79" },
    /* where it has none: see xid.c */
    { GPI_XID_IGNORE, "45 154 162-165 171 172" },
    { GPI_XID_RESET, "48 54 74 151 167-169" },
    { GPI_XID_RESTART, "78 142 144-150 159" },
};

static void expect(const char *numbers, enum gpi_xid_class class, unsigned char *seen)
{
    for (const char *at = numbers; *at;) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long n = first; n <= last; n++) {
            if (gpi_xid_class(NULL, n) != class)
                T_FAIL("XID %lu is of class %d, not %d", n, (int)gpi_xid_class(NULL, n),
                       (int)class);
            if (!*gpi_xid_text(n))
                T_FAIL("XID %lu has no text", n);
            T_CHECK(!seen[n]);
            seen[n] = 1;
        }
        at = *end == ' ' ? end + 1 : end;
    }
}

/* Each number of the catalog has its class, and what is not there is UNKNOWN. */
T_CASE(whole_catalog)
{
    unsigned char seen[1000] = { 0 };

    for (size_t i = 0; i < T_LENGTH(catalog); i++)
        expect(catalog[i].numbers, catalog[i].class, seen);
    for (uint64_t n = 0; n < 1000; n++)
        if (!seen[n]) {
            T_EQ(gpi_xid_class(NULL, n), GPI_XID_UNKNOWN);
            T_CHECK(n == 999 || !*gpi_xid_text(n));
        }
    T_EQ(gpi_xid_class(NULL, UINT64_MAX), GPI_XID_UNKNOWN);
    T_EQ(gpi_xid_class(NULL, (1ULL << 32) + 79), GPI_XID_UNKNOWN);
    T_TEXT(gpi_xid_text(UINT64_MAX), "");
    T_TEXT(gpi_xid_text(999), "the driver does not report which");
}

/* Where common lists say otherwise: these leave a GPU in use, and that one does not. */
T_CASE(against_common_lists)
{
    T_EQ(gpi_xid_class(NULL, 63), GPI_XID_IGNORE);
    T_EQ(gpi_xid_class(NULL, 92), GPI_XID_IGNORE);
    T_EQ(gpi_xid_class(NULL, 94), GPI_XID_RESTART);
    T_EQ(gpi_xid_class(NULL, 109), GPI_XID_RESET);
}

T_CASE(rules)
{
    struct gpi_xid_rules rules = { .n = 7 };

    T_EQ(gpi_xid_rules_read(&rules, NULL, NULL), 0);
    T_EQ(rules.n, 0);
    rules.n = 7;
    T_EQ(gpi_xid_rules_read(&rules, "", NULL), 0);
    T_EQ(rules.n, 0);
    T_EQ(gpi_xid_rules_read(&rules,
                            "79=reset,43=ignore,13=restart,95=lost,45=task,63=suspect,1=ignore,999="
                            "reset,094=ignore",
                            NULL),
         0);
    T_EQ(rules.n, 9);
    T_EQ(gpi_xid_class(&rules, 79), GPI_XID_RESET);
    T_EQ(gpi_xid_class(&rules, 43), GPI_XID_IGNORE);
    T_EQ(gpi_xid_class(&rules, 13), GPI_XID_RESTART);
    T_EQ(gpi_xid_class(&rules, 95), GPI_XID_LOST);
    T_EQ(gpi_xid_class(&rules, 45), GPI_XID_TASK);
    T_EQ(gpi_xid_class(&rules, 63), GPI_XID_UNKNOWN);
    T_EQ(gpi_xid_class(&rules, 1), GPI_XID_IGNORE);
    T_EQ(gpi_xid_class(&rules, 999), GPI_XID_RESET);
    T_EQ(gpi_xid_class(&rules, 94), GPI_XID_IGNORE);
    T_EQ(gpi_xid_class(&rules, 31), GPI_XID_TASK); /* the others are as they were */
}

/* C15: what is wrong is named, with its place, and nothing has changed. */
T_CASE(bad_rules)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        { ",", "entry 1, \"\", is not NUMBER=WORD" },
        { "79=reset,", "entry 2, \"\", is not NUMBER=WORD" },
        { "79", "entry 1, \"79\"," },
        { "=reset", "entry 1, \"=reset\"," },
        { "79=", "entry 1, \"79=\"," },
        { "79=Reset", "one of ignore, task, restart, reset, lost, suspect" },
        { "79=resets", "entry 1, \"79=resets\"," },
        { "79=res", "entry 1, \"79=res\"," },
        { "0=reset", "a number from 1 to 999" },
        { "1000=reset", "entry 1, \"1000=reset\"," },
        { "4294967375=reset", "entry 1," },
        { "-79=reset", "entry 1," },
        { "79 =reset", "entry 1," },
        { "7a=reset", "entry 1," },
        { "43=ignore, 79=reset", "entry 2, \" 79=reset\"," },
        { "43=ignore,79=reset,43=reset",
          "entry 3, \"43=reset\", repeats the XID of an earlier entry" },
        { "1=ignore,2=ignore,3=ignore,4=ignore,5=ignore,6=ignore,7=ignore,8=ignore,9=ignore,10="
          "ignore,11=ignore,12=ignore,13=ignore,"
          "14=ignore,15=ignore,16=ignore,17=ignore,18=ignore,19=ignore,20=ignore,21=ignore,22="
          "ignore,23=ignore,24=ignore,25=ignore,"
          "26=ignore,27=ignore,28=ignore,29=ignore,30=ignore,31=ignore,32=ignore,33=ignore",
          "entry 33, \"33=ignore\", is one too many, the maximum is 32" },
    };

    for (size_t i = 0; i < T_LENGTH(bad); i++) {
        struct gpi_xid_rules rules = { .n = 7 };
        struct gpud_error e = GPUD_ERROR_INIT;

        T_EQ(gpi_xid_rules_read(&rules, bad[i].text, &e), GPUD_EINVAL);
        T_EQ(e.code, GPUD_EINVAL);
        T_TEXT(e.field, "xid_rules");
        if (!strstr(e.text, bad[i].words))
            T_FAIL("\"%s\": the text is \"%s\"", bad[i].text, e.text);
        T_EQ(rules.n, 7);
        T_EQ(gpi_xid_rules_read(&rules, bad[i].text, NULL), GPUD_EINVAL);
    }
}
