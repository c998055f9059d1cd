/* SPDX-License-Identifier: MIT */
/*
 * alarm.c - time limits and stops in a worker: SIGALRM becomes an exception in user code.
 *
 * SIGALRM has three handlers in a row.  The library's is the first: it sets the flag and arms the
 * timer again.  This file's is the second: it calls the library's, and if the task is late or was
 * stopped, and user code runs, it trips Python.  The third runs in Python's main loop: it raises the
 * exception inside user code, once.
 *
 * The Python stack is written once, by faulthandler, for the outcome of a worker that is killed.
 * While Python's main loop runs its frames change, and a signal handler that walks them crashes (once
 * in 5,000 limits of 3.13).  So there the third handler writes the stack.  In native code the third
 * one may never run: there the second one writes it.  Native code is where the program counter is
 * outside of Python's own code, and in that code where Python has not reacted within STUCK_NS of CPU
 * time: a power of large integers.  (On GPUs no second signal arrives that would see the latter.)
 * Frames change in native code, too: 3.13 frees a frame's locals under an entry frame that has no
 * code object, which faulthandler does not expect.  So a fault in it is caught.
 *
 * faulthandler and Python keep their handlers at another signal, which no process sends: so user
 * code may set a handler of its own for SIGALRM.  Such a handler displaces the first two until it
 * is removed again, or until the next call; then alarms of user code reach it, and the library's
 * do not.
 */
#include "alarm.h"
#include "process.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum why { NOT_YET, LATE, STOPPED };

#define STUCK_NS 20000000

static struct {
    pid_t number;                   /* of the task thread */
    pthread_t thread;
    int signal;                     /* at which Python and faulthandler have their handlers */
    void (*library)(int);
    void (*python)(int);
    void (*dump)(int);              /* faulthandler's, may be NULL */
    int flags;                      /* of SIGALRM, as the library chose them */
    const _Atomic uint64_t *stops;
    PyObject *timeout, *stopped;
    /* of the call that runs; the handler reads them on the same thread */
    gpud_task *const *member;
    volatile size_t n;
    volatile sig_atomic_t inside;   /* user code runs */
    volatile sig_atomic_t why;      /* enum why: Python was tripped */
    volatile sig_atomic_t raised;   /* the exception was raised */
    volatile sig_atomic_t written;  /* the stack was written */
    sigjmp_buf escape;
    struct sigaction before_segv, before_bus;
    int64_t tripped_at;             /* CPU time of the thread */
    uintptr_t python_from, python_to; /* Python's own code */
    volatile sig_atomic_t sent_on;  /* the signal came from another thread of this process */
} alarm_;

/* ---- the verdict ---- */

bool core_alarm_stop_asked(const gpud_task *t)
{
    uint64_t id = gpud_task_id(t);

    return gpud_task_cancelled(t) && alarm_.stops &&
           atomic_load_explicit(&alarm_.stops[id % CORE_STOPS], memory_order_acquire) == id;
}

/* Async-signal-safe.  A batch is stopped once each of its members is: an exception ends all. */
static enum why verdict(void)
{
    size_t n = alarm_.n, stopped = 0;

    if (n == 0)
        return NOT_YET;
    if (gpud_task_expired(alarm_.member[0]))
        return LATE;
    while (stopped < n && core_alarm_stop_asked(alarm_.member[stopped]))
        stopped++;
    return stopped == n ? STOPPED : NOT_YET;
}

/* ---- in the signal handler ---- */

static void say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static void say_number(uint64_t n)
{
    char digits[24], *at = digits + sizeof digits;

    *--at = '\0';
    do
        *--at = (char)('0' + n % 10);
    while ((n /= 10) != 0);
    say(at);
}

/* Faults of faulthandler lead back to write_stack; another thread's has the action it had before. */
static void on_fault(int signo)
{
    if (core_alarm_on_main_thread())
        siglongjmp(alarm_.escape, 1);
    (void)sigaction(signo, signo == SIGBUS ? &alarm_.before_bus : &alarm_.before_segv, NULL);
}

/* faulthandler allocates nothing and holds no lock, so that it can be left anywhere; after that it
 * writes no stack any more. */
static void dump_guarded(void)
{
    struct sigaction guard;

    memset(&guard, 0, sizeof guard);
    guard.sa_handler = on_fault;
    (void)sigaction(SIGSEGV, &guard, &alarm_.before_segv);
    (void)sigaction(SIGBUS, &guard, &alarm_.before_bus);
    if (sigsetjmp(alarm_.escape, 1) == 0)
        alarm_.dump(alarm_.signal);
    else
        say("\n  (the rest of the stack could not be read)\n");
    (void)sigaction(SIGBUS, &alarm_.before_bus, NULL);
    (void)sigaction(SIGSEGV, &alarm_.before_segv, NULL);
}

static void write_stack(void)
{
    alarm_.written = 1;
    say("gpudispatch: task ");
    say_number(gpud_task_id(alarm_.member[0]));
    say(alarm_.why == LATE ? " exceeded its time limit\n" : " was stopped\n");
    if (alarm_.dump)
        dump_guarded();
}

static int64_t cpu_time(void)
{
    struct timespec t = { 0, 0 };

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Whether Python's own code was interrupted, as far as this machine's registers tell. */
static bool was_in_python(const void *context)
{
    const ucontext_t *at = context;
    uintptr_t pc;

    if (!context)
        return true;
#if defined __x86_64__
    pc = (uintptr_t)at->uc_mcontext.gregs[REG_RIP];
#elif defined __aarch64__
    pc = (uintptr_t)at->uc_mcontext.pc;
#else
    (void)at;
    pc = alarm_.python_from;
#endif
    return pc >= alarm_.python_from && pc < alarm_.python_to;
}

/* `context`: what the signal has interrupted; NULL outside of a signal handler. */
static void trip(const void *context)
{
    if (!alarm_.inside || alarm_.raised)
        return;
    if (alarm_.why == NOT_YET) {
        enum why why = verdict();
        if (why == NOT_YET)
            return;
        alarm_.why = (sig_atomic_t)why;
        alarm_.tripped_at = cpu_time();
        alarm_.python(alarm_.signal);
    }
    if (!alarm_.written &&
        (!was_in_python(context) || cpu_time() - alarm_.tripped_at > STUCK_NS))
        write_stack();
}

/* Whether the signal is user code's own: alarm, setitimer, raise or kill of this process. */
static bool is_theirs(const siginfo_t *info)
{
    return info->si_code == SI_KERNEL ||
           ((info->si_code == SI_USER || info->si_code == SI_TKILL) && info->si_pid == getpid());
}

static void on_alarm(int signo, siginfo_t *info, void *context)
{
    int err = errno;

    if (!core_alarm_on_main_thread()) {
        /* the stack of interest, and the call to end, are the task thread's */
        alarm_.sent_on = !is_theirs(info);
        (void)syscall(SYS_tgkill, getpid(), alarm_.number, signo);
    } else {
        bool theirs = is_theirs(info) && !alarm_.sent_on;
        alarm_.sent_on = 0;
        alarm_.library(signo);
        if (theirs)
            alarm_.python(SIGALRM);
        trip(context);
    }
    errno = err;
}

static void take_signal(void)
{
    struct sigaction sa;

    memset(&sa, 0, sizeof sa);
    sa.sa_sigaction = on_alarm;
    sa.sa_flags = alarm_.flags | SA_SIGINFO;
    (void)sigaction(SIGALRM, &sa, NULL);
}

static bool have_signal(void)
{
    struct sigaction sa;

    return sigaction(SIGALRM, NULL, &sa) == 0 && sa.sa_flags & SA_SIGINFO &&
           sa.sa_sigaction == on_alarm;
}

/* ---- in Python's main loop ---- */

static PyObject *raise_why(void)
{
    char text[96];

    alarm_.raised = 1;
    if (alarm_.inside && !alarm_.written)
        write_stack();
    snprintf(text, sizeof text, alarm_.why == LATE ? "task %llu exceeded its time limit"
                                                   : "task %llu was stopped",
             (unsigned long long)gpud_task_id(alarm_.member[0]));
    PyErr_SetString(alarm_.why == LATE ? alarm_.timeout : alarm_.stopped, text);
    return NULL;
}

/* The handler that Python runs: outside of user code, and for an earlier task, it does nothing. */
static PyObject *on_trip(PyObject *self, PyObject *args)
{
    (void)self, (void)args;
    if (!alarm_.inside || alarm_.why == NOT_YET || alarm_.raised)
        Py_RETURN_NONE;
    return raise_why();
}

/* Python's handler of SIGALRM where user code has put back what it had found: the library's signal
 * came here alone.  Or user code has sent one without a handler of its own. */
static PyObject *on_python_alarm(PyObject *self, PyObject *args)
{
    if (!have_signal() && core_alarm_on_main_thread()) {
        sigset_t mask;
        sigset_t before;
        sigemptyset(&mask);
        sigaddset(&mask, SIGALRM);
        (void)pthread_sigmask(SIG_BLOCK, &mask, &before);
        take_signal();
        alarm_.library(SIGALRM);
        trip(NULL);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return on_trip(self, args);
}

static PyObject *on_interrupt(PyObject *self, PyObject *args)
{
    (void)self, (void)args;
    Py_RETURN_NONE;
}

/* ---- calls ---- */

void core_alarm_begin(gpud_task *const *members, size_t n)
{
    alarm_.n = 0;
    atomic_signal_fence(memory_order_seq_cst);
    alarm_.member = members;
    alarm_.why = NOT_YET;
    alarm_.raised = 0;
    alarm_.written = 0;
    atomic_signal_fence(memory_order_seq_cst);
    alarm_.n = n;
}

void core_alarm_end(void)
{
    alarm_.inside = 0;
    alarm_.n = 0;
    if (!have_signal())
        take_signal(); /* user code has left a handler of its own */
}

PyObject *core_alarm_call(PyObject *function, PyObject *args, PyObject *kw)
{
    PyObject *r;

    alarm_.inside = 1; /* first: a signal before it raises nothing, and may be the only one */
    atomic_signal_fence(memory_order_seq_cst);
    if (alarm_.why == NOT_YET)
        alarm_.why = (sig_atomic_t)verdict();
    if (alarm_.why == NOT_YET) {
        r = PyObject_Call(function, args, kw);
        atomic_signal_fence(memory_order_seq_cst);
        alarm_.inside = 0;
        if (core_process_forked())
            core_process_leave();
        return r;
    }
    alarm_.inside = 0;
    return raise_why();
}

void core_alarm_block(bool block)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    (void)pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

bool core_alarm_on_main_thread(void)
{
    return pthread_equal(pthread_self(), alarm_.thread);
}

/* ---- installation ---- */

/* A child that user code forks is no worker: SIGALRM is its own again. */
static void in_child(void)
{
    struct sigaction dfl;

    alarm_.inside = 0;
    alarm_.n = 0;
    if (!have_signal())
        return;
    memset(&dfl, 0, sizeof dfl);
    dfl.sa_handler = SIG_DFL;
    (void)sigaction(SIGALRM, &dfl, NULL);
}

static PyMethodDef trip_def = { "on_trip", on_trip, METH_VARARGS, NULL };
static PyMethodDef alarm_def = { "on_alarm", on_python_alarm, METH_VARARGS, NULL };
static PyMethodDef interrupt_def = { "on_interrupt", on_interrupt, METH_VARARGS, NULL };

/* Finds the loaded object that has Python's main loop. */
static int find_python(struct dl_phdr_info *info, size_t size, void *user)
{
    const uintptr_t inside = (uintptr_t)PyObject_Call;

    (void)size, (void)user;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t to = from + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X &&
            inside >= from && inside < to) {
            alarm_.python_from = from;
            alarm_.python_to = to;
            return 1;
        }
    }
    return 0;
}

static int set_python(PyObject *signal_module, int signo, PyMethodDef *def)
{
    PyObject *function = PyCFunction_NewEx(def, NULL, NULL), *before = NULL;

    if (function)
        before = PyObject_CallMethod(signal_module, "signal", "iO", signo, function);
    Py_XDECREF(function);
    Py_XDECREF(before);
    return before ? 0 : -1;
}

static void (*handler_of(int signo, int *ret_flags))(int)
{
    struct sigaction sa;

    if (sigaction(signo, NULL, &sa))
        return NULL;
    if (ret_flags)
        *ret_flags = sa.sa_flags;
    return sa.sa_handler;
}

/* Calls a function of faulthandler with a signal's number, or none: the stack of the thread alone
 * goes to stderr, since others' frames may be changing. */
static bool tell_faulthandler(PyObject *module, const char *name, PyObject *args, bool chain)
{
    PyObject *function = PyObject_GetAttrString(module, name), *r = NULL,
             *kw = Py_BuildValue("{s:i,s:O}", "file", STDERR_FILENO, "all_threads", Py_False);

    if (kw && !chain && PyDict_SetItemString(kw, "chain", Py_False))
        Py_CLEAR(kw);
    if (function && args && kw)
        r = PyObject_Call(function, args, kw);
    PyErr_Clear();
    Py_XDECREF(kw);
    Py_XDECREF(function);
    Py_XDECREF(r);
    return r != NULL;
}

/* A crash and a late task leave their stacks; without faulthandler they leave none. */
static void find_dump(void)
{
    PyObject *module = PyImport_ImportModule("faulthandler"), *none = PyTuple_New(0),
             *number = Py_BuildValue("(i)", alarm_.signal);

    if (module) {
        (void)tell_faulthandler(module, "enable", none, true);
        if (tell_faulthandler(module, "register", number, false))
            alarm_.dump = handler_of(alarm_.signal, NULL);
    }
    PyErr_Clear();
    Py_XDECREF(number);
    Py_XDECREF(none);
    Py_XDECREF(module);
}

/* Python's handler of SIGINT must not be its own: asyncio.run would put that in and restore it,
 * and then an interrupt of the host's terminal would end tasks.  The library's stays in C. */
static int keep_interrupt(PyObject *signal_module)
{
    struct sigaction library;
    int r;

    (void)sigaction(SIGINT, NULL, &library);
    r = set_python(signal_module, SIGINT, &interrupt_def);
    (void)sigaction(SIGINT, &library, NULL);
    return r;
}

int core_alarm_install(PyObject *timeout, PyObject *stopped, const void *stops)
{
    PyObject *signal_module = PyImport_ImportModule("_signal");
    int r = -1;

    if (!signal_module)
        return -1;
    alarm_.number = (pid_t)syscall(SYS_gettid);
    alarm_.thread = pthread_self();
    alarm_.signal = SIGRTMAX - 7;
    alarm_.stops = stops;
    Py_INCREF(timeout);
    alarm_.timeout = timeout;
    Py_INCREF(stopped);
    alarm_.stopped = stopped;
    alarm_.library = handler_of(SIGALRM, &alarm_.flags);
    if (!dl_iterate_phdr(find_python, NULL))
        alarm_.python_to = UINTPTR_MAX; /* never in a handler */
    find_dump();
    if (set_python(signal_module, alarm_.signal, &trip_def) == 0 &&
        (alarm_.python = handler_of(alarm_.signal, NULL)) != NULL &&
        set_python(signal_module, SIGALRM, &alarm_def) == 0)
        r = keep_interrupt(signal_module);
    take_signal();
    (void)pthread_atfork(NULL, NULL, in_child);
    Py_DECREF(signal_module);
    return r;
}
