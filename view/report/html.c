/* SPDX-License-Identifier: MIT */
/* html.c - text of any bytes as text of a page. */
#include "view/report/html.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "view/plain.h"

enum { SHOWN = 12 }; /* "&quot;", "\\u{10ffff}" */

/* Characters that a reader cannot see, beside those that steer: of no width, or none at all. */
static bool hidden(uint32_t c)
{
    return gpv_steers(c) || c == 0xad || c == 0x61c || c == 0x180e ||
           (c >= 0x200b && c <= 0x200d) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb) || (c & 0xfffe) == 0xfffe || (c >= 0xfdd0 && c <= 0xfdef) ||
           c >= 0xe0000;
}

/* How characters are written that mean something to a reader of HTML. */
static const char *as_html(uint32_t c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

/* The same for JSON in a page. */
static const char *as_json(uint32_t c)
{
    switch (c) {
    case '&':
        return "\\u0026";
    case '<':
        return "\\u003c";
    case '>':
        return "\\u003e";
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    default:
        return NULL;
    }
}

typedef const char *(*escape_fn)(uint32_t c);

/* One character as it is shown.  Returns how many bytes of the text it was. */
static size_t show(const char *text, escape_fn form, char ret[SHOWN + 1], size_t *ret_width)
{
    uint32_t c = (unsigned char)*text;
    const size_t size = gpv_character(text, &c);
    const char *escape = form('\\') ? form('\\') : "\\";
    const size_t more = strlen(escape) - 1;
    *ret_width = 1;
    if (size == 1 && (c == '\n' || c == '\t'))
        *ret_width = (size_t)snprintf(ret, SHOWN + 1, "%s%c", escape, c == '\n' ? 'n' : 't') - more;
    else if (size == 0 || (c < 0x100 && hidden(c)))
        *ret_width = (size_t)snprintf(ret, SHOWN + 1, "%sx%02" PRIx32, escape, c) - more;
    else if (hidden(c))
        *ret_width = (size_t)snprintf(ret, SHOWN + 1, "%su{%" PRIx32 "}", escape, c) - more;
    else if (form(c))
        (void)snprintf(ret, SHOWN + 1, "%s", form(c));
    else
        (void)snprintf(ret, SHOWN + 1, "%.*s", (int)size, text);
    return size ? size : 1;
}

size_t gpv_html_width(const char *text)
{
    size_t sum = 0, width;
    for (char shown[SHOWN + 1]; *text; sum += width)
        text += show(text, as_html, shown, &width);
    return sum;
}

/* `most` characters, or all of them if it is negative. */
static void put_text(FILE *f, const char *text, int most, escape_fn form)
{
    const bool cut = most >= 0 && gpv_html_width(text) > (size_t)most;
    const size_t end = cut ? (size_t)(most ? most - 1 : 0) : SIZE_MAX;
    size_t width = 0, wide;
    for (char shown[SHOWN + 1]; *text; width += wide) {
        text += show(text, form, shown, &wide);
        if (width + wide > end)
            break;
        (void)fputs(shown, f);
    }
    if (cut)
        (void)fputs("…", f);
}

/* One conversion that is no %s.  The formats are constants of this folder, which the compiler
 * checks. */
static void put_number(FILE *f, const char *spec, size_t size, va_list *args)
{
    char form[16];
    (void)snprintf(form, sizeof(form), "%.*s", (int)size, spec);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (spec[size - 1] == 'f')
        (void)fprintf(f, form, va_arg(*args, double));
    else if (strstr(form, "ll"))
        (void)fprintf(f, form, va_arg(*args, long long));
    else if (strchr(form, 'z'))
        (void)fprintf(f, form, va_arg(*args, size_t));
    else
        (void)fprintf(f, form, va_arg(*args, int));
#pragma GCC diagnostic pop
}

void gpv_html(FILE *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    while (*format) {
        const size_t plain = strcspn(format, "%");
        (void)fwrite(format, 1, plain, f);
        format += plain;
        if (!*format)
            break;
        const size_t size = 1 + strcspn(format + 1, "%sduf") + 1;
        const char end = format[size - 1];
        if (end == '%') {
            (void)fputc('%', f);
        } else if (end == 's') {
            const int most = format[1] == '.' ? va_arg(args, int) : -1;
            put_text(f, va_arg(args, const char *), most, as_html);
        } else {
            put_number(f, format, size, &args);
        }
        format += size;
    }
    va_end(args);
}

void gpv_html_string(FILE *f, const char *text, int most)
{
    (void)fputc('"', f);
    put_text(f, text, most, as_json);
    (void)fputc('"', f);
}

void gpv_html_constant(FILE *f, const unsigned char *text, size_t size)
{
    (void)fwrite(text, 1, size, f);
}
