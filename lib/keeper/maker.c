/* SPDX-License-Identifier: MIT */
#include "keeper/maker.h"

#include <errno.h>
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

bool gpi_maker_executes(const struct gpi_maker *m)
{
    return m->launch.start == GPUD_START_EXEC;
}

/* Reads the host's launch record; the keeper does that once. */
static bool read_launch(struct gpi_maker *m)
{
    uint64_t size = 0;
    void *blob = map_whole(m->plan->fds[GPI_MAKE_LAUNCH], false, &size);
    bool read = blob && gpi_launch_decode(&m->launch, blob, (size_t)size) == 0;

    gpi_memory_unmap(blob, size);
    if (!read || (m->launch.has_program == 1) == (m->plan->fds[GPI_MAKE_PROGRAM] >= 0))
        return read;
    errno = EBADMSG;
    return false;
}

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

/* Maps the page for the keeper and, if it forks workers, again for them to inherit: in that mapping
 * the keeper's words become read-only. */
static bool map_pages(struct gpi_maker *m)
{
    uint64_t size;

    m->theirs = m->page = map_page(m, &size);
    if (!m->page || gpi_maker_executes(m))
        return m->page;
    m->theirs = map_page(m, &size);
    gpi_memory_not_inherited(m->page, size);
    return m->theirs;
}

/* Maps the memory once; each forked worker inherits the maps. */
static bool map_all(struct gpi_maker *m)
{
    uint64_t size;

    if (!map_pages(m))
        return false;
    if (gpi_maker_executes(m))
        return true; /* a program maps the memory and finds its definition by name */
    m->input = map_whole(m->plan->fds[GPI_MAKE_INPUT], false, &size);
    if (m->input)
        m->result = map_whole(m->plan->fds[GPI_MAKE_RESULT], true, &size);
    m->setup = m->input;
    if (m->result && !gpi_memory_same(m->plan->fds[GPI_MAKE_SETUP], m->plan->fds[GPI_MAKE_INPUT]))
        m->setup = map_whole(m->plan->fds[GPI_MAKE_SETUP], false, &size);
    if (!m->setup || !m->result)
        return false;
    errno = EBADMSG;
    if (m->page->definition >= m->plan->spawner->n_definitions)
        return false;
    /* read it now: later a worker could overwrite the index */
    m->definition = &m->plan->spawner->definitions[m->page->definition];
    return true;
}

static void inherit_files(const int *fds)
{
    const int all[] = { fds[GPI_MAKE_PAGE], fds[GPI_MAKE_INPUT], fds[GPI_MAKE_RESULT],
                        fds[GPI_MAKE_ORDERS], fds[GPI_MAKE_LOOKS], fds[GPI_MAKE_SETUP] };

    gpi_program_inherit(all, sizeof all / sizeof *all);
}

bool gpi_maker_init(struct gpi_maker *m, const struct gpi_keeper_plan *plan)
{
    m->plan = plan;
    if (!read_launch(m) || !map_all(m))
        return false;
    if (gpi_maker_executes(m))
        inherit_files(plan->fds);
    else
        plan->spawner->prepare(m->theirs);
    m->surroundings = (struct gpi_surroundings){
        .launch = &m->launch, .page = m->theirs, .slot = plan->slot,
        .output = plan->fds[GPI_MAKE_OUTPUT], .errors = plan->fds[GPI_MAKE_ERRORS],
    };
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
        .fd = fds[GPI_MAKE_PROGRAM],
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
                  .setup = fds[GPI_MAKE_SETUP] },
    };

    gpi_program_run(&p);
}

pid_t gpi_maker_fork(struct gpi_maker *m, uint32_t incarnation, int *ret_hello)
{
    pid_t self = getpid(), pid;
    int hello = -1;

    gpi_surroundings_prepare(&m->surroundings, incarnation);
    if (gpi_maker_executes(m) && (gpi_fd_pipe(ret_hello, &hello) || gpi_fd_nonblock(*ret_hello))) {
        gpi_fd_close(ret_hello);
        gpi_fd_close(&hello);
        return -1;
    }
    pid = gpi_process_fork();
    if (pid == 0 && gpi_maker_executes(m))
        become_program(m, incarnation, self, hello);
    if (pid == 0)
        become_worker(m, incarnation, self);
    gpi_fd_close(&hello);
    if (pid < 0)
        gpi_fd_close(ret_hello);
    return pid;
}
