/* SPDX-License-Identifier: MIT */
/*
 * recordings.c - files of records that earlier versions wrote are read by this one.  [V9]
 *
 * The files of recordings/ stay as they are.  nights.py made the first of them; a version that
 * changes the lines adds files, and later.lines stands for lines of a version to come.
 */
#include "harness.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/line.h"

enum { LATER_UNKNOWN = 5 }; /* lines of later.lines */

struct file {
    char *text;
    size_t size;
};

static struct file read_file(const char *name)
{
    struct file f = { NULL, 0 };
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s/%s", T_RECORDINGS, name);
    FILE *in = fopen(path, "re");
    FILE *out = open_memstream(&f.text, &f.size);
    T_CHECK(in && out);
    for (int c; (c = getc(in)) != EOF;)
        (void)putc(c, out);
    (void)fclose(in);
    (void)fclose(out);
    return f;
}

/* How many lines of a kind a text has. */
static size_t lines_of(const struct file *f, const char *kind)
{
    size_t n = 0;

    for (const char *at = f->text; at < f->text + f->size; at = strchr(at, '\n') + 1)
        n += strncmp(at, kind, strlen(kind)) == 0 && at[strlen(kind)] == '\t';
    return n;
}

static struct gpv_night *night_of(const struct file *f)
{
    struct gpv_night *n = gpv_night_new();

    T_CHECK(n);
    T_EQ(gpv_lines_read(n, f->text, f->size), 0);
    T_EQ(gpv_night_end(n, 0), 0);
    return n;
}

static void check_counts(const struct gpv_night *n, const struct file *f)
{
    T_EQ(n->attempts.n, lines_of(f, "attempt"));
    T_EQ(n->tenancies.n, lines_of(f, "tenancy"));
    T_EQ(n->outs.n, lines_of(f, "out"));
    T_EQ(n->reasons.n, lines_of(f, "reason"));
    T_EQ(n->lives.n, lines_of(f, "life"));
    T_EQ(n->lefts.n, lines_of(f, "left"));
    T_EQ(n->batches.n, lines_of(f, "batch"));
    T_EQ(n->shapes.n >= lines_of(f, "shape"), 1);
    T_EQ(n->gpus.n >= lines_of(f, "gpu"), 1);
}

/* Every line is a row; written by this version, all rows are there again. */
static void check_recording(const char *name)
{
    struct file f = read_file(name), again = { NULL, 0 };
    struct gpv_night *n = night_of(&f);
    struct gpv_lines l = { 0 };

    printf("%s\n", name);
    T_EQ(n->unknown, strcmp(name, "later.lines") == 0 ? LATER_UNKNOWN : 0);
    check_counts(n, &f);
    T_CHECK(gpv_night_write(n, &l));
    T_CHECK(again.text = strndup(l.text, l.size));
    again.size = l.size;
    gpv_night_free(n);
    n = night_of(&again);
    T_EQ(n->unknown, 0);
    check_counts(n, &f);
    gpv_night_free(n);
    gpv_lines_free(&l);
    free(again.text);
    free(f.text);
}

T_CASE(all)
{
    DIR *dir = opendir(T_RECORDINGS);
    size_t n = 0;

    T_CHECK(dir);
    for (struct dirent *e; (e = readdir(dir));)
        if (e->d_name[0] != '.')
            check_recording(e->d_name), n++;
    (void)closedir(dir);
    T_CMP(n, >=, 21);
}

/* What is known of a line of a later version is there. */
T_CASE(later)
{
    struct file f = read_file("later.lines");
    struct gpv_night *n = night_of(&f);

    T_CMP(n->attempts.n, >, 0);
    T_CHECK(strcmp(gpv_text(n, n->host), "box") == 0);
    T_CHECK(strcmp(gpv_text(n, n->gpus.row[0].name), "gpu:0") == 0);
    T_EQ(n->gpus.row[0].parent, 0);
    T_EQ(n->to - n->from, INT64_C(640) * 1000000000);
    gpv_night_free(n);
    free(f.text);
}

/* Whether a text has the form of UTF-8, without overlong forms and surrogates. */
static bool is_utf8(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != 0;) {
        size_t n = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;

        if (n == 0 || *at > 0xf4 || (*at == 0xed && at[1] > 0x9f) || (*at == 0xe0 && at[1] < 0xa0))
            return false;
        for (size_t i = 1; i < n; i++)
            if ((at[i] & 0xc0) != 0x80)
                return false;
        at += n;
    }
    return true;
}

T_CASE(hostile)
{
    struct file f = read_file("hostile.lines");
    struct gpv_night *n = night_of(&f);
    size_t mended = 0;

    for (size_t i = 0; i < n->attempts.n; i++) {
        const char *text = gpv_text(n, n->attempts.row[i].text);

        T_CHECK(is_utf8(text) && is_utf8(gpv_name_of(n, n->attempts.row[i].task)));
        mended += strstr(text, "\xef\xbf\xbd") != NULL;
    }
    T_EQ(mended, 12); /* two attempts for each text of BROKEN in nights.py */
    gpv_night_free(n);
    free(f.text);
}

/* More GPUs, shapes or sets than a night has room for: their lines are left out, and counted. */
T_CASE(too_many)
{
    enum { LINES = 70000, ROOM = 65535 };
    struct file f = { NULL, 0 };
    FILE *out = open_memstream(&f.text, &f.size);

    T_CHECK(out);
    for (int i = 1; i <= LINES; i++)
        (void)fprintf(out, "shape\t%d\tc\t1\t\n", i);
    for (int i = 0; i < 600; i++)
        (void)fprintf(out, "gpu\tgpu:%d\t\t%d\t\t\t\t\n", i, i);
    for (int i = 0; i < LINES; i++)
        (void)fprintf(out, "attempt\t1.%d\t1\t1\tgpu:%d,gpu:%d\t\t5\t6\tok\t0\t\t\n", i + 1,
                      i % 200, 200 + i / 200);
    (void)fclose(out);
    struct gpv_night *n = night_of(&f);
    T_EQ(n->shapes.n, ROOM);
    T_EQ(n->attempts.n + n->unknown, LINES + LINES - ROOM);
    T_CMP(n->attempts.n, >=, ROOM - 1); /* the empty set is there, too */
    T_CMP(n->attempts.n, <, LINES);
    gpv_night_free(n);
    free(f.text);
}

/* Where names are limited, the first attempts and all bad ends bring theirs. */
T_CASE(names)
{
    enum { FIRST = 10 };
    struct file f = read_file("retries.lines");
    struct gpv_night *all = night_of(&f), *few = gpv_night_new();
    size_t named = 0, unnamed = 0;

    T_CHECK(few);
    gpv_night_limit_names(few, FIRST);
    T_EQ(gpv_lines_read(few, f.text, f.size), 0);
    T_EQ(gpv_night_end(few, 0), 0);
    for (size_t i = 0; i < few->attempts.n; i++) {
        const struct gpv_attempt *a = &few->attempts.row[i];
        const char *name = gpv_name_of(few, a->task);
        if (gpv_is_bad(a->outcome))
            T_CHECK(strcmp(name, gpv_name_of(all, a->task)) == 0);
        named += *name && a->outcome == GPV_OK;
        unnamed += !*name && *gpv_name_of(all, a->task);
    }
    T_CMP(named, >, 0);
    T_CMP(unnamed, >, FIRST);
    T_CHECK(!gpv_wants_name(few, GPV_OK) && gpv_wants_name(few, GPV_ERROR));
    gpv_night_free(few);
    gpv_night_free(all);
    free(f.text);
}

/* Time left: an empty field is unknown; the least is not unknown where the most is known. */
T_CASE(time_left)
{
    static const char lines[] = "left\t7\t90\t5\t8\nleft\t7\t80\t\t\nleft\t3\t90\t5\t\n"
                                "left\t7\t90\t5\t4\nleft\t7\t90\t\t4\nleft\t0\t90\t5\t8\n"
                                "left\t7\t\t5\t8\nleft\t7\t90\t-1\t8\nleft\n";
    static const char written[] = "\nleft\t7\t80\t\t\nleft\t3\t90\t5\t\nleft\t7\t90\t5\t8\n";
    struct file f = { strdup(lines), sizeof(lines) - 1 };
    struct gpv_night *n = night_of(&f);
    static const struct gpv_left_row rows[] = { { 80, -1, -1, 7 },
                                                { 90, 5, -1, 3 },
                                                { 90, 5, 8, 7 } };
    struct gpv_lines l = { 0 };

    T_EQ(n->unknown, 6);
    T_EQ(n->lefts.n, 3);
    for (size_t i = 0; i < n->lefts.n; i++) {
        const struct gpv_left_row *row = &n->lefts.row[i];
        T_EQ(row->time, rows[i].time);
        T_EQ(row->least, rows[i].least);
        T_EQ(row->most, rows[i].most);
        T_EQ(row->batch, rows[i].batch);
    }
    T_EQ(n->to, 90);
    T_CHECK(gpv_night_write(n, &l));
    T_CHECK(memmem(l.text, l.size, written, strlen(written)));
    gpv_lines_free(&l);
    gpv_night_free(n);
    free(f.text);
}
