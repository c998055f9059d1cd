/* SPDX-License-Identifier: MIT */
/*
 * guard.h - which requests are answered: three texts of a request are judged, of any bytes.
 *
 * A page of a foreign site can make a browser send requests to this machine.  It cannot read the
 * replies, unless the site's own name leads here (DNS rebinding): then Host has that name.
 */
#ifndef GPV_GUARD_H
#define GPV_GUARD_H

#include <stdbool.h>

enum { GPV_TOKEN = 32 }; /* digits of 128 bits */

/*
 * Whether Host is localhost, 127.0.0.1 or [::1], with or without a port.  The port is not compared:
 * ssh -L has another one than this side, and no foreign name has any of the three.  NULL, a request
 * without Host, is refused over a socket, too: every browser and curl send one.
 */
bool gpv_guard_host(const char *host);

/* Whether a request comes from a page of this server: Origin, which a browser adds to requests of
 * foreign pages, is NULL or "http://" and Host. */
bool gpv_guard_origin(const char *origin, const char *host);

/* Whether Authorization is "Bearer " and the token, compared in constant time. */
bool gpv_guard_token(const char *authorization, const char token[GPV_TOKEN + 1]);

#endif
