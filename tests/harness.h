/* SPDX-License-Identifier: MIT */
/*
 * harness.h - what every test program is made of: cases, checks, words shared with workers.
 *
 *     T_CASE(echo) { T_EQ(1 + 1, 2); }
 *
 * The program runs one case per process (tests/runner.c starts them): `EXE CASE`.  Around each
 * case stands a leak check: open files, threads, children, shared pages of the library, signal
 * dispositions, mask, directory, umask, locale and environment must be afterwards what they
 * were before [C13] [C19].  A failed check ends the process with 1.
 */
#ifndef T_HARNESS_H
#define T_HARNESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* T_SANITIZED is 1 in sanitizer builds, which are several times slower and hold more memory;
 * T_THREAD_SANITIZED in those of ThreadSanitizer, where no process can be made by a bare clone. */
#if defined(__has_feature)
#define T_HAS_FEATURE(name) __has_feature(name)
#else
#define T_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || T_HAS_FEATURE(thread_sanitizer)
#define T_THREAD_SANITIZED 1
#else
#define T_THREAD_SANITIZED 0
#endif
#if defined(__SANITIZE_ADDRESS__) || T_HAS_FEATURE(address_sanitizer) || T_THREAD_SANITIZED
#define T_SANITIZED 1
#else
#define T_SANITIZED 0
#endif

/* ---- cases ---- */

struct t_case {
    const char *name;
    void (*run)(void);
    int deadline_s; /* 0 = the runner's default */
    struct t_case *next;
};

void t_register_case(struct t_case *c);

/* A case; T_LONG_CASE names its deadline in seconds. */
#define T_CASE(name) T_LONG_CASE(name, 0)
#define T_LONG_CASE(name, seconds)                                              \
    static void case_##name(void);                                              \
    static struct t_case entry_##name = { #name, case_##name, (seconds), NULL }; \
    __attribute__((constructor)) static void register_##name(void)              \
    {                                                                           \
        t_register_case(&entry_##name);                                         \
    }                                                                           \
    static void case_##name(void)

struct t_program {
    const char *name;
    int (*run)(int argc, char **argv);
    struct t_program *next;
};

void t_register_program(struct t_program *p);

/* A program that cases start as another process (t_program_start); argv[0] is its name. */
#define T_PROGRAM(name)                                                     \
    static int program_##name(int argc, char **argv);                       \
    static struct t_program program_entry_##name = { #name, program_##name, NULL }; \
    __attribute__((constructor)) static void program_register_##name(void)  \
    {                                                                       \
        t_register_program(&program_entry_##name);                          \
    }                                                                       \
    static int program_##name(int argc, char **argv)

/* Starts a program with one argument (may be NULL) and, when not NULL, "NAME=value" in its
 * environment; it shares the words below.  The caller waits for it. */
pid_t t_program_start(const char *name, const char *argument, const char *assignment);

/* ---- checks ---- */

__attribute__((noreturn, format(printf, 3, 4))) void t_fail(const char *file, int line,
                                                            const char *format, ...);
__attribute__((noreturn, format(printf, 1, 2))) void t_skip(const char *format, ...);
void t_check_eq(const char *file, int line, const char *left, const char *right, int64_t a,
                int64_t b);
void t_check_cmp(const char *file, int line, const char *text, int holds, int64_t a, int64_t b);
void t_check_text(const char *file, int line, const char *what, const char *a, const char *b);

#define T_FAIL(...) t_fail(__FILE__, __LINE__, __VA_ARGS__)
#define T_CHECK(condition)                 \
    do {                                   \
        if (!(condition))                  \
            T_FAIL("not so: %s", #condition); \
    } while (0)
#define T_EQ(a, b) t_check_eq(__FILE__, __LINE__, #a, #b, (int64_t)(a), (int64_t)(b))
#define T_CMP(a, op, b)                                                                           \
    do {                                                                                          \
        const int64_t t_left = (int64_t)(a), t_right = (int64_t)(b);                              \
        t_check_cmp(__FILE__, __LINE__, #a " " #op " " #b, t_left op t_right, t_left, t_right); \
    } while (0)
#define T_TEXT(a, b) t_check_text(__FILE__, __LINE__, #a, (a), (b))
#define T_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ---- calls that must succeed ---- */

void t_thread(pthread_t *ret_thread, void *(*run)(void *user), void *user);
void t_join(pthread_t thread);
void t_kill(pid_t pid, int number);

/* ---- effort ---- */

/*
 * Returns how many rounds a random search or a race runs: `all` of them, or `sanitized` in a build
 * with a sanitizer, where the environment has T_EFFORT=all, as for `sh tools/test.sh all`; else a
 * tenth.
 */
size_t t_rounds(size_t all, size_t sanitized);

/* ---- time ---- */

#define T_US(n) ((uint64_t)(n) * 1000U)
#define T_MS(n) ((uint64_t)(n) * 1000000U)
#define T_S(n) ((uint64_t)(n) * 1000000000U)
/* How long a wait for something that must come may take: only a fault reaches it. */
#define T_PATIENCE T_S(T_SANITIZED ? 60 : 20)

/* The library's clock. */
uint64_t t_now(void);

/* Polls a fact that no call can wait for (a process is gone) until it holds or patience ends. */
void t_wait_until(const char *what, int (*holds)(void *user), void *user);

/* Lets real time pass where time itself is under test (how long a stop lasts); never used to
 * "give it time": nothing is expected to have happened afterwards. */
void t_pass(uint64_t duration);

/* Stays until it is killed. */
__attribute__((noreturn)) void t_rest(void);
/* Blocks all signals of the calling thread. */
void t_block_signals(void);

/* ---- words shared with workers ---- */

/*
 * A page mapped before gpud_init, so the same one in the case, its workers and the processes
 * these fork, and in programs of t_program_start.  Words can be waited for, numbers cannot.
 * Each case gives its own meanings.
 */
enum { T_WORDS = 256, T_NUMBERS = 4096 };
struct t_page {
    _Atomic uint32_t words[T_WORDS];
    _Atomic uint64_t numbers[T_NUMBERS];
};
extern struct t_page *t_page;

/* Adds one and wakes who waits.  Returns the new value. */
uint32_t t_word_add(unsigned word);
void t_word_set(unsigned word, uint32_t value);
uint32_t t_word(unsigned word);
/* Waits until the word is at least `value`; fails when patience ends. */
void t_word_wait(unsigned word, uint32_t value);
/* The same, but 0 on success and -1 once `duration` has passed. */
int t_word_wait_for(unsigned word, uint32_t value, uint64_t duration);

#endif
