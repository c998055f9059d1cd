/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <inttypes.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct t_page *t_page;

/* ---- checks ---- */

void t_fail(const char *file, int line, const char *format, ...)
{
    char text[1024];
    const char *base = strrchr(file, '/');
    va_list list;

    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    (void)fflush(stdout);
    (void)fprintf(stderr, "%s:%d: %s\n", base ? base + 1 : file, line, text);
    (void)fflush(stderr);
    _exit(1);
}

void t_skip(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    (void)vfprintf(stderr, format, list);
    va_end(list);
    (void)fprintf(stderr, "\n");
    (void)fflush(NULL);
    _exit(77);
}

static bool all_effort;

__attribute__((constructor)) static void read_effort(void)
{
    const char *effort = getenv("T_EFFORT");

    all_effort = effort && !strcmp(effort, "all");
}

size_t t_rounds(size_t all, size_t sanitized)
{
    size_t n = T_SANITIZED ? sanitized : all;

    return all_effort ? n : (n + 9) / 10;
}

void t_check_eq(const char *file, int line, const char *left, const char *right, int64_t a,
                int64_t b)
{
    if (a != b)
        t_fail(file, line, "%s is %" PRId64 ", not %s = %" PRId64, left, a, right, b);
}

void t_check_cmp(const char *file, int line, const char *text, int holds, int64_t a, int64_t b)
{
    if (!holds)
        t_fail(file, line, "not so: %s (%" PRId64 ", %" PRId64 ")", text, a, b);
}

void t_check_text(const char *file, int line, const char *what, const char *a, const char *b)
{
    if (!a || strcmp(a, b))
        t_fail(file, line, "%s is \"%s\", not \"%s\"", what, a ? a : "(NULL)", b);
}

/* ---- calls that must succeed ---- */

void t_thread(pthread_t *ret_thread, void *(*run)(void *user), void *user)
{
    T_EQ(pthread_create(ret_thread, NULL, run, user), 0);
}

void t_join(pthread_t thread)
{
    T_EQ(pthread_join(thread, NULL), 0);
}

void t_kill(pid_t pid, int number)
{
    T_EQ(kill(pid, number), 0);
}

/* ---- time ---- */

uint64_t t_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return T_S(t.tv_sec) + (uint64_t)t.tv_nsec;
}

void t_pass(uint64_t duration)
{
    uint64_t until = t_now() + duration, now;

    while ((now = t_now()) < until)
        (void)poll(NULL, 0, (int)((until - now) / 1000000 + 1));
}

void t_wait_until(const char *what, int (*holds)(void *user), void *user)
{
    uint64_t until = t_now() + T_PATIENCE;

    while (!holds(user)) {
        if (t_now() > until)
            T_FAIL("waited in vain until %s", what);
        (void)poll(NULL, 0, 2);
    }
}

void t_rest(void)
{
    for (;;)
        (void)pause();
}

void t_block_signals(void)
{
    sigset_t all;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
}

/* ---- shared words ---- */

static long futex(_Atomic uint32_t *word, int operation, uint32_t value,
                  const struct timespec *limit)
{
    return syscall(SYS_futex, (void *)word, operation, value, limit, NULL, 0);
}

uint32_t t_word_add(unsigned word)
{
    uint32_t value = atomic_fetch_add(&t_page->words[word], 1) + 1;

    (void)futex(&t_page->words[word], FUTEX_WAKE, INT32_MAX, NULL);
    return value;
}

void t_word_set(unsigned word, uint32_t value)
{
    atomic_store(&t_page->words[word], value);
    (void)futex(&t_page->words[word], FUTEX_WAKE, INT32_MAX, NULL);
}

uint32_t t_word(unsigned word)
{
    return atomic_load(&t_page->words[word]);
}

int t_word_wait_for(unsigned word, uint32_t value, uint64_t duration)
{
    uint64_t until = t_now() + duration, now;
    uint32_t seen;

    while ((seen = t_word(word)) < value) {
        struct timespec left;

        now = t_now();
        if (now >= until)
            return -1;
        left.tv_sec = (time_t)((until - now) / 1000000000U);
        left.tv_nsec = (long)((until - now) % 1000000000U);
        (void)futex(&t_page->words[word], FUTEX_WAIT, seen, &left);
    }
    return 0;
}

void t_word_wait(unsigned word, uint32_t value)
{
    if (t_word_wait_for(word, value, T_PATIENCE))
        T_FAIL("process %d waited in vain for word %u: it is %u, not %u", (int)getpid(), word,
               t_word(word), value);
}
