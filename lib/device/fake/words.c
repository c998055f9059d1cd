/* SPDX-License-Identifier: MIT */
#include "device/fake/words.h"

#include <ctype.h>
#include <string.h>

#include "base/clock.h"
#include "base/failure.h"

/* ---- words ---- */

static void bad(struct gpi_reader *r, uint32_t column, const char *expected, const char *found)
{
    const char *quote = *found ? "\"" : "";

    if (r->code)
        return;
    r->code = gpi_fail(r->e, GPUD_EDEVICE, 0, "script",
                       "line %u, column %u: expected %s, found %s%.40s%s", r->line, column,
                       expected, quote, *found ? found : "the line's end", quote);
}

void gpi_word_expected(struct gpi_reader *r, const struct gpi_word *w, const char *what)
{
    bad(r, w->column, what, w->text);
}

struct gpi_word gpi_word_value(const struct gpi_word *w)
{
    const size_t key = (size_t)(strchr(w->text, '=') - w->text) + 1;
    struct gpi_word v = { .column = w->column + (uint32_t)key };

    memcpy(v.text, w->text + key, strlen(w->text + key) + 1);
    return v;
}

static bool is_end(char c)
{
    return c == '\0' || c == '\n' || c == '#';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void take(struct gpi_reader *r, struct gpi_word *w)
{
    const char *const start = r->at;
    size_t n = 0;
    bool quoted = false;

    while (quoted ? *r->at && *r->at != '\n' : !is_end(*r->at) && !is_blank(*r->at)) {
        const char c = *r->at++;
        if (c == '"') {
            quoted = !quoted;
            continue;
        }
        if ((unsigned char)c < 0x20 || c == 0x7f) {
            bad(r, (uint32_t)(r->at - r->line_start), "text", "a control character");
            return;
        }
        if (n == GPI_WORD_SIZE - 1) {
            gpi_word_expected(r, w, "a word, the maximum is 255 bytes");
            return;
        }
        w->text[n++] = c;
    }
    if (quoted)
        gpi_word_expected(r, w, "a \" at the word's end");
    else if (!n && r->at != start)
        bad(r, w->column, "a word", "an empty one");
}

void gpi_word_take(struct gpi_reader *r, struct gpi_word *w)
{
    while (is_blank(*r->at))
        r->at++;
    *w = (struct gpi_word){ .column = (uint32_t)(r->at - r->line_start) + 1 };
    if (!r->code)
        take(r, w);
    if (r->code)
        *w->text = '\0';
}

bool gpi_word_is(const struct gpi_word *w, const char *text)
{
    return !strcmp(w->text, text);
}

/* ---- values ---- */

const struct gpi_unit gpi_times[] = { { "ns", 1 },    { "us", GPI_US },      { "ms", GPI_MS },
                                      { "s", GPI_S }, { "min", 60 * GPI_S }, { "h", 3600 * GPI_S },
                                      { NULL, 0 } };
const struct gpi_unit gpi_sizes[] = { { "B", 1 },
                                      { "KiB", 1ull << 10 },
                                      { "MiB", 1ull << 20 },
                                      { "GiB", 1ull << 30 },
                                      { "TiB", 1ull << 40 },
                                      { NULL, 0 } };

bool gpi_digits(const char **at, uint64_t *ret)
{
    const char *p = *at;

    *ret = 0;
    while (isdigit((unsigned char)*p))
        if (__builtin_mul_overflow(*ret, 10u, ret) ||
            __builtin_add_overflow(*ret, (uint64_t)(*p++ - '0'), ret))
            return false;
    if (p == *at)
        return false;
    *at = p;
    return true;
}

bool gpi_whole(const char *text, uint64_t most, uint64_t *ret)
{
    return gpi_digits(&text, ret) && !*text && *ret <= most;
}

bool gpi_quantity(const char *text, const struct gpi_unit *units, uint64_t *ret)
{
    uint64_t fraction = 0, parts = 1, more;
    const char *point;

    if (!strcmp(text, "0")) {
        *ret = 0;
        return true;
    }
    if (!gpi_digits(&text, ret))
        return false;
    if (*text == '.') {
        point = ++text;
        if (!gpi_digits(&text, &fraction) || text - point > 6)
            return false;
        for (; point < text; point++)
            parts *= 10;
    }
    while (units->name && strcmp(units->name, text) != 0)
        units++;
    if (!units->name || __builtin_mul_overflow(*ret, units->size, ret))
        return false;
    more = fraction * units->size / parts; /* below 10^6 * 2^40 */
    return !__builtin_add_overflow(*ret, more, ret) && *ret < GPI_NEVER;
}

bool gpi_times_in(char *text, uint64_t *ret_times)
{
    char *star = strchr(text, '*');

    *ret_times = UINT32_MAX;
    if (!star)
        return true;
    *star = '\0';
    return gpi_whole(star + 1, UINT32_MAX - 1, ret_times) && *ret_times > 0;
}

bool gpi_keyword_read(const struct gpi_keyword *list, const char *text, size_t size, uint64_t *ret)
{
    for (; list->name; list++)
        if (strlen(list->name) == size && !memcmp(list->name, text, size)) {
            *ret = list->value;
            return true;
        }
    return false;
}

bool gpi_version_in(const char *text, uint32_t *ret_major, uint32_t *ret_minor)
{
    uint64_t major, minor;

    if (!gpi_digits(&text, &major) || *text++ != '.' || !gpi_whole(text, 99, &minor) ||
        major == 0 || major > 999)
        return false;
    *ret_major = (uint32_t)major;
    *ret_minor = (uint32_t)minor;
    return true;
}
