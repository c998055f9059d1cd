/* SPDX-License-Identifier: MIT */
#include "wire/hello.h"

#include <stdio.h>
#include <string.h>

#include "gpudispatch/version.h"

void gpi_call_write(char *to, const struct gpi_call *c)
{
    snprintf(to, GPI_CALL_SIZE, "%u %d %d %d %u %d %d %d %d %d %d", c->protocol, c->pid, c->hello,
             c->keeper, c->incarnation, c->page, c->input, c->result, c->orders, c->looks,
             c->setup);
}

/* One number and the space or the end behind it. */
static bool number(const char **at, int64_t max, int64_t *ret)
{
    const char *p = *at;
    int64_t n = 0;

    while (*p >= '0' && *p <= '9' && n <= max)
        n = n * 10 + (*p++ - '0');
    if (p == *at || n > max || (*p && *p != ' '))
        return false;
    *at = *p ? p + 1 : p;
    *ret = n;
    return true;
}

bool gpi_call_read(struct gpi_call *ret, const char *text)
{
    enum {
        PROTOCOL,
        PID,
        HELLO,
        KEEPER,
        INCARNATION,
        PAGE,
        INPUT,
        RESULT,
        ORDERS,
        LOOKS,
        SETUP,
        NUMBERS
    };
    int64_t n[NUMBERS] = { 0 };
    const char *at = text;

    for (int i = 0; i < NUMBERS; i++) {
        bool fd = i == HELLO || i >= PAGE;
        if (i > HELLO && n[PROTOCOL] != GPI_PROTOCOL)
            break;
        if (!number(&at, i == PROTOCOL || i == INCARNATION ? UINT32_MAX : INT32_MAX, &n[i]) ||
            (fd && n[i] < 3))
            return false;
    }
    if (n[PROTOCOL] == GPI_PROTOCOL && *at)
        return false;
    *ret = (struct gpi_call){
        .protocol = (uint32_t)n[PROTOCOL],
        .pid = (int32_t)n[PID],
        .hello = (int32_t)n[HELLO],
        .keeper = (int32_t)n[KEEPER],
        .incarnation = (uint32_t)n[INCARNATION],
        .page = (int32_t)n[PAGE],
        .input = (int32_t)n[INPUT],
        .result = (int32_t)n[RESULT],
        .orders = (int32_t)n[ORDERS],
        .looks = (int32_t)n[LOOKS],
        .setup = (int32_t)n[SETUP],
    };
    return true;
}

enum gpi_answer gpi_hello_read(struct gpi_hello *ret, const void *bytes, size_t size)
{
    struct gpi_hello h;

    if (size != sizeof h)
        return GPI_ANSWER_GARBAGE;
    memcpy(&h, bytes, sizeof h);
    if (h.magic != GPI_HELLO_MAGIC || h.answer == GPI_ANSWER_NONE ||
        h.answer >= GPI_ANSWER_GARBAGE || h.step >= GPI_STEPS || h.sys_errno < 0)
        return GPI_ANSWER_GARBAGE;
    if (h.answer == GPI_ANSWER_READY && h.protocol != GPI_PROTOCOL)
        h.answer = GPI_ANSWER_VERSION; /* its gpud_init has not noticed */
    *ret = h;
    return (enum gpi_answer)h.answer;
}

void gpi_hello_other_version(char *to, size_t size, const char *program, uint32_t protocol,
                             uint32_t api)
{
    (void)snprintf(to, size, "%.120s has protocol %u of API %u, expected protocol %u of API %u",
                   program, protocol, api, (unsigned)GPI_PROTOCOL, (unsigned)GPUD_API_NUMBER);
}
