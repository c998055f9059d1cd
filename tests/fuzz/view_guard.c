/* SPDX-License-Identifier: MIT */
/*
 * view_guard.c - any bytes as Host, Origin and Authorization of a request to the live page.
 *
 * A Host that is accepted is one of the three names of this machine, with at most a port behind it;
 * an Origin is that of the Host; the token is the token.
 */
#include "fuzz.h"

#include <strings.h>

#include "view/serve/guard.h"

static const char token[] = "0123456789abcdef0123456789abcdef";

/* The name without ":" and digits at its end. */
static void check_host(const char *host)
{
    char name[16] = "";
    size_t size = strlen(host), digits = 0;
    if (!gpv_guard_host(host))
        return;
    while (digits < size && host[size - 1 - digits] >= '0' && host[size - 1 - digits] <= '9')
        digits++;
    if (digits > 0 && digits < size && host[size - 1 - digits] == ':')
        size -= digits + 1;
    FUZZ_CHECK(digits <= 5 && size < sizeof(name));
    memcpy(name, host, size);
    FUZZ_CHECK(!strcasecmp(name, "localhost") || !strcmp(name, "127.0.0.1") ||
               !strcmp(name, "[::1]"));
}

static void check_origin(const char *origin, const char *host)
{
    if (gpv_guard_origin(origin, host))
        FUZZ_CHECK(!strncmp(origin, "http://", 7) && !strcasecmp(origin + 7, host));
}

static void check_token(const char *authorization)
{
    if (gpv_guard_token(authorization, token))
        FUZZ_CHECK(!strncasecmp(authorization, "Bearer ", 7) && !strcmp(authorization + 7, token));
}

/* Texts with a NUL between them; each stands for each of the three. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 2);
    FUZZ_CHECK(copy);
    if (size)
        memcpy(copy, data, size);
    copy[size] = copy[size + 1] = 0;
    const char *second = copy + strlen(copy) + 1;
    check_host(copy);
    check_host(second);
    check_origin(copy, second);
    check_token(copy);
    free(copy);
    return 0;
}
