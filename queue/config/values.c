/* SPDX-License-Identifier: MIT */
/* values.c - numbers, durations, sizes, times and the like, read from their texts. */
#include "queue/config/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS UINT64_C(1000000000)
#define YEARS_100 (UINT64_C(100) * 366 * 86400 * NS)
#define SIZE_MOST (UINT64_C(1) << 62)
#define MIB (UINT64_C(1) << 20)
enum { DECIMALS = 9, SHOWN = 60 };

/* ---- Failures ---- */

/* The start of a text as an error shows it: on one line, and cut between two characters. */
struct shown {
    char text[SHOWN + 4];
};

static struct shown show(const char *text)
{
    struct shown s;
    size_t n = strlen(text);
    bool cut = n > SHOWN;
    for (n = cut ? SHOWN : n; cut && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
        continue;
    for (size_t i = 0; i < n; i++)
        s.text[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i];
    memcpy(s.text + n, cut ? "..." : "", cut ? 4 : 1);
    return s;
}

static int expected(const char *text, const char *what, struct gpq_error *e)
{
    return gpq_fail(e, GPQ_EINVAL, "'%s': expected %s", show(text).text, what);
}

static int too_much(const char *text, const char *most, struct gpq_error *e)
{
    return gpq_fail(e, GPQ_EINVAL, "'%s': the maximum is %s", show(text).text, most);
}

/* ---- Numbers ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Decimal digits; one that is too large stays UINT64_MAX.  Returns the text behind them, which is
 * `text` if there are none. */
static const char *read_digits(const char *text, uint64_t *ret)
{
    *ret = 0;
    for (; is_digit(*text); text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        *ret = *ret > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *ret * 10 + digit;
    }
    return text;
}

struct decimal {
    uint64_t whole;
    double part; /* 0 to 1 */
    bool has_part;
};

/* Digits, and optionally a point with up to DECIMALS digits.  NULL: it is no such number. */
static const char *read_decimal(const char *text, struct decimal *ret)
{
    const char *end = read_digits(text, &ret->whole), *point = end;
    double scale = 1;
    ret->part = 0;
    ret->has_part = *point == '.';
    if (end == text || !ret->has_part)
        return end == text ? NULL : end;
    for (end = point + 1; is_digit(*end); end++) {
        ret->part = ret->part * 10 + (*end - '0');
        scale *= 10;
    }
    ret->part /= scale;
    return end == point + 1 || end - point > DECIMALS + 1 ? NULL : end;
}

/* Adds the number times a unit to *sum.  False: it would be above `most`. */
static bool add_units(const struct decimal *d, uint64_t unit, uint64_t most, uint64_t *sum)
{
    uint64_t left = most - *sum, part = (uint64_t)(d->part * (double)unit + 0.5);
    if (d->whole > left / unit || part > left - d->whole * unit)
        return false;
    *sum += d->whole * unit + part;
    return true;
}

int gpq_value_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret,
                     struct gpq_error *e)
{
    uint64_t n;
    const char *end = read_digits(text, &n);
    if (end == text || *end || n < least || n > most)
        return gpq_fail(e, GPQ_EINVAL, "'%s': expected a number from %" PRIu64 " to %" PRIu64,
                        show(text).text, least, most);
    *ret = n;
    return 0;
}

int gpq_value_bool(const char *text, bool *ret, struct gpq_error *e)
{
    static const char *const words[2][4] = { { "no", "false", "off", "0" },
                                             { "yes", "true", "on", "1" } };
    for (int value = 0; value < 2; value++)
        for (int i = 0; i < 4; i++)
            if (!strcmp(text, words[value][i])) {
                *ret = value == 1;
                return 0;
            }
    return expected(text, "yes or no", e);
}

/* ---- Units ---- */

struct unit {
    const char *name;
    uint64_t size;
};

/* The unit whose name has these n bytes, or NULL. */
static const struct unit *find_unit(const struct unit *table, const char *name, size_t n)
{
    for (const struct unit *u = table; u->name; u++)
        if (strlen(u->name) == n && !memcmp(u->name, name, n))
            return u;
    return NULL;
}

static const char duration_form[] = "a duration such as 90, 1.5s, 5m or 1h30m";

int gpq_value_duration(const char *text, uint64_t *ret_ns, struct gpq_error *e)
{
    static const struct unit units[] = {
        { "d", 86400 * NS },
        { "h", 3600 * NS },
        { "m", 60 * NS },
        { "s", NS },
        { "ms", NS / 1000 },
        { "us", NS / 1000000 },
        { 0 },
    };
    const struct unit *from = units;
    uint64_t sum = 0;
    const char *at = text;
    do {
        struct decimal d;
        const char *name = read_decimal(at, &d);
        if (!name)
            return expected(text, duration_form, e);
        size_t n = strcspn(name, "0123456789.");
        const struct unit *u = n == 0 && at == text ? &units[3] : find_unit(from, name, n);
        at = name + n;
        if (!u || (d.has_part && *at))
            return expected(text, duration_form, e);
        if (!add_units(&d, u->size, YEARS_100, &sum))
            return too_much(text, "100 years", e);
        from = u + 1;
    } while (*at);
    *ret_ns = sum;
    return 0;
}

int gpq_value_size(const char *text, uint64_t *ret_bytes, struct gpq_error *e)
{
    static const struct unit units[] = {
        { "B", 1 },
        { "K", UINT64_C(1) << 10 },
        { "KiB", UINT64_C(1) << 10 },
        { "kB", 1000 },
        { "M", UINT64_C(1) << 20 },
        { "MiB", UINT64_C(1) << 20 },
        { "MB", 1000000 },
        { "G", UINT64_C(1) << 30 },
        { "GiB", UINT64_C(1) << 30 },
        { "GB", 1000000000 },
        { "T", UINT64_C(1) << 40 },
        { "TiB", UINT64_C(1) << 40 },
        { "TB", UINT64_C(1000000000000) },
        { 0 },
    };
    struct decimal d;
    uint64_t bytes = 0;
    const char *name = read_decimal(text, &d);
    const struct unit *u = !name ? NULL : !*name ? units : find_unit(units, name, strlen(name));
    if (!u || (u->size == 1 && d.has_part))
        return expected(text, "a size such as 40G, 512M or 1.5TiB", e);
    if (!add_units(&d, u->size, SIZE_MOST, &bytes))
        return too_much(text, "4194304 TiB", e);
    if (!*name && bytes != 0 && bytes < MIB)
        return gpq_fail(e, GPQ_EINVAL,
                        "'%s': a size below 1 MiB needs a unit, such as 40G, or 40B for bytes",
                        show(text).text);
    *ret_bytes = bytes;
    return 0;
}

/* ---- Times ---- */

/* Exactly n digits.  Returns the text behind them, or NULL. */
static const char *read_exactly(const char *text, int n, int *ret)
{
    *ret = 0;
    for (int i = 0; text && i < n; i++, text++) {
        if (!is_digit(*text))
            return NULL;
        *ret = *ret * 10 + (*text - '0');
    }
    return text;
}

static const char *skip(const char *text, const char *one_of)
{
    return text && *text && strchr(one_of, *text) ? text + 1 : NULL;
}

/* What a text of a time has. */
struct moment {
    struct tm tm;
    double part; /* of a second */
    bool has_zone;
    int zone; /* seconds east of Greenwich */
};

/* HH:MM, HH:MM:SS or HH:MM:SS.FRACTION.  A leap second is the first one of the next minute. */
static const char *read_clock(const char *text, struct moment *m)
{
    struct decimal second;
    text = read_exactly(text, 2, &m->tm.tm_hour);
    text = read_exactly(skip(text, ":"), 2, &m->tm.tm_min);
    if (text && *text == ':') {
        const char *digits = text + 1;
        text = read_exactly(digits, 2, &m->tm.tm_sec);
        if (text && *text == '.') {
            text = read_decimal(digits, &second);
            m->part = second.part;
        }
    }
    return m->tm.tm_hour <= 23 && m->tm.tm_min <= 59 && m->tm.tm_sec <= 60 ? text : NULL;
}

/* Nothing, Z, or an offset such as +01:00. */
static const char *read_zone(const char *text, struct moment *m)
{
    int hours = 0, minutes = 0, sign = text && *text == '-' ? -1 : 1;
    if (!text || !*text)
        return text;
    m->has_zone = true;
    if (*text == 'Z' || *text == 'z')
        return text + 1;
    text = read_exactly(skip(text, "+-"), 2, &hours);
    text = read_exactly(skip(text, ":"), 2, &minutes);
    m->zone = sign * (hours * 3600 + minutes * 60);
    return hours <= 23 && minutes <= 59 ? text : NULL;
}

static const char *read_date(const char *text, struct moment *m)
{
    int year = 0, month = 0;
    text = read_exactly(text, 4, &year);
    text = read_exactly(skip(text, "-"), 2, &month);
    text = read_exactly(skip(text, "-"), 2, &m->tm.tm_mday);
    m->tm.tm_year = year - 1900;
    m->tm.tm_mon = month - 1;
    return text;
}

static bool same_minute(const struct tm *a, const struct tm *b)
{
    return a->tm_year == b->tm_year && a->tm_mon == b->tm_mon && a->tm_mday == b->tm_mday &&
           a->tm_hour == b->tm_hour && a->tm_min == b->tm_min;
}

/* Also whether the calendar, or the local clock, has this time: the functions of libc turn the 31st
 * of June into the 1st of July.  -1: it has not. */
static int64_t seconds_of(const struct moment *m)
{
    struct tm asked = m->tm, tm;
    asked.tm_sec = 0;
    asked.tm_isdst = -1;
    tm = asked;
    int64_t seconds = m->has_zone ? timegm(&tm) : mktime(&tm);
    return same_minute(&asked, &tm) ? seconds + m->tm.tm_sec - m->zone : -1;
}

static const char time_form[] = "a time such as 2026-01-31T22:00, 22:00 or +2h";

static int read_full_time(const char *text, uint64_t *ret_ns, struct gpq_error *e)
{
    struct moment m = { 0 };
    const char *at = read_date(text, &m);
    if (at && *at)
        at = read_zone(read_clock(skip(at, "Tt "), &m), &m);
    if (!at || *at)
        return expected(text, time_form, e);
    int64_t seconds = seconds_of(&m);
    if (seconds < 0 || (uint64_t)seconds > INT64_MAX / NS)
        return gpq_fail(e, GPQ_EINVAL, "'%s': there is no such time, or it is not in 1970 to 2261",
                        show(text).text);
    *ret_ns = (uint64_t)seconds * NS + (uint64_t)(m.part * (double)NS);
    return 0;
}

/* The next time that the local clock shows it: today, or tomorrow. */
static int read_time_of_day(const char *text, uint64_t now_ns, uint64_t *ret_ns,
                            struct gpq_error *e)
{
    struct moment m = { 0 };
    time_t now = (time_t)(now_ns / NS);
    struct tm today;
    const char *end = read_clock(text, &m);
    if (!end || *end || !localtime_r(&now, &today))
        return expected(text, time_form, e);
    for (int day = 0; day < 2; day++) {
        struct tm tm = today;
        tm.tm_mday += day;
        tm.tm_hour = m.tm.tm_hour;
        tm.tm_min = m.tm.tm_min;
        tm.tm_sec = m.tm.tm_sec;
        tm.tm_isdst = -1;
        uint64_t at = (uint64_t)mktime(&tm) * NS + (uint64_t)(m.part * (double)NS);
        if (at > now_ns) {
            *ret_ns = at;
            return 0;
        }
    }
    return expected(text, time_form, e);
}

int gpq_value_time(const char *text, uint64_t now_ns, uint64_t *ret_ns, struct gpq_error *e)
{
    if (*text == '+') {
        uint64_t ns;
        if (gpq_value_duration(text + 1, &ns, NULL) < 0)
            return expected(text, time_form, e);
        *ret_ns = now_ns + ns;
        return 0;
    }
    return strchr(text, '-') ? read_full_time(text, ret_ns, e)
                             : read_time_of_day(text, now_ns, ret_ns, e);
}

/* ---- Needs ---- */

int gpq_value_gpus(const char *text, uint32_t *ret_gpus, uint32_t *ret_share, struct gpq_error *e)
{
    struct decimal d;
    const char *end = read_decimal(text, &d);
    uint32_t share = end && d.has_part ? (uint32_t)(d.part * GPQ_VALUE_WHOLE + 0.5) : 0;
    if (!end || *end || (d.has_part && d.whole == 0 && (share == 0 || share == GPQ_VALUE_WHOLE)))
        return expected(text, "a number of GPUs such as 2, or a part of one such as 0.5", e);
    if (d.has_part && d.whole != 0)
        return gpq_fail(e, GPQ_EINVAL, "'%s': a part of a GPU is of one GPU, such as 0.5",
                        show(text).text);
    if (d.whole > GPQ_VALUE_GPUS)
        return too_much(text, "16 GPUs", e);
    *ret_gpus = d.has_part ? 1 : (uint32_t)d.whole;
    *ret_share = d.has_part ? share : GPQ_VALUE_WHOLE;
    return 0;
}

int gpq_value_compute(const char *text, uint32_t *ret, struct gpq_error *e)
{
    uint64_t major, minor = 0;
    const char *point = read_digits(text, &major), *end = point;
    bool right = point != text && point - text <= 3;
    if (right && *point == '.') {
        end = read_digits(point + 1, &minor);
        right = end != point + 1 && end - point <= 3;
    }
    if (!right || *end)
        return expected(text, "a compute capability such as 8.6", e);
    *ret = (uint32_t)(major * 100 + minor);
    return 0;
}

/* ---- Retries ---- */

#define WORD(name, value, text) [value] = text,
static const char *const cause_words[GPQ_CAUSES] = { GPQ_CAUSE_MAP(WORD) };
#undef WORD
/* Those of a number without causes: an attempt out of memory would end so again. */
enum { PLAIN = 1 << GPQ_CAUSE_ERROR | 1 << GPQ_CAUSE_TIMEOUT | 1 << GPQ_CAUSE_CRASH };

/* The mask of the cause with these n bytes, or 0. */
static unsigned find_cause(const char *word, size_t n)
{
    for (unsigned i = 0; i < GPQ_CAUSES; i++)
        if (strlen(cause_words[i]) == n && !memcmp(cause_words[i], word, n))
            return 1U << i;
    return 0;
}

/* One item of the list: 2, 2:crash or, with the number of the item before, timeout.  Returns the
 * text behind it; *ret_causes is 0 if it is none. */
static const char *read_retry(const char *at, bool first, uint64_t *number, unsigned *ret_causes)
{
    uint64_t named;
    const char *word = read_digits(at, &named);
    bool has_number = word != at;
    if (has_number)
        *number = named;
    if (has_number && *word != ':') {
        *ret_causes = first ? PLAIN : 0;
        return word;
    }
    word += has_number;
    size_t n = strcspn(word, ",");
    *ret_causes = first && !has_number ? 0 : find_cause(word, n);
    return word + n;
}

int gpq_value_retries(const char *text, uint32_t ret[GPQ_CAUSES], struct gpq_error *e)
{
    static const char form[] =
        "retries such as 2, 2:crash,timeout or 2:crash,1:oom; the causes are "
        "error, timeout, crash and oom";
    uint32_t read[GPQ_CAUSES] = { 0 };
    uint64_t number = 0;
    unsigned before = 0, causes;
    const char *at = text;
    for (bool first = true, more = true; more; first = false) {
        at = read_retry(at, first, &number, &causes);
        more = *at == ',';
        if (causes == 0 || (*at && !more))
            return expected(text, form, e);
        if (causes & before)
            return gpq_fail(e, GPQ_EINVAL, "'%s': names a cause twice", show(text).text);
        if (number > GPQ_VALUE_RETRIES)
            return too_much(text, "1000000 retries", e);
        before |= causes;
        for (unsigned i = 0; i < GPQ_CAUSES; i++)
            if (causes & 1U << i)
                read[i] = (uint32_t)number;
        at += more;
    }
    memcpy(ret, read, sizeof(read));
    return 0;
}
