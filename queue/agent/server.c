/* SPDX-License-Identifier: MIT */
/* server.c - the socket of the agent, its clients, and the requests that wait for a commit. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "queue/agent/client.h"
#include "queue/agent/follow.h"
#include "queue/agent/now.h"
#include "queue/agent/requests.h"
#include "queue/agent/watch.h"
#include "queue/files/fault.h"
#include "queue/files/socket.h"

/* Each of them may wait for its own tasks, beside a person's few. */
enum { CLIENTS = 256, BACKLOG = 128, WATCHERS_OF_CLIENT = 64 };
/* Replies of a client in one turn; more of its requests wait for the next one. */
#define REPLIES_OF_CLIENT ((size_t)1 << 20)

/* A request that waits for the commit, or its reply. */
struct request {
    struct gpq_client *client;
    json_t *json; /* NULL: it was applied */
    json_t *id;
    char *reply;
    struct gpq_wish wish;
    struct request *next;
};

struct fifo {
    struct request *first, **end;
};

struct gpq_server {
    struct gpq_watched listener;
    char path[GPQ_SOCKET_PATH + 1];
    dev_t device; /* of the socket's name */
    ino_t inode;
    bool listens; /* the listener is in the epoll set for input */
    int spare;    /* given up to refuse a client when no descriptor is left */
    struct gpq_client *clients;
    unsigned n_clients;
    bool over; /* a client may be freed */
    struct fifo waiting, applied;
    struct gpq_watcher *watchers;
    struct gpq_attached *attached;
    bool left; /* the connection of some of them has closed */
};

static void push(struct fifo *f, struct request *r)
{
    r->next = NULL;
    *f->end = r;
    f->end = &r->next;
}

static struct request *pop(struct fifo *f)
{
    struct request *r = f->first;
    f->first = r->next;
    if (!f->first)
        f->end = &f->first;
    return r;
}

static void free_request(struct request *r)
{
    r->client->waiting--;
    json_decref(r->json);
    json_decref(r->id);
    free(r->reply);
    gpq_wish_free(&r->wish);
    free(r);
}

/* ---- The socket ---- */

static int fail(struct gpq_agent *a, struct gpq_error *e, const char *what)
{
    int number = errno;
    return gpq_fail(e, GPQ_EUNUSABLE, "socket %.160s: %s: %s", a->server->path, what,
                    strerror(number));
}

/* The agent has the lock of the state directory, so that a socket that is there is nobody's. */
static int make_socket(struct gpq_agent *a, struct gpq_error *e)
{
    struct gpq_server *s = a->server;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct stat st;
    memcpy(address.sun_path, s->path, strlen(s->path) + 1);
    s->listener.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listener.fd < 0)
        return fail(a, e, "cannot be made");
    if (lstat(s->path, &st) == 0 && S_ISSOCK(st.st_mode) && unlink(s->path) != 0)
        return fail(a, e, "cannot be removed");
    /* The mode before the name: nobody else can connect in between (unix(7)). */
    if (fchmod(s->listener.fd, 0600) != 0 ||
        bind(s->listener.fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        int code = fail(a, e, "cannot be bound");
        s->path[0] = '\0'; /* it is not ours */
        return code;
    }
    if (lstat(s->path, &st) != 0 || listen(s->listener.fd, BACKLOG) != 0)
        return fail(a, e, "cannot listen");
    s->device = st.st_dev;
    s->inode = st.st_ino;
    return 0;
}

/* A client with another XDG_RUNTIME_DIR does not find it then. */
static void save_path(struct gpq_agent *a)
{
    struct gpq_error e;
    if (gpq_socket_save(a->state, a->server->path, &e) < 0)
        gpq_log("the path of the socket is not saved: %s", e.text);
}

/* If the state directory was replaced, the name is that of another agent's socket. */
static void remove_socket(struct gpq_agent *a)
{
    struct gpq_server *s = a->server;
    struct stat st;
    if (lstat(s->path, &st) != 0 || st.st_dev != s->device || st.st_ino != s->inode)
        return;
    (void)unlink(s->path);
    gpq_socket_forget(a->state, s->path);
}

int gpq_server_open(struct gpq_agent *a, struct gpq_error *e)
{
    struct gpq_places places;
    struct gpq_server *s = calloc(1, sizeof(*s));
    if (!s)
        return gpq_fail(e, GPQ_ENOMEM, "no memory for the socket");
    a->server = s;
    s->listener = (struct gpq_watched){ GPQ_SOURCE_LISTENER, -1, s };
    s->waiting.end = &s->waiting.first;
    s->applied.end = &s->applied.first;
    s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    gpq_places_read(NULL, &places);
    int code = gpq_socket_find(&places, a->state, s->path, e);
    if (code == 0)
        code = gpq_socket_make_directory(&places, e);
    if (code < 0)
        s->path[0] = '\0';
    if (code == 0)
        code = make_socket(a, e);
    if (code == 0 && gpq_watch(a, &s->listener, EPOLLIN) != 0)
        code = fail(a, e, "cannot be watched");
    s->listens = code == 0;
    if (code < 0)
        gpq_server_close(a);
    else
        save_path(a);
    return code;
}

void gpq_server_close(struct gpq_agent *a)
{
    struct gpq_server *s = a->server;
    if (!s)
        return;
    for (struct gpq_watcher *w; (w = s->watchers);) {
        s->watchers = w->next;
        gpq_watcher_free(w);
    }
    for (struct gpq_attached *one; (one = s->attached);) { /* the next agent ends them */
        s->attached = one->next;
        free(one);
    }
    while (s->waiting.first)
        free_request(pop(&s->waiting));
    while (s->applied.first)
        free_request(pop(&s->applied));
    for (struct gpq_client *c; (c = s->clients);) {
        s->clients = c->next;
        gpq_client_gone(a, c);
        gpq_client_free(c);
    }
    if (s->listens)
        gpq_unwatch(a, &s->listener);
    if (s->listener.fd >= 0) {
        if (s->path[0])
            remove_socket(a);
        (void)close(s->listener.fd);
    }
    if (s->spare >= 0)
        (void)close(s->spare);
    free(s);
    a->server = NULL;
}

/* ---- Clients ---- */

/* Q12: whoever may connect may run commands as this user.  The directory keeps other users out, and
 * root is one of them. */
static bool is_ours(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

static void listen_again(struct gpq_agent *a)
{
    struct gpq_server *s = a->server;
    bool want = s->n_clients < CLIENTS;
    if (want == s->listens)
        return;
    if (want && gpq_watch(a, &s->listener, EPOLLIN) != 0)
        return;
    if (!want)
        gpq_unwatch(a, &s->listener);
    s->listens = want;
}

/* No descriptor is left: without this the listener would stay ready, and the agent busy. */
static void turn_away(struct gpq_server *s)
{
    if (s->spare < 0)
        return;
    (void)close(s->spare);
    int fd = accept4(s->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        (void)close(fd);
    s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    gpq_log("a client was turned away: no descriptor is left (ulimit -n)");
}

static void add_client(struct gpq_agent *a, int fd)
{
    struct gpq_server *s = a->server;
    struct gpq_client *c = is_ours(fd) ? gpq_client_new(a, fd) : NULL;
    if (!c) {
        (void)close(fd);
        return;
    }
    c->next = s->clients;
    s->clients = c;
    s->n_clients++;
}

static void accept_clients(struct gpq_agent *a)
{
    struct gpq_server *s = a->server;
    while (s->n_clients < CLIENTS) {
        int fd = accept4(s->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            add_client(a, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE)
            turn_away(s);
        if (errno != EINTR && errno != ECONNABORTED)
            break;
    }
    listen_again(a);
}

static void keep_request(struct gpq_agent *a, struct gpq_client *c, json_t *json)
{
    struct request *r = calloc(1, sizeof(*r));
    if (!r) {
        json_decref(json);
        gpq_client_gone(a, c);
        return;
    }
    *r = (struct request){ .client = c,
                           .json = json,
                           .id = json_incref(json_object_get(json, "id")) };
    c->waiting++;
    push(&a->server->waiting, r);
}

/* Whether it has room for what it has missed. */
static bool is_behind(const struct gpq_server *s, const struct gpq_client *c)
{
    if (c->gone || c->watchers == 0 || !gpq_client_has_room(c))
        return false;
    for (const struct gpq_watcher *w = s->watchers; w; w = w->next)
        if (w->client == c && w->missed != 0)
            return true;
    return false;
}

void gpq_server_ready(struct gpq_agent *a, struct gpq_watched *w, uint32_t events)
{
    if (w->source == GPQ_SOURCE_LISTENER) {
        accept_clients(a);
        return;
    }
    struct gpq_client *c = w->owner;
    gpq_client_ready(a, c, events, keep_request);
    a->server->over = a->server->over || c->gone || is_behind(a->server, c);
}

/* ---- Attached tasks ---- */

static void attach(struct gpq_agent *a, struct request *r)
{
    struct gpq_attached *one = r->wish.attached;
    r->wish.attached = NULL;
    one->client = r->client;
    one->next = a->server->attached;
    a->server->attached = one;
}

static bool is_left(const struct gpq_attached *one)
{
    return !one->client || one->client->gone;
}

/* Inside the transaction: those whose connection has closed are cancelled. */
static void end_attached(struct gpq_agent *a, uint64_t now)
{
    for (struct gpq_attached *one = a->server->attached; one; one = one->next) {
        struct gpq_error e = { 0 };
        one->ended = is_left(one) && gpq_attached_end(a->store, now, one, &e) == 0;
    }
}

/* After the commit.  After a failed one the next try is when starts are tried again. */
static void forget_attached(struct gpq_agent *a, int code)
{
    struct gpq_attached **at = &a->server->attached;
    a->server->left = false;
    while (*at) {
        struct gpq_attached *one = *at;
        if (code == 0 && one->ended) {
            *at = one->next;
            free(one);
            continue;
        }
        one->ended = false;
        a->server->left = a->server->left || is_left(one);
        at = &one->next;
    }
}

static void detach(struct gpq_server *s, const struct gpq_client *c)
{
    for (struct gpq_attached *one = s->attached; one; one = one->next)
        if (one->client == c) {
            one->client = NULL;
            s->over = true;
        }
}

/* ---- A turn ---- */

bool gpq_server_waits(const struct gpq_agent *a)
{
    const struct gpq_server *s = a->server;
    return s && (s->waiting.first || s->over || (s->left && !a->starts_wait));
}

static void apply(struct gpq_agent *a, uint64_t now, struct request *r)
{
    json_t *reply = gpq_request(a, now, r->json, &r->wish);
    json_decref(r->json);
    r->json = NULL;
    if (reply && r->wish.kind == GPQ_WISH_NONE) {
        r->reply = json_dumps(reply, JSON_COMPACT);
        r->client->replied += r->reply ? strlen(r->reply) : 0;
    }
    json_decref(reply);
}

void gpq_server_apply(struct gpq_agent *a, uint64_t now)
{
    struct gpq_server *s = a->server;
    struct fifo later = { .end = &later.first };
    end_attached(a, now);
    while (s->waiting.first) {
        struct request *r = pop(&s->waiting);
        if (r->client->replied > REPLIES_OF_CLIENT) {
            push(&later, r);
            continue;
        }
        apply(a, now, r);
        push(&s->applied, r);
    }
    if (later.first)
        s->waiting = later;
}

static void send_error(struct gpq_agent *a, struct request *r, const struct gpq_error *e)
{
    json_t *line = gpq_error_json(r->id, e);
    gpq_client_send(a, r->client, line);
    json_decref(line);
}

/* Its wish becomes a watcher, which sends the reply. */
static void watch(struct gpq_agent *a, struct request *r)
{
    struct gpq_error e = { 0 };
    if (r->client->watchers >= WATCHERS_OF_CLIENT) {
        gpq_fail(&e, GPQ_EREFUSED, "the connection waits for %d things already, the maximum",
                 WATCHERS_OF_CLIENT);
        send_error(a, r, &e);
        return;
    }
    struct gpq_watcher *w = gpq_watcher_new(r->client, r->id, &r->wish);
    if (!w) {
        gpq_fail(&e, GPQ_ENOMEM, "no memory to wait");
        send_error(a, r, &e);
        return;
    }
    w->next = a->server->watchers;
    a->server->watchers = w;
}

static void send_reply(struct gpq_agent *a, struct request *r, int code, const struct gpq_error *e)
{
    static const struct gpq_error memory = { GPQ_ENOMEM, "no memory for the reply" };
    for (struct gpq_watcher *w = a->server->watchers; w && r->wish.kind == GPQ_WISH_NONE;
         w = w->next)
        w->stale = w->stale || (r->wish.batch != 0 && w->wish.batch == r->wish.batch);
    if (code == 0 && r->wish.kind == GPQ_WISH_NONE && r->wish.batch != 0)
        gpq_now_batch_changed(a, r->wish.batch);
    if (code < 0)
        send_error(a, r, e);
    else if (r->wish.kind != GPQ_WISH_NONE)
        watch(a, r);
    else if (r->reply)
        gpq_client_send_text(a, r->client, r->reply, strlen(r->reply));
    else
        send_error(a, r, &memory);
    if (code == 0 && r->wish.attached)
        attach(a, r);
}

/* Each watcher that has had its last line, or whose client is gone, is forgotten. */
static void look_all(struct gpq_agent *a)
{
    struct gpq_watcher **at = &a->server->watchers;
    while (*at) {
        struct gpq_watcher *w = *at;
        if (!w->client->gone && !gpq_watcher_look(a, w)) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        gpq_watcher_free(w);
    }
}

bool gpq_server_is_watched(const struct gpq_agent *a)
{
    for (const struct gpq_watcher *w = a->server ? a->server->watchers : NULL; w; w = w->next)
        if (w->wish.kind == GPQ_WISH_WATCH)
            return true;
    return false;
}

void gpq_server_watchers(struct gpq_agent *a, int (*fn)(struct gpq_watcher *w, void *user),
                         void *user)
{
    struct gpq_server *s = a->server;
    for (struct gpq_watcher *w = s->watchers; w; w = w->next) {
        if (w->wish.kind != GPQ_WISH_WATCH || w->client->gone)
            continue;
        int sent = fn(w, user);
        if (sent > 0) {
            gpq_client_write(a, w->client);
            gpq_client_go_on(a, w->client, keep_request);
        } else if (sent < 0) {
            gpq_client_gone(a, w->client);
        }
        s->over = s->over || w->client->gone;
    }
}

/* Another transaction than the failed one may have changed what they wait for. */
static void look_later(struct gpq_server *s)
{
    for (struct gpq_watcher *w = s->watchers; w; w = w->next)
        w->stale = true;
    s->over = s->watchers != NULL;
}

static void go_on(struct gpq_agent *a)
{
    struct gpq_server *s = a->server;
    struct gpq_client **at = &s->clients;
    while (*at) {
        struct gpq_client *c = *at;
        c->replied = 0;
        gpq_client_write(a, c);
        gpq_client_go_on(a, c, keep_request);
        if (!gpq_client_is_over(c) || c->watchers != 0) {
            s->over = s->over || c->gone || is_behind(s, c);
            at = &c->next;
            continue;
        }
        *at = c->next;
        s->n_clients--;
        detach(s, c);
        gpq_client_free(c);
    }
    listen_again(a);
}

void gpq_server_settle(struct gpq_agent *a, int code, const struct gpq_error *e)
{
    struct gpq_server *s = a->server;
    if (!s) /* a commit before it was opened */
        return;
    s->over = false;
    while (code < 0 && s->waiting.first) /* the transaction has failed before them */
        push(&s->applied, pop(&s->waiting));
    while (s->applied.first) {
        struct request *r = pop(&s->applied);
        send_reply(a, r, code, e);
        free_request(r);
    }
    if (code == 0)
        look_all(a);
    else
        look_later(s);
    go_on(a);
    forget_attached(a, code);
}
