/* SPDX-License-Identifier: MIT */
#include "keeper/maker.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/refused.h"
#include "keeper/program.h"
#include "keeper/surroundings.h"
#include "os/fds.h"
#include "os/memory.h"
#include "os/process.h"

static void *map_whole(int fd, bool writable, uint64_t *ret_size)
{
    struct stat st;

    if (fstat(fd, &st)) {
        (void)gpi_refused(GPI_SYS_FSTAT);
        return NULL;
    }
    if (st.st_size <= 0) {
        errno = EBADMSG;
        return NULL;
    }
    *ret_size = (uint64_t)st.st_size;
    return gpi_memory_map(fd, *ret_size, writable);
}

static bool executes(const struct gpi_maker *m)
{
    return m->launch.start == GPUD_START_EXEC;
}

/* ---- the slot's memory ---- */

static struct gpi_page *map_page(const struct gpi_maker *m, uint64_t *ret_size)
{
    struct gpi_page *p = map_whole(m->plan->fds[GPI_MAKE_PAGE], true, ret_size);

    if (!p ||
        (*ret_size >= sizeof *p && p->magic == GPI_PAGE_MAGIC && p->version == GPI_PAGE_VERSION))
        return p;
    gpi_memory_unmap(p, *ret_size);
    errno = EBADMSG;
    return NULL;
}

bool gpi_maker_init(struct gpi_maker *m, const struct gpi_keeper_plan *plan)
{
    uint64_t size;

    *m = (struct gpi_maker){ .plan = plan, .setup_fd = -1, .program_fd = -1 };
    m->theirs = m->page = map_page(m, &size);
    return m->page && gpi_surroundings_init(&m->surroundings, &m->launch, plan->slot);
}

/* Maps, once, the memory that forked workers inherit.  The page is mapped again for them: in that
 * mapping the keeper's words become read-only. */
static bool map_inherited(struct gpi_maker *m)
{
    uint64_t size;

    if (m->result)
        return true;
    m->theirs = map_page(m, &size);
    if (!m->theirs)
        return false;
    gpi_memory_not_inherited(m->page, size);
    m->input = map_whole(m->plan->fds[GPI_MAKE_INPUT], false, &size);
    if (m->input)
        m->result = map_whole(m->plan->fds[GPI_MAKE_RESULT], true, &size);
    if (!m->result)
        return false;
    m->plan->spawner->prepare(m->theirs);
    return true;
}

/* ---- a class ---- */

static void forget_class(struct gpi_maker *m)
{
    free(m->launch.block);
    m->launch = (struct gpi_launch){ .block = NULL };
    gpi_fd_close(&m->setup_fd);
    gpi_fd_close(&m->program_fd);
    if (m->surroundings.owns_files) {
        gpi_fd_close(&m->surroundings.output);
        gpi_fd_close(&m->surroundings.errors);
    }
    if (m->setup_size)
        gpi_memory_unmap((void *)(uintptr_t)m->setup, m->setup_size);
    m->setup_size = 0;
}

static bool read_launch(struct gpi_maker *m, int fd)
{
    uint64_t size = 0;
    void *blob = map_whole(fd, false, &size);
    bool read = blob && gpi_launch_decode(&m->launch, blob, (size_t)size) == 0;

    gpi_memory_unmap(blob, size);
    gpi_fd_close(&fd);
    return read;
}

/* The fds that the launch record announces. */
static bool take_files(struct gpi_maker *m, const int *fds, size_t n)
{
    const bool inherits = m->launch.stdio == GPUD_STDIO_INHERIT;
    const bool program = m->launch.has_program == 1;
    const int *pipes = m->plan->fds;
    size_t at = GPI_CLASS_FDS;

    if (n != at + (inherits ? 2u : 0u) + program) {
        errno = EBADMSG;
        return false;
    }
    m->surroundings.owns_files = inherits;
    m->surroundings.output = inherits ? fds[at++] : pipes[GPI_MAKE_OUTPUT];
    m->surroundings.errors = inherits                                 ? fds[at++]
                             : m->launch.stdio == GPUD_STDIO_EVENTS ? pipes[GPI_MAKE_ERRORS]
                                                                    : pipes[GPI_MAKE_OUTPUT];
    if (program)
        m->program_fd = fds[at];
    return true;
}

static bool map_setup(struct gpi_maker *m)
{
    m->setup = m->input;
    if (gpi_memory_same(m->setup_fd, m->plan->fds[GPI_MAKE_INPUT]))
        return true;
    m->setup = map_whole(m->setup_fd, false, &m->setup_size);
    return m->setup;
}

/* The host has written the page's header, and no worker can have changed it since. */
static bool find_definition(struct gpi_maker *m)
{
    const struct gpi_spawner_plan *s = m->plan->spawner;
    const uint32_t definition = m->page->definition;

    errno = EBADMSG;
    if (definition >= s->n_definitions)
        return false;
    m->definition = &s->definitions[definition];
    return true;
}

/* A program maps the memory itself, and finds its definition by name. */
bool gpi_maker_class(struct gpi_maker *m, const int *fds, size_t n)
{
    forget_class(m);
    m->setup_fd = fds[GPI_CLASS_SETUP];
    if (!gpi_surroundings_reset(&m->surroundings) || !read_launch(m, fds[GPI_CLASS_LAUNCH]) ||
        !take_files(m, fds, n))
        return false;
    if (!executes(m) && (!map_inherited(m) || !map_setup(m) || !find_definition(m)))
        return false;
    m->surroundings.page = m->theirs;
    return true;
}

/* ---- one worker ---- */

static _Noreturn void become_worker(struct gpi_maker *m, uint32_t incarnation, pid_t keeper)
{
    const int *fds = m->plan->fds;
    const struct gpi_worker_plan plan = {
        .definition = m->definition,
        .page = m->theirs,
        .input = m->input,
        .setup = m->setup,
        .result = m->result,
        .orders = fds[GPI_MAKE_ORDERS],
        .looks = fds[GPI_MAKE_LOOKS],
        .incarnation = incarnation,
        .keeper = keeper,
    };

    if (!gpi_process_die_with(keeper)) { /* before any call that may block */
        gpi_page_setup_failed(m->theirs, GPUD_ESYSTEM, GPI_NO_KEEPER);
        _exit(74);
    }
    gpi_surroundings_settle(&m->surroundings);
    m->plan->spawner->worker(&plan);
    _exit(70); /* not reached: the worker function does not return */
}

static _Noreturn void become_program(struct gpi_maker *m, uint32_t incarnation, pid_t keeper,
                                    int hello)
{
    const int *fds = m->plan->fds;
    const struct gpi_program p = {
        .launch = &m->launch,
        .fd = m->program_fd,
        .surroundings = &m->surroundings,
        .call = { .protocol = GPI_PROTOCOL,
                  .hello = hello,
                  .keeper = keeper,
                  .incarnation = incarnation,
                  .page = fds[GPI_MAKE_PAGE],
                  .input = fds[GPI_MAKE_INPUT],
                  .result = fds[GPI_MAKE_RESULT],
                  .orders = fds[GPI_MAKE_ORDERS],
                  .looks = fds[GPI_MAKE_LOOKS],
                  .setup = m->setup_fd },
    };

    gpi_program_run(&p);
}

pid_t gpi_maker_fork(struct gpi_maker *m, uint32_t incarnation, int *ret_hello)
{
    pid_t self = getpid(), pid;
    int hello = -1;

    gpi_surroundings_prepare(&m->surroundings, incarnation);
    if (executes(m) && (gpi_fd_pipe(ret_hello, &hello) || gpi_fd_nonblock(*ret_hello))) {
        gpi_fd_close(ret_hello);
        gpi_fd_close(&hello);
        return -1;
    }
    pid = gpi_process_fork();
    if (pid == 0 && executes(m))
        become_program(m, incarnation, self, hello);
    if (pid == 0)
        become_worker(m, incarnation, self);
    gpi_fd_close(&hello);
    if (pid < 0)
        gpi_fd_close(ret_hello);
    return pid;
}
