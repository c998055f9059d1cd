/* SPDX-License-Identifier: MIT */
/* main.c - the main of every test program: lists its cases, runs one. */
#include "harness.h"

#include "snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct t_case *cases, **last_case = &cases;
static struct t_program *programs;

void t_register_case(struct t_case *c)
{
    *last_case = c;
    last_case = &c->next;
}

void t_register_program(struct t_program *p)
{
    p->next = programs;
    programs = p;
}

/* ---- programs ---- */

pid_t t_program_start(const char *name, const char *argument, const char *assignment)
{
    char *copy = assignment ? strdup(assignment) : NULL;
    pid_t pid = fork();

    if (pid < 0)
        T_FAIL("fork: %s", strerror(errno));
    if (!pid) {
        if (copy)
            (void)putenv(copy);
        (void)execl("/proc/self/exe", "t-program", "--program", name, argument, (char *)NULL);
        _exit(127);
    }
    free(copy);
    return pid;
}

/* The page is a memfd handed on by number, so that programs started by exec share it too; and by
 * the process that has it, for workers that are executed: they get no file of another's. */
static int given_page(const char *given)
{
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%s/fd/%s", strchr(given, ':') + 1, given);
    *strchr(strstr(path, "/fd/"), ':') = 0;
    fd = open(path, O_RDWR);
    return fd >= 0 ? fd : atoi(given);
}

static void map_page(void)
{
    const char *given = getenv("T_PAGE");
    char text[32];
    int fd = given ? given_page(given) : memfd_create("t-page", 0);

    if (fd < 0 || (!given && ftruncate(fd, sizeof(*t_page))))
        T_FAIL("memfd: %s", strerror(errno));
    t_page = mmap(NULL, sizeof(*t_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (t_page == MAP_FAILED)
        T_FAIL("mmap: %s", strerror(errno));
    (void)snprintf(text, sizeof(text), "%d:%d", fd, (int)getpid());
    if (!given)
        (void)setenv("T_PAGE", text, 1);
}

static int run_program(int argc, char **argv)
{
    for (struct t_program *p = programs; p; p = p->next)
        if (!strcmp(p->name, argv[0]))
            return p->run(argc, argv);
    T_FAIL("no program %s", argv[0]);
}

static void *nothing(void *arg)
{
    return arg;
}

static int run_case(const char *name)
{
    struct t_case *c = cases;
    struct t_snapshot before;
    pthread_t thread;

    while (c && strcmp(c->name, name))
        c = c->next;
    if (!c)
        T_FAIL("no case %s", name);
    /* A sanitizer's own thread and files appear with the first thread. */
    if (T_SANITIZED && !pthread_create(&thread, NULL, nothing, NULL))
        (void)pthread_join(thread, NULL);
    t_snapshot_take(&before);
    c->run();
    t_snapshot_compare(&before);
    return 0;
}

int main(int argc, char **argv)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && !strcmp(argv[1], "--list")) {
        for (struct t_case *c = cases; c; c = c->next)
            printf("%s %d\n", c->name,
                   (c->deadline_s ? c->deadline_s : 30) * (T_SANITIZED ? 4 : 1));
        return 0;
    }
    map_page();
    if (argc >= 3 && !strcmp(argv[1], "--program"))
        return run_program(argc - 2, argv + 2);
    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s --list | CASE\n", argv[0]);
        return 2;
    }
    return run_case(argv[1]);
}
