/* SPDX-License-Identifier: MIT */
/* guard.c - which texts of a request are those of this machine, this page and this token. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

#include "view/serve/guard.h"

T_CASE(hosts_of_this_machine)
{
    static const char *const own[] = { "localhost",   "LocalHost",       "localhost:8080",
                                       "127.0.0.1",   "127.0.0.1:1",     "[::1]",
                                       "[::1]:65535", "localhost:00080", "localhost:0" };
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        T_CHECK(gpv_guard_host(own[i]));
}

T_CASE(foreign_hosts)
{
    static const char *const foreign[] = {
        "",
        "evil.example",
        "localhost.evil.example",
        "localhostx",
        "localhost:",
        "localhost:x",
        "localhost:1x",
        "localhost:123456",
        "localhost: 1",
        " localhost",
        "localhost ",
        "localhost.",
        "localhost:80:80",
        "127.0.0.2",
        "127.0.0.10",
        "127.1",
        "2130706433",
        "0.0.0.0",
        "::1",
        "[::1",
        "[::1]]",
        "[::2]",
        "[::1]8080",
        "a@localhost",
        "localhost@a",
        "localhost/",
        "localhost\r\n",
        "local\xc4\xb1host",
    };
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        T_CHECK(!gpv_guard_host(foreign[i]));
    T_CHECK(!gpv_guard_host(NULL));
}

T_CASE(pages_of_this_server)
{
    T_CHECK(gpv_guard_origin(NULL, "localhost"));
    T_CHECK(gpv_guard_origin(NULL, NULL));
    T_CHECK(gpv_guard_origin("http://localhost:8080", "localhost:8080"));
    T_CHECK(!gpv_guard_origin("http://localhost:8081", "localhost:8080"));
    T_CHECK(!gpv_guard_origin("http://localhost", "localhost:8080"));
    T_CHECK(!gpv_guard_origin("https://localhost", "localhost"));
    T_CHECK(!gpv_guard_origin("http://evil.example", "localhost"));
    T_CHECK(!gpv_guard_origin("null", "localhost"));
    T_CHECK(!gpv_guard_origin("", "localhost"));
    T_CHECK(!gpv_guard_origin("http://", NULL));
}

T_CASE(one_token)
{
    static const char token[] = "0123456789abcdef0123456789abcdef";
    char text[80];
    T_CHECK(gpv_guard_token("Bearer 0123456789abcdef0123456789abcdef", token));
    T_CHECK(gpv_guard_token("bearer 0123456789abcdef0123456789abcdef", token));
    for (int i = 0; i < GPV_TOKEN; i++) {
        snprintf(text, sizeof(text), "Bearer %s", token);
        text[7 + i] ^= 1;
        T_CHECK(!gpv_guard_token(text, token));
    }
    T_CHECK(!gpv_guard_token(NULL, token));
    T_CHECK(!gpv_guard_token("", token));
    T_CHECK(!gpv_guard_token(token, token));
    T_CHECK(!gpv_guard_token("Bearer ", token));
    T_CHECK(!gpv_guard_token("Bearer 0123456789abcdef0123456789abcde", token));
    T_CHECK(!gpv_guard_token("Bearer 0123456789abcdef0123456789abcdef0", token));
    T_CHECK(!gpv_guard_token("Bearer 0123456789ABCDEF0123456789ABCDEF", token));
    T_CHECK(!gpv_guard_token("Basic  0123456789abcdef0123456789abcdef", token));
}
