/* SPDX-License-Identifier: MIT */
/* hello.c - the variable and the record by which a program becomes a worker.      [C17] */
#include "harness.h"

#include "wire/hello.h"

#include <stdio.h>
#include <string.h>

T_CASE(call_there_and_back)
{
    const struct gpi_call calls[] = {
        { GPI_PROTOCOL, 1, 3, 1, 1, 3, 3, 3, 3, 3, 3 },
        { GPI_PROTOCOL, INT32_MAX, INT32_MAX, INT32_MAX, UINT32_MAX, INT32_MAX, INT32_MAX,
          INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX },
        { GPI_PROTOCOL, 12345, 701, 12344, 7, 702, 703, 704, 705, 706, 707 },
    };

    for (size_t i = 0; i < T_LENGTH(calls); i++) {
        struct gpi_call back;
        char text[GPI_CALL_SIZE];

        memset(text, 'x', sizeof(text));
        gpi_call_write(text, &calls[i]);
        T_CMP(strnlen(text, sizeof(text)), <, sizeof(text));
        T_CHECK(gpi_call_read(&back, text));
        T_EQ(memcmp(&back, &calls[i], sizeof(back)), 0);
    }
}

T_CASE(no_calls)
{
    static const char *const bad[] = {
        "", " ", "x", "1", "1 2", "1 2 ", "1 2 3", "1 2 3 4 5 6 7 8 9 10",
        "1 2 3 4 5 6 7 8 9 10 11 12",
        "1  2 3 4 5 6 7 8 9 10 11", "1 2 3 4 5 6 7 8 9 10 11x", "-1 2 3", "1 2 2 4 5 6 7 8 9 10 11",
        "1 2 3 4 5 6 7 8 9 10 2",
        "1 2147483648 3 4 5 6 7 8 9 10 11", "4294967296 2 3", "99999999999999999999999999 2 3",
        "1 2 3 4 5 6 7 8 9 10 99999999999",
        "2 1", "2 1 2", "2 1 x",
    };
    struct gpi_call c = { .pid = 7 };

    T_EQ(GPI_PROTOCOL, 1); /* the texts above say so */
    for (size_t i = 0; i < T_LENGTH(bad); i++)
        if (gpi_call_read(&c, bad[i]))
            T_FAIL("\"%s\" is taken", bad[i]);
    T_EQ(c.pid, 7);
}

/* Of another protocol only what never changes is read. */
T_CASE(other_protocols)
{
    struct gpi_call c;

    T_CHECK(gpi_call_read(&c, "2 100 700"));
    T_EQ(c.protocol, 2);
    T_EQ(c.pid, 100);
    T_EQ(c.hello, 700);
    T_CHECK(gpi_call_read(&c, "4294967295 100 700 whatever comes then"));
    T_EQ(c.protocol, UINT32_MAX);
}

T_CASE(hello)
{
    const struct gpi_hello good = {
        GPI_HELLO_MAGIC, GPI_ANSWER_READY, GPI_PROTOCOL, 1, 0, 5, 0, 0
    };
    struct gpi_hello h, out = { .pid = 77 };
    unsigned char bytes[sizeof(h) + 1];

    T_EQ(sizeof(h), 32); /* for ever */
    memcpy(bytes, &good, sizeof(good));
    T_EQ(gpi_hello_read(&h, bytes, sizeof(h)), GPI_ANSWER_READY);
    T_EQ(h.pid, 5);
    for (size_t n = 0; n <= sizeof(bytes); n++)
        if (n != sizeof(h))
            T_EQ(gpi_hello_read(&out, bytes, n), GPI_ANSWER_GARBAGE);
    for (uint32_t a = 0; a < 20; a++) {
        h = good;
        h.answer = a;
        T_EQ(gpi_hello_read(&out, &h, sizeof(h)),
             a > GPI_ANSWER_NONE && a < GPI_ANSWER_GARBAGE ? a : GPI_ANSWER_GARBAGE);
    }
    out.pid = 77;
    h = good;
    h.magic++;
    T_EQ(gpi_hello_read(&out, &h, sizeof(h)), GPI_ANSWER_GARBAGE);
    h = good;
    h.step = GPI_STEPS;
    T_EQ(gpi_hello_read(&out, &h, sizeof(h)), GPI_ANSWER_GARBAGE);
    T_EQ(out.pid, 77);
    h = good;
    h.protocol++; /* it says that it is ready, for something else */
    T_EQ(gpi_hello_read(&out, &h, sizeof(h)), GPI_ANSWER_VERSION);
}
