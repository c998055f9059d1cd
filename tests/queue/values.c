/* SPDX-License-Identifier: MIT */
/* values.c - texts of options and settings as numbers. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "queue/config/values.h"

#define NS UINT64_C(1000000000)
#define MIN (60 * NS)
#define HOUR (60 * MIN)
#define DAY (24 * HOUR)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define KEPT UINT64_C(77) /* what an output had before */

/* A text with its value, or with the text of its error. */
struct row {
    const char *text;
    uint64_t value;
    const char *error;
};

/* Whether a call did what the row says. */
static void check(const struct row *r, int code, uint64_t value, const struct gpq_error *e)
{
    const char *text = code < 0 ? e->text : "no error";
    if (code != (r->error ? GPQ_EINVAL : 0) || value != (r->error ? KEPT : r->value) ||
        strcmp(text, r->error ? r->error : "no error"))
        T_FAIL("'%s': code %d, value %llu: %s", r->text, code, (unsigned long long)value, text);
}

T_CASE(numbers)
{
    static const struct row rows[] = {
        { "1", 1, NULL },
        { "64", 64, NULL },
        { "007", 7, NULL },
        { "0", 0, "'0': expected a number from 1 to 64" },
        { "65", 0, "'65': expected a number from 1 to 64" },
        { "", 0, "'': expected a number from 1 to 64" },
        { "-1", 0, "'-1': expected a number from 1 to 64" },
        { " 1", 0, "' 1': expected a number from 1 to 64" },
        { "1 ", 0, "'1 ': expected a number from 1 to 64" },
        { "1.0", 0, "'1.0': expected a number from 1 to 64" },
        { "18446744073709551617", 0, "'18446744073709551617': expected a number from 1 to 64" },
    };
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        struct gpq_error e = { 0 };
        uint64_t value = KEPT;
        int code = gpq_value_number(rows[i].text, 1, 64, &value, &e);
        check(&rows[i], code, value, &e);
    }
    uint64_t most = 0;
    T_EQ(gpq_value_number("18446744073709551615", 0, UINT64_MAX, &most, NULL), 0);
    T_EQ(most, UINT64_MAX);
}

#define NO_DURATION(text) "'" text "': expected a duration such as 90, 1.5s, 5m or 1h30m"
T_CASE(durations)
{
    static const struct row rows[] = {
        { "90", 90 * NS, NULL },
        { "0", 0, NULL },
        { "1.5", NS + NS / 2, NULL },
        { "1.5s", NS + NS / 2, NULL },
        { "0.1s", NS / 10, NULL },
        { "500ms", NS / 2, NULL },
        { "200us", NS / 5000, NULL },
        { "5m", 5 * MIN, NULL },
        { "1h30m", HOUR + 30 * MIN, NULL },
        { "1h0.5m", HOUR + 30 * NS, NULL },
        { "2d", 2 * DAY, NULL },
        { "90d", 90 * DAY, NULL },
        { "1d2h3m4s5ms6us", DAY + 2 * HOUR + 3 * MIN + 4 * NS + 5006000, NULL },
        { "0.123456789", 123456789, NULL },
        { "36600d", 36600 * DAY, NULL },
        { "36601d", 0, "'36601d': the maximum is 100 years" },
        { "36600d1us", 0, "'36600d1us': the maximum is 100 years" },
        { "99999999999999999999999h", 0, "'99999999999999999999999h': the maximum is 100 years" },
        { "", 0, NO_DURATION("") },
        { "12x", 0, NO_DURATION("12x") },
        { "x", 0, NO_DURATION("x") },
        { "-5m", 0, NO_DURATION("-5m") },
        { "5 m", 0, NO_DURATION("5 m") },
        { "5M", 0, NO_DURATION("5M") },
        { "1h30", 0, NO_DURATION("1h30") },
        { "30m1h", 0, NO_DURATION("30m1h") },
        { "1m1m", 0, NO_DURATION("1m1m") },
        { "1.5h30m", 0, NO_DURATION("1.5h30m") },
        { "1.h", 0, NO_DURATION("1.h") },
        { ".5h", 0, NO_DURATION(".5h") },
        { "1..5s", 0, NO_DURATION("1..5s") },
        { "0.1234567890", 0, NO_DURATION("0.1234567890") },
        { "5m\n", 0, NO_DURATION("5m?") },
    };
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        struct gpq_error e = { 0 };
        uint64_t value = KEPT;
        int code = gpq_value_duration(rows[i].text, &value, &e);
        check(&rows[i], code, value, &e);
    }
}

#define NO_SIZE(text) "'" text "': expected a size such as 40G, 512M or 1.5TiB"
T_CASE(sizes)
{
    static const struct row rows[] = {
        { "0", 0, NULL },
        { "40G", 40 * GIB, NULL },
        { "40GiB", 40 * GIB, NULL },
        { "40GB", UINT64_C(40000000000), NULL },
        { "512M", 512 * MIB, NULL },
        { "64K", 65536, NULL },
        { "64kB", 64000, NULL },
        { "1.5TiB", 1536 * GIB, NULL },
        { "0.5K", 512, NULL },
        { "40B", 40, NULL },
        { "1048576", MIB, NULL },
        { "42949672960", 40 * GIB, NULL },
        { "4194304T", UINT64_C(1) << 62, NULL },
        { "4194305T", 0, "'4194305T': the maximum is 4194304 TiB" },
        { "40", 0, "'40': a size below 1 MiB needs a unit, such as 40G, or 40B for bytes" },
        { "1048575", 0,
          "'1048575': a size below 1 MiB needs a unit, such as 40G, or 40B for bytes" },
        { "", 0, NO_SIZE("") },
        { "G", 0, NO_SIZE("G") },
        { "40g", 0, NO_SIZE("40g") },
        { "40 G", 0, NO_SIZE("40 G") },
        { "40Gi", 0, NO_SIZE("40Gi") },
        { "-1G", 0, NO_SIZE("-1G") },
        { "1.5", 0, NO_SIZE("1.5") },
        { "1.5B", 0, NO_SIZE("1.5B") },
        { "40GG", 0, NO_SIZE("40GG") },
    };
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        struct gpq_error e = { 0 };
        uint64_t value = KEPT;
        int code = gpq_value_size(rows[i].text, &value, &e);
        check(&rows[i], code, value, &e);
    }
}

/* 2026-01-31T21:30:15 in Berlin. */
#define NOW (UINT64_C(1769891415) * NS + 5)
#define NO_TIME(text) "'" text "': expected a time such as 2026-01-31T22:00, 22:00 or +2h"
#define NEVER(text) "'" text "': there is no such time, or it is not in 1970 to 2261"
T_CASE(times)
{
    static const struct row rows[] = {
        { "+2h", NOW + 2 * HOUR, NULL },
        { "+0", NOW, NULL },
        { "22:00", UINT64_C(1769893200) * NS, NULL },
        { "21:30", UINT64_C(1769977800) * NS, NULL },    /* it was a moment ago */
        { "21:30:15", UINT64_C(1769977815) * NS, NULL }, /* the same */
        { "21:30:16", UINT64_C(1769891416) * NS, NULL },
        { "2026-01-31T22:00:00Z", UINT64_C(1769896800) * NS, NULL },
        { "2026-01-31t22:00:00z", UINT64_C(1769896800) * NS, NULL },
        { "2026-01-31 22:00:00.25+01:00", UINT64_C(1769893200) * NS + NS / 4, NULL },
        { "2026-01-31T22:00:00-01:30", UINT64_C(1769902200) * NS, NULL },
        { "2026-01-31T22:00", UINT64_C(1769893200) * NS, NULL },
        { "2026-07-01T00:00", UINT64_C(1782856800) * NS, NULL }, /* summer */
        { "2026-07-01", UINT64_C(1782856800) * NS, NULL },
        { "1970-01-01T00:00:00Z", 0, NULL },
        { "2024-02-29T00:00:00Z", UINT64_C(1709164800) * NS, NULL },
        { "2016-12-31T23:59:60Z", UINT64_C(1483228800) * NS, NULL },
        { "2026-02-29T00:00:00Z", 0, NEVER("2026-02-29T00:00:00Z") },
        { "2026-02-29", 0, NEVER("2026-02-29") },
        { "2026-13-01", 0, NEVER("2026-13-01") },
        { "2026-00-01", 0, NEVER("2026-00-01") },
        { "2026-03-29T02:30", 0, NEVER("2026-03-29T02:30") }, /* the clocks skip it */
        { "1969-12-31T00:00:00Z", 0, NEVER("1969-12-31T00:00:00Z") },
        { "2300-01-01", 0, NEVER("2300-01-01") },
        { "", 0, NO_TIME("") },
        { "+", 0, NO_TIME("+") },
        { "+2x", 0, NO_TIME("+2x") },
        { "tomorrow", 0, NO_TIME("tomorrow") },
        { "24:00", 0, NO_TIME("24:00") },
        { "22:60", 0, NO_TIME("22:60") },
        { "9:00", 0, NO_TIME("9:00") },
        { "22:00x", 0, NO_TIME("22:00x") },
        { "2026-01-31T", 0, NO_TIME("2026-01-31T") },
        { "2026-01-31T22", 0, NO_TIME("2026-01-31T22") },
        { "2026-01-31T22:00+1", 0, NO_TIME("2026-01-31T22:00+1") },
        { "2026-01-31T22:00+25:00", 0, NO_TIME("2026-01-31T22:00+25:00") },
        { "2026-01-31T22:00Zx", 0, NO_TIME("2026-01-31T22:00Zx") },
        { "26-01-31", 0, NO_TIME("26-01-31") },
    };
    T_EQ(setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1), 0);
    tzset();
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        struct gpq_error e = { 0 };
        uint64_t value = KEPT;
        int code = gpq_value_time(rows[i].text, NOW, &value, &e);
        check(&rows[i], code, value, &e);
    }
    T_EQ(unsetenv("TZ"), 0);
}

/* The value is the share times 100 and the number of GPUs. */
#define NO_GPUS(text) \
    "'" text "': expected a number of GPUs such as 2, or a part of one such as 0.5"
#define GPUS(n, share) (UINT64_C(100) * (share) + (n))
T_CASE(gpus)
{
    static const struct row rows[] = {
        { "2", GPUS(2, 10000), NULL },
        { "0", GPUS(0, 10000), NULL },
        { "16", GPUS(16, 10000), NULL },
        { "0.5", GPUS(1, 5000), NULL },
        { "0.0001", GPUS(1, 1), NULL },
        { "0.9999", GPUS(1, 9999), NULL },
        { "17", 0, "'17': the maximum is 16 GPUs" },
        { "1.5", 0, "'1.5': a part of a GPU is of one GPU, such as 0.5" },
        { "1.0", 0, "'1.0': a part of a GPU is of one GPU, such as 0.5" },
        { "0.00001", 0, NO_GPUS("0.00001") },
        { "0.0", 0, NO_GPUS("0.0") },
        { "0.99999", 0, NO_GPUS("0.99999") },
        { "", 0, NO_GPUS("") },
        { "all", 0, NO_GPUS("all") },
        { "2x", 0, NO_GPUS("2x") },
        { "-1", 0, NO_GPUS("-1") },
    };
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        struct gpq_error e = { 0 };
        uint32_t n = 77, share = 0;
        int code = gpq_value_gpus(rows[i].text, &n, &share, &e);
        check(&rows[i], code, GPUS(n, share), &e);
    }
}

#define NO_COMPUTE(text) "'" text "': expected a compute capability such as 8.6"
T_CASE(compute)
{
    static const struct row rows[] = {
        { "8.6", 806, NULL },
        { "9", 900, NULL },
        { "10.0", 1000, NULL },
        { "12.1", 1201, NULL },
        { "", 0, NO_COMPUTE("") },
        { "8.", 0, NO_COMPUTE("8.") },
        { "8.600", 0, NO_COMPUTE("8.600") },
        { "1000", 0, NO_COMPUTE("1000") },
        { "sm_86", 0, NO_COMPUTE("sm_86") },
        { "8.6a", 0, NO_COMPUTE("8.6a") },
    };
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        struct gpq_error e = { 0 };
        uint32_t value = KEPT;
        int code = gpq_value_compute(rows[i].text, &value, &e);
        check(&rows[i], code, value, &e);
    }
}

/* The value has a byte for each cause: the first one is that of error. */
#define NO_RETRIES(text)                                                                    \
    "'" text "': expected retries such as 2, 2:crash,timeout or 2:crash,1:oom; the causes " \
    "are error, timeout, crash and oom"
T_CASE(retries)
{
    static const struct row rows[] = {
        { "2", 0x020202, NULL },
        { "0", 0, NULL },
        { "2:crash", 0x020000, NULL },
        { "2:crash,timeout", 0x020200, NULL },
        { "2:error,1:oom", 0x01000002, NULL },
        { "2:error,crash,1:oom", 0x01020002, NULL },
        { "2,1:oom", 0x01020202, NULL },
        { "2:oom", 0x02000000, NULL },
        { "1000001", 0, "'1000001': the maximum is 1000000 retries" },
        { "2:crash,crash", 0, "'2:crash,crash': names a cause twice" },
        { "2,1:crash", 0, "'2,1:crash': names a cause twice" },
        { "", 0, NO_RETRIES("") },
        { "crash", 0, NO_RETRIES("crash") },
        { "2:", 0, NO_RETRIES("2:") },
        { "2,", 0, NO_RETRIES("2,") },
        { "2,3", 0, NO_RETRIES("2,3") },
        { "2:crash,", 0, NO_RETRIES("2:crash,") },
        { "2:crash,3", 0, NO_RETRIES("2:crash,3") },
        { "2:crashed", 0, NO_RETRIES("2:crashed") },
        { "2x", 0, NO_RETRIES("2x") },
        { ":crash", 0, NO_RETRIES(":crash") },
        { "-1", 0, NO_RETRIES("-1") },
    };
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        struct gpq_error e = { 0 };
        uint32_t n[GPQ_CAUSES] = { KEPT };
        int code = gpq_value_retries(rows[i].text, n, &e);
        check(&rows[i], code, n[0] | n[1] << 8 | n[2] << 16 | (uint64_t)n[3] << 24, &e);
    }
}

T_CASE(booleans)
{
    static const struct row rows[] = {
        { "yes", 1, NULL }, { "true", 1, NULL },  { "on", 1, NULL },  { "1", 1, NULL },
        { "no", 0, NULL },  { "false", 0, NULL }, { "off", 0, NULL }, { "0", 0, NULL },
    };
    struct gpq_error e;
    bool value = false;
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        T_EQ(gpq_value_bool(rows[i].text, &value, &e), 0);
        T_EQ(value, rows[i].value);
    }
    T_EQ(gpq_value_bool("Yes", &value, &e), GPQ_EINVAL);
    T_TEXT(e.text, "'Yes': expected yes or no");
}

/* A long value is cut between two characters. */
T_CASE(an_error_shows_the_start_of_a_long_value)
{
    struct gpq_error e;
    uint64_t value;
    T_EQ(gpq_value_duration("1234567890123456789012345678901234567890123456789012345678\xc3\xa4\xc3"
                            "\xa4\xc3\xa4",
                            &value, &e),
         GPQ_EINVAL);
    T_TEXT(e.text,
           NO_DURATION("1234567890123456789012345678901234567890123456789012345678\xc3\xa4..."));
    T_EQ(gpq_value_duration("12345678901234567890123456789012345678901234567890123456789\xc3\xa4",
                            &value, &e),
         GPQ_EINVAL);
    T_TEXT(e.text, NO_DURATION("12345678901234567890123456789012345678901234567890123456789..."));
}
