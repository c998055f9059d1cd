/* SPDX-License-Identifier: MIT */
#include "inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FI_LIST(...) { __VA_ARGS__ }
#define FI_X(name, hard, harmless) { #name, FI_LIST hard, FI_LIST harmless },
const struct fi_kind fi_kinds[FI_CALLS] = { FI_CALL_MAP(FI_X) };
#undef FI_X

const char *const fi_roles[FI_ROLES] = { "host", "spawner", "keeper", "worker", "other" };
const char *const fi_phases[FI_PHASES] = { "init",  "create", "work",  "end",  "fini",
                                           "birth", "serve",  "setup", "task", "cleanup" };

struct fi_page *fi_page;
static enum fi_role role;
static bool inside; /* a host, or what descends from one: not the program that watches them */
static _Atomic enum fi_phase phase; /* threads of the host read it */
static _Atomic uint64_t random_state;
static _Atomic long open_blocks;

/* ---- the functions behind ---- */

#define REAL(ret, name, ...)              \
    ret __real_##name(__VA_ARGS__);       \
    ret __wrap_##name(__VA_ARGS__);
REAL(void *, malloc, size_t)
REAL(void *, calloc, size_t, size_t)
REAL(void *, realloc, void *, size_t)
REAL(void, free, void *)
REAL(pid_t, fork, void)
REAL(int, pipe2, int *, int)
REAL(void *, mmap64, void *, size_t, int, int, int, off_t)
REAL(int, munmap, void *, size_t)
REAL(int, memfd_create, const char *, unsigned)
REAL(int, ftruncate64, int, off_t)
REAL(int, fcntl64, int, int, ...)
REAL(int, open64, const char *, int, ...)
REAL(FILE *, fopen64, const char *, const char *)
REAL(int, fclose, FILE *)
REAL(DIR *, opendir, const char *)
REAL(int, closedir, DIR *)
REAL(int, epoll_create1, int)
REAL(int, epoll_ctl, int, int, int, struct epoll_event *)
REAL(int, epoll_wait, int, struct epoll_event *, int, int)
REAL(int, eventfd, unsigned, int)
REAL(int, socketpair, int, int, int, int *)
REAL(ssize_t, sendmsg, int, const struct msghdr *, int)
REAL(ssize_t, recvmsg, int, struct msghdr *, int)
REAL(int, poll, struct pollfd *, nfds_t, int)
REAL(int, ppoll, struct pollfd *, nfds_t, const struct timespec *, const sigset_t *)
REAL(int, fallocate64, int, int, off_t, off_t)
REAL(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)
REAL(int, pthread_mutex_init, pthread_mutex_t *, const pthread_mutexattr_t *)
REAL(int, pthread_cond_init, pthread_cond_t *, const pthread_condattr_t *)
REAL(int, timer_create, clockid_t, struct sigevent *, timer_t *)
REAL(ssize_t, read, int, void *, size_t)
REAL(ssize_t, write, int, const void *, size_t)
REAL(int, signalfd, int, const sigset_t *, int)
REAL(int, madvise, void *, size_t, int)
REAL(int, mprotect, void *, size_t, int)
REAL(int, prctl, int, ...)
REAL(pid_t, setsid, void)
REAL(int, waitid, idtype_t, id_t, siginfo_t *, int)
REAL(int, kill, pid_t, int)
REAL(long, syscall, long, ...)
REAL(int, clone, int (*)(void *), void *, int, void *, ...)
REAL(int, execve, const char *, char *const *, char *const *)
REAL(pid_t, waitpid, pid_t, int *, int)
REAL(int, dup2, int, int)
REAL(int, setenv, const char *, const char *, int)

/* ---- deciding ---- */

static pid_t self; /* what shares this memory but is another process is passed through */

static bool map(int fd)
{
    fi_page = __real_mmap64(NULL, sizeof *fi_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fi_page == MAP_FAILED)
        fi_page = NULL;
    return fi_page;
}

void fi_map(void)
{
    char text[64];
    int fd = __real_memfd_create("fault-page", MFD_CLOEXEC);

    if (fd < 0 || __real_ftruncate64(fd, sizeof *fi_page) || !map(fd))
        _exit(2);
    (void)snprintf(text, sizeof text, "/proc/%d/fd/%d", (int)getpid(), fd);
    if (__real_setenv(FI_VARIABLE, text, 1))
        _exit(2);
}

/* Before main: a call to a worker is taken out of the environment later. */
__attribute__((constructor)) static void resume(void)
{
    const char *path = getenv(FI_VARIABLE);
    int fd = path ? __real_open64(path, O_RDWR | O_CLOEXEC) : -1;

    self = getpid();
    if (fd < 0)
        return;
    inside = map(fd);
    (void)close(fd);
    role = getenv("GPUD_WORKER") ? FI_WORKER : FI_SPAWNER;
    atomic_store(&phase, FI_BIRTH);
}

bool fi_executed(void)
{
    return inside;
}

void fi_begin(void)
{
    inside = true;
    role = FI_HOST;
    atomic_store(&phase, FI_INIT);
    atomic_store(&open_blocks, 0);
    random_state = 0;
    self = getpid();
}

void fi_phase(enum fi_phase p)
{
    atomic_store(&phase, p);
}

long fi_open_blocks(void)
{
    return atomic_load(&open_blocks);
}

static __attribute__((noreturn)) void die(void)
{
    for (;;)
        (void)__real_kill(getpid(), SIGKILL);
}

/* Threads of one process may draw the same number: it does not matter. */
static uint32_t draw(void)
{
    uint64_t x;

    if (!random_state)
        random_state = fi_page->seed * 1000003 + (uint64_t)getpid() * 7919 + 1;
    x = atomic_fetch_add_explicit(&random_state, 0x9e3779b97f4a7c15u, memory_order_relaxed) +
        0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(x >> 40);
}

static int one_of(const int *list)
{
    unsigned n = 0;

    while (list[n])
        n++;
    return n ? list[draw() % n] : FI_NOTHING;
}

static int storm(enum fi_call c)
{
    uint32_t chance = draw() & 0xffff;
    int action = FI_NOTHING;

    if (chance < fi_page->harmless)
        action = one_of(fi_kinds[c].harmless);
    else if (chance < fi_page->harmless + fi_page->hard)
        action = one_of(fi_kinds[c].hard);
    else if (chance < fi_page->harmless + fi_page->hard + fi_page->kills && role != FI_HOST &&
             role != FI_SPAWNER)
        action = FI_KILL_BEFORE;
    return action;
}

static int decide(enum fi_call c)
{
    struct fi_page *p = fi_page;
    uint32_t n;

    if (p->call < 0)
        return storm(c);
    if (p->call != (int)c || p->role != (int)role ||
        p->phase != (int)atomic_load_explicit(&phase, memory_order_relaxed))
        return FI_NOTHING;
    n = atomic_fetch_add(&p->met, 1) + 1;
    return n == p->nth || (p->sticky && n > p->nth) ? p->action : FI_NOTHING;
}

/* What is to happen at this call.  Kills before it and stalls happen here. */
static int at(enum fi_call c)
{
    static const struct timespec stall = { 0, 20000000 };
    int action, err = errno;

    if (!inside || !atomic_load_explicit(&fi_page->armed, memory_order_relaxed))
        return FI_NOTHING;
    atomic_fetch_add_explicit(
        &fi_page->count[role][atomic_load_explicit(&phase, memory_order_relaxed)][c], 1,
        memory_order_relaxed);
    action = decide(c);
    if (action == FI_NOTHING)
        return FI_NOTHING;
    /* what fails for ever counts once */
    if (!fi_page->sticky || atomic_load(&fi_page->injected) == 0)
        atomic_fetch_add_explicit(&fi_page->injected, 1, memory_order_relaxed);
    if (action == FI_KILL_BEFORE)
        die();
    if (action == FI_STALL) {
        struct timespec left = stall;
        while (nanosleep(&left, &left) < 0 && errno == EINTR)
            ;
        action = FI_NOTHING;
    }
    errno = err;
    return action;
}

static void after(int action)
{
    if (action == FI_KILL_AFTER)
        die();
}

void fi_user_point(void)
{
    after(at(FI_user));
}

static void gained(void)
{
    if (role == FI_HOST)
        atomic_fetch_add_explicit(&open_blocks, 1, memory_order_relaxed);
}

static void lost(void)
{
    if (role == FI_HOST)
        atomic_fetch_sub_explicit(&open_blocks, 1, memory_order_relaxed);
}

static void child(void)
{
    role = role < FI_OTHER ? role + 1 : FI_OTHER;
    atomic_store(&phase, FI_BIRTH);
    random_state = 0;
    self = getpid();
}

/* ---- the functions in front ---- */

/* More arguments are taken than some calls give. */
#define ANY_ARGUMENTS __attribute__((no_sanitize("address", "undefined", "thread")))

/* Fails with errno, or goes through; `r` is the answer, `extra` runs before a kill. */
#define WRAP(ret, name, call, failed, parameters, arguments, extra) \
    ret __wrap_##name parameters                                    \
    {                                                               \
        int action = at(FI_##call);                                 \
        ret r;                                                      \
                                                                    \
        if (action > 0) {                                           \
            errno = action;                                         \
            return failed;                                          \
        }                                                           \
        r = __real_##name arguments;                                \
        extra;                                                      \
        after(action);                                              \
        return r;                                                   \
    }

WRAP(void *, malloc, malloc, NULL, (size_t size), (size), if (r) gained())
WRAP(void *, calloc, calloc, NULL, (size_t n, size_t size), (n, size), if (r) gained())

void *__wrap_realloc(void *p, size_t size)
{
    int action = at(FI_realloc), fresh = !p;
    void *r;

    if (action > 0) {
        errno = action;
        return NULL;
    }
    r = __real_realloc(p, size);
    if (r && fresh)
        gained();
    after(action);
    return r;
}

void __wrap_free(void *p)
{
    if (p)
        lost();
    __real_free(p);
}

WRAP(pid_t, fork, fork, -1, (void), (), if (r == 0) child())
WRAP(int, pipe2, pipe2, -1, (int *p, int flags), (p, flags), )
WRAP(void *, mmap64, mmap, MAP_FAILED,
     (void *at_, size_t size, int prot, int flags, int fd, off_t off),
     (at_, size, prot, flags, fd, off), if (r != MAP_FAILED) gained())

int __wrap_munmap(void *p, size_t size)
{
    lost();
    return __real_munmap(p, size);
}

WRAP(int, memfd_create, memfd_create, -1, (const char *name, unsigned flags), (name, flags), )
WRAP(int, ftruncate64, ftruncate, -1, (int fd, off_t size), (fd, size), )

ANY_ARGUMENTS int __wrap_fcntl64(int fd, int cmd, ...)
{
    int action, r;
    long arg;
    va_list list;

    va_start(list, cmd);
    arg = va_arg(list, long);
    va_end(list);
    action = at(cmd == F_DUPFD_CLOEXEC ? FI_dup : FI_fcntl);
    if (action > 0) {
        errno = action;
        return -1;
    }
    r = __real_fcntl64(fd, cmd, arg);
    after(action);
    return r;
}

ANY_ARGUMENTS int __wrap_open64(const char *path, int flags, ...)
{
    int action = at(FI_open), r;
    unsigned mode;
    va_list list;

    va_start(list, flags);
    mode = va_arg(list, unsigned);
    va_end(list);
    if (action > 0) {
        errno = action;
        return -1;
    }
    r = __real_open64(path, flags, mode);
    after(action);
    return r;
}

WRAP(FILE *, fopen64, fopen, NULL, (const char *path, const char *mode), (path, mode),
     if (r) gained())

int __wrap_fclose(FILE *f)
{
    lost();
    return __real_fclose(f);
}

WRAP(DIR *, opendir, opendir, NULL, (const char *path), (path), if (r) gained())

int __wrap_closedir(DIR *d)
{
    lost();
    return __real_closedir(d);
}

WRAP(int, epoll_create1, epoll_create, -1, (int flags), (flags), )

int __wrap_epoll_ctl(int ep, int op, int fd, struct epoll_event *e)
{
    int action = op == EPOLL_CTL_ADD ? at(FI_epoll_add) : FI_NOTHING, r;

    if (action > 0) {
        errno = action;
        return -1;
    }
    r = __real_epoll_ctl(ep, op, fd, e);
    after(action);
    return r;
}

WRAP(int, epoll_wait, epoll_wait, -1, (int ep, struct epoll_event *e, int n, int ms),
     (ep, e, n, ms), )
WRAP(int, eventfd, eventfd, -1, (unsigned n, int flags), (n, flags), )
WRAP(int, socketpair, socketpair, -1, (int domain, int type, int protocol, int *pair),
     (domain, type, protocol, pair), )
WRAP(ssize_t, sendmsg, sendmsg, -1, (int fd, const struct msghdr *m, int flags), (fd, m, flags), )

/* As the kernel does it when there is no number left: the record comes, the descriptors do not. */
static void drop_fds(struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        int *fd = (int *)(void *)CMSG_DATA(c);
        for (size_t i = 0;
             c->cmsg_type == SCM_RIGHTS && i < (c->cmsg_len - CMSG_LEN(0)) / sizeof *fd; i++)
            (void)close(fd[i]);
    }
    m->msg_controllen = 0;
    m->msg_flags |= MSG_CTRUNC;
}

WRAP(ssize_t, recvmsg, recvmsg, -1, (int fd, struct msghdr *m, int flags), (fd, m, flags),
     if (action == FI_TRUNC && r >= 0) drop_fds(m))

/* Where spawner and keeper wait, after their birth. */
static int at_poll(nfds_t n)
{
    if (atomic_load(&phase) == FI_BIRTH && n > 1 && (role == FI_SPAWNER || role == FI_KEEPER))
        atomic_store(&phase, FI_SERVE);
    return at(FI_poll);
}

int __wrap_ppoll(struct pollfd *p, nfds_t n, const struct timespec *wait, const sigset_t *mask)
{
    int action = at_poll(n), r;

    if (action > 0) {
        errno = action;
        return -1;
    }
    r = __real_ppoll(p, n, wait, mask);
    after(action);
    return r;
}

WRAP(int, fallocate64, fallocate, -1, (int fd, int mode, off_t off, off_t size),
     (fd, mode, off, size), )

int __wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
    int action = at_poll(n), r;

    if (action > 0) {
        errno = action;
        return -1;
    }
    r = __real_poll(p, n, ms);
    after(action);
    return r;
}

/* These answer with the error itself. */
#define WRAP_CODE(name, call, parameters, arguments) \
    int __wrap_##name parameters                     \
    {                                                \
        int action = at(FI_##call), r;               \
                                                     \
        if (action > 0)                              \
            return action;                           \
        r = __real_##name arguments;                 \
        after(action);                               \
        return r;                                    \
    }

WRAP_CODE(pthread_create, pthread_create,
          (pthread_t * t, const pthread_attr_t *a, void *(*f)(void *), void *arg), (t, a, f, arg))
WRAP_CODE(pthread_mutex_init, mutex_init, (pthread_mutex_t * m, const pthread_mutexattr_t *a),
          (m, a))
WRAP_CODE(pthread_cond_init, cond_init, (pthread_cond_t * c, const pthread_condattr_t *a), (c, a))

WRAP(int, timer_create, timer_create, -1, (clockid_t clock, struct sigevent *e, timer_t *ret),
     (clock, e, ret), )

/* A frame is never torn, since writes of one are atomic, but a read may bring fewer of them. */
ssize_t __wrap_read(int fd, void *to, size_t n)
{
    int action = at(FI_read);
    ssize_t r;

    if (action > 0) {
        errno = action;
        return -1;
    }
    if (action == FI_SHORT && n > 64)
        n = 64;
    r = __real_read(fd, to, n);
    after(action);
    return r;
}

WRAP(ssize_t, write, write, -1, (int fd, const void *from, size_t n), (fd, from, n), )
WRAP(int, signalfd, signalfd, -1, (int fd, const sigset_t *set, int flags), (fd, set, flags), )
WRAP(int, madvise, madvise, -1, (void *p, size_t size, int advice), (p, size, advice), )
WRAP(int, mprotect, mprotect, -1, (void *p, size_t size, int prot), (p, size, prot), )
WRAP(pid_t, setsid, setsid, -1, (void), (), )
WRAP(int, waitid, waitid, -1, (idtype_t type, id_t id, siginfo_t *si, int options),
     (type, id, si, options), )
WRAP(int, kill, kill, -1, (pid_t pid, int signo), (pid, signo), )

WRAP(int, execve, exec, -1, (const char *path, char *const *argv, char *const *env),
     (path, argv, env), )
WRAP(pid_t, waitpid, wait, -1, (pid_t pid, int *status, int options), (pid, status, options), )
WRAP(int, dup2, dup2, -1, (int from, int to), (from, to), )
WRAP(int, setenv, setenv, -1, (const char *name, const char *value, int over),
     (name, value, over), )

/* Of what shares the memory: no child of the kinds that are counted. */
ANY_ARGUMENTS int __wrap_clone(int (*run_)(void *), void *stack, int flags, void *arg, ...)
{
    int action, r, *pidfd;
    va_list list;

    va_start(list, arg);
    pidfd = va_arg(list, int *);
    va_end(list);
    if ((pid_t)__real_syscall(SYS_getpid) != self)
        return __real_clone(run_, stack, flags, arg, pidfd);
    action = at(FI_vclone);
    if (action > 0) {
        errno = action;
        return -1;
    }
    r = __real_clone(run_, stack, flags, arg, pidfd);
    after(action);
    return r;
}

ANY_ARGUMENTS int __wrap_prctl(int option, ...)
{
    int action = at(FI_prctl), r;
    unsigned long arg;
    va_list list;

    va_start(list, option);
    arg = va_arg(list, unsigned long);
    va_end(list);
    r = __real_prctl(option, arg, 0ul, 0ul, 0ul);
    after(action);
    return r;
}

ANY_ARGUMENTS long __wrap_syscall(long number, ...)
{
    int action = FI_NOTHING;
    long a[6], r;
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if ((pid_t)__real_syscall(SYS_getpid) != self) /* between vfork and exec */
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_clone)
        action = at(FI_clone);
    if (number == SYS_execveat)
        action = at(FI_exec);
#ifdef SYS_pidfd_open
    if (number == SYS_pidfd_open)
        action = at(FI_pidfd_open);
#endif
#ifdef SYS_close_range
    if (number == SYS_close_range)
        action = at(FI_close_range);
#endif
    if (action > 0) {
        errno = action;
        return -1;
    }
    r = __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_clone && r == 0)
        child();
    after(action);
    return r;
}

int fi_pidfd(pid_t pid)
{
    return (int)__real_syscall(SYS_pidfd_open, pid, 0, 0, 0, 0, 0);
}
