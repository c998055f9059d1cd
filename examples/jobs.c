/* SPDX-License-Identifier: MIT */
/*
 * jobs.c - commands on eight GPUs.  The dispatcher decides when and where, this program runs them.
 * cc -std=c11 -Wall -Wextra jobs.c -o jobs $(pkg-config --cflags --libs gpudispatch)
 * It prints the end of each command: "exit 3: ERROR on fake:0: exited with status 3".
 * The GPUs are fakes of 16 GiB here: set devices to "all" for yours.
 */
#define _POSIX_C_SOURCE 200809L
#include <gpudispatch/gpudispatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEEDS(...) { .struct_size = sizeof(struct gpud_request), __VA_ARGS__ }
static const struct gpud_request cpu = NEEDS(.cpus = 1);
static struct job {
    char *command;
    int32_t priority, pid; /* pid 0: it does not run */
    struct gpud_request needs;
    struct gpud_event granted;
} jobs[] = {
    { .command = "sleep 0.8", .needs = NEEDS(.devices = 8, .memory = 10ull << 30) },
    { .command = "exit 3", .needs = NEEDS(.devices = 1, .memory = 6ull << 30), .priority = 9 },
    { .command = "sleep 0.1", .needs = NEEDS(.devices = 1, .memory = 99ull << 30, .next = &cpu) },
    { .command = "sleep 60; exit 0", .needs = NEEDS(.devices = 1, .memory = 6ull << 30) }
};
enum { JOBS = sizeof jobs / sizeof *jobs };

static void start(gpud_dispatcher *d, struct job *j, const struct gpud_event *e)
{
    j->granted = *e;
    (void)setenv("CUDA_VISIBLE_DEVICES", e->device_uuid, 1);
    j->pid = fork();
    if (j->pid == 0) /* in a session of its own, so that one kill ends all of its processes */
        _exit(setsid() < 0 ? 127 : execl("/bin/sh", "sh", "-c", j->command, (char *)NULL));
    struct gpud_proc proc = { .struct_size = sizeof proc, .pid = (uint32_t)j->pid,
                              .session = (uint32_t)j->pid }; /* its GPU memory is not foreign */
    if (j->pid < 0)
        j->pid = 0, (void)gpud_dispatcher_cancel(d, e->task_id, GPUD_CANCEL_HARD);
    else if (gpud_dispatcher_started(d, e->task_id, e->attempt, &proc, NULL))
        (void)kill(j->pid, SIGKILL); /* the grant is over, and look_after reaps it */
}

static int on_event(gpud_dispatcher *d, struct job *j, const struct gpud_event *e)
{
    if (e->kind == GPUD_EVENT_GRANTED)
        start(d, j, e);
    else if (e->kind == GPUD_EVENT_REVOKED && j->pid && e->attempt == j->granted.attempt)
        (void)kill(-j->pid, e->revoke == GPUD_REVOKE_SOFT ? SIGTERM : SIGKILL);
    else if (e->kind == GPUD_EVENT_OUTCOME)
        printf("%s: %s on %s%s%s\n", j->command, gpud_outcome_name(e->outcome),
               *e->device ? e->device : "a CPU", *e->text ? ": " : "", e->text);
    return e->kind == GPUD_EVENT_OUTCOME;
}

static void look_after(gpud_dispatcher *d, struct job *j)
{
    struct gpud_end end = { .struct_size = sizeof end, .outcome = GPUD_OUTCOME_CRASHED };
    siginfo_t i = { .si_pid = 0 };

    if (!j->pid || waitid(P_PID, (id_t)j->pid, &i, WEXITED | WNOHANG | WNOWAIT) || !i.si_pid)
        return;
    (void)kill(-j->pid, SIGKILL); /* its devices are free when no process of it is left */
    (void)waitid(P_PID, (id_t)j->pid, &i, WEXITED);
    j->pid = 0;
    end.exit_kind = i.si_code == CLD_EXITED ? GPUD_EXIT_CODE : GPUD_EXIT_SIGNAL;
    end.exit_status = i.si_status;
    if (i.si_code == CLD_EXITED)
        end.outcome = (end.code = i.si_status) ? GPUD_OUTCOME_ERROR : GPUD_OUTCOME_SUCCESS;
    (void)gpud_dispatcher_ended(d, j->granted.task_id, j->granted.attempt, &end, NULL);
}

int main(void)
{
    struct gpud_options o = { .struct_size = sizeof o, .pooled = 1, .devices = "fake:8" };
    struct gpud_class c = { .struct_size = sizeof c, .name = "jobs", .residence = GPUD_EXTERNAL };
    struct gpud_event e = GPUD_EVENT_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;
    int r = gpud_dispatcher_create(&d, &o, &error) || gpud_dispatcher_class_add(d, &c, &error);

    for (uint64_t i = 0; i < JOBS && r == 0; i++) {
        struct gpud_task_desc t = { .struct_size = sizeof t, .class_name = "jobs", .tag = i,
                                    .priority = jobs[i].priority, .request = &jobs[i].needs,
                                    .limit = GPUD_S(1) };
        r = gpud_dispatcher_submit(d, &t, 0, NULL, &error);
    }
    if (r)
        return fprintf(stderr, "jobs: %s\n", error.text), 1;
    for (int left = JOBS; left > 0;) {
        if (gpud_dispatcher_poll(d, &e, 1, GPUD_MS(20)) > 0)
            left -= on_event(d, &jobs[e.tag], &e);
        for (int i = 0; i < JOBS; i++)
            look_after(d, &jobs[i]);
    }
    return gpud_dispatcher_destroy(&d, NULL);
}
