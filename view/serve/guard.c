/* SPDX-License-Identifier: MIT */
/* guard.c - judges the texts of a request. */
#include "view/serve/guard.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

bool gpv_guard_host(const char *host)
{
    static const char *const own[] = { "localhost", "127.0.0.1", "[::1]" };
    for (size_t i = 0; host && i < sizeof(own) / sizeof(own[0]); i++) {
        size_t size = strlen(own[i]);
        if (strncasecmp(host, own[i], size) != 0)
            continue;
        const char *port = host + size + (host[size] == ':');
        size_t digits = strspn(port, "0123456789");
        if (host[size] == 0 || (host[size] == ':' && digits >= 1 && digits <= 5 && !port[digits]))
            return true;
    }
    return false;
}

bool gpv_guard_origin(const char *origin, const char *host)
{
    static const char scheme[] = "http://";
    const size_t size = sizeof(scheme) - 1;
    if (!origin)
        return true;
    return host && strncmp(origin, scheme, size) == 0 && strcasecmp(origin + size, host) == 0;
}

bool gpv_guard_token(const char *authorization, const char token[GPV_TOKEN + 1])
{
    static const char scheme[] = "Bearer ";
    const size_t size = sizeof(scheme) - 1;
    unsigned char differs = 0;
    if (!authorization || strlen(authorization) != size + GPV_TOKEN ||
        strncasecmp(authorization, scheme, size) != 0)
        return false;
    for (size_t i = 0; i < GPV_TOKEN; i++)
        differs |= (unsigned char)(authorization[size + i] ^ token[i]);
    return differs == 0;
}
