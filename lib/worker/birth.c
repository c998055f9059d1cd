/* SPDX-License-Identifier: MIT */
#include "worker/birth.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/refused.h"
#include "os/fds.h"
#include "os/memory.h"
#include "worker/worker.h"

#define UNFIT 76 /* exit status: the handshake carries the cause, if it could be sent */

bool gpi_birth_called(struct gpi_call *ret)
{
    const char *text = getenv(GPI_CALL_VARIABLE);
    bool called = text && gpi_call_read(ret, text);

    if (!called)
        return false; /* or another program's variable of that name: it stays */
    (void)unsetenv(GPI_CALL_VARIABLE);
    /* If the call is for this process, it closes the last four as soon as it has mapped them. */
    const int fds[] = { ret->hello, ret->orders, ret->looks, ret->page,
                        ret->input, ret->result, ret->setup };
    size_t n = sizeof fds / sizeof *fds;
    if (ret->protocol != GPI_PROTOCOL)
        n = 1;
    else if (gpi_birth_ours(ret))
        n = 3;
    for (size_t i = 0; i < n; i++)
        (void)fcntl(fds[i], F_SETFD, FD_CLOEXEC);
    return true;
}

bool gpi_birth_awaited(void)
{
    const char *text = getenv(GPI_CALL_VARIABLE);
    struct gpi_call c;

    return text && gpi_call_read(&c, text) && gpi_birth_ours(&c);
}

bool gpi_birth_ours(const struct gpi_call *c)
{
    return c->pid == getpid();
}

/* Sends the handshake, once.  Returns false if the pipe is not there any more. */
static bool answer_with(const struct gpi_call *c, enum gpi_answer what, enum gpi_step step,
                        int sys_errno)
{
    const struct gpi_hello h = {
        .magic = GPI_HELLO_MAGIC,
        .answer = what,
        .protocol = GPI_PROTOCOL,
        .api = GPUD_API_NUMBER,
        .sys_errno = sys_errno,
        .pid = getpid(),
        .step = step,
        .call = gpi_refused_call(sys_errno),
    };
    struct stat st;
    bool said = fstat(c->hello, &st) == 0 && S_ISFIFO(st.st_mode) &&
                write(c->hello, &h, sizeof h) == (ssize_t)sizeof h;

    if (said)
        close(c->hello);
    return said;
}

static bool answer(const struct gpi_call *c, enum gpi_answer what)
{
    return answer_with(c, what, GPI_STEP_EXEC, 0);
}

void gpi_birth_decline(const struct gpi_call *c)
{
    (void)answer(c, GPI_ANSWER_WRAPPED);
}

static _Noreturn void unfit(const struct gpi_call *c, enum gpi_answer what)
{
    (void)answer(c, what);
    _exit(UNFIT);
}

/* Maps a file of at least `least` bytes, and closes it.  Returns NULL with errno; ENODATA: the file
 * is shorter. */
static void *map(int fd, uint64_t least, bool writable, uint64_t *ret_size)
{
    struct stat st;
    void *at = NULL;

    if (fstat(fd, &st)) {
        (void)gpi_refused(GPI_SYS_FSTAT);
        return NULL;
    }
    *ret_size = (uint64_t)st.st_size;
    errno = ENODATA;
    if (st.st_size > 0 && *ret_size >= least)
        at = gpi_memory_map(fd, *ret_size, writable);
    gpi_fd_close(&fd);
    return at;
}

/* Without memory for the arenas (for example ulimit -v) the slot fails, as with any fault of
 * setup. */
static void map_arenas(struct gpi_worker_plan *p, const struct gpi_call *c)
{
    const bool same = gpi_memory_same(c->setup, c->input); /* compare while both are open */
    char text[GPI_FAIL_TEXT_SIZE], why[GPI_REFUSAL_SIZE];
    uint64_t size;

    p->input = map(c->input, p->page->input_size, false, &size);
    if (p->input)
        p->result = map(c->result, p->page->result_size, true, &size);
    if (p->result)
        p->setup = same ? p->input : map(c->setup, p->page->setup_size, false, &size);
    if (same)
        close(c->setup);
    if (p->setup)
        return;
    snprintf(text, sizeof text, "the worker program cannot map %s: %s (%s)",
             p->result ? "its setup data" : "its share of the payload budget",
             gpi_refusal_text(why, gpi_refused_call(errno), errno),
             p->result ? "setup_shared" : "payload_budget");
    gpi_birth_fail(p, GPUD_ESYSTEM, text);
}

void gpi_birth_answer(struct gpi_worker_plan *ret, const struct gpi_call *c)
{
    struct gpi_worker_plan p = { .orders = c->orders,
                                 .looks = c->looks,
                                 .incarnation = c->incarnation,
                                 .keeper = c->keeper,
                                 .executed = true };
    uint64_t size;

    if (c->protocol != GPI_PROTOCOL)
        unfit(c, GPI_ANSWER_VERSION);
    if (syscall(SYS_gettid) != getpid())
        unfit(c, GPI_ANSWER_THREAD);
    p.page = map(c->page, sizeof *p.page, true, &size);
    if (!p.page && errno != ENODATA) {
        (void)answer_with(c, GPI_ANSWER_STEP, GPI_STEP_MAP, errno);
        _exit(UNFIT);
    }
    if (!p.page || p.page->magic != GPI_PAGE_MAGIC || p.page->version != GPI_PAGE_VERSION ||
        size < gpi_page_size(p.page->result_size))
        unfit(c, GPI_ANSWER_VERSION);
    if (!answer(c, GPI_ANSWER_READY))
        _exit(UNFIT); /* the program has closed fds that it did not know */
    map_arenas(&p, c);
    *ret = p;
}

_Noreturn void gpi_birth_fail(const struct gpi_worker_plan *plan, int code, const char *text)
{
    gpi_page_setup_failed(plan->page, code, text);
    (void)fflush(stdout);
    (void)fflush(stderr);
    _exit(1);
}

/* Lists "a, b, c" as far as it fits. */
static void list_names(char *to, size_t size, const struct gpud_definition *all, size_t n)
{
    size_t at = 0;

    to[0] = '\0';
    for (size_t i = 0; i < n && at + 1 < size; i++)
        /* NOLINT(clang-analyzer-core.NullDereference) ; there are n */
        at += (size_t)snprintf(to + at, size - at, "%s%s", i ? ", " : "", all[i].name);
}

_Noreturn void gpi_birth_run(struct gpi_worker_plan *plan, const struct gpud_definition *all,
                             size_t n)
{
    char wanted[GPI_NAME_SIZE], names[120], text[GPI_FAIL_TEXT_SIZE];

    assert(all);
    gpi_page_text(wanted, plan->page->name, sizeof wanted);
    for (size_t i = 0; i < n; i++)
        if (*wanted ? !strcmp(all[i].name, wanted) : n == 1)
            plan->definition = &all[i];
    if (plan->definition && plan->page->max_batch > 1 && !plan->definition->process_batch)
        gpi_birth_fail(
            plan, GPUD_EINVAL,
            "max_batch is more than 1, but the worker program's definition has no process_batch");
    if (plan->definition)
        gpi_worker_run(plan);
    list_names(names, sizeof names, all, n);
    if (*wanted)
        snprintf(text, sizeof text, "the worker program has no definition named \"%s\"; it has: %s",
                 wanted, names);
    else
        snprintf(text, sizeof text, "definition is NULL, expected a name of the worker program: %s",
                 names);
    gpi_birth_fail(plan, GPUD_ENODEFINITION, text);
}
