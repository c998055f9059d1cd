/* SPDX-License-Identifier: MIT */
/* submit_verbs.c - submit and run. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/client/follow.h"
#include "queue/client/ids.h"
#include "queue/client/interrupts.h"
#include "queue/client/stay.h"
#include "queue/client/submit.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"
#include "tools/cli/out.h"

enum { INTERRUPTED = 128 + 2 }; /* as a shell has it for SIGINT */
enum { CHANGED_SHOWN = 3, TASK_SHOWN = 8192 };

/* ---- What is said ---- */

static void put_line(const json_t *task)
{
    int64_t line = gpq_number_of(task, "line");
    if (line > 0)
        printf("line %" PRIi64 ": ", line);
}

/* The first ones stand for all: often one file has changed that each line names. */
static void say_changed(const struct gpq_submit_call *s, const json_t *reply)
{
    char number[32];
    const json_t *placed = json_object_get(reply, "placed");
    uint64_t n = 0;
    for (size_t i = 0; i < json_array_size(placed); i++) {
        const json_t *one = json_array_get(placed, i);
        const char *file = gpq_text_of(one, "file");
        if (strcmp(gpq_text_of(one, "how"), "changed") != 0 || n++ >= CHANGED_SHOWN)
            continue;
        fputs("  ", stdout);
        put_line(json_array_get(s->tasks, i));
        put_plain(*file ? file : "a file");
        puts(" has changed since its success; --join-anyway joins");
    }
    if (n > CHANGED_SHOWN)
        printf("  and %s more\n", gpq_number_text(n - CHANGED_SHOWN, number));
}

/* "line 3: joined 9.12   python train.py --lr 0.1" */
static void say_task(const json_t *task, const json_t *placed)
{
    char how[64], what[TASK_SHOWN];
    const char *id = gpq_text_of(placed, "task"), *name = gpq_text_of(task, "name");
    snprintf(how, sizeof(how), "%.20s%s%.32s", gpq_text_of(placed, "how"), *id ? " " : "", id);
    put_line(task);
    printf("%-12s  ", how);
    if (*name) {
        put_plain(name);
        fputs(": ", stdout);
    }
    if (json_object_get(task, "argv"))
        put_plain(gpq_command_text(json_object_get(task, "argv"), what, sizeof(what)));
    else
        put_plain(gpq_text_of(task, "payload"));
    putchar('\n');
}

static void say_tasks(const struct gpq_submit_call *s, const json_t *reply)
{
    const json_t *placed = json_object_get(reply, "placed");
    for (size_t i = 0; i < json_array_size(placed) && !out_reader_gone(); i++)
        say_task(json_array_get(s->tasks, i), json_array_get(placed, i));
    if (!placed)
        puts("these are too many tasks for a list of them");
}

/* For a dry run each item of the list has what there is of the task. */
static void add_tasks(const struct gpq_submit_call *s, const json_t *reply)
{
    static const char *const members[] = { "line", "name", "argv", "payload" };
    const json_t *placed = json_object_get(reply, "placed");
    for (size_t i = 0; i < json_array_size(placed); i++)
        for (size_t k = 0; k < sizeof(members) / sizeof(members[0]); k++) {
            json_t *member = json_object_get(json_array_get(s->tasks, i), members[k]);
            if (member)
                (void)json_object_set(json_array_get(placed, i), members[k], member);
        }
}

static void say_counts(const struct gpq_submit_call *s, const json_t *reply)
{
    static const char *const words[] = { "joined", "again", "changed" };
    static const char *const texts[] = { "joined", "run again", "changed and new" };
    char number[32];
    uint64_t added = (uint64_t)gpq_number_of(reply, "added");
    printf("%s %s added", gpq_number_text(added, number), gpq_tasks(added));
    for (int i = 0; i < 3; i++) {
        int64_t n = gpq_number_of(reply, words[i]);
        if (n > 0)
            printf(", %s %s", gpq_number_text((uint64_t)n, number), texts[i]);
    }
    if (s->counts.comments > 0)
        printf("; %s %s", gpq_number_text(s->counts.comments, number),
               s->counts.comments == 1 ? "comment or empty line" : "comments or empty lines");
}

void gpq_submit_say(struct gpq_session *session, const struct gpq_submit_call *s, json_t *reply)
{
    const char *batch = gpq_text_of(reply, "batch");
    bool dry = s->call->given[OPTION_DRY_RUN];
    if (s->call->given[OPTION_JSON]) {
        if (dry)
            add_tasks(s, reply);
        gpq_print_json(reply);
        return;
    }
    if (session->started) {
        struct gpq_stay stay;
        gpq_stay_read("", "self", &stay);
        printf("agent started (%" PRIu32 " GPUs, pid %" PRIi64 "); state %s; %s; %s\n",
               session->devices, session->pid, session->state, gpq_stay_logout(&stay),
               gpq_stay_reboot(&stay));
    }
    if (dry) {
        say_tasks(s, reply);
        printf("nothing is submitted; it would be: ");
    } else {
        printf("batch %s%s", batch, *s->name ? " " : "");
        put_plain(s->name);
        fputs(": ", stdout);
    }
    say_counts(s, reply);
    if (!dry)
        printf("; see: gpudispatch wait %s, gpudispatch ls %s", batch, batch);
    putchar('\n');
    say_changed(s, reply);
}

/* ---- A file that grows ---- */

struct watched {
    struct gpq_session *session;
    struct gpq_submit_call *s;
    struct gpq_jobs *jobs;
    const char *path, *batch;
    int fd;
};

/* Sends the tasks that have been gathered. */
static int append(struct watched *w)
{
    json_t *reply;
    if (json_array_size(w->s->tasks) == 0)
        return 0;
    int status = gpq_submit_send(w->session, w->s, w->batch, &reply);
    if (status == 0)
        gpq_submit_say(w->session, w->s, reply);
    json_decref(reply);
    (void)json_array_clear(w->s->tasks);
    fflush(stdout);
    return status;
}

/* A file that was written anew would go on in the middle of a line. */
static int check_length(const struct watched *w)
{
    struct stat st;
    off_t at = lseek(w->fd, 0, SEEK_CUR);
    if (at < 0 || fstat(w->fd, &st) < 0 || st.st_size >= at)
        return 0;
    return gpq_say(EXIT_FAILED, "%s has become shorter: its lines are not submitted from here on",
                   w->path);
}

/* Whether the path names another file, or none. */
static int check_place(const struct watched *w)
{
    struct stat here, there;
    if (fstat(w->fd, &here) < 0 ||
        (stat(w->path, &there) == 0 && there.st_dev == here.st_dev && there.st_ino == here.st_ino))
        return 0;
    return gpq_say(EXIT_FAILED,
                   "%s was replaced or removed: its lines are not submitted from here on", w->path);
}

static int feed(struct watched *w)
{
    char data[65536];
    struct gpq_error e = { 0 };
    ssize_t n;
    int status = check_length(w);
    if (status != 0)
        return status;
    while ((n = read(w->fd, data, sizeof(data))) > 0)
        if (gpq_jobs_feed(w->jobs, data, (size_t)n, &e) < 0)
            return gpq_say(EXIT_USAGE, "%s: %s", w->path, e.text);
    return append(w);
}

static int open_watched(struct watched *w)
{
    struct gpq_error e = { 0 };
    w->fd = open(w->path, O_RDONLY | O_CLOEXEC);
    if (w->fd < 0)
        return gpq_say(EXIT_USAGE, "%s: %s", w->path, strerror(errno));
    struct gpq_jobs_how how = gpq_submit_how(w->s, w->path);
    if (gpq_jobs_open(&how, gpq_submit_job, w->s, &w->jobs, &e) < 0)
        return gpq_say(EXIT_USAGE, "%s", e.text);
    return feed(w);
}

static int until_interrupt(struct watched *w)
{
    char notes[4096];
    int status = 0, notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    struct pollfd p = { .fd = notify, .events = POLLIN };
    uint32_t changes = IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF;
    int watch = notify < 0 ? -1 : inotify_add_watch(notify, w->path, changes);
    int fault = watch < 0 ? errno : 0;
    if (fault == 0)
        status = feed(w); /* what has come before the watch */
    else if (fault != ENOENT || (status = check_place(w)) == 0)
        status = gpq_say(EXIT_FAILED, "%s cannot be watched: %s", w->path, strerror(fault));
    while (status == 0 && (status = check_place(w)) == 0 && !gpq_interrupted()) {
        if (gpq_poll(&p, 1, -1) < 0)
            continue;
        while (read(notify, notes, sizeof(notes)) > 0)
            continue;
        status = feed(w);
    }
    if (notify >= 0)
        close(notify);
    return status;
}

/* A last line without newline may be half of one.  The batch ends with its tasks. */
static int seal(struct watched *w)
{
    struct gpq_error e = { 0 };
    json_t *reply;
    uint64_t line = gpq_jobs_unended(w->jobs);
    int status = 0;
    if (line != 0)
        (void)gpq_say(0, "%s: line %" PRIu64 " has no newline yet, and is not submitted", w->path,
                      line);
    else if (gpq_jobs_end(w->jobs, NULL, &e) < 0)
        status = gpq_say(EXIT_USAGE, "%s: %s", w->path, e.text);
    int sealed = gpq_session_insist(
        w->session, json_pack("{s:s, s:s}", "do", "seal", "batch", w->batch), &reply);
    json_decref(reply);
    return status ? status : sealed;
}

/* The open batch begins without tasks; a file is read from its beginning. */
static int watch(struct gpq_session *session, struct gpq_submit_call *s)
{
    json_t *reply;
    struct watched w = { .session = session, .s = s, .fd = -1 };
    w.path = s->call->given[OPTION_EACH] ? s->call->value[OPTION_EACH] : s->call->operand[0];
    gpq_interrupts_catch();
    int status = gpq_submit_send(session, s, NULL, &reply);
    if (status == 0) {
        w.batch = gpq_text_of(reply, "batch");
        gpq_submit_say(session, s, reply);
        fflush(stdout);
        (void)json_array_clear(s->tasks);
        status = open_watched(&w);
        if (status == 0)
            status = until_interrupt(&w);
        if (w.jobs) {
            int end = seal(&w);
            status = status ? status : end;
            gpq_jobs_close(w.jobs);
        }
    }
    if (w.fd >= 0)
        close(w.fd);
    json_decref(reply);
    return status;
}

/* ---- submit ---- */

int gpq_verb_submit(const struct call *call)
{
    struct gpq_session session;
    struct gpq_submit_call s;
    json_t *reply = NULL;
    int status = gpq_submit_read(&s, call);
    s.open = call->given[OPTION_FOLLOW_FILE] && !call->given[OPTION_DRY_RUN];
    if (s.open && status == 0)
        (void)json_array_clear(s.tasks);
    if (status == 0) {
        status = gpq_session_open(&session, call, GPQ_AGENT_STARTED);
        if (status == 0 && s.open)
            status = watch(&session, &s);
        else if (status == 0 && (status = gpq_submit_send(&session, &s, NULL, &reply)) == 0)
            gpq_submit_say(&session, &s, reply);
        gpq_session_close(&session);
    }
    json_decref(reply);
    gpq_submit_free(&s);
    return status < 0 ? INTERRUPTED : status;
}

/* ---- run ---- */

static int write_status(const struct call *call, int status)
{
    const char *path = call->value[OPTION_STATUS_FILE];
    FILE *f = path ? fopen(path, "we") : NULL;
    if (path && (!f || fprintf(f, "%d\n", status) < 0 || fclose(f) != 0))
        return gpq_say(EXIT_FAILED, "%s: %s", path, strerror(errno));
    return 0;
}

/* A command's own status, as a shell gives it; the last line tells it from ours. */
static int status_of_task(struct gpq_session *session, const char *task, const json_t *row)
{
    const char *outcome = gpq_text_of(row, "outcome");
    char text[512], cause[96];
    json_t *attempt = gpq_last_attempt(session, row);
    int of = (int)gpq_number_of(attempt, "status"), status = of < 0 ? 128 - of : of;
    gpq_end_text(outcome, attempt, text, sizeof(text));
    gpq_because(row, cause);
    json_decref(attempt);
    if (strcmp(outcome, "ok") == 0)
        return write_status(session->call, 0);
    if (status == 0 || (strcmp(outcome, "error") != 0 && strcmp(outcome, "crashed") != 0))
        status = EXIT_WRONG;
    (void)write_status(session->call, status);
    return gpq_say(status, "%s: %s%s%s", task, text, *cause ? ": " : "", cause);
}

/* Interrupted: the tasks go on, or end with the connection of an attached client. */
static int stop_following(const struct call *call, const char *back)
{
    if (call->given[OPTION_ATTACHED])
        return gpq_say(INTERRUPTED, "the tasks are cancelled");
    return gpq_say(INTERRUPTED, "the tasks go on; gpudispatch %s follows them again", back);
}

static int late(const struct call *call, const char *back)
{
    return gpq_say(EXIT_TIMEOUT,
                   "the time of --timeout %s is over; the tasks go on, and gpudispatch %s follows "
                   "them again",
                   call->value[OPTION_TIMEOUT], back);
}

static int run_one(struct gpq_session *session, const char *task)
{
    char back[48];
    json_t *row;
    snprintf(back, sizeof(back), "log -f %s", task);
    int status = gpq_follow_task(session, task, false, &row);
    if (status == -1)
        status = stop_following(session->call, back);
    else if (status == EXIT_TIMEOUT)
        status = late(session->call, back);
    else if (status == 0)
        status = status_of_task(session, task, row);
    json_decref(row);
    return status;
}

static int run_many(struct gpq_session *session, const char *batch)
{
    char back[48];
    json_t *selections = json_pack("[{s:s}]", "batch", batch);
    snprintf(back, sizeof(back), "wait %s", batch);
    int status = gpq_wait_for(session, selections);
    if (status == -1)
        status = stop_following(session->call, back);
    else if (status == EXIT_TIMEOUT)
        status = late(session->call, back);
    else if (status == 0)
        status = gpq_summary(session, selections);
    json_decref(selections);
    return status;
}

/* The task of a single command, which may have joined one of another batch; NULL: a list. */
static const char *only_task(const struct gpq_submit_call *s, const json_t *reply)
{
    const json_t *placed = json_array_get(json_object_get(reply, "placed"), 0);
    return s->is_list || !placed ? NULL : gpq_text_of(placed, "task");
}

int gpq_verb_run(const struct call *call)
{
    struct gpq_session session;
    struct gpq_submit_call s;
    json_t *reply = NULL;
    int status = gpq_submit_read(&s, call);
    if (status == 0) {
        status = gpq_session_open(&session, call, GPQ_AGENT_STARTED);
        gpq_interrupts_catch(); /* no task starts before */
        if (status == 0)
            status = gpq_submit_send(&session, &s, NULL, &reply);
        if (status == 0) {
            const char *batch = gpq_text_of(reply, "batch");
            if (s.is_list)
                gpq_submit_say(&session, &s, reply);
            fflush(stdout);
            const char *task = only_task(&s, reply);
            status = task ? run_one(&session, task) : run_many(&session, batch);
        }
        gpq_session_close(&session);
    }
    json_decref(reply);
    gpq_submit_free(&s);
    return status < 0 ? INTERRUPTED : status;
}
