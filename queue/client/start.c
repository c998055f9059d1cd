/* SPDX-License-Identifier: MIT */
/* start.c - executes the agent's program. */
#include "queue/client/start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue/client/interrupts.h"
#include "queue/client/place.h"
#include "queue/client/say.h"
#include "queue/config/config.h"
#include "queue/files/pidfd.h"
#include "queue/files/program.h"

/* OWN: the arguments of each agent.  TIME: 2026-11-29T08:12:03+01:00 and a blank. */
enum { ARGUMENTS = 24, OWN = 3, READY_MS = 120000, TAIL = 2000, TIME = 26 };

/* ---- Arguments ---- */

struct command {
    char program[GPQ_PATH], config[GPQ_PATH];
    char *chosen; /* the options of the last agent, as its file has them */
    const char *argv[ARGUMENTS];
    size_t n;
};

static void add(struct command *c, const char *text)
{
    if (c->n + 1 < ARGUMENTS)
        c->argv[c->n++] = text;
}

static void add_option(struct command *c, const struct call *call, enum option_id id,
                       const char *name)
{
    if (!call->given[id])
        return;
    add(c, name);
    if (call->value[id])
        add(c, call->value[id]);
}

static int agent_command(struct command *c, const char *state)
{
    struct gpq_error e = { 0 };
    *c = (struct command){ 0 };
    if (gpq_program_find("gpudispatch-agent", c->program, &e) < 0)
        return gpq_say(EXIT_FAILED, "%s", e.text);
    add(c, c->program);
    add(c, "--state-dir");
    add(c, state);
    return 0;
}

static void add_agent_options(struct command *c, const struct call *call)
{
    if (strcmp(call->verb->name, "agent") == 0) {
        add_option(c, call, OPTION_QUEUE_GPUS, "--devices");
        add_option(c, call, OPTION_SLOTS, "--cpus");
    }
    const char *config = call->value[OPTION_CONFIG];
    if (config && gpq_place_absolute(config, c->config)) { /* the agent leaves the directory */
        add(c, "--config");
        add(c, c->config);
    }
    add_option(c, call, OPTION_ALLOW_NETWORK_FS, "--allow-network-fs");
}

/* ---- The options of the last agent ---- */

/*
 * `agent start --devices 0-3` holds for the agents that other verbs start later, after a crash or a
 * reboot, and for a later `agent start` without options: they get the same options, a line each in
 * the file `start-options`.  Without the file they have those of the configuration.
 */
bool gpq_agent_chooses(const struct call *call)
{
    return strcmp(call->verb->name, "agent") == 0 &&
           (call->given[OPTION_QUEUE_GPUS] || call->given[OPTION_SLOTS] ||
            call->given[OPTION_CONFIG] || call->given[OPTION_ALLOW_NETWORK_FS]);
}

static int chosen_path(const char *state, char path[GPQ_PATH])
{
    return gpq_path(path, "%s/start-options", state);
}

static void save_chosen(const struct command *c, const char *state)
{
    char path[GPQ_PATH];
    if (chosen_path(state, path) < 0)
        return;
    FILE *f = c->n > OWN ? fopen(path, "we") : NULL;
    for (size_t i = OWN; f && i < c->n; i++)
        fprintf(f, "%s\n", c->argv[i]);
    if (!f || fclose(f) != 0)
        (void)unlink(path);
}

/* The file, which the caller frees; NULL = none. */
static char *read_chosen(const char *state)
{
    char path[GPQ_PATH], *text = NULL;
    size_t size = 0;
    FILE *f = chosen_path(state, path) == 0 ? fopen(path, "re") : NULL;
    ssize_t n = f ? getdelim(&text, &size, '\0', f) : -1;
    if (f)
        fclose(f);
    if (n > 0)
        return text;
    free(text);
    return NULL;
}

char *gpq_agent_chosen(const char *state)
{
    char *text = read_chosen(state);
    for (char *at = text; at && *at; at++)
        if (*at == '\n')
            *at = at[1] ? ' ' : '\0';
    return text;
}

static void add_chosen(struct command *c, const char *state)
{
    c->chosen = read_chosen(state);
    char *rest = c->chosen;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (*line)
            add(c, line);
}

/* ---- An agent that runs ---- */

/* The option as the agent has it; "" = it has none. */
static const char *running_value(const json_t *status, const char *name)
{
    const json_t *row = json_object_get(json_object_get(status, "settings"), name);
    const char *value = json_string_value(json_object_get(row, "value"));
    return value ? value : "";
}

static bool running_given(const json_t *status, const char *name)
{
    const json_t *row = json_object_get(json_object_get(status, "settings"), name);
    const char *origin = json_string_value(json_object_get(row, "origin"));
    return origin && strncmp(origin, "--", 2) == 0;
}

/* Appends " --NAME VALUE". */
static void append(char *text, size_t room, const char *name, const char *value)
{
    size_t used = strlen(text);
    snprintf(text + used, room - used, "%s--%s %s", used ? " " : "", name, value);
}

int gpq_agent_compare(const struct call *call, const json_t *status)
{
    static const struct {
        enum option_id option;
        enum gpq_key key;
    } both[] = { { OPTION_QUEUE_GPUS, GPQ_KEY_DEVICES }, { OPTION_SLOTS, GPQ_KEY_CPUS } };
    struct gpq_config config = { 0 };
    struct gpq_error e = { 0 };
    char wanted[GPQ_PATH * 2] = "", has[GPQ_PATH * 2] = "", path[GPQ_PATH] = "";
    bool differs = false;
    const char *file = json_string_value(json_object_get(status, "config"));
    int code = gpq_config_read(call->value[OPTION_CONFIG], &config, &e);
    for (size_t i = 0; code == 0 && i < sizeof(both) / sizeof(both[0]); i++) {
        const char *name = options[both[i].option].name, *value = call->value[both[i].option];
        const char *running = running_value(status, name);
        bool given = running_given(status, name);
        if (value)
            code = gpq_config_flag(&config, both[i].key, value, &e);
        if (value)
            append(wanted, sizeof(wanted), name, value);
        if ((value || given) && *running)
            append(has, sizeof(has), name, running);
        differs = differs || (value ? strcmp(value, running) != 0 : given);
    }
    gpq_config_free(&config);
    if (code < 0)
        return gpq_say(EXIT_USAGE, "%s", e.text);
    if (call->value[OPTION_CONFIG] && gpq_place_absolute(call->value[OPTION_CONFIG], path))
        append(wanted, sizeof(wanted), "config", path);
    if (file)
        append(has, sizeof(has), "config", file);
    differs = differs || strcmp(path, file ? file : "") != 0;
    if (!differs || !json_object_get(status, "settings")) /* or of an older version */
        return 0;
    return gpq_say(EXIT_REFUSED,
                   "the agent (pid %lld) runs with %s, not with %s; gpudispatch agent stop, and "
                   "start it again: its commands go on",
                   (long long)json_integer_value(json_object_get(status, "pid")),
                   *has ? has : "no options", *wanted ? wanted : "these options");
}

static int execute(struct command *c)
{
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    execv(c->program, (char *const *)(uintptr_t)c->argv);
    return gpq_say(EXIT_FAILED, "%s: %s", c->program, strerror(errno));
}

int gpq_agent_become(const struct call *call, const char *state)
{
    struct command c;
    int status = agent_command(&c, state);
    if (status != 0)
        return status;
    add(&c, "--foreground");
    add_agent_options(&c, call);
    return execute(&c);
}

int gpq_agent_check(const struct call *call, const char *state)
{
    struct command c;
    int status = agent_command(&c, state);
    if (status != 0)
        return status;
    add(&c, "--fsck");
    add_option(&c, call, OPTION_REPAIR, "--repair");
    add_option(&c, call, OPTION_JSON, "--json");
    return execute(&c);
}

static _Noreturn void print_to(const char *program, const char **argv, int output)
{
    gpq_interrupts_release();
    if (dup3(output, STDOUT_FILENO, 0) >= 0)
        execv(program, (char *const *)(uintptr_t)argv);
    _exit(gpq_say(EXIT_FAILED, "%s: %s", program, strerror(errno)));
}

pid_t gpq_agent_reads(const struct call *call, const char *state, const char *const *argument,
                      size_t n, int *ret_output)
{
    struct command c;
    int end[2];
    pid_t pid = -1;
    if (agent_command(&c, state) != 0)
        return -1;
    add_chosen(&c, state);
    add_agent_options(&c, call);
    const char **argv = calloc(c.n + n + 1, sizeof(*argv));
    if (argv && pipe2(end, O_CLOEXEC) == 0) {
        memcpy(argv, c.argv, c.n * sizeof(*argv));
        memcpy(argv + c.n, argument, n * sizeof(*argv));
        fflush(NULL);
        pid = fork();
        if (pid == 0)
            print_to(c.program, argv, end[1]);
        close(end[1]);
        *ret_output = end[0];
        if (pid < 0)
            close(end[0]);
    }
    if (pid < 0)
        (void)gpq_say(EXIT_FAILED, "no process for gpudispatch-agent: %s", strerror(errno));
    free(argv);
    free(c.chosen);
    return pid;
}

/* ---- In the background ---- */

/* An address that the kernel chooses, for NOTIFY_SOCKET: the agent reports there that it is
 * ready. */
static int listen_for_ready(char variable[64])
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    socklen_t size = sizeof(name);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&name, sizeof(name.sun_family)) < 0 ||
        getsockname(fd, (struct sockaddr *)&name, &size) < 0) {
        close(fd);
        return -1;
    }
    size_t length = size - offsetof(struct sockaddr_un, sun_path);
    snprintf(variable, 64, "@%.*s", (int)(length > 1 ? length - 1 : 0), name.sun_path + 1);
    return fd;
}

/* In the child. */
static _Noreturn void begin(struct command *c, int log, const char *notify)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    gpq_interrupts_release();
#ifdef SYS_close_range
    /* The caller's other files, such as a lock of its shell, are not for a program that stays. */
    (void)syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
#endif
    char config[GPQ_PATH];
    const char *given = getenv("GPUDISPATCH_CONFIG");
    if (given && gpq_place_absolute(given, config))
        (void)setenv("GPUDISPATCH_CONFIG", config, 1);
    if (setsid() < 0 || dup3(null, 0, 0) < 0 || dup3(log, 1, 0) < 0 || dup3(log, 2, 0) < 0 ||
        setenv("NOTIFY_SOCKET", notify, 1) < 0 || chdir("/") < 0)
        _exit(EXIT_FAILED);
    _exit(execute(c));
}

/* Prints the last lines of the log from `from` on. */
static void show_log(const char *path, off_t from)
{
    char text[TAIL + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t end = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    if (end - from > TAIL)
        from = end - TAIL;
    ssize_t n = fd >= 0 ? pread(fd, text, TAIL, from) : 0;
    text[n > 0 ? n : 0] = '\0';
    for (char *rest = text, *line; n > 0 && (line = strsep(&rest, "\n"));) {
        const char *plain = strstr(line, "gpudispatch-agent: ");
        if (*line) /* without its time, which is now */
            fprintf(stderr, "%s\n", plain && plain - line == TIME ? plain : line);
    }
    if (fd >= 0)
        close(fd);
}

/* 0: ready, or another agent has the state directory: the caller connects to it. */
static int await_ready(pid_t pid, int ready, const char *path, off_t from)
{
    char text[64];
    int ended, child = gpq_pidfd_open(pid);
    struct pollfd p[2] = { { .fd = ready, .events = POLLIN }, { .fd = child, .events = POLLIN } };
    int n;
    while ((n = poll(p, child >= 0 ? 2 : 1, READY_MS)) < 0 && errno == EINTR)
        continue;
    if (child >= 0)
        close(child);
    if (n > 0 && (p[0].revents & POLLIN) && recv(ready, text, sizeof(text), MSG_DONTWAIT) > 0)
        return 0; /* READY=1, or ERRNO=16: EBUSY */
    if (n <= 0)
        return gpq_say(EXIT_FAILED, "the agent (pid %d) is not ready after %d s; see %s", (int)pid,
                       READY_MS / 1000, path);
    while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
        continue;
    int status = WIFEXITED(ended) ? WEXITSTATUS(ended) : EXIT_FAILED;
    show_log(path, from);
    return gpq_say(status ? status : EXIT_FAILED, "the agent did not start");
}

int gpq_agent_start(const struct call *call, const char *state)
{
    struct command c;
    char path[GPQ_PATH], notify[64];
    int status = agent_command(&c, state);
    if (status != 0)
        return status;
    bool chooses = gpq_agent_chooses(call);
    if (!chooses)
        add_chosen(&c, state);
    add_agent_options(&c, call); /* a later one counts */
    if (gpq_path(path, "%s/agent.log", state) < 0)
        return gpq_say(EXIT_UNUSABLE, "the path of the state directory is too long");
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int ready = log >= 0 ? listen_for_ready(notify) : -1;
    if (log < 0 || ready < 0) {
        status = gpq_say(EXIT_UNUSABLE, "%s: %s", path, strerror(errno));
    } else {
        off_t from = lseek(log, 0, SEEK_END);
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            begin(&c, log, notify);
        status = pid < 0 ? gpq_say(EXIT_FAILED, "no process for the agent: %s", strerror(errno))
                         : await_ready(pid, ready, path, from);
    }
    if (log >= 0)
        close(log);
    if (ready >= 0)
        close(ready);
    if (status == 0 && chooses)
        save_chosen(&c, state);
    free(c.chosen);
    return status;
}
