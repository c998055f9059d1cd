/* SPDX-License-Identifier: MIT */
/*
 * late.c - a host that comes late, or was stopped: what was said in time counts as said in time,
 * however long it waited to be heard.
 * [C7] [C9]
 */
#include "fixture.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT T_S(2)

enum { SETUPS, SETUP_GATE, SET_UP, STARTED };
enum { WORKER };
enum { PLAIN, REST };

/* Is over when its gate is open. */
static int setup(gpud_worker *w, void **ret_state)
{
    (void)w, (void)ret_state;
    atomic_store(&t_page->numbers[WORKER], (uint64_t)getpid());
    (void)t_word_add(SETUPS);
    t_word_wait(SETUP_GATE, 1);
    (void)t_word_add(SET_UP);
    return 0;
}

static int process(gpud_task *t, void *state)
{
    (void)state;
    if (gpud_task_tag(t) != REST)
        return 0;
    t_block_signals();
    (void)t_word_add(STARTED);
    t_rest();
}

/* The library's messages pass here: the next one waits for longer than any limit, as where the host
 * is stopped just before it. */
static atomic_bool next_message_is_late;

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (atomic_exchange(&next_message_is_late, false))
        t_pass(LIMIT + T_MS(50)); /* the core extends a wait that it finds over by 100 ms */
    return syscall(SYS_sendmsg, fd, message, flags);
}

static struct t_proc worker_now(void)
{
    struct t_proc p;

    T_EQ(t_proc_read((pid_t)atomic_load(&t_page->numbers[WORKER]), &p), 0);
    return p;
}

static int is_asleep(void *user)
{
    struct t_proc p, *wanted = user;

    return t_proc_read(wanted->pid, &p) == 0 && p.state == 'S';
}

/* Who has nothing left to say. */
static void wait_asleep(struct t_proc p)
{
    t_wait_until("it waits for the host", is_asleep, &p);
}

/* Setup has been over for longer than it might take, and nobody has asked. */
static void end_setup_unheard(void)
{
    struct t_proc worker = worker_now();

    t_word_set(SETUP_GATE, 1);
    t_word_wait(SET_UP, 1);
    wait_asleep(worker);
    t_pass(LIMIT);
}

static void poll_until_word(gpud_dispatcher *d, struct t_log *log, unsigned word)
{
    const uint64_t until = t_now() + T_PATIENCE;

    while (t_word(word) == 0) {
        (void)t_poll(d, log, T_MS(1));
        T_CMP(t_now(), <, until);
    }
}

static gpud_dispatcher *driven_by_caller(void)
{
    t_init(setup, process, NULL);
    return T_CREATE(.devices = "cpu:1", .drive = GPUD_DRIVE_CALLER, .setup_limit = LIMIT,
                    .kill_limit = LIMIT, .grace = T_MS(40));
}

/* One task more, and the end; with nothing told but outcomes. */
static void goes_well(gpud_dispatcher **d, struct t_log *log, uint64_t tag)
{
    (void)T_RUN(*d, log, SUCCESS, .tag = tag);
    T_OK(gpud_dispatcher_close(*d, GPUD_FINISH_ALL, 0));
    t_collect_rest(*d, log);
    T_EQ(t_log_count(log, GPUD_EVENT_OUTCOME), log->count);
    T_EQ(t_stats(*d).slots_failed, 0);
    t_end(d, log);
}

T_CASE(setup_was_in_time)
{
    gpud_dispatcher *d = driven_by_caller();
    struct t_log log = { 0 };

    poll_until_word(d, &log, SETUPS);
    end_setup_unheard();
    goes_well(&d, &log, PLAIN);
    T_EQ(t_word(SETUPS), 1);
}

/* The time that a worker has to die in begins when its keeper is told. */
T_CASE(kill_was_told_late)
{
    gpud_dispatcher *d = driven_by_caller();
    struct t_proc worker, keeper;
    struct t_log log = { 0 };
    uint64_t id;

    t_word_set(SETUP_GATE, 1);
    id = t_submit(d, T_TASK(.tag = REST));
    poll_until_word(d, &log, STARTED);
    worker = worker_now();
    keeper = t_keeper_of(&worker);
    t_stop(&keeper); /* it takes a moment for what it is told */
    T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_HARD));
    t_pass(T_MS(50));                                               /* the grace */
    /* so that the next poll returns at once */
    T_OK(gpud_dispatcher_cancel(d, t_submit(d, T_TASK(.tag = 7)), GPUD_CANCEL_HARD));
    atomic_store(&next_message_is_late, true);
    T_EQ(t_poll(d, &log, 0), 1);
    T_CHECK(!atomic_load(&next_message_is_late));
    T_EQ(t_poll(d, &log, 0), 0);
    t_kill(keeper.pid, SIGCONT);
    t_collect(d, &log, 2);
    T_EQ(T_OUTCOME(&log, REST, CANCELLED)->phase, GPUD_PHASE_HARD);
    goes_well(&d, &log, PLAIN);
}

T_PROGRAM(host)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    (void)argc, (void)argv;
    d = T_BEGIN(setup, process, .devices = "cpu:1", .setup_limit = LIMIT);
    goes_well(&d, &log, PLAIN);
    return 0;
}

/* Ctrl-Z at a shell, say: the workers go on. */
T_CASE(host_is_stopped_during_setup)
{
    pid_t pid = t_program_start("host", NULL, NULL);
    struct t_proc host;
    int status;

    t_word_wait(SETUPS, 1);
    T_EQ(t_proc_read(pid, &host), 0);
    t_stop(&host);
    end_setup_unheard();
    t_kill(pid, SIGCONT);
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(status, 0);
    T_EQ(t_word(SETUPS), 1);
}
