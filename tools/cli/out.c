/* SPDX-License-Identifier: MIT */
/* out.c - descriptors, tables and JSON: what all verbs print with. */
#include "tools/cli/out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/cli/verb.h"

void out_guard(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            _exit(EXIT_FAILED); /* and there is nobody to tell */
}

/* A pipe says so without being asked for anything. */
bool out_reader_gone(void)
{
    struct pollfd out = { .fd = STDOUT_FILENO };

    return poll(&out, 1, 0) > 0 && out.revents & (POLLERR | POLLHUP);
}

int out_flush(void)
{
    static int status; /* told once */

    errno = 0;
    if (status || (fflush(stdout) == 0 && !ferror(stdout)))
        return status;
    if (errno == EPIPE || out_reader_gone())
        return EXIT_OK;
    fprintf(stderr, "gpudispatch: the output cannot be written: %s\n",
            errno ? strerror(errno) : "an earlier part was lost");
    status = EXIT_FAILED;
    return status;
}

bool out_terminal(void)
{
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

size_t out_width(void)
{
    struct winsize size;

    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        return size.ws_col;
    return 0;
}

/* ---- words ---- */

char *bytes_text(uint64_t bytes, char text[static 24])
{
    static const char *const unit[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double n = (double)bytes;
    unsigned i = 0;

    for (; n >= 1024 && i < 6; i++)
        n /= 1024;
    snprintf(text, 24, i == 0 || n >= 100 ? "%.0f %s" : "%.1f %s", n, unit[i]);
    return text;
}

char *duration_text(uint64_t ns, char text[static 24])
{
    double ms = (double)ns / 1e6;

    if (ms < 1000)
        snprintf(text, 24, ms < 10 ? "%.1f ms" : "%.0f ms", ms);
    else if (ms < 600e3)
        snprintf(text, 24, "%.1f s", ms / 1e3);
    else
        snprintf(text, 24, "%.0f min", ms / 60e3);
    return text;
}

/* Length of the character that begins here (RFC 3629); 0: it is none. */
static size_t utf8_length(const unsigned char *s)
{
    /* no longer form than needed: of the second byte after E0, F0 */
    static const unsigned char least[] = { 0, 0, 0x80, 0xa0, 0x90 };
    size_t n = s[0] < 0x80                    ? 1
               : s[0] >= 0xc2 && s[0] <= 0xdf ? 2
               : (s[0] & 0xf0) == 0xe0        ? 3
               : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                              : 0;

    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 || s[0] == 0xf0) && s[1] < least[n])
        return 0;
    if ((s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0; /* halves of pairs; beyond the last character */
    return n;
}

/* Control characters, and those that turn the direction of text or end a line (U+200E, U+200F,
 * U+2028 to U+202E, U+2066 to U+2069): a terminal obeys them. */
static bool steers(const unsigned char *s)
{
    if (*s < 0x20 || *s == 0x7f || (*s == 0xc2 && s[1] < 0xa0))
        return true;
    if (*s != 0xe2)
        return false;
    if (s[1] == 0x80)
        return s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xa8 && s[2] <= 0xae);
    return s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9;
}

/* "\\n", "\\x1b", "\\u202e" in place of what steers, and of a byte that is no character. */
static void put_escape(FILE *f, const unsigned char *s, size_t n)
{
    static const char letters[] = "\n\r\t", names[] = "nrt";
    const char *letter = strchr(letters, *s);

    if (letter)
        fprintf(f, "\\%c", names[letter - letters]);
    else if (n == 2)
        fprintf(f, "\\u%04x", (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu));
    else if (n == 3)
        fprintf(f, "\\u%04x", (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu));
    else
        fprintf(f, "\\x%02x", *s);
}

static void write_plain(FILE *f, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    while (*s) {
        size_t n = utf8_length(s);
        if (n == 0 || steers(s))
            put_escape(f, s, n);
        else
            fwrite(s, 1, n, f);
        s += n ? n : 1;
    }
}

void put_plain(const char *text)
{
    write_plain(stdout, text);
}

/* ---- a table ---- */

void table_init(struct table *t, const struct column *column, size_t columns)
{
    *t = (struct table){ .column = column, .columns = columns };
}

static void *whole(void *memory)
{
    if (!memory) {
        fputs("gpudispatch: out of memory\n", stderr);
        exit(EXIT_FAILED);
    }
    return memory;
}

/* Room for one more of `size` bytes. */
static void *grown(void *list, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return list;
    *room = *room ? 2 * *room : 16 * COLUMNS_MAX;
    return whole(realloc(list, *room * size));
}

/* What is printed of a text, whose characters count; takes and gives the memory. */
static char *plain(char *text)
{
    char *ret = NULL;
    size_t size;
    FILE *f = open_memstream(&ret, &size);

    whole(f);
    write_plain(f, text);
    free(text);
    return fclose(f) == 0 ? whole(ret) : whole(NULL);
}

void table_cell(struct table *t, const char *format, ...)
{
    va_list args;
    char *text;

    t->cell = grown(t->cell, t->cells, &t->room, sizeof *t->cell);
    va_start(args, format);
    /* NOLINT(clang-analyzer-valist.Uninitialized) ; va_start is the line before */
    t->cell[t->cells++] = plain(whole(vasprintf(&text, format, args) < 0 ? NULL : text));
    va_end(args);
}

void table_note(struct table *t, const char *format, ...)
{
    va_list args;

    t->note = grown(t->note, t->notes, &t->note_room, sizeof *t->note);
    t->note[t->notes].row = (t->cells - 1) / t->columns;
    va_start(args, format);
    /* NOLINT(clang-analyzer-valist.Uninitialized) ; va_start is the line before */
    vsnprintf(t->note[t->notes++].text, sizeof t->note->text, format, args);
    va_end(args);
}

/* In characters, not bytes. */
static size_t width(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void put_cell(const char *text, size_t wide, bool right)
{
    size_t gap = wide - width(text);

    if (right)
        printf("%*s", (int)gap, "");
    put_plain(text);
    printf("%*s", (int)(right ? 0 : gap) + 2, "");
}

/* The last cell of a line that has room for this many characters. */
static void put_last(char *text, size_t room)
{
    size_t i = 0;

    for (size_t n = 0; text[i] && n + 3 < room; i++)
        n += ((unsigned char)text[i + 1] & 0xc0) != 0x80;
    if (width(text) > room) /* and so the three dots fit */
        memcpy(text + i, "...", 4);
    put_plain(text);
    putchar('\n');
}

/* Leaves columns out until a line has room for the others, or none may be missing. */
static void choose_columns(const struct table *t, const size_t *wide, bool *shown)
{
    size_t total = 0;

    for (size_t c = 0; c < t->columns; c++) {
        shown[c] = true;
        total += wide[c] + (c > 0 ? 2 : 0);
    }
    while (t->most && total > t->most) {
        size_t out = 0;
        for (size_t c = 1; c < t->columns; c++)
            if (shown[c] && t->column[c].spare > (shown[out] ? t->column[out].spare : 0))
                out = c;
        if (t->column[out].spare == 0)
            break;
        shown[out] = false;
        total -= wide[out] + 2;
    }
}

static void print_cell(const struct table *t, size_t c, char *text, size_t wide, size_t room)
{
    if (room == 0) {
        put_cell(text, wide, t->column[c].right);
        return;
    }
    if (t->column[c].right)
        printf("%*s", (int)(wide - width(text)), "");
    put_last(text, room);
}

void table_print(struct table *t)
{
    size_t wide[COLUMNS_MAX], note = 0, before = 0, room, last = 0;
    bool shown[COLUMNS_MAX];
    char head[32];

    for (size_t c = 0; c < t->columns; c++) {
        wide[c] = width(t->column[c].head);
        for (size_t i = c; i < t->cells; i += t->columns)
            wide[c] = width(t->cell[i]) > wide[c] ? width(t->cell[i]) : wide[c];
    }
    choose_columns(t, wide, shown);
    for (size_t c = 0; c < t->columns; c++)
        if (shown[c])
            last = c;
    for (size_t c = 0; c < last; c++)
        before += shown[c] ? wide[c] + 2 : 0;
    room = t->most > before + 8 ? t->most - before : t->most ? 8 : SIZE_MAX;
    for (size_t c = 0; c <= last; c++) {
        snprintf(head, sizeof head, "%s", t->column[c].head);
        if (shown[c])
            print_cell(t, c, head, wide[c], c == last ? SIZE_MAX : 0);
    }
    for (size_t i = 0; i < t->cells; i++) {
        /* NOLINT(clang-analyzer-core.DivideZero) ; a table without columns has no cells */
        size_t c = i % t->columns;
        if (shown[c])
            print_cell(t, c, t->cell[i], wide[c], c == last ? room : 0);
        for (; c == last && note < t->notes && t->note[note].row == i / t->columns; note++) {
            fputs("    ", stdout);
            put_plain(t->note[note].text);
            putchar('\n');
        }
    }
    for (size_t i = 0; i < t->cells; i++)
        free(t->cell[i]);
    free(t->cell);
    free(t->note);
}

/* ---- JSON ---- */

static bool doc_follows; /* something stands before in this object or array */

static void put_string(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    putchar('"');
    while (*s) {
        size_t n = utf8_length(s);
        if (n == 0)
            fputs("\\ufffd", stdout);
        else if (*s == '"' || *s == '\\')
            printf("\\%c", *s);
        else if (*s < 0x20 || *s == 0x7f)
            printf("\\u%04x", *s);
        else
            fwrite(s, 1, n, stdout);
        s += n ? n : 1;
    }
    putchar('"');
}

static void json_before(const char *key)
{
    if (doc_follows)
        putchar(',');
    doc_follows = true;
    if (key) {
        put_string(key);
        putchar(':');
    }
}

void doc_open(const char *key, char bracket)
{
    json_before(key);
    putchar(bracket);
    doc_follows = false;
}

void doc_close(char bracket)
{
    putchar(bracket);
    doc_follows = true;
}

void doc_end(void)
{
    putchar('\n');
    doc_follows = false;
}

void doc_text(const char *key, const char *text)
{
    if (!text) {
        doc_null(key);
        return;
    }
    json_before(key);
    put_string(text);
}

void doc_number(const char *key, uint64_t number)
{
    json_before(key);
    printf("%llu", (unsigned long long)number);
}

/* The program keeps the C locale, so the point is a point. */
void doc_decimal(const char *key, double number)
{
    json_before(key);
    printf("%.6f", number);
}

void doc_bool(const char *key, bool truth)
{
    json_before(key);
    fputs(truth ? "true" : "false", stdout);
}

void doc_null(const char *key)
{
    json_before(key);
    fputs("null", stdout);
}
