/* SPDX-License-Identifier: MIT */
#include "keeper/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/fds.h"
#include "os/process.h"

#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

static _Noreturn void failed(const struct gpi_program *p, enum gpi_step step)
{
    const struct gpi_hello h = { .magic = GPI_HELLO_MAGIC,
                                 .answer = GPI_ANSWER_STEP,
                                 .sys_errno = errno,
                                 .pid = getpid(),
                                 .step = step };

    (void)!write(p->call.hello, &h, sizeof h);
    _exit(127);
}

/* Only stdio and the files of the call survive the exec. */
static void settle_fds(const struct gpi_program *p)
{
    const struct gpi_call *c = &p->call;
    const int keep[] = { 0, 1, 2, p->fd, c->hello, c->page, c->input,
                         c->result, c->orders, c->looks, c->setup };

    for (size_t i = 4; i < sizeof keep / sizeof *keep; i++)
        (void)fcntl(keep[i], F_SETFD, 0);
    gpi_fd_close_others(keep, sizeof keep / sizeof *keep);
}

/* Before the exec, since an interpreter copies its environment when it starts. */
static void settle_environment(const struct gpi_program *p)
{
    struct gpi_call call = p->call;
    char text[GPI_CALL_SIZE];

    call.pid = getpid();
    gpi_call_write(text, &call);
    if (setenv(GPI_CALL_VARIABLE, text, 1))
        failed(p, GPI_STEP_ENV);
}

_Noreturn void gpi_program_run(const struct gpi_program *p)
{
    char *const *argv = (char *const *)(size_t)p->launch->argv; /* exec only reads it */

    (void)setsid();
    gpi_process_prompt(0, false); /* the keeper's short turns on the CPU are not for programs */
    if (!gpi_process_die_with(p->call.keeper)) {
        gpi_page_setup_failed(p->surroundings->page, GPUD_ESYSTEM, GPI_NO_KEEPER);
        _exit(74);
    }
    gpi_surroundings_settle(p->surroundings);
    settle_fds(p);
    settle_environment(p);
    gpi_process_signals_unblock(); /* all are default already: the spawner has reset them */
    if (p->fd >= 0)
        /* this works even if the file is gone or replaced by now */
        (void)syscall(SYS_execveat, p->fd, "", argv, environ, AT_EMPTY_PATH);
    else
        (void)execve(p->launch->program, argv, environ);
    failed(p, GPI_STEP_EXEC);
}
