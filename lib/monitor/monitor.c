/* SPDX-License-Identifier: MIT */
#include "monitor/monitor.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/refused.h"
#include "device/provider.h"
#include "gpudispatch/device.h"
#include "os/fds.h"
#include "os/message.h"
#include "wire/reading.h"

#define AGAIN_MS 10 /* for want of memory; room in the socket is waited for */

struct monitor {
    int socket;
    const struct gpi_provider *provider; /* NULL before OPEN */
    uint32_t fakes;
    uint64_t zero;
    void *state; /* the provider's, NULL while there is no driver */
    struct gpi_driver driver;
    uint32_t n; /* 0 until there are devices, then the same for good */
    struct gpi_device device[GPI_GPUS_MAX];
    char script[GPI_SCRIPT_MAX + 1];
};

/* ---- saying ---- */

/* Says it whole, however long that takes.  What the host would not believe is not said. */
static void say(const struct monitor *m, struct gpi_reading_message *r)
{
    const size_t size = gpi_reading_size(r->kind);
    struct pollfd room = { .fd = m->socket, .events = POLLOUT };

    if (!gpi_reading_of_monitor(r, size, m->n))
        return;
    while (gpi_message_send(m->socket, r, size, NULL, 0)) {
        if (errno == EAGAIN)
            (void)poll(&room, 1, -1);
        else if (errno == ENOBUFS || errno == ENOMEM)
            (void)poll(NULL, 0, AGAIN_MS);
        else
            _exit(0); /* nobody listens */
    }
}

static void say_driver(const struct monitor *m)
{
    struct gpi_reading_message r = { .kind = GPI_RDG_DRIVER, .u.driver = m->driver };

    say(m, &r);
}

/* It cannot read the devices: the host reads which call failed, with errno. */
static _Noreturn void give_up(struct monitor *m, enum gpi_sys call)
{
    char why[GPI_REFUSAL_SIZE];

    m->driver = (struct gpi_driver){ .state = GPUD_DRIVER_FAILED };
    snprintf(m->driver.text, sizeof m->driver.text, "the monitor process could not start: %s",
             gpi_refusal_text(why, call, errno));
    say_driver(m);
    _exit(71);
}

/* ---- incidents ---- */

static void *listen_for_incidents(void *arg)
{
    const struct monitor *m = arg;
    struct gpi_reading_message r = { .kind = GPI_RDG_LISTENS };

    if (m->provider->listen)
        m->provider->listen(m->state);
    say(m, &r);
    r.kind = GPI_RDG_INCIDENT;
    while (m->provider->await(m->state, &r.u.incident))
        say(m, &r);
    return NULL;
}

static void start_thread(void *(*run)(void *), struct monitor *m)
{
    pthread_t thread;

    int err = pthread_create(&thread, NULL, run, m);
    if (!err)
        return;
    errno = err;
    give_up(m, GPI_SYS_PTHREAD_CREATE);
}

/* ---- answers ---- */

/* The driver is told of before it is asked what there is: that may hang. */
static void look(struct monitor *m)
{
    struct gpi_reading_message r = { .kind = GPI_RDG_DEVICE };
    uint32_t n = m->n;

    if (!m->state)
        m->state = m->provider->open(m->fakes, m->script, m->zero, &m->driver);
    say_driver(m);
    if (m->state && !m->n) {
        n = m->provider->enumerate(m->state, m->device, GPI_GPUS_MAX, &m->driver);
        n = n < GPI_GPUS_MAX ? n : GPI_GPUS_MAX;
        say_driver(m);
    }
    for (r.device = 0; r.device < n; r.device++) {
        r.u.identity = m->device[r.device];
        say(m, &r);
    }
    r = (struct gpi_reading_message){ .kind = GPI_RDG_ENUMERATED, .n = n };
    say(m, &r);
    if (m->n || !n)
        return;
    m->n = n;
    start_thread(listen_for_incidents, m);
}

static void sample(struct monitor *m, uint32_t device)
{
    struct gpi_reading_message r = { .kind = GPI_RDG_SAMPLED, .device = device };

    m->provider->sample(m->state, device, &r.u.sample);
    say(m, &r);
}

static void open_provider(struct monitor *m, const struct gpi_reading_message *r, size_t script)
{
    m->provider = r->provider == GPI_PROVIDER_FAKE ? &gpi_provider_fake : &gpi_provider_nvml;
    m->fakes = r->n;
    m->zero = r->zero;
    memcpy(m->script, gpi_reading_script(r), script);
    look(m);
}

/* False: what no host of ours says. */
static bool answer(struct monitor *m, const struct gpi_reading_message *r, size_t size)
{
    if (!gpi_reading_for_monitor(r, size) || (r->kind == GPI_RDG_OPEN) == (m->provider != NULL))
        return false;
    switch (r->kind) {
    case GPI_RDG_OPEN:
        open_provider(m, r, size - gpi_reading_size(GPI_RDG_OPEN));
        return true;
    case GPI_RDG_ENUMERATE:
        look(m);
        return true;
    default:
        if (r->device >= m->n)
            return false;
        sample(m, r->device);
        return true;
    }
}

static void *answer_requests(void *arg)
{
    static union {
        struct gpi_reading_message m;
        char bytes[sizeof(struct gpi_reading_message) + GPI_SCRIPT_MAX];
    } in; /* of this thread alone */
    struct monitor *m = arg;
    struct pollfd p = { .fd = m->socket, .events = POLLIN };

    for (;;) {
        int r = gpi_message_receive(m->socket, &in, sizeof in, NULL, 0, NULL);
        if (r < 0 && (errno == ENOBUFS || errno == ENOMEM))
            (void)poll(NULL, 0, AGAIN_MS);
        else if (r < 0 && errno == EAGAIN)
            (void)poll(&p, 1, -1);
        else if (r <= 0 || !answer(m, &in.m, (size_t)r))
            _exit(r < 0 || r > 0);
    }
}

/* ---- life ---- */

_Noreturn void gpi_monitor_run(int socket)
{
    static struct monitor m; /* in a process of its own */
    const int keep[] = { 0, 1, 2, socket };
    struct pollfd end = { .fd = socket, .events = POLLRDHUP };

    (void)prctl(PR_SET_NAME, "gpud-monitor");
    gpi_fd_close_others(keep, sizeof keep / sizeof *keep);
    m.socket = socket;
    start_thread(answer_requests, &m);
    while (poll(&end, 1, -1) <= 0)
        ;
    _exit(0);
}
