/* SPDX-License-Identifier: MIT */
/*
 * server.c - a server: 16 threads each accept a request, submit it as a task, wait and reply.
 *
 * cc -std=c11 -Wall -Wextra -pthread server.c -o server $(pkg-config --cflags --libs gpudispatch)
 *
 * It prints "port N" and serves this port of 127.0.0.1.  On SIGTERM or SIGINT it ends the requests
 * that it has begun, prints "N requests" and exits with status 0.  A request is a line with a
 * number; the reply is its smallest prime factor.  The reply begins with "TIMEOUT" if the task
 * needs more than 1 s, as for 18446744073709551557.  Try: echo 8633 | nc 127.0.0.1 N
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <gpudispatch/gpudispatch.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

enum { THREADS = 16 };
static gpud_dispatcher *dispatcher;
static int listener;
static atomic_uint requests;

static int smallest_factor(gpud_task *t, void *state) /* runs in a worker */
{
    uint64_t n = *(const uint64_t *)gpud_task_data(t), f = 2;
    (void)state;
    for (; f <= n / f && n % f; f++)
        if (f % 4096 == 0 && gpud_task_expired(t))
            return 1; /* the outcome is TIMEOUT for any value */
    return gpud_task_result_set(t, f <= n / f ? &f : &n, sizeof n);
}

static void reply(int client, uint64_t n)
{
    struct gpud_task_desc task = { .struct_size = sizeof task, .data = &n, .size = sizeof n,
                                   .awaited = 1 }; /* wait returns the outcome, poll does not */
    struct gpud_event e = GPUD_EVENT_INIT;
    uint64_t id;
    int r = gpud_dispatcher_submit(dispatcher, &task, 0, &id, NULL);
    if (r || (r = gpud_dispatcher_wait(dispatcher, id, &e, GPUD_NEVER, NULL)))
        dprintf(client, "%s\n", gpud_error_text(r)); /* a full queue is reported at once */
    else if (e.outcome == GPUD_OUTCOME_SUCCESS)
        dprintf(client, "%llu\n", *(const unsigned long long *)e.result);
    else
        dprintf(client, "%s %s\n", gpud_outcome_name(e.outcome), e.text);
    (void)gpud_event_release(&e); /* wait has lent it */
    atomic_fetch_add(&requests, 1);
}

static void *serve(void *unused)
{
    struct timeval patience = { 5, 0 };
    int client;
    while ((client = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) { /* until shutdown */
        char line[32] = "";
        (void)setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        if (recv(client, line, sizeof line - 1, 0) > 0)
            reply(client, strtoull(line, NULL, 10));
        close(client);
    }
    return unused;
}

int main(void)
{
    struct gpud_definition definition = GPUD_DEFINITION("factor", NULL, smallest_factor, NULL);
    struct gpud_options options = { .struct_size = sizeof options, .devices = "cpu:2",
                                    .task_limit = GPUD_S(1), .queue_size = 64 };
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct gpud_error error = GPUD_ERROR_INIT;
    socklen_t size = sizeof at;
    pthread_t threads[THREADS];
    int got, n = 0;
    sigset_t ends; /* gpud_init and create come before threads and sockets */
    if (gpud_init(&definition, 1, &error) || gpud_dispatcher_create(&dispatcher, &options, &error))
        return fprintf(stderr, "server: %s\n", error.text), 1;
    (void)signal(SIGPIPE, SIG_IGN); /* for clients that close early */
    (void)sigemptyset(&ends), (void)sigaddset(&ends, SIGTERM), (void)sigaddset(&ends, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &ends, NULL);
    if ((listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0 ||
        bind(listener, (struct sockaddr *)&at, size) || listen(listener, 128) ||
        getsockname(listener, (struct sockaddr *)&at, &size))
        return perror("server"), 1;
    for (; n < THREADS && pthread_create(&threads[n], NULL, serve, NULL) == 0; n++)
        continue;
    dprintf(1, "port %d\n", ntohs(at.sin_port));
    if (n > 0)
        (void)sigwait(&ends, &got);
    (void)shutdown(listener, SHUT_RD); /* ends every accept; busy threads reply first */
    while (n > 0)
        (void)pthread_join(threads[--n], NULL);
    printf("%u requests\n", requests);
    return gpud_dispatcher_destroy(&dispatcher, NULL) || gpud_fini();
}
