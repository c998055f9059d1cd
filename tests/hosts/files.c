/* SPDX-License-Identifier: MIT */
/* files.c - hosts that are careless with files, stdio and surroundings.                  [C13] */
#include "work.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- closing what is not theirs ---- */

/* A library keeps its descriptors from 700 up, where such a loop does not come. */
static void close_low(void)
{
    for (int fd = 3; fd < 700; fd++)
        (void)close(fd);
}

static void sloppy(void *user)
{
    gpud_dispatcher *d;

    (void)user;
    h_init();
    close_low();
    d = T_CREATE(.definition = "square", .devices = "cpu:4");
    close_low();
    h_work(d);
    close_low();
    h_work(d); /* with workers that were made since */
    t_destroy(&d, NULL);
    close_low();
    d = T_CREATE(.definition = "cube", .devices = "cpu:1");
    h_work(d);
    t_end(&d, NULL);
}

T_CASE(closes_3_to_699)
{
    h_in_child(sloppy, NULL);
}

/* A host that writes to numbers it has closed long ago hits nothing of ours. */
static void stray_writes(void *user)
{
    static const char text[] = "a line for a log file that was closed\n";
    gpud_dispatcher *d;

    (void)user;
    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:4");
    for (int fd = 3; fd < 700; fd++)
        (void)!write(fd, text, sizeof(text));
    h_work(d);
    T_EQ(t_stats(d).deaths, 1); /* the one in the work */
    t_end(&d, NULL);
}

T_CASE(stray_writes_hit_nothing)
{
    h_in_child(stray_writes, NULL);
}

/* ---- without stdin, stdout, stderr ---- */

/* bits: which of 0, 1, 2 are closed before gpud_init. */
static void without_stdio(void *user)
{
    unsigned bits = *(unsigned *)user;

    for (int fd = 0; fd < 3; fd++)
        if (bits & 1u << fd)
            (void)close(fd);
    h_host_untouched();
    for (int fd = 0; fd < 3; fd++)
        T_EQ(fcntl(fd, F_GETFD) < 0, (bits & 1u << fd) != 0);
}

T_CASE(closed_stdio)
{
    for (unsigned bits = 1; bits < 8; bits++)
        h_in_child(without_stdio, &bits);
}

static void without_streams(void *user)
{
    (void)user;
    (void)fclose(stdin);
    (void)fclose(stdout);
    (void)fclose(stderr);
    h_host_untouched();
}

T_CASE(closed_streams)
{
    h_in_child(without_streams, NULL);
}

/* ---- marks on descriptors ---- */

/* Takes close-on-exec off every descriptor and sets it on its own stdio, the wrong way round. */
static void turn_marks(void)
{
    for (int fd = 0; fd < 1200; fd++) {
        int flags = fcntl(fd, F_GETFD);

        if (flags >= 0)
            (void)fcntl(fd, F_SETFD, fd < 3 ? flags | FD_CLOEXEC : flags & ~FD_CLOEXEC);
    }
}

static void odd_marks(void *user)
{
    static char *const command[] = { (char *)(uintptr_t)"sleep", (char *)(uintptr_t)"1000", NULL };
    gpud_dispatcher *d;
    pid_t pid;

    (void)user;
    turn_marks();
    h_init();
    turn_marks();
    d = T_CREATE(.definition = "square", .devices = "cpu:2");
    turn_marks();
    pid = fork(); /* holds all our descriptors over its exec now */
    if (!pid) {
        (void)execvp(command[0], command);
        _exit(1);
    }
    h_work(d);
    t_end(&d, NULL);
    T_EQ(waitpid(pid, NULL, WNOHANG), 0);
    (void)kill(pid, SIGKILL);
    T_EQ(waitpid(pid, NULL, 0), pid);
}

T_CASE(odd_close_on_exec)
{
    h_in_child(odd_marks, NULL);
}

/* ---- surroundings ---- */

/* The directory, umask, locale and environment that a worker has are those of gpud_init. */
static int tell_surroundings(gpud_task *t, void *state)
{
    char text[600], directory[300];
    mode_t mask = umask(0);

    (void)state;
    (void)umask(mask);
    (void)snprintf(text, sizeof(text), "%03o %s %s %s", (unsigned)mask, setlocale(LC_NUMERIC, NULL),
                   getenv("T_OWN") ? getenv("T_OWN") : "(none)",
                   getcwd(directory, sizeof(directory)));
    return gpud_task_result_set(t, text, strlen(text) + 1);
}

static void with_surroundings(void *user)
{
    const char *numbers = setlocale(LC_ALL, "C.UTF-8") ? "C.UTF-8" : setlocale(LC_ALL, NULL);
    struct t_log log = { 0 };
    char wanted[600], directory[300], above[300], now[300];
    gpud_dispatcher *d;

    (void)user;
    (void)umask(027);
    T_EQ(mkdir("below", 0700), 0);
    T_EQ(chdir("below"), 0);
    (void)setenv("T_OWN", "as it was", 1);
    T_CHECK(getcwd(directory, sizeof(directory)));
    (void)snprintf(wanted, sizeof(wanted), "027 %s as it was %s", numbers, directory);
    t_init(NULL, tell_surroundings, NULL);
    (void)umask(022);
    T_EQ(chdir(".."), 0);
    (void)setenv("T_OWN", "later", 1);
    T_CHECK(getcwd(above, sizeof(above)));
    d = T_CREATE(.devices = "cpu:1");
    T_TEXT((const char *)T_RUN(d, &log, SUCCESS, .tag = 1)->result, wanted);
    t_end(&d, &log);
    T_EQ(umask(077), 022);
    T_CHECK(getcwd(now, sizeof(now)));
    T_TEXT(now, above);
    T_TEXT(getenv("T_OWN"), "later");
    T_TEXT(setlocale(LC_ALL, NULL), numbers);
    h_host_untouched();
}

T_CASE(surroundings)
{
    h_in_child(with_surroundings, NULL);
}

/* ---- text in buffers, exit handlers ---- */

static _Atomic int exits;

static void at_exit(void)
{
    static const char text[] = "exit handler\n";

    atomic_fetch_add(&exits, 1);
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
}

/* Its stdout and stderr are a file: what waits in the buffers at gpud_init is written once, by the
 * host. */
T_PROGRAM(buffered_host)
{
    int fd = open("written", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);

    (void)argc, (void)argv;
    T_EQ(dup2(fd, 1), 1);
    T_EQ(dup2(fd, 2), 2);
    (void)close(fd);
    (void)setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    (void)setvbuf(stderr, NULL, _IOFBF, 1 << 16);
    T_EQ(atexit(at_exit), 0);
    printf("before gpud_init\n");
    (void)fprintf(stderr, "an error before gpud_init\n");
    h_last_words("of a worker");
    h_host();
    printf("after gpud_fini\n");
    return 0;
}

static unsigned times(const char *text, const char *line)
{
    unsigned count = 0;

    for (const char *at = text; (at = strstr(at, line)); at++)
        count++;
    return count;
}

T_CASE(text_in_buffers)
{
    static const char *const lines[] = { "\nan error before gpud_init\n", "before gpud_init\n",
                                         "after gpud_fini\n", "exit handler\n" };
    struct h_family f = h_family_start("buffered_host", NULL);
    char text[2000] = "\n";
    FILE *in;

    T_EQ(h_family_reap(&f), 0);
    in = fopen("written", "re");
    T_CHECK(in);
    (void)fread(text + 1, 1, sizeof(text) - 2, in);
    (void)fclose(in);
    if (times(text, "before gpud_init") != 2 || times(text, lines[0] + 1) != 1 ||
        times(text, lines[2]) != 1 || times(text, lines[3]) != 1 ||
        strlen(text) !=
            1 + strlen("an error ") + 2 * strlen(lines[1]) + strlen(lines[2]) + strlen(lines[3]))
        T_FAIL("written:%s", text);
}
