/* SPDX-License-Identifier: MIT */
/*
 * external_mixed.c - external work with other parts of a dispatcher: callbacks of run, classes and
 * devices that go, the log of decisions, and a long random walk.                    [C1] [C16] [S1]
 */
#include "external.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/replay.h"

/* ---- run ---- */

struct run {
    gpud_dispatcher *d;
    uint64_t sent, events;
};

static int source(struct gpud_task_desc *tasks, size_t n, void *user)
{
    struct run *r = user;

    if (r->sent == 20)
        return 0;
    (void)n;
    tasks[0].class_name = "work";
    tasks[0].tag = r->sent++;
    return 1;
}

static int on_event(const struct gpud_event *e, void *user)
{
    struct run *r = user;

    if (e->kind != GPUD_EVENT_GRANTED)
        return 0;
    r->events++;
    started(r->d, e);
    T_OK(gpud_dispatcher_progress(r->d, e->task_id, e->attempt, 1, NULL, NULL));
    ENDED(r->d, *e, SUCCESS);
    return 0;
}

static int on_success(const struct gpud_event *e, void *user)
{
    (void)e, (void)user;
    return 0;
}

T_CASE(in_callbacks_of_run)
{
    struct gpud_run_counts counts = { .struct_size = sizeof(counts) };
    struct run r = { .d = outside("fake:2", NULL) };

    T_OK(gpud_dispatcher_run(r.d, source, T_CALLBACKS(.on_event = on_event,
                                                      .on_success = on_success,
                                                      .counts = &counts), &r, NULL));
    T_EQ(counts.success, 20);
    T_EQ(r.events, 20);
    t_end(&r.d, NULL);
}

/* ---- classes and devices that go ---- */

/* As the close of a dispatcher: grants come back, waiting tasks end, and work is to end. */
T_CASE(class_removed)
{
    gpud_dispatcher *d = outside("fake:2", T_OPTIONS(.grace = GPUD_AT_ONCE));
    struct t_log log = { 0 };
    struct gpud_event g;

    WORK(d, 1);
    g = start_granted(d, &log, 1, 0);
    WORK(d, 2);
    (void)granted(d, &log, 2, 0);
    WORK(d, 3);
    T_OK(gpud_dispatcher_class_remove(d, "work", GPUD_FINISH_RUNNING, NULL));
    t_collect(d, &log, 2);
    (void)T_OUTCOME(&log, 2, CANCELLED);
    (void)T_OUTCOME(&log, 3, CANCELLED);
    T_EQ(t_log_count(&log, GPUD_EVENT_CLASS), 0);
    T_OK(gpud_dispatcher_class_remove(d, "work", GPUD_FINISH_NOW, NULL));
    (void)revoked(d, &log, 1, 0, GPUD_REVOKED_CANCEL, GPUD_REVOKE_HARD);
    ENDED(d, g, CRASHED);
    t_collect(d, &log, 3);
    (void)T_OUTCOME(&log, 1, CANCELLED);
    t_collect_kind(d, &log, GPUD_EVENT_CLASS, 1);
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL));
    WORK(d, 4);
    g = start_granted(d, &log, 4, 0);
    ENDED(d, g, SUCCESS);
    t_collect(d, &log, 4);
    t_end(&d, &log);
}

/* It goes when the work on it has ended, and takes with it the tasks that no other one can hold. */
T_CASE(device_removed)
{
    gpud_dispatcher *d = outside("fake:2", NULL);
    struct t_log log = { 0 };
    struct gpud_event g;
    size_t at = 0;

    WORK(d, 1, .request = T_REQUEST(.devices = 1, .on = "fake:1"));
    g = start_granted(d, &log, 1, 0);
    WORK(d, 2, .request = T_REQUEST(.devices = 2));
    T_OK(gpud_dispatcher_device_remove(d, "fake:1"));
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, 2, NO_WORKER);
    ENDED(d, g, SUCCESS);
    (void)t_told(d, &log, &at, "fake:1", "removed");
    t_collect(d, &log, 2);
    T_TEXT(T_OUTCOME(&log, 1, SUCCESS)->device, "fake:1");
    t_end(&d, &log);
}

/* The work was given up and has not ended: what it has of the device is not free when the device
 * comes back.  A task beside it starts. */
T_CASE(held_on_a_device_that_returns)
{
    const struct gpud_task_desc all = { .struct_size = sizeof(all), .class_name = "work" };
    struct t_log log = { 0 };
    struct gpud_event g, beside;
    struct gpud_reason why;
    gpud_dispatcher *d;
    size_t at = 0;

    t_init(NULL, t_no_work, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:1", .kill_limit = T_MS(30));
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL,
                   .options = T_OPTIONS(.grace = GPUD_AT_ONCE)));
    WORK(d, 1, .limit = T_MS(10), .request = T_REQUEST(.devices = 1, .memory = T_GIB(3)));
    g = start_granted(d, &log, 1, 0);
    t_collect(d, &log, 1);
    T_EQ(T_OUTCOME(&log, 1, TIMEOUT)->phase, GPUD_PHASE_KILL);
    T_OK(gpud_dispatcher_device_remove(d, "fake:0"));
    (void)t_told(d, &log, &at, "fake:0", "removed");
    T_OK(gpud_dispatcher_device_add(d, "fake:1", NULL));
    why = t_reason(d, &all);
    T_TEXT(gpud_reason_name(why.kind), "FOREIGN");
    T_CMP(why.have, >=, T_GIB(3));
    T_CMP(why.have, <, T_GIB(4));
    WORK(d, 2);
    WORK(d, 3, .request = T_REQUEST(.devices = 1, .memory = T_GIB(1)));
    beside = start_granted(d, &log, 3, 0);
    T_TEXT(beside.device, "fake:0");
    ENDED(d, beside, SUCCESS);
    ENDED(d, g, SUCCESS);
    ENDED(d, start_granted(d, &log, 2, 0), SUCCESS);
    t_collect(d, &log, 3);
    t_end(&d, &log);
}

/* ---- the log ---- */

/* Returns 1 if a fresh core makes the decisions of the log. */
static int replays(const char *path)
{
    struct gpi_replay r = { .cut = true };
    size_t size;
    char *text = gpi_replay_file(path, &size);
    enum gpi_replay_result result;

    T_CHECK(text);
    T_CHECK(strstr(text, " adopt ") && strstr(text, " started ") && strstr(text, "REVOKE "));
    result = gpi_replay(&r, text, size);
    if (result != GPI_REPLAY_EQUAL)
        printf("  line %u: %s: \"%s\", \"%s\"\n", r.line, r.error, r.wanted, r.got);
    free(text);
    T_EQ(unlink(path), 0);
    return result == GPI_REPLAY_EQUAL;
}

T_CASE(decision_log)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    struct gpud_event g;
    uint64_t id;

    t_init(NULL, t_no_work, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:2", .decision_log = "decisions");
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL,
                   .options = T_OPTIONS(.grace = GPUD_AT_ONCE)));
    T_OK(gpud_dispatcher_adopt(d, T_TASK(.tag = 1, .class_name = "work"),
                               T_ADOPTION(.attempt = 2, .devices = "fake:1"), &id, NULL));
    WORK(d, 2, .limit = T_MS(10));
    WORK(d, 3, .stall_limit = T_S(60));
    g = start_granted(d, &log, 2, 0);
    (void)revoked(d, &log, 2, 0, GPUD_REVOKED_LIMIT, GPUD_REVOKE_HARD);
    ENDED(d, g, CRASHED);
    g = granted(d, &log, 3, 0);
    T_OK(gpud_dispatcher_decline(d, g.task_id, g.attempt, t_now() + T_MS(10), NULL));
    g = start_granted(d, &log, 3, 1);
    T_OK(gpud_dispatcher_progress(d, g.task_id, g.attempt, 0.5, NULL, NULL));
    ENDED(d, g, ERROR, .code = 1);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_LEAVE, 0));
    t_collect_rest(d, &log);
    t_end(&d, &log);
    T_CHECK(replays("decisions"));
}

/* ---- a long life ---- */

#define OF 40u        /* devices */
#define LISTS 66000u  /* more than 16 bits could number */

/* Adopts a task on these devices, and ends it.  Returns true if its outcome has their names. */
static bool names_are(gpud_dispatcher *d, const char *devices)
{
    struct gpud_event e = { .struct_size = sizeof(e) };
    uint64_t id;
    bool are;

    T_OK(gpud_dispatcher_adopt(d, T_TASK(.tag = 1, .class_name = "work"),
                               T_ADOPTION(.attempt = 1, .devices = devices), &id, NULL));
    T_OK(gpud_dispatcher_ended(d, id, 1, T_END(.outcome = GPUD_OUTCOME_SUCCESS), NULL));
    while (gpud_dispatcher_poll(d, &e, 1, T_PATIENCE) == 1 && e.kind != GPUD_EVENT_OUTCOME)
        ;
    are = strcmp(e.device, devices) == 0;
    if (!are)
        printf("  \"%s\", expected \"%s\"\n", e.device, devices);
    return are;
}

/* However many lists of devices a dispatcher has seen, its events have names. */
T_LONG_CASE(more_lists_than_numbers, 120)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    char list[64];
    uint32_t n = 0;

    t_init(NULL, t_no_work, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:40", .log_level = GPUD_LEVEL_ERROR);
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL));
    for (uint32_t i = 0; n < LISTS; i++) {
        const uint32_t a = i % OF, b = i / OF % OF, c = i / OF / OF % OF, e = i / OF / OF / OF;
        if (a <= b || b <= c || c <= e)
            continue;
        (void)snprintf(list, sizeof(list), "fake:%u,fake:%u,fake:%u,fake:%u", a, b, c, e);
        T_CHECK(names_are(d, list));
        n++;
    }
    t_end(&d, &log);
}

#define PLACES 256u /* sets of devices at a time */
#define NEAR 24u    /* devices */

/* Writes the list number `i` of two devices: all of them differ. */
static const char *list_of(uint32_t i, char to[32])
{
    const uint32_t a = i % NEAR, b = (a + 1 + i / NEAR) % NEAR;

    (void)snprintf(to, 32, "fake:%u,fake:%u", a, b);
    return to;
}

static int submit_on(gpud_dispatcher *d, uint64_t tag, uint32_t list, struct gpud_error *e)
{
    char on[32];
    uint64_t id;

    return gpud_dispatcher_submit(
        d, T_TASK(.tag = tag, .class_name = "work",
                  .request = T_REQUEST(.devices = 1, .on = list_of(list, on))), 0, &id, e);
}

/* Runs the task, on a device of its list. */
static void run_on(gpud_dispatcher *d, struct t_log *log, uint64_t tag, uint32_t list)
{
    const struct gpud_event g = start_granted(d, log, tag, 0);
    char on[32], devices[34], device[34];

    (void)snprintf(devices, sizeof(devices), ",%s,", list_of(list, on));
    (void)snprintf(device, sizeof(device), ",%.30s,", g.device);
    T_CHECK(strstr(devices, device));
    ENDED(d, g, SUCCESS);
}

/* Tasks that wait may name 256 sets.  Later ones may name others, as long as the dispatcher is. */
T_CASE(more_sets_than_places)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, t_no_work, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:24", .queue_size = 600);
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL));
    T_OK(gpud_dispatcher_class_set(d, "work", GPUD_CLASS_PAUSE, NULL));
    for (uint32_t i = 0; i < PLACES; i++)
        T_OK(submit_on(d, i, i, NULL));
    T_OK(submit_on(d, PLACES, 0, NULL));
    T_CODE(submit_on(d, 1000, PLACES, &e), EINVAL);
    T_TEXT(e.field, "on");
    T_OK(gpud_dispatcher_class_set(d, "work", GPUD_CLASS_RESUME, NULL));
    for (uint32_t i = 0; i <= PLACES; i++)
        run_on(d, &log, i, i % PLACES);
    for (uint32_t i = PLACES + 1; i < 2 * PLACES; i++) {
        T_OK(submit_on(d, i, i, NULL));
        run_on(d, &log, i, i);
    }
    t_collect(d, &log, 2 * PLACES);
    for (uint32_t i = 0; i < 2 * PLACES; i++) { /* nor does a class that is gone keep its set */
        char on[32];
        add(d, T_CLASS(.name = "other", .residence = GPUD_EXTERNAL,
                       .needs = T_REQUEST(.devices = 1, .on = list_of(i, on))));
        T_OK(gpud_dispatcher_class_remove(d, "other", GPUD_FINISH_NOW, NULL));
        (void)t_poll(d, &log, 0);
        (void)t_poll(d, &log, 0);
    }
    t_end(&d, &log);
}

/* ---- children ---- */

/* Polls, and ends each task that is granted, until intake has ended. */
static void *work_on(void *user)
{
    gpud_dispatcher *d = user;
    struct gpud_event e = { .struct_size = sizeof(e) };

    while (gpud_dispatcher_poll(d, &e, 1, T_MS(100)) != GPUD_EEND)
        if (e.kind == GPUD_EVENT_GRANTED)
            (void)gpud_dispatcher_ended(d, e.task_id, e.attempt,
                                        T_END(.outcome = GPUD_OUTCOME_SUCCESS), NULL);
    return NULL;
}

static void *feed(void *user)
{
    while (gpud_dispatcher_submit(user, T_TASK(.class_name = "work"), T_MS(100), NULL, NULL) !=
           GPUD_ECLOSED)
        ;
    return NULL;
}

/* At whatever moment the host forks, its child may destroy.  AddressSanitizer sees the fault that
 * was here: the child freed the words of an event again that a poll was about to free. */
T_LONG_CASE(children_destroy_while_a_thread_polls, 120)
{
    gpud_dispatcher *d = outside("fake:2", NULL);
    pthread_t poller, feeder;
    int status;
    pid_t pid;

    t_thread(&poller, work_on, d);
    t_thread(&feeder, feed, d);
    for (int i = 0; i < 100; i++) {
        pid = fork();
        T_CMP(pid, >=, 0);
        if (pid == 0)
            _exit(gpud_dispatcher_destroy(&d, NULL) ? 1 : 0);
        T_EQ(waitpid(pid, &status, 0), pid);
        T_EQ(status, 0);
    }
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_NOW, 0));
    t_join(feeder);
    t_join(poller);
    t_end(&d, NULL);
}

/* ---- memory ---- */

/* The memory of a process is the task's, if the host has named its session. */
T_LONG_CASE(memory_of_a_session, 60)
{
    struct t_log log = { 0 };
    struct gpud_event g;
    gpud_dispatcher *d;
    char script[96];
    int ends[2];
    pid_t leader, member = 0;

    T_EQ(pipe(ends), 0);
    leader = fork();
    if (leader == 0) {
        (void)setsid();
        member = fork();
        if (member)
            T_EQ(write(ends[1], &member, sizeof(member)), sizeof(member));
        t_rest();
    }
    T_EQ(read(ends[0], &member, sizeof(member)), sizeof(member));
    close(ends[0]);
    close(ends[1]);
    t_init(NULL, t_no_work, NULL);
    (void)snprintf(script, sizeof(script), "gpu 0 foreign %d 5GiB", (int)member);
    d = t_fakes(1, script, T_OPTIONS(.pooled = 1));
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL,
                   .needs = T_REQUEST(.devices = 1, .memory = T_GIB(5))));
    T_EQ(t_device(d, "fake:0").memory_foreign, T_GIB(5));
    WORK(d, 1);
    g = granted(d, &log, 1, 0);
    T_OK(gpud_dispatcher_started(d, g.task_id, 1, T_PROC(.session = (uint32_t)leader), NULL));
    while (t_device(d, "fake:0").memory_ours != T_GIB(5))
        t_pass(T_MS(5));
    T_EQ(t_device(d, "fake:0").memory_foreign, 0);
    ENDED(d, g, SUCCESS);
    t_collect(d, &log, 1);
    t_end(&d, &log);
    t_kill(member, SIGKILL);
    t_kill(leader, SIGKILL);
    T_EQ(waitpid(leader, NULL, 0), leader);
}

/* Starts a child, which starts another one, which starts a third: returns the first and last. */
static pid_t family(pid_t *ret_grandchild)
{
    int ends[2];
    pid_t child;

    T_EQ(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        pid_t next = fork();
        if (next == 0) {
            (void)setsid(); /* of another session */
            next = fork();
            if (next == 0)
                t_rest();
            T_EQ(write(ends[1], &next, sizeof(next)), sizeof(next));
            t_rest();
        }
        t_rest();
    }
    T_EQ(read(ends[0], ret_grandchild, sizeof(*ret_grandchild)), sizeof(*ret_grandchild));
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void end_family(pid_t child)
{
    struct t_procs below = t_procs_below(child);

    for (size_t i = 0; i < below.count; i++)
        t_kill(below.list[i].pid, SIGKILL);
    t_kill(child, SIGKILL);
    T_EQ(waitpid(child, NULL, 0), child);
    for (size_t i = 0; i < below.count; i++)
        t_wait_ended(&below.list[i]);
    t_procs_free(&below);
}

static int nothing_is_foreign(void *user)
{
    return t_device(user, "fake:0").memory_foreign == 0;
}

/* What a descendant of its process has is its own, and not foreign.  The device has 16 GiB. */
T_LONG_CASE(memory_of_grandchildren, 60)
{
    struct t_log log = { 0 };
    pid_t grandchild, child = family(&grandchild);
    struct gpud_event g;
    gpud_dispatcher *d;
    char script[128];

    t_init(NULL, t_no_work, NULL);
    (void)snprintf(script, sizeof(script), "when begun gpu 0 foreign %d 6GiB", (int)grandchild);
    d = t_fakes(1, script, T_OPTIONS(.pooled = 1));
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL,
                   .needs = T_REQUEST(.devices = 1, .share = 3000, .memory = T_GIB(6))));
    WORK(d, 1);
    g = granted(d, &log, 1, 0);
    t_trigger("begun");
    T_OK(gpud_dispatcher_started(d, g.task_id, 1, T_PROC(.pid = (uint32_t)child), NULL));
    while (t_device(d, "fake:0").memory_ours != T_GIB(6))
        t_pass(T_MS(5));
    t_wait_until("its memory is its own", nothing_is_foreign, d);
    WORK(d, 2); /* both fit, since its 6 GiB are counted once */
    ENDED(d, start_granted(d, &log, 2, 0), SUCCESS);
    ENDED(d, g, SUCCESS);
    while (t_device(d, "fake:0").memory_foreign != T_GIB(6))
        t_pass(T_MS(5));
    t_collect(d, &log, 2);
    t_end(&d, &log);
    end_family(child);
}

/* ---- threads ---- */

enum { TASKS = 400, THREADS = 4 };

struct crew {
    gpud_dispatcher *d;
    pthread_mutex_t lock;
    struct gpud_event granted[TASKS * 4];
    size_t n, taken;
    int over;
};

/* Takes what was granted: starts it and ends it, or declines it. */
static void *member(void *user)
{
    struct crew *c = user;

    for (size_t i = 0;; i++) {
        struct gpud_event g;
        int over, has;
        pthread_mutex_lock(&c->lock);
        over = c->over;
        has = c->taken < c->n;
        if (has)
            g = c->granted[c->taken++];
        pthread_mutex_unlock(&c->lock);
        if (over)
            return NULL;
        if (!has) {
            t_pass(T_US(50));
        } else if (i % 7 == 3 && g.attempt < 3) {
            T_OK(gpud_dispatcher_decline(c->d, g.task_id, g.attempt, 0, NULL));
        } else {
            started(c->d, &g);
            (void)gpud_dispatcher_progress(c->d, g.task_id, g.attempt, 0.5, "x", NULL);
            ENDED(c->d, g, SUCCESS, .result = "r", .result_size = 2);
        }
    }
}

T_LONG_CASE(threads, 60)
{
    struct crew *c = calloc(1, sizeof(*c));
    pthread_t thread[THREADS];
    size_t outcomes = 0, sent = 0;

    pthread_mutex_init(&c->lock, NULL);
    c->d = outside("fake:4", NULL);
    for (int i = 0; i < THREADS; i++)
        t_thread(&thread[i], member, c);
    while (outcomes < TASKS) {
        struct gpud_event e[16] = { { .struct_size = sizeof(*e) } };
        int n;
        while (sent < TASKS &&
               gpud_dispatcher_submit(c->d, T_TASK(.tag = sent, .class_name = "work"), 0, NULL,
                                      NULL) == 0)
            sent++;
        n = gpud_dispatcher_poll(c->d, e, 16, T_MS(10));
        T_CMP(n, >=, 0);
        pthread_mutex_lock(&c->lock);
        for (int i = 0; i < n; i++) {
            T_CHECK(e[i].kind != GPUD_EVENT_REVOKED);
            outcomes += e[i].kind == GPUD_EVENT_OUTCOME;
            if (e[i].kind == GPUD_EVENT_GRANTED)
                c->granted[c->n++] = e[i];
        }
        pthread_mutex_unlock(&c->lock);
    }
    pthread_mutex_lock(&c->lock);
    c->over = 1;
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < THREADS; i++)
        t_join(thread[i]);
    T_EQ(t_stats(c->d).success, TASKS);
    t_end(&c->d, NULL);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* ---- a walk ---- */

enum { DEVICES = 4, WALK = 1000 };

/* What the host knows of the task of a tag. */
struct known {
    uint64_t id;
    uint32_t attempt; /* of the grant that it has, or 0 */
    int device;
    int runs, over, grants;
};

struct walk {
    gpud_dispatcher *d;
    struct known task[WALK];
    int holder[DEVICES]; /* a tag, or -1 */
    uint64_t sent, over, seed;
};

static uint32_t any(struct walk *w, uint32_t n)
{
    w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->seed >> 33) % n;
}

static void take_device(struct walk *w, struct known *k, const struct gpud_event *e)
{
    T_CHECK(strncmp(e->device, "fake:", 5) == 0);
    k->device = atoi(e->device + 5);
    if (w->holder[k->device] != -1) /* S1 */
        T_FAIL("%s is granted to %d and to %d", e->device, w->holder[k->device], (int)e->tag);
    w->holder[k->device] = (int)e->tag;
    T_CMP((int)e->attempt, >, k->grants);
    k->grants = (int)e->attempt;
    k->attempt = e->attempt;
    k->runs = 0;
}

static void free_device(struct walk *w, struct known *k)
{
    if (k->attempt)
        w->holder[k->device] = -1;
    k->attempt = 0;
}

static void read_event(struct walk *w, const struct gpud_event *e)
{
    struct known *k = &w->task[e->tag];

    if (e->kind == GPUD_EVENT_GRANTED) {
        T_CHECK(!k->over && !k->attempt);
        take_device(w, k, e);
    } else if (e->kind == GPUD_EVENT_REVOKED) {
        T_CHECK(!k->over);
        T_EQ(e->attempt, k->grants);
        if (e->revoke == GPUD_REVOKE_BACK && k->attempt)
            free_device(w, k);
    } else if (e->kind == GPUD_EVENT_OUTCOME) {
        T_CHECK(!k->over);
        k->over = 1;
        w->over++;
        if (e->phase != GPUD_PHASE_KILL)
            free_device(w, k);
    }
}

/* Does something with a task that has a grant, as far as the host knows. */
static void act(struct walk *w, struct known *k)
{
    static const uint32_t outcomes[] = { GPUD_OUTCOME_SUCCESS, GPUD_OUTCOME_ERROR,
                                         GPUD_OUTCOME_CRASHED };
    const uint32_t what = any(w, 10), outcome = outcomes[any(w, 3)];
    int r = 0;

    if (!k->runs && what < 2) {
        r = gpud_dispatcher_decline(w->d, k->id, k->attempt, any(w, 2) ? t_now() + T_MS(1) : 0,
                                    NULL);
        if (r == 0)
            free_device(w, k);
    } else if (!k->runs && what < 8) {
        r = gpud_dispatcher_started(w->d, k->id, k->attempt, NULL, NULL);
        k->runs = r == 0;
    } else if (k->runs && what < 3) {
        r = gpud_dispatcher_progress(w->d, k->id, k->attempt, 0.5, NULL, NULL);
    } else if (k->runs && what < 8) {
        r = gpud_dispatcher_ended(w->d, k->id, k->attempt,
                                  T_END(.outcome = outcome,
                                        .code = outcome == GPUD_OUTCOME_ERROR ? 1 : 0), NULL);
        if (r == 0)
            free_device(w, k);
    } else if (what == 9) {
        r = gpud_dispatcher_cancel(w->d, k->id, any(w, 2));
    }
    T_CHECK(r == 0 || r == GPUD_ENOTFOUND);
}

static void submit_some(struct walk *w)
{
    struct gpud_task_desc t = *T_TASK(.class_name = "work");

    for (uint32_t n = any(w, 4); n > 0 && w->sent < WALK; n--) {
        t.tag = w->sent;
        t.priority = (int32_t)any(w, 3);
        t.limit = any(w, 2) ? T_MS(1 + any(w, 5)) : 0;
        t.stall_limit = any(w, 4) ? 0 : T_MS(2);
        t.expires = any(w, 8) ? 0 : T_MS(20);
        if (gpud_dispatcher_submit(w->d, &t, 0, &w->task[w->sent].id, NULL))
            return;
        w->sent++;
    }
}

static void step(struct walk *w)
{
    struct gpud_event e[8] = { { .struct_size = sizeof(*e) } };
    const int n = gpud_dispatcher_poll(w->d, e, 1 + any(w, 8), any(w, 3) ? 0 : T_US(300));

    T_CMP(n, >=, 0);
    for (int i = 0; i < n; i++)
        read_event(w, &e[i]);
    for (int i = 0; i < DEVICES; i++)
        if (w->holder[i] != -1 && any(w, 4) == 0) /* else it is late: for its start, or its limit */
            act(w, &w->task[w->holder[i]]);
}

/* No device is granted twice, and each task has one outcome, whatever the host does, and when. */
static void walk(uint32_t drive)
{
    struct walk *w = calloc(1, sizeof(*w));
    struct gpud_stats s;

    w->seed = t_now();
    printf("  seed %llu\n", (unsigned long long)w->seed);
    t_init(NULL, t_no_work, NULL);
    w->d = T_CREATE(.pooled = 1, .devices = "fake:4", .queue_size = 32, .kill_limit = T_MS(2),
                    .max_workers = 6, .drive = drive);
    add(w->d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL,
                      .options = T_OPTIONS(.grace = T_MS(1), .setup_limit = T_MS(3),
                                           .max_attempts = 2, .retry_causes = 7)));
    for (int i = 0; i < DEVICES; i++)
        w->holder[i] = -1;
    while (w->over < WALK) {
        submit_some(w);
        step(w);
    }
    for (int i = 0; i < DEVICES; i++)
        while (w->holder[i] != -1)
            act(w, &w->task[w->holder[i]]);
    s = t_stats(w->d);
    printf("  success %d, timeout %d, crashed %d, cancelled %d, no worker %d, retried %d\n",
           (int)s.success, (int)s.timeout, (int)s.crashed, (int)s.cancelled, (int)s.no_worker,
           (int)s.retried);
    T_EQ(s.delivered, WALK);
    T_EQ(t_stats(w->d).sent, 0);
    t_end(&w->d, NULL);
    free(w);
}

T_LONG_CASE(random_walk, 120)
{
    walk(GPUD_DRIVE_THREAD);
}

T_LONG_CASE(random_walk_without_a_thread, 120)
{
    walk(GPUD_DRIVE_CALLER);
}
