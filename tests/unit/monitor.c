/* SPDX-License-Identifier: MIT */
/*
 * monitor.c - both ends of a monitor's socket, each against a case that plays the other: the client
 * believes nothing that has no meaning, the process serves no host that speaks nonsense.
 * [C17]
 */
#include "harness.h"

#include "gpudispatch/device.h"
#include "host/monitor.h"
#include "monitor/monitor.h"
#include "os/fds.h"
#include "os/message.h"
#include "wire/control.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the client; the case plays the spawner and the monitor ---- */

struct stage {
    int spawner[2]; /* ours, the client's */
    int end;        /* the monitor's end of its socket */
    struct gpi_monitor m;
};

static void receive_request(int fd, uint32_t kind, uint32_t device)
{
    struct gpi_reading_message m;

    T_EQ(gpi_message_receive(fd, &m, sizeof(m), NULL, 0, NULL), (int)gpi_reading_size(kind));
    T_EQ(m.kind, kind);
    T_EQ(m.device, device);
}

static struct stage start_client(void)
{
    struct gpi_control c;
    struct stage s;
    size_t n = 0;

    T_EQ(gpi_message_pair(s.spawner), 0);
    T_EQ(gpi_monitor_start(&s.m, s.spawner[1], GPI_PROVIDER_NVML, 0, NULL, 0, NULL), 0);
    T_EQ(gpi_message_receive(s.spawner[0], &c, sizeof(c), &s.end, 1, &n), sizeof(c));
    T_CHECK(gpi_control_for_spawner(&c, sizeof(c), n));
    T_EQ(c.kind, GPI_CTL_MONITOR);
    receive_request(s.end, GPI_RDG_OPEN, 0);
    return s;
}

static void end_client(struct stage *s)
{
    gpi_monitor_fini(&s->m);
    T_EQ(s->m.fd, -1);
    gpi_fd_close(&s->end);
    gpi_fd_close(&s->spawner[0]);
    gpi_fd_close(&s->spawner[1]);
}

static void tell(const struct stage *s, const struct gpi_reading_message *m)
{
    T_EQ(gpi_message_send(s->end, m, gpi_reading_size(m->kind), NULL, 0), 0);
}

static struct gpi_reading_message device(uint32_t i)
{
    struct gpi_reading_message m = { .kind = GPI_RDG_DEVICE,
                                     .device = i,
                                     .u.identity = { .kind = GPUD_DEVICE_GPU, .index = i } };

    (void)snprintf(m.u.identity.name, sizeof(m.u.identity.name), "gpu:%u", i);
    return m;
}

static enum gpi_monitor_news hear(struct stage *s)
{
    struct gpi_incident i;
    uint32_t d;

    return gpi_monitor_read(&s->m, &d, &i);
}

static void tell_devices(struct stage *s, uint32_t n)
{
    struct gpi_reading_message m = { .kind = GPI_RDG_DRIVER };

    tell(s, &m);
    T_EQ(hear(s), GPI_MONITOR_DRIVER);
    for (uint32_t i = 0; i < n; i++) {
        m = device(i);
        tell(s, &m);
        T_EQ(hear(s), GPI_MONITOR_NOTHING);
    }
    T_EQ(s->m.n, 0);
    m = (struct gpi_reading_message){ .kind = GPI_RDG_ENUMERATED, .n = n };
    tell(s, &m);
    T_EQ(hear(s), GPI_MONITOR_ENUMERATED);
    T_CHECK(s->m.enumerated && s->m.n == n);
    T_EQ(hear(s), GPI_MONITOR_NOTHING);
}

T_CASE(client_asks_and_hears)
{
    struct gpi_reading_message m = { .kind = GPI_RDG_SAMPLED,
                                     .device = 1,
                                     .u.sample = { .at = 5, .temperature = 44 } };
    struct stage s = start_client();
    struct gpi_incident incident;
    uint32_t d = 99;

    T_EQ(hear(&s), GPI_MONITOR_NOTHING);
    T_CHECK(gpi_monitor_waits(&s.m) != 0 && gpi_monitor_waits(&s.m) <= t_now());
    T_CHECK(!gpi_monitor_ask(&s.m, 0, 7)); /* no such device yet */
    tell_devices(&s, 2);
    T_EQ(gpi_monitor_waits(&s.m), 0);
    T_CHECK(gpi_monitor_ask(&s.m, 1, 7));
    T_CHECK(!gpi_monitor_ask(&s.m, 1, 8)); /* one is under way */
    T_CHECK(gpi_monitor_ask(&s.m, 0, 9));
    T_CHECK(!gpi_monitor_ask(&s.m, 2, 9));
    T_EQ(gpi_monitor_waits(&s.m), 7);
    receive_request(s.end, GPI_RDG_SAMPLE, 1);
    receive_request(s.end, GPI_RDG_SAMPLE, 0);
    tell(&s, &m);
    T_EQ(gpi_monitor_read(&s.m, &d, &incident), GPI_MONITOR_SAMPLED);
    T_EQ(d, 1);
    T_EQ(s.m.sample[1].temperature, 44);
    T_EQ(s.m.sample[1].at, 5);
    T_EQ(gpi_monitor_waits(&s.m), 9);
    m = (struct gpi_reading_message){
        .kind = GPI_RDG_INCIDENT,
        .u.incident = { .kind = GPI_INCIDENT_LOST, .device = GPI_UNKNOWN32, .at = UINT64_MAX }
    };
    tell(&s, &m);
    T_EQ(gpi_monitor_read(&s.m, &d, &incident), GPI_MONITOR_INCIDENT);
    T_EQ(d, GPI_UNKNOWN32);
    T_EQ(incident.kind, GPI_INCIDENT_LOST);
    T_CMP(incident.at, <=, t_now()); /* the future is not believed */
    /* What it had said before it died is heard. */
    tell(&s, &m);
    gpi_fd_close(&s.end);
    T_EQ(hear(&s), GPI_MONITOR_INCIDENT);
    T_EQ(hear(&s), GPI_MONITOR_GONE);
    T_EQ(hear(&s), GPI_MONITOR_GONE);
    T_CHECK(!gpi_monitor_ask(&s.m, 1, 10));
    T_CHECK(gpi_monitor_await(&s.m, GPUD_NEVER)); /* it is known */
    end_client(&s);
}

static struct stage *away;
static uint64_t away_until;

/* All is told while the client waits, and it comes back too late. */
static void tell_while_away(int number)
{
    struct gpi_reading_message m = { .kind = GPI_RDG_DRIVER };

    (void)number;
    tell(away, &m);
    m = device(0);
    tell(away, &m);
    m = (struct gpi_reading_message){ .kind = GPI_RDG_ENUMERATED, .n = 1 };
    tell(away, &m);
    while (t_now() < away_until)
        ;
}

T_CASE(client_hears_what_came_while_it_was_away)
{
    const struct itimerval soon = { .it_value = { .tv_usec = 20000 } };
    struct sigaction action = { .sa_handler = tell_while_away }, old;
    struct stage s = start_client();

    away = &s;
    away_until = t_now() + T_MS(100);
    T_EQ(sigaction(SIGALRM, &action, &old), 0);
    T_EQ(setitimer(ITIMER_REAL, &soon, NULL), 0);
    T_CHECK(gpi_monitor_await(&s.m, away_until));
    T_EQ(s.m.n, 1);
    T_CHECK(!gpi_monitor_ask(&s.m, 1, 7));
    T_EQ(sigaction(SIGALRM, &old, NULL), 0);
    end_client(&s);
}

/* A driver may come later; devices, once there, stay. */
T_CASE(client_looks_again)
{
    struct stage s = start_client();

    T_CHECK(!gpi_monitor_look(&s.m, 5)); /* it is looking */
    tell_devices(&s, 0);
    T_CHECK(gpi_monitor_look(&s.m, 6));
    T_EQ(gpi_monitor_waits(&s.m), 6);
    T_CHECK(!gpi_monitor_look(&s.m, 7));
    receive_request(s.end, GPI_RDG_ENUMERATE, 0);
    tell_devices(&s, 2);
    T_CHECK(!gpi_monitor_look(&s.m, 8));
    end_client(&s);
}

/* Each of these is nonsense where it comes. */
T_CASE(client_believes_no_nonsense)
{
    enum {
        OUT_OF_ORDER,
        MISCOUNTED,
        DRIVERLESS,
        UNASKED,
        TWICE,
        UNKNOWN_DEVICE,
        SECOND_LIST,
        TOO_LONG,
        TOO_SHORT,
        A_REQUEST,
        COUNT
    };

    for (int what = 0; what < COUNT; what++) {
        struct gpi_reading_message m = { .kind = GPI_RDG_SAMPLED };
        struct stage s = start_client();
        char bytes[2 * sizeof(m)] = { 0 };

        if (what >= UNASKED)
            tell_devices(&s, 2);
        switch (what) {
        case OUT_OF_ORDER:
            m = device(1);
            break;
        case MISCOUNTED:
            m = (struct gpi_reading_message){ .kind = GPI_RDG_DRIVER };
            tell(&s, &m);
            T_EQ(hear(&s), GPI_MONITOR_DRIVER);
            m = device(0);
            tell(&s, &m);
            m = (struct gpi_reading_message){ .kind = GPI_RDG_ENUMERATED, .n = 2 };
            break;
        case DRIVERLESS:
            m = (struct gpi_reading_message){ .kind = GPI_RDG_ENUMERATED };
            break;
        case TWICE:
            T_CHECK(gpi_monitor_ask(&s.m, 0, 1));
            tell(&s, &m);
            T_EQ(hear(&s), GPI_MONITOR_SAMPLED);
            break;
        case UNKNOWN_DEVICE:
            m.device = 2;
            break;
        case SECOND_LIST:
            m = device(0);
            break;
        case TOO_LONG:
        case TOO_SHORT:
            T_EQ(gpi_message_send(s.end, bytes, what == TOO_LONG ? sizeof(bytes) : 1, NULL, 0), 0);
            break;
        case A_REQUEST:
            m.kind = GPI_RDG_SAMPLE;
            break;
        default:
            break;
        }
        if (what != TOO_LONG && what != TOO_SHORT)
            tell(&s, &m);
        if (hear(&s) != GPI_MONITOR_GONE)
            T_FAIL("number %d was believed", what);
        end_client(&s);
    }
}

/* A monitor that does not read, or is gone, delays nobody. */
T_CASE(client_never_blocks)
{
    struct stage s = start_client();
    uint32_t asked = 0;

    tell_devices(&s, GPI_GPUS_MAX);
    for (unsigned round = 0; round < 100; round++)
        for (uint32_t i = 0; i < GPI_GPUS_MAX; i++) {
            asked += gpi_monitor_ask(&s.m, i, 1);
            s.m.asked_at[i] = 0;
        }
    T_CMP(asked, <, 100 * GPI_GPUS_MAX); /* at last there was no room */
    T_CMP(asked, >=, GPI_GPUS_MAX / 2);
    T_EQ(hear(&s), GPI_MONITOR_NOTHING);
    end_client(&s);
}

/* It hears that it is to go also where somebody else holds the host's end. */
T_CASE(client_dismisses)
{
    struct gpi_reading_message m;
    struct stage s = start_client();
    int copy = gpi_fd_lift(dup(s.m.fd));

    gpi_monitor_dismiss(&s.m);
    T_CHECK(!gpi_monitor_ask(&s.m, 0, 1));
    gpi_monitor_fini(&s.m);
    T_EQ(gpi_message_receive(s.end, &m, sizeof(m), NULL, 0, NULL), 0);
    gpi_fd_close(&copy);
    end_client(&s);
}

T_CASE(client_without_a_spawner)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    struct gpi_monitor m;
    int pair[2];

    T_EQ(gpi_message_pair(pair), 0);
    gpi_fd_close(&pair[0]);
    T_EQ(gpi_monitor_start(&m, pair[1], GPI_PROVIDER_NVML, 0, NULL, 0, &e), GPUD_ESPAWNER);
    T_EQ(m.fd, -1);
    T_CHECK(!m.device);
    T_EQ(gpi_monitor_connect(&pair[0], pair[1], &e), GPUD_ESPAWNER);
    T_EQ(e.code, GPUD_ESPAWNER);
    T_EQ(pair[0], -1);
    gpi_fd_close(&pair[1]);
    gpi_monitor_fini(&m);
}

/* The spawner could not fork one: its end of the socket is closed. */
T_CASE(client_without_a_monitor)
{
    struct stage s = start_client();

    gpi_fd_close(&s.end);
    T_CHECK(!gpi_monitor_await(&s.m, GPUD_NEVER));
    T_EQ(hear(&s), GPI_MONITOR_GONE);
    end_client(&s);
}

/* ---- the process; the case plays the host ---- */

struct process {
    pid_t pid;
    int fd;
};

static struct process start_process(void)
{
    struct process p;
    int pair[2];

    T_EQ(gpi_message_pair(pair), 0);
    p.pid = fork();
    T_CMP(p.pid, >=, 0);
    if (p.pid == 0)
        gpi_monitor_run(pair[1]);
    gpi_fd_close(&pair[1]);
    p.fd = pair[0];
    return p;
}

static void ask(const struct process *p, const struct gpi_reading_message *m, size_t size)
{
    T_EQ(gpi_message_send(p->fd, m, size, NULL, 0), 0);
}

/* Waits for its next word; 0 = it has ended. */
static uint32_t word(const struct process *p, struct gpi_reading_message *ret)
{
    struct pollfd in = { .fd = p->fd, .events = POLLIN };

    T_EQ(poll(&in, 1, (int)(T_PATIENCE / 1000000)), 1);
    return gpi_message_receive(p->fd, ret, sizeof(*ret), NULL, 0, NULL) > 0 ? ret->kind : 0;
}

/* The same without LISTENS, which a thread of its own says, so at any time. */
static uint32_t answer(const struct process *p, struct gpi_reading_message *ret)
{
    uint32_t kind;

    do
        kind = word(p, ret);
    while (kind == GPI_RDG_LISTENS);
    return kind;
}

static int exit_of(const struct process *p)
{
    int status;

    T_EQ(waitpid(p->pid, &status, 0), p->pid);
    T_CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static struct gpi_reading_message open_fakes(uint32_t n)
{
    return (struct gpi_reading_message){
        .kind = GPI_RDG_OPEN, .provider = GPI_PROVIDER_FAKE, .n = n, .zero = t_now()
    };
}

static void expect_list(const struct process *p, uint32_t n)
{
    struct gpi_reading_message m;

    T_EQ(answer(p, &m), GPI_RDG_DRIVER);
    T_EQ(m.u.driver.state, GPUD_DRIVER_OK);
    for (uint32_t i = 0; i < n; i++) {
        while (answer(p, &m) == GPI_RDG_DRIVER)
            ;
        T_EQ(m.kind, GPI_RDG_DEVICE);
        T_EQ(m.device, i);
    }
    T_EQ(answer(p, &m), GPI_RDG_ENUMERATED);
    T_EQ(m.n, n);
}

T_CASE(process_answers_in_order)
{
    const size_t size = gpi_reading_size(GPI_RDG_OPEN);
    struct process p = start_process();
    struct gpi_reading_message m = open_fakes(3);

    ask(&p, &m, size);
    expect_list(&p, 3);
    for (uint32_t i = 0; i < 30; i++) {
        m = (struct gpi_reading_message){ .kind = GPI_RDG_SAMPLE, .device = i % 3 };
        ask(&p, &m, size);
    }
    for (uint32_t i = 0; i < 30; i++) {
        T_EQ(answer(&p, &m), GPI_RDG_SAMPLED);
        T_EQ(m.device, i % 3);
    }
    m = (struct gpi_reading_message){ .kind = GPI_RDG_ENUMERATE };
    ask(&p, &m, size);
    T_EQ(answer(&p, &m), GPI_RDG_DRIVER);
    for (uint32_t i = 0; i < 3; i++)
        T_EQ(answer(&p, &m), GPI_RDG_DEVICE);
    T_EQ(answer(&p, &m), GPI_RDG_ENUMERATED);
    gpi_fd_close(&p.fd);
    T_EQ(exit_of(&p), 0);
}

/* Nonsense ends it; so does the end of the socket before a word was said. */
T_CASE(process_serves_no_nonsense)
{
    enum { SAMPLE_FIRST, ENUMERATE_FIRST, TWO_OPENS, NO_SUCH_DEVICE, TOO_SHORT, AN_ANSWER, COUNT };

    for (int what = 0; what < COUNT; what++) {
        struct gpi_reading_message m = open_fakes(2);
        struct process p = start_process();
        size_t size = gpi_reading_size(m.kind);

        if (what == TWO_OPENS || what == NO_SUCH_DEVICE) {
            ask(&p, &m, size);
            expect_list(&p, 2);
        }
        if (what == SAMPLE_FIRST || what == NO_SUCH_DEVICE)
            m = (struct gpi_reading_message){ .kind = GPI_RDG_SAMPLE, .device = 2 };
        else if (what == ENUMERATE_FIRST)
            m.kind = GPI_RDG_ENUMERATE;
        else if (what == AN_ANSWER)
            m.kind = GPI_RDG_ENUMERATED;
        ask(&p, &m, what == TOO_SHORT ? size - 1 : size);
        T_EQ(answer(&p, &m), 0);
        T_EQ(exit_of(&p), 1);
        gpi_fd_close(&p.fd);
    }
    struct process p = start_process();

    gpi_fd_close(&p.fd);
    T_EQ(exit_of(&p), 0);
}

/* The end of the socket ends it also while a call never returns. */
T_CASE(process_ends_while_it_hangs)
{
    static const char script[] = "gpu 0 hang sample\n";
    const size_t size = gpi_reading_size(GPI_RDG_OPEN);
    char bytes[sizeof(struct gpi_reading_message)];
    struct gpi_reading_message m = open_fakes(1);
    struct process p = start_process();

    memcpy(bytes, &m, size);
    memcpy(bytes + size, script, sizeof(script) - 1);
    T_EQ(gpi_message_send(p.fd, bytes, size + sizeof(script) - 1, NULL, 0), 0);
    expect_list(&p, 1);
    T_EQ(word(&p, &m), GPI_RDG_LISTENS); /* else the failure to say this ends it, too */
    m = (struct gpi_reading_message){ .kind = GPI_RDG_SAMPLE };
    ask(&p, &m, size);
    gpi_fd_close(&p.fd);
    T_EQ(exit_of(&p), 0);
}
