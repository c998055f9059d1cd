/* SPDX-License-Identifier: MIT */
/* history.c - the history of a batch: attempts, and ends without one. */
#include "steps.h"

#include <stdio.h>

#include "view.h"

#define T1 GPQ_TASK(1, 1)

struct line {
    char text[1024];
    size_t n;
    uint32_t rows, most; /* most 0 = all */
    struct gpq_attempt last;
};

#define LINE_ADD(l, ...) \
    ((l)->n += (size_t)snprintf((l)->text + (l)->n, sizeof((l)->text) - (l)->n, __VA_ARGS__))

static int add_row(const struct gpq_history *h, void *user)
{
    const struct gpq_attempt *a = &h->attempt;
    struct line *l = user;

    LINE_ADD(l, "%s%s", l->n ? ", " : "", view_id(a->task));
    if (a->number)
        LINE_ADD(l, "#%u", a->number);
    LINE_ADD(l, " %s",
             a->outcome       ? gpq_outcome_text(a->outcome)
             : a->returned_at ? gpq_return_text(a->returned)
                              : "runs");
    if (h->name || h->content.size)
        LINE_ADD(l, " %s=%.*s", h->name ? h->name : "", (int)h->content.size,
                 (const char *)h->content.data);
    l->last = *a;
    return ++l->rows == l->most;
}

static struct line *read_history(struct gpq_store *s, uint32_t id, uint64_t since,
                                 const struct gpq_attempt *behind, bool names, uint32_t most)
{
    static struct line lines[4];
    static unsigned next;
    struct line *l = &lines[next++ % T_LENGTH(lines)];
    struct gpq_error e;

    *l = (struct line){ .most = most };

    int code = s->engine->history(s, id, 0, since, behind, names, add_row, l, &e);

    T_EQ(code, most && l->rows == most);
    return l;
}

static const char *history(struct gpq_store *s, uint32_t id)
{
    return read_history(s, id, 0, NULL, false, 0)->text;
}

/* By number, a returned one and a running one, too; of its own tasks only. */
BOTH(a_history_has_all_attempts)
{
    SUBMIT(s, .items = "x y z", .name = "night", .task_name = "job", .retries = { 1 });
    SUBMIT(s, .items = "x u", .name = "night", .join = true);
    T_EQ(run(s, T1, GPQ_OUTCOME_ERROR), 0);
    (void)claim(s, T1);
    T_EQ(try_give_back(s, T1, 2, GPQ_RETURN_STOPPED), 0);
    T_EQ(run(s, T1, GPQ_OUTCOME_SUCCESS), 1);
    (void)claim(s, GPQ_TASK(1, 2));
    T_TEXT(history(s, 1), "1.1#1 error, 1.1#2 worker stopped, 1.1#3 ok, 1.2#1 runs");
    T_TEXT(history(s, 2), "");
    T_TEXT(history(s, 3), "");
    T_TEXT(history(s, 0), "");
    T_TEXT(read_history(s, 1, 0, NULL, true, 1)->text, "1.1#1 error job=x");
    T_EQ(end(s, GPQ_TASK(1, 2), GPQ_OUTCOME_SUCCESS, NOW), 1);
    T_TEXT(history(s, 1), "1.1#1 error, 1.1#2 worker stopped, 1.1#3 ok, 1.2#1 ok");
}

/* Cancelled while it waits, skipped, expired, and between two attempts; and lost by a return. */
BOTH(ends_without_an_attempt)
{
    uint64_t next;

    SUBMIT(s, .items = "x y", .at = 700);
    SUBMIT(s, .items = "z", .after = { { T1, GPQ_AFTER_OK } });
    SUBMIT(s, .items = "u", .expires = 1500);
    SUBMIT(s, .items = "v", .once = true);
    SUBMIT(s, .items = "w", .retries = { 1 }, .backoff = 100);
    cancel(s, ONE(T1));
    T_TEXT(history(s, 1), "1.1 cancelled");
    T_EQ(read_history(s, 1, 0, NULL, false, 1)->last.ready, 700); /* it waited since then */
    T_TEXT(history(s, 2), "2.1 skipped");
    T_EQ(read_history(s, 2, 0, NULL, false, 1)->last.ready, 0);
    T_EQ(due(s, 1500, &next), 1);
    T_TEXT(history(s, 3), "3.1 timeout");
    T_EQ(read_history(s, 3, 0, NULL, false, 1)->last.ended, 1500);
    (void)claim(s, GPQ_TASK(4, 1));
    T_EQ(try_give_back(s, GPQ_TASK(4, 1), 1, GPQ_RETURN_LOST), 1);
    T_TEXT(history(s, 4), "4.1#1 lost"); /* its return ended the task */
    T_EQ(run(s, GPQ_TASK(5, 1), GPQ_OUTCOME_ERROR), 0);
    cancel(s, ONE(GPQ_TASK(5, 1)));
    T_TEXT(history(s, 5), "5.1#1 error, 5.1 cancelled");
}

/* A part of a batch. */
BOTH(a_history_up_to_a_task)
{
    static const struct {
        uint32_t last;
        const char *rows;
    } parts[] = { { 1, "1.1#1 ok" }, { 2, "1.1#1 ok" }, { 3, "1.1#1 ok, 1.3#1 ok" } };
    const struct gpq_attempt behind = { .task = T1, .round = 1, .number = 1 };
    struct gpq_error e;

    SUBMIT(s, .items = "x y z");
    T_EQ(run(s, T1, GPQ_OUTCOME_SUCCESS), 1);
    T_EQ(run(s, GPQ_TASK(1, 3), GPQ_OUTCOME_SUCCESS), 1);
    for (size_t i = 0; i < T_LENGTH(parts); i++) {
        struct line l = { .most = 0 };
        T_EQ(s->engine->history(s, 1, parts[i].last, 0, NULL, false, add_row, &l, &e), 0);
        T_TEXT(l.text, parts[i].rows);
    }
    struct line l = { .most = 0 };
    T_EQ(s->engine->history(s, 1, 2, 0, &behind, false, add_row, &l, &e), 0);
    T_TEXT(l.text, "");
}

/* Each round has its end. */
BOTH(rounds_of_a_history)
{
    SUBMIT(s, .items = "x y", .at = 700);
    cancel(s, ONE(T1));
    retry(s, ONE(T1), 800);
    T_TEXT(history(s, 1), "1.1 cancelled");
    cancel(s, ONE(T1));
    retry(s, ONE(T1), 900);
    T_EQ(run(s, T1, GPQ_OUTCOME_ERROR), 1);
    retry(s, ONE(T1), NOW);
    (void)claim(s, T1);
    cancel(s, ONE(T1));
    T_EQ(try_give_back(s, T1, 2, GPQ_RETURN_STOPPED), 1);
    T_EQ(run(s, GPQ_TASK(1, 2), GPQ_OUTCOME_CRASHED), 1);
    T_TEXT(history(s, 1), "1.1 cancelled, 1.1 cancelled, 1.1#1 error, 1.1#2 cancelled, "
                          "1.2#1 crashed");
}

/* Behind each row that was seen last, the others follow. */
BOTH(a_history_goes_on_behind_a_row)
{
    struct gpq_attempt behind = { 0 };
    struct line all = { 0 };

    SUBMIT(s, .items = "x y z", .retries = { 1 });
    cancel(s, ONE(T1));
    retry(s, ONE(T1), NOW);
    cancel(s, ONE(T1));
    retry(s, ONE(T1), NOW);
    T_EQ(run(s, T1, GPQ_OUTCOME_ERROR), 0);
    cancel(s, ONE(T1));
    T_EQ(run(s, GPQ_TASK(1, 2), GPQ_OUTCOME_ERROR), 0);
    T_EQ(run(s, GPQ_TASK(1, 2), GPQ_OUTCOME_SUCCESS), 1);
    (void)claim(s, GPQ_TASK(1, 3));
    for (;;) {
        const struct line *l = read_history(s, 1, 0, &behind, false, 1);

        if (!l->rows)
            break;
        T_CMP(++all.rows, <, 20);
        LINE_ADD(&all, "%s%s", all.n ? ", " : "", l->text);
        behind = l->last;
    }
    T_TEXT(all.text, history(s, 1));
    T_TEXT(all.text, "1.1 cancelled, 1.1 cancelled, 1.1#1 error, 1.1 cancelled, 1.2#1 error, "
                     "1.2#2 ok, 1.3#1 runs");
    behind.task = UINT64_MAX;
    T_TEXT(read_history(s, 1, 0, &behind, false, 0)->text, "");
}

/* What ended before is left out, and what runs is always in. */
BOTH(a_history_since_a_time)
{
    SUBMIT(s, .items = "x y z u", .at = 700, .retries = { 1 });
    (void)claim(s, T1);
    T_EQ(end(s, T1, GPQ_OUTCOME_ERROR, 800), 0);
    (void)claim(s, T1);
    T_EQ(end(s, T1, GPQ_OUTCOME_SUCCESS, 2000), 1);
    (void)claim(s, GPQ_TASK(1, 2));
    T_EQ(try_give_back(s, GPQ_TASK(1, 2), 1, GPQ_RETURN_DEVICE), 0);
    (void)claim(s, GPQ_TASK(1, 3));
    cancel(s, ONE(GPQ_TASK(1, 4)));
    T_TEXT(read_history(s, 1, 0, NULL, false, 0)->text,
           "1.1#1 error, 1.1#2 ok, 1.2#1 device fault, 1.3#1 runs, 1.4 cancelled");
    T_TEXT(read_history(s, 1, NOW, NULL, false, 0)->text,
           "1.1#2 ok, 1.2#1 device fault, 1.3#1 runs, 1.4 cancelled");
    T_TEXT(read_history(s, 1, NOW + 1, NULL, false, 0)->text, "1.1#2 ok, 1.3#1 runs");
    T_TEXT(read_history(s, 1, 2001, NULL, false, 0)->text, "1.3#1 runs");
}

/* Within a transaction, too, and not after a rollback. */
BOTH(a_history_of_a_transaction)
{
    SUBMIT(s, .items = "x");
    step_begin(s);
    (void)claim(s, T1);
    T_TEXT(history(s, 1), "1.1#1 runs");
    step_rollback(s);
    T_TEXT(history(s, 1), "");
}
