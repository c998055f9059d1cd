/* SPDX-License-Identifier: MIT */
/* stamp.c - the files that a command names, their state, and what has changed of it. */
#include "harness.h"

#include "draw.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/files/stamp.h"

enum { ARGS = 6 };

/* A file of this many bytes, changed at this second. */
static void make(const char *name, size_t size, time_t second)
{
    const struct timespec times[2] = { { 0, UTIME_OMIT }, { second, 7 } };
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    T_CHECK(fd >= 0);
    T_EQ(ftruncate(fd, (off_t)size), 0);
    T_EQ(futimens(fd, times), 0);
    T_EQ(close(fd), 0);
}

static const char *words_of(char *const *argv)
{
    static char text[1024];
    char **words = gpq_stamp_words(argv);

    T_CHECK(words);
    text[0] = 0;
    for (char **w = words; *w; w++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "[%s]", *w);
    free(words);
    return text;
}

static const char *stamp_of(char *const *argv)
{
    static char text[4096];
    char here[GPQ_STAMP_NAME], **words = gpq_stamp_words(argv);
    char *stamp = words && getcwd(here, sizeof(here)) ? gpq_stamp_make(words, here) : NULL;

    T_CHECK(stamp);
    (void)snprintf(text, sizeof(text), "%s", stamp);
    free(stamp);
    free(words);
    return text;
}

T_CASE(words)
{
    static const struct {
        char *argv[ARGS];
        const char *words;
    } commands[] = {
        { { "true" }, "" },
        { { "/bin/true" }, "[/bin/true]" },
        { { "./a", "b" }, "[./a][b]" },
        { { "python", "train.py", "--lr", "1", "" }, "[train.py][1]" },
        { { "python", "--config=c.yaml", "x=y=z" }, "[c.yaml][x=y=z][y=z]" },
        { { "/bin/sh", "-c", "python a.py <in.csv >'out 1'" },
          "[python a.py <in.csv >'out 1'][python][a.py][in.csv][1]" },
        { { "sh", "-c", "a >b >> c>|d 2>&1 <e|f &g> h" },
          "[a >b >> c>|d 2>&1 <e|f &g> h][a][2][e][f][g]" },
        { { "/bin/bash", "-lc", "a" }, "[a]" },
        { { "/bin/tar", "--c", "a" }, "[/bin/tar][a]" },
        { { "sh", "-c", "A=b.txt x --y=z $HOME/{u} `v`|w" },
          "[A=b.txt x --y=z $HOME/{u} `v`|w][b.txt x --y=z $HOME/{u} `v`|w][A=b.txt][b.txt][x][z]"
          "[$HOME/{u}][v][w]" },
        { { "a", "b\nc d" }, "[b][c][d]" },
        { { "a", "-", "--", "=", "-x=/f" }, "[=][/f]" },
        { { NULL }, "" },
    };

    for (size_t i = 0; i < T_LENGTH(commands); i++)
        T_TEXT(words_of(commands[i].argv), commands[i].words);
}

T_CASE(words_have_bounds)
{
    char *long_name = calloc(1, GPQ_STAMP_NAME + 1), *line = calloc(1, 10000);
    char *argv[] = { "sh", "-c", long_name, NULL }, **words;
    size_t n = 0;

    T_CHECK(long_name && line);
    memset(long_name, 'x', GPQ_STAMP_NAME);
    T_TEXT(words_of(argv), "");
    long_name[GPQ_STAMP_NAME - 1] = 0;
    T_EQ(strlen(words_of(argv)), GPQ_STAMP_NAME - 1 + 2 > 1023 ? 1023 : GPQ_STAMP_NAME + 1);
    for (int i = 0; i < 2000; i++)
        strcat(line, "a b ");
    argv[2] = line;
    words = gpq_stamp_words(argv);
    T_CHECK(words);
    while (words[n])
        n++;
    T_EQ(n, GPQ_STAMP_WORDS);
    free(words);
    free(long_name);
    free(line);
}

/* The time does not grow faster than the line. */
T_CASE(a_line_of_blanks_and_quotes)
{
    enum { SIZE = 4 << 20 };
    char *line = malloc(SIZE + 1), *argv[] = { "sh", "-c", line, NULL };

    T_CHECK(line);
    for (size_t i = 0; i < SIZE; i++)
        line[i] = " \"'\t"[i % 4];
    memcpy(line, "cat a", 5);
    memcpy(line + SIZE - 2, " b", 3);
    T_TEXT(words_of(argv), "[cat][a][b]");
    free(line);
}

T_CASE(files_and_their_state)
{
    char *one[] = { "python", "train.py", "data", "no", "train.py", NULL };
    char *line[] = { "/bin/sh", "-c", "cat a <b; cat 'c d' ./a e", NULL };
    char here[512], absolute[600], *path[] = { "x", absolute, NULL };

    make("train.py", 5, 1);
    make("a", 0, 2);
    make("b", 123456, 3);
    make("c d", 1, 3);
    T_EQ(mkdir("data", 0700), 0);
    T_EQ(symlink("b", "e"), 0);
    T_TEXT(stamp_of(one), "stamp=1\n5 1000000007 train.py\n");
    T_TEXT(stamp_of(line), "stamp=1\n0 2000000007 a\n123456 3000000007 b\n0 2000000007 ./a\n"
                           "123456 3000000007 e\n");
    T_CHECK(getcwd(here, sizeof(here)));
    (void)snprintf(absolute, sizeof(absolute), "%s/a", here);
    T_CHECK(strstr(stamp_of(path), absolute));
    T_TEXT(stamp_of((char *[]){ "true", NULL }), GPQ_STAMP_NONE);
}

T_CASE(only_the_first_files)
{
    char *argv[102] = { "x" }, *stamp, **words;
    size_t lines = 0;

    for (int i = 1; i < 101; i++) {
        T_CHECK(asprintf(&argv[i], "f%d", i) > 0);
        make(argv[i], 1, 1);
    }
    words = gpq_stamp_words(argv);
    stamp = words ? gpq_stamp_make(words, ".") : NULL;
    T_CHECK(stamp && strstr(stamp, " f64\n") && !strstr(stamp, " f65\n"));
    for (const char *c = stamp; *c; c++)
        lines += *c == '\n';
    T_EQ(lines, 1 + GPQ_STAMP_FILES);
    free(stamp);
    free(words);
    for (int i = 1; i < 101; i++)
        free(argv[i]);
}

T_CASE(a_stamp_has_its_size)
{
    char folder[201], *argv[70] = { "x" }, **words, *stamp;

    memset(folder, 'd', 200);
    folder[200] = 0;
    T_EQ(mkdir(folder, 0700), 0);
    for (int i = 1; i < 69; i++) { /* a name may pass a folder several times */
        T_CHECK(asprintf(&argv[i], "%s/../%s/../%s/../%s/../%s/%d", folder, folder, folder, folder,
                         folder, i) > 0);
        make(argv[i], 1, 1);
    }
    words = gpq_stamp_words(argv);
    stamp = words ? gpq_stamp_make(words, ".") : NULL;
    T_CHECK(stamp);
    T_CMP(strlen(stamp), <=, GPQ_STAMP_MOST);
    T_CMP(strlen(stamp), >, GPQ_STAMP_MOST - 1100);
    T_EQ(stamp[strlen(stamp) - 1], '\n');
    free(stamp);
    free(words);
    for (int i = 1; i < 69; i++)
        free(argv[i]);
}

T_CASE(the_first_difference)
{
#define A "stamp=1\n1 10 a\n"
    static const struct {
        const char *before, *after, *name; /* NULL: no difference */
    } pairs[] = {
        { "", "", NULL },
        { A, A, NULL },
        { A, "stamp=1\n2 10 a\n", "a" },
        { A, "stamp=1\n1 11 a\n", "a" },
        { A, A "5 5 b c\n", "b c" },
        { A "5 5 b c\n", A, "b c" },
        { A "5 5 b\n", "stamp=1\n", "a" },
        { A "5 5 b\n", A "5 6 b\n", "b" },
        { A "5 5 b\n6 6 c\n", A "6 7 c\n", "c" },
        { "stamp=1\n5 5 b\n1 10 a\n", A "5 5 b\n", "" },
        { "", A, "a" },
        { A, "", "a" },
        { "old", "new", "" },
        { "a  b", "  ", "" },
        { A, "stamp=1\n1 10 a", "" },
    };
    char name[GPQ_STAMP_NAME];

    for (size_t i = 0; i < T_LENGTH(pairs); i++) {
        const struct gpq_bytes before = { pairs[i].before, strlen(pairs[i].before) };
        const struct gpq_bytes after = { pairs[i].after, strlen(pairs[i].after) };
        strcpy(name, "unset");
        T_EQ(gpq_stamp_differs(before, after, NULL), pairs[i].name != NULL);
        T_EQ(gpq_stamp_differs(before, after, name), pairs[i].name != NULL);
        T_TEXT(name, pairs[i].name ? pairs[i].name : "unset");
    }
}

/* A stamp of a client is any text. */
T_CASE(any_bytes)
{
    uint64_t seed = 5;

    for (size_t round = 0; round < t_rounds(300000, 20000); round++) {
        char name[GPQ_STAMP_NAME], *text[2];
        struct gpq_bytes b[2];
        for (int k = 0; k < 2; k++) {
            b[k].size = draw(&seed) % 24;
            text[k] = malloc(b[k].size ? b[k].size : 1); /* exactly as long, for a sanitizer */
            T_CHECK(text[k]);
            for (size_t i = 0; i < b[k].size; i++)
                text[k][i] = " \n1a\0b"[draw(&seed) % 6];
            b[k].data = text[k];
        }
        bool same = b[0].size == b[1].size && (!b[0].size || !memcmp(text[0], text[1], b[0].size));
        T_EQ(gpq_stamp_differs(b[0], b[1], name), !same);
        T_CHECK(same || strnlen(name, 32) < 24);
        free(text[0]);
        free(text[1]);
    }
}
