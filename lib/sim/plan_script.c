/* SPDX-License-Identifier: MIT */
#include "sim/plan_script.h"

#include <string.h>

#define ACTIONS_SIZE (64u * 1024) /* the text of a group's actions: more is no script */

struct run {
    struct gpi_plan_script *s;
    struct gpi_trial trial;
    const char *text; /* the current line */
    size_t size;
    uint64_t now;
    bool differs;
    uint32_t differs_at;
    /* The current group of facts. */
    uint32_t together;      /* number of its facts so far */
    bool ruled;             /* its ---- was read */
    char got[ACTIONS_SIZE]; /* lines of its actions */
    size_t n, next;         /* bytes of these; of them, compared */
};

static bool bad(struct run *run, const char *reason)
{
    (void)snprintf(run->s->error, sizeof run->s->error, "%s", reason);
    return false;
}

static void write_text(struct run *run, const char *text, size_t size)
{
    if (run->s->rewritten) {
        (void)fwrite(text, 1, size, run->s->rewritten);
        (void)fputc('\n', run->s->rewritten);
    }
}

/* ---- actions ---- */

static void keep(const struct gpi_plan_action *a, void *user)
{
    struct run *run = user;
    char line[GPI_FACT_LINE_SIZE];
    const size_t size = strlen(gpi_fact_write_action(line, a));

    if (run->n + size + 1 > sizeof run->got)
        return; /* take_fact refuses the group */
    memcpy(run->got + run->n, line, size);
    run->got[run->n + size] = '\n';
    run->n += size + 1;
}

/* Takes the next line of the group's actions.  Returns false if there is none. */
static bool next_action(struct run *run, const char **ret, size_t *ret_size)
{
    const char *end;

    if (run->next == run->n)
        return false;
    *ret = run->got + run->next;
    end = memchr(*ret, '\n', run->n - run->next);
    *ret_size = (size_t)(end - *ret);
    run->next += *ret_size + 1;
    return true;
}

static void tell(char to[GPI_PLAN_SHOWN_SIZE], const char *text, size_t size)
{
    (void)snprintf(to, GPI_PLAN_SHOWN_SIZE, "%.*s", text ? (int)size : 7, text ? text : "nothing");
}

/* Compares two actions, either of which may be missing.  Returns false at the first difference,
 * which ends a replay that does not rewrite. */
static bool compare(struct run *run, const char *wanted, size_t wanted_size, const char *got,
                    size_t got_size)
{
    const bool equal = wanted && got && wanted_size == got_size && !memcmp(wanted, got, got_size);

    if (got)
        write_text(run, got, got_size);
    if (run->differs || run->s->any || equal)
        return true;
    run->differs = true;
    run->differs_at = run->s->line;
    tell(run->s->wanted, wanted, wanted_size);
    tell(run->s->got, got, got_size);
    return run->s->rewritten;
}

static bool take_rule(struct run *run)
{
    if (!run->together || run->ruled)
        return bad(run, "expected ---- once, behind a fact");
    run->ruled = true;
    if (run->n)
        write_text(run, "----", 4);
    return true;
}

static bool take_action(struct run *run)
{
    const char *got = NULL;
    size_t size = 0;

    (void)next_action(run, &got, &size);
    return compare(run, run->text, run->size, got, size);
}

/* Ends the current group of facts, with all its actions. */
static bool take_end(struct run *run)
{
    const char *got = NULL;
    size_t size = 0;
    bool go_on = true;

    if (!run->ruled && run->n)
        write_text(run, "----", 4);
    while (go_on && next_action(run, &got, &size))
        go_on = compare(run, NULL, 0, got, size);
    run->together = 0;
    run->ruled = false;
    run->n = run->next = 0;
    return go_on;
}

/* ---- facts ---- */

static bool take_fact(struct run *run)
{
    struct gpi_fact f = { .now = run->now };
    const char *reason;

    if (!gpi_fact_read(&f, run->text, run->size, run->s->error))
        return false;
    reason = gpi_trial_refuses(&run->trial, &f);
    if (reason)
        return bad(run, reason);
    run->now = f.now;
    run->together++;
    run->s->facts++;
    gpi_trial_feed(&run->trial, &f);
    if (run->n > sizeof run->got - GPI_FACT_LINE_SIZE)
        return bad(run, "a group has more actions than this program compares");
    return !run->trial.broken;
}

static bool is_blank(const struct run *run)
{
    for (size_t i = 0; i < run->size; i++)
        if (run->text[i] != ' ' && run->text[i] != '\t')
            return false;
    return true;
}

static bool take_line(struct run *run)
{
    const bool rule = run->size == 4 && !memcmp(run->text, "----", 4);
    const bool blank = is_blank(run), comment = run->size && *run->text == '#';

    if (blank && !take_end(run))
        return false;
    if (!rule && (!run->ruled || blank || comment))
        write_text(run, run->text, run->size);
    if (blank || comment)
        return true;
    if (rule)
        return take_rule(run);
    return run->ruled ? take_action(run) : take_fact(run);
}

static bool take_all(struct run *run, const char *text, size_t size)
{
    const char *end;

    for (; size; text = end + 1) {
        end = memchr(text, '\n', size);
        run->s->line++;
        run->text = text;
        run->size = end ? (size_t)(end - text) : size;
        if (!take_line(run))
            return false;
        if (!end)
            break;
        size -= run->size + 1;
    }
    return take_end(run);
}

static void note_objection(struct run *run)
{
    const uint32_t task = run->trial.culprit;
    const size_t n = sizeof run->s->error;

    if (task == GPI_NOWHERE)
        (void)snprintf(run->s->error, n, "%s", run->trial.broken);
    else
        (void)snprintf(run->s->error, n, "%s (task %u)", run->trial.broken, task);
}

enum gpi_plan_script_result gpi_plan_script(struct gpi_plan_script *s, const char *text,
                                            size_t size)
{
    struct run run = { .s = s, .trial = { .alone = s->alone, .action = keep, .user = &run } };

    s->line = 0;
    s->facts = 0;
    *s->wanted = *s->got = *s->error = 0;
    (void)take_all(&run, text, size);
    if (run.trial.broken)
        note_objection(&run);
    gpi_trial_fini(&run.trial);
    if (run.trial.broken)
        return GPI_PLAN_SCRIPT_BROKEN;
    if (*s->error)
        return GPI_PLAN_SCRIPT_BAD;
    if (!run.differs)
        return GPI_PLAN_SCRIPT_EQUAL;
    s->line = run.differs_at;
    return GPI_PLAN_SCRIPT_DIFFERS;
}

/* ---- writing ---- */

void gpi_plan_log_fact(struct gpi_plan_log *l, const struct gpi_fact *f)
{
    char line[GPI_FACT_LINE_SIZE];

    if (l->ruled)
        (void)fputc('\n', l->out);
    l->ruled = false;
    (void)fputs(gpi_fact_write(line, f), l->out);
    (void)fputc('\n', l->out);
}

void gpi_plan_log_action(struct gpi_plan_log *l, const struct gpi_plan_action *a)
{
    char line[GPI_FACT_LINE_SIZE];

    if (!l->ruled)
        (void)fputs("----\n", l->out);
    l->ruled = true;
    (void)fputs(gpi_fact_write_action(line, a), l->out);
    (void)fputc('\n', l->out);
}
