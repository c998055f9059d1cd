/* SPDX-License-Identifier: MIT */
/* answer.c - judges requests, and replies. */
#include "view/serve/answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "view/metrics/metrics.h"
#include "view/serve/guard.h"
#include "view/serve/page.h"

/* ---- Replies ---- */

/* What browsers may do with a reply: show it, and nothing else. */
static const char *const headers[][2] = {
    { "X-Content-Type-Options", "nosniff" },
    { "Referrer-Policy", "no-referrer" },
    { "Cache-Control", "no-store" },
    { "Cross-Origin-Resource-Policy", "same-origin" },
    { "Cross-Origin-Opener-Policy", "same-origin" },
};

static enum MHD_Result send_reply(struct MHD_Connection *connection, unsigned status,
                                  const char *type, struct MHD_Response *response)
{
    char policy[GPV_POLICY];
    bool whole = response != NULL;
    if (!response)
        return MHD_NO;
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        whole = whole && MHD_add_response_header(response, headers[i][0], headers[i][1]) == MHD_YES;
    whole = whole && MHD_add_response_header(response, "Content-Type", type) == MHD_YES &&
            MHD_add_response_header(response, "Content-Security-Policy", gpv_page_policy(policy)) ==
                MHD_YES;
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        whole = whole && MHD_add_response_header(response, "Allow", "GET") == MHD_YES;
    if (status == MHD_HTTP_UNAUTHORIZED)
        whole = whole && MHD_add_response_header(response, "WWW-Authenticate", "Bearer") == MHD_YES;
    enum MHD_Result code = whole ? MHD_queue_response(connection, status, response) : MHD_NO;
    MHD_destroy_response(response);
    return code;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *text)
{
    return send_reply(connection, status, "text/plain; charset=utf-8",
                      MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                                      MHD_RESPMEM_PERSISTENT));
}

/* ---- What is served ---- */

typedef void (*write_fn)(struct gpv_serve *s, FILE *f);

static void write_page(struct gpv_serve *s, FILE *f)
{
    /* A browser sends no token with its first request: then the page has no state. */
    gpv_page_write(s->feed.newest.time != 0 && !*s->feed.token ? &s->feed.newest : NULL,
                   *s->feed.token != 0, f);
}

static void write_data(struct gpv_serve *s, FILE *f)
{
    gpv_snapshot_write(&s->feed.newest, f);
    fputc('\n', f);
}

static void write_metrics(struct gpv_serve *s, FILE *f)
{
    gpv_metrics_write(&s->feed.newest, f);
}

static const struct path {
    const char *path, *type;
    write_fn write; /* NULL: the event stream */
    bool is_page;   /* it is served without a token and without a snapshot */
} paths[] = {
    { "/", "text/html; charset=utf-8", write_page, true },
    { "/data", "application/json", write_data, false },
    { "/events", "text/event-stream", NULL, false },
    { "/metrics", "application/openmetrics-text; version=1.0.0; charset=utf-8", write_metrics,
      false },
};

static enum MHD_Result serve_text(struct gpv_serve *s, struct MHD_Connection *connection,
                                  const struct path *p)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return MHD_NO;
    p->write(s, f);
    bool failed = ferror(f);
    if (fclose(f) != 0 || failed) {
        free(text);
        return MHD_NO;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
    if (!response)
        free(text);
    return send_reply(connection, MHD_HTTP_OK, p->type, response);
}

static enum MHD_Result serve(struct gpv_serve *s, struct MHD_Connection *connection,
                             const struct path *p)
{
    if (p->write)
        return serve_text(s, connection, p);
    struct MHD_Response *response = gpv_readers_add(&s->readers, connection);
    if (!response)
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                      "16 pages are open already: close one of them\n");
    return send_reply(connection, MHD_HTTP_OK, p->type, response);
}

/* ---- Requests ---- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result count_host(void *user, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    unsigned *count = user;
    (void)kind, (void)value;
    *count += strcasecmp(name, "Host") == 0;
    return MHD_YES;
}

static unsigned hosts(struct MHD_Connection *connection)
{
    unsigned count = 0;
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, count_host, &count);
    return count;
}

enum MHD_Result gpv_answer(void *user, struct MHD_Connection *connection, const char *url,
                           const char *method, const char *version, const char *upload,
                           size_t *upload_size, void **state)
{
    struct gpv_serve *s = user;
    const char *host = header(connection, "Host");
    const struct path *p = paths;
    const size_t n = sizeof(paths) / sizeof(paths[0]);
    (void)version, (void)upload, (void)upload_size, (void)state;

    if (hosts(connection) > 1) /* RFC 9112, 3.2: a proxy may have judged the other one */
        return refuse(connection, MHD_HTTP_BAD_REQUEST, "the request has more than one Host\n");
    if (!gpv_guard_host(host) || !gpv_guard_origin(header(connection, "Origin"), host))
        return refuse(connection, MHD_HTTP_FORBIDDEN,
                      "Host is not localhost, 127.0.0.1 or [::1], or Origin is another page\n");
    if (strcmp(method, "GET") != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "nothing can be changed here\n");
    while (p < paths + n && strcmp(p->path, url) != 0)
        p++;
    if (p == paths + n)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "there are /, /data, /events and /metrics\n");
    if (*s->feed.token && !p->is_page &&
        !gpv_guard_token(header(connection, "Authorization"), s->feed.token))
        return refuse(connection, MHD_HTTP_UNAUTHORIZED,
                      "Authorization is not Bearer and the token of the URL\n");
    if (s->feed.newest.time == 0 && !p->is_page && p->write)
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "there is no snapshot yet\n");
    return serve(s, connection, p);
}
