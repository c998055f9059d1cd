/* SPDX-License-Identifier: MIT */
/* stamp.c - finds the files that a command names, and notes their state. */
#include "queue/files/stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "queue/files/files.h"

/* Bytes that divide words in a line of a shell. */
#define DIVIDERS " \t\r\n'\"`;&|<>()"

/* ---- Words ---- */

/* Without `text` it counts. */
struct words {
    char **word, *text;
    size_t n, bytes;
};

static bool has_control(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return true;
    return false;
}

static void add_word(struct words *w, const char *text, size_t size)
{
    if (size == 0 || size >= GPQ_STAMP_NAME || *text == '-' || w->n == GPQ_STAMP_WORDS ||
        has_control(text, size))
        return;
    if (w->text) {
        w->word[w->n] = memcpy(w->text + w->bytes, text, size);
        w->text[w->bytes + size] = '\0';
    }
    w->n++;
    w->bytes += size + 1;
}

/* The word, and its part behind the first '='. */
static void add_both(struct words *w, const char *text, size_t size)
{
    const char *equals = memchr(text, '=', size);
    add_word(w, text, size);
    if (equals)
        add_word(w, equals + 1, (size_t)(text + size - (equals + 1)));
}

/* Whether the line writes the file at `at`: > NAME, >> NAME, >| NAME. */
static bool is_output(const char *text, const char *at)
{
    while (at > text && strchr(" \t'\"", at[-1]))
        at--;
    if (at > text && strchr("|&", at[-1]))
        at--;
    return at > text && at[-1] == '>';
}

static void add_argument(struct words *w, const char *text)
{
    size_t size = strlen(text), first = strcspn(text, DIVIDERS);
    add_both(w, text, size);
    if (first == size)
        return;
    for (const char *at = text; *at && w->n < GPQ_STAMP_WORDS;) {
        size_t n = strcspn(at, DIVIDERS);
        if (n != 0 && !is_output(text, at))
            add_both(w, at, n);
        at += n + (at[n] != '\0');
    }
}

/* "-c", "-lc": the next argument is a line. */
static bool takes_line(const char *option)
{
    size_t n = option ? strlen(option) : 0;
    return n >= 2 && option[0] == '-' && option[1] != '-' && option[n - 1] == 'c';
}

static void add_all(struct words *w, char *const *argv)
{
    if (*argv && strchr(*argv, '/') && !takes_line(argv[1]))
        add_word(w, *argv, strlen(*argv));
    for (argv += *argv != NULL; *argv; argv++)
        add_argument(w, *argv);
}

char **gpq_stamp_words(char *const *argv)
{
    struct words count = { 0 };
    add_all(&count, argv);
    char **ret = malloc((count.n + 1) * sizeof(*ret) + count.bytes);
    if (!ret)
        return NULL;
    struct words w = { .word = ret, .text = (char *)(ret + count.n + 1) };
    add_all(&w, argv);
    ret[w.n] = NULL;
    return ret;
}

/* ---- Stamps ---- */

/* Calls of another file system may take long, and none of them opens a file. */
static bool is_file(const char *name, const char *cwd, struct stat *ret)
{
    char path[GPQ_PATH];
    if (*name != '/' && gpq_path(path, "%s/%s", cwd, name) < 0)
        return false;
    return stat(*name == '/' ? name : path, ret) == 0 && S_ISREG(ret->st_mode);
}

static bool is_among(const char *name, char *const *words, char *const *end)
{
    for (; words < end; words++)
        if (!strcmp(*words, name))
            return true;
    return false;
}

/* Appends the line of a file.  False: it has no room. */
static bool append(char *stamp, size_t *used, const char *name, const struct stat *st)
{
    size_t room = GPQ_STAMP_MOST - *used;
    int n = snprintf(stamp + *used, room + 1, "%lld %" PRId64 " %s\n", (long long)st->st_size,
                     (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec, name);
    if (n < 0 || (size_t)n > room) {
        stamp[*used] = '\0';
        return false;
    }
    *used += (size_t)n;
    return true;
}

char *gpq_stamp_make(char *const *words, const char *cwd)
{
    size_t used = strlen(GPQ_STAMP_NONE);
    char *stamp = malloc(GPQ_STAMP_MOST + 1), *shorter;
    struct stat st;
    unsigned files = 0;
    if (!stamp)
        return NULL;
    memcpy(stamp, GPQ_STAMP_NONE, used + 1);
    for (char *const *at = words; *at && files < GPQ_STAMP_FILES; at++) {
        if (is_among(*at, words, at) || !is_file(*at, cwd, &st))
            continue;
        if (!append(stamp, &used, *at, &st))
            break;
        files++;
    }
    shorter = realloc(stamp, used + 1);
    return shorter ? shorter : stamp;
}

/* ---- Two stamps ---- */

/* A line of a stamp: its state and its name. */
struct line {
    const char *text, *name;
    size_t size, name_size;
};

/* False: there is no further line of a file. */
static bool next_line(struct gpq_bytes stamp, size_t *at, struct line *ret)
{
    const char *text = stamp.data;
    while (*at < stamp.size) {
        const char *from = text + *at;
        const char *end = memchr(from, '\n', stamp.size - *at);
        size_t size = end ? (size_t)(end - from) : stamp.size - *at;
        *at += size + 1;
        const char *first = memchr(from, ' ', size);
        const char *second =
            first ? memchr(first + 1, ' ', (size_t)(from + size - (first + 1))) : NULL;
        if (!second)
            continue;
        *ret = (struct line){ from, second + 1, size, (size_t)(from + size - (second + 1)) };
        return true;
    }
    return false;
}

static bool has_line(struct gpq_bytes stamp, const struct line *wanted, bool by_name)
{
    struct line l;
    for (size_t at = 0; next_line(stamp, &at, &l);)
        if (by_name ? l.name_size == wanted->name_size && !memcmp(l.name, wanted->name, l.name_size)
                    : l.size == wanted->size && !memcmp(l.text, wanted->text, l.size))
            return true;
    return false;
}

static void copy_name(const struct line *l, char ret[GPQ_STAMP_NAME])
{
    size_t n = l->name_size < GPQ_STAMP_NAME ? l->name_size : GPQ_STAMP_NAME - 1;
    memcpy(ret, l->name, n);
    ret[n] = '\0';
}

bool gpq_stamp_differs(struct gpq_bytes before, struct gpq_bytes after,
                       char ret_name[GPQ_STAMP_NAME])
{
    struct line l;
    if (before.size == after.size &&
        (after.size == 0 || !memcmp(before.data, after.data, after.size)))
        return false;
    if (!ret_name)
        return true;
    ret_name[0] = '\0';
    for (size_t at = 0; next_line(after, &at, &l);)
        if (!has_line(before, &l, false)) {
            copy_name(&l, ret_name);
            return true;
        }
    for (size_t at = 0; next_line(before, &at, &l);)
        if (!has_line(after, &l, true)) {
            copy_name(&l, ret_name);
            return true;
        }
    return true;
}
