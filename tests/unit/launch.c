/* SPDX-License-Identifier: MIT */
/* launch.c - how workers are to be started, as bytes and back; bad bytes and bad records. */
#include "harness.h"

#include "wire/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAUNCH(...) (&(struct gpi_launch){ __VA_ARGS__ })
#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void check_list(const char *const *a, const char *const *b)
{
    T_EQ(a != NULL, b != NULL);
    for (; a && *b; a++, b++)
        T_TEXT(*a, *b);
    T_CHECK(!a || !*a);
}

static void check_text(const char *a, const char *b)
{
    T_EQ(a != NULL, b != NULL);
    if (a)
        T_TEXT(a, b);
}

/* There and back; the bytes may change afterwards. */
static void goes_round(const struct gpi_launch *l)
{
    struct gpi_launch back;
    size_t size;
    void *blob;

    T_EQ(gpi_launch_encode(l, &blob, &size), 0);
    T_EQ(gpi_launch_decode(&back, blob, size), 0);
    memset(blob, 'x', size);
    free(blob);
    T_EQ(back.start, l->start);
    T_EQ(back.stdio, l->stdio);
    T_EQ(back.has_program, l->has_program);
    check_text(back.program, l->program);
    check_text(back.plugin, l->plugin);
    check_text(back.cwd, l->cwd);
    check_text(back.stdio_path, l->stdio_path);
    check_list(back.argv, l->argv);
    check_list(back.env, l->env);
    free(back.block);
}

T_CASE(there_and_back)
{
    goes_round(LAUNCH(.start = GPUD_START_FORK));
    goes_round(LAUNCH(.start = GPUD_START_FORK, .stdio = GPUD_STDIO_FILE,
                      .stdio_path = "/tmp/{slot}.log", .cwd = "/", .env = LIST("A=1", "B", "C=")));
    goes_round(LAUNCH(.start = GPUD_START_EXEC, .has_program = 1, .argv = LIST("me")));
    goes_round(LAUNCH(.start = GPUD_START_EXEC, .program = "/bin/python",
                      .argv = LIST("python", "", "x y\n", ""), .env = LIST("P=\n")));
    goes_round(LAUNCH(.start = GPUD_START_FORK, .stdio = GPUD_STDIO_EVENTS));
    goes_round(LAUNCH(.start = GPUD_START_EXEC, .stdio = GPUD_STDIO_DISCARD, .program = "/p",
                      .plugin = "/x.so", .argv = LIST("p", "/x.so"), .cwd = "relative"));
}

/* C15: a record that makes no sense is refused on the way out, and so cannot come in. */
T_CASE(nonsense_is_refused)
{
    static const char *const args[] = { "a", NULL }, *const none[] = { NULL },
                             *const nameless[] = { "A=1", "=2", NULL },
                             *const empty[] = { "", NULL };
    const struct gpi_launch bad[] = {
        { .start = GPUD_START_AUTO },
        { .start = 3 },
        { .start = GPUD_START_FORK, .stdio = 5 },
        { .start = GPUD_START_FORK, .stdio = GPUD_STDIO_FILE },
        { .start = GPUD_START_FORK, .stdio = GPUD_STDIO_FILE, .stdio_path = "" },
        { .start = GPUD_START_FORK, .stdio_path = "/x" },
        { .start = GPUD_START_FORK, .cwd = "" },
        { .start = GPUD_START_FORK, .argv = args },
        { .start = GPUD_START_FORK, .program = "/p" },
        { .start = GPUD_START_FORK, .plugin = "/p" },
        { .start = GPUD_START_FORK, .has_program = 1 },
        { .start = GPUD_START_FORK, .env = nameless },
        { .start = GPUD_START_FORK, .env = empty },
        { .start = GPUD_START_EXEC, .argv = args },
        { .start = GPUD_START_EXEC, .program = "/p" },
        { .start = GPUD_START_EXEC, .program = "/p", .argv = none },
        { .start = GPUD_START_EXEC, .program = "p", .argv = args },
        { .start = GPUD_START_EXEC, .program = "/p", .has_program = 1, .argv = args },
        { .start = GPUD_START_EXEC, .has_program = 2, .argv = args },
    };

    for (size_t i = 0; i < T_LENGTH(bad); i++) {
        void *blob = &blob;
        size_t size = 7;

        if (gpi_launch_encode(&bad[i], &blob, &size) == 0)
            T_FAIL("record %zu is taken", i);
        T_EQ(errno, EINVAL);
        T_CHECK(blob == &blob);
        T_EQ(size, 7);
    }
}

T_CASE(too_long)
{
    const char **list = calloc(GPI_LAUNCH_STRINGS + 2, sizeof(*list));
    char *text = malloc(GPI_LAUNCH_MAX);
    size_t size;
    void *blob;

    T_CHECK(list && text);
    for (uint32_t i = 0; i < GPI_LAUNCH_STRINGS; i++)
        list[i] = "";
    goes_round(LAUNCH(.start = GPUD_START_EXEC, .has_program = 1, .argv = list));
    list[GPI_LAUNCH_STRINGS] = "";
    T_EQ(gpi_launch_encode(LAUNCH(.start = GPUD_START_EXEC, .has_program = 1, .argv = list), &blob,
                           &size),
         -1);
    T_EQ(errno, E2BIG);
    memset(text, 'x', GPI_LAUNCH_MAX - 1);
    text[GPI_LAUNCH_MAX - 1] = '\0';
    T_EQ(gpi_launch_encode(LAUNCH(.start = GPUD_START_EXEC, .has_program = 1, .argv = LIST(text)),
                           &blob, &size),
         -1);
    T_EQ(errno, E2BIG);
    text[GPI_LAUNCH_MAX - 100] = '\0';
    goes_round(LAUNCH(.start = GPUD_START_EXEC, .has_program = 1, .argv = LIST(text)));
    free(list);
    free(text);
}

/* C17: what is cut off, too long or changed in its head is refused; *ret stays as it was. */
T_CASE(bad_bytes)
{
    struct gpi_launch out = { .start = 77 };
    unsigned char *more;
    size_t size;
    void *blob;

    T_EQ(gpi_launch_encode(LAUNCH(.start = GPUD_START_EXEC, .program = "/p", .argv = LIST("p", "q"),
                                  .env = LIST("A=1")),
                           &blob, &size),
         0);
    for (size_t n = 0; n < size; n++) {
        unsigned char *cut = malloc(n + 1); /* exactly as long as it is, for AddressSanitizer */
        T_CHECK(cut);
        memcpy(cut, blob, n);
        T_EQ(gpi_launch_decode(&out, cut, n), -1);
        T_EQ(errno, EBADMSG);
        free(cut);
    }
    more = calloc(1, size + 1);
    T_CHECK(more);
    memcpy(more, blob, size);
    T_EQ(gpi_launch_decode(&out, more, size + 1), -1);
    more[size - 1] = 'x'; /* the last string does not end */
    T_EQ(gpi_launch_decode(&out, more, size), -1);
    for (size_t i = 0; i < 32; i++) { /* each byte of the head counts */
        memcpy(more, blob, size);
        more[i] ^= 0x40;
        T_EQ(gpi_launch_decode(&out, more, size), -1);
        T_EQ(errno, EBADMSG);
    }
    T_EQ(out.start, 77);
    free(more);
    free(blob);
}
