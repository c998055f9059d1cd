/* SPDX-License-Identifier: MIT */
/* left.c - how long a batch still needs: plays the rest of it with draws from what it showed. */
#include "view/night/left.h"

#include <math.h>
#include <stdlib.h>

/* Chosen with tests/view/left.py --tune. */
enum {
    PLAYS = 32,
    CUT_LEAST = 2,  /* plays left out at the lower end */
    CUT_MOST = 1,   /* and at the upper one: a batch is late more often than early */
    ROUNDS = 3,     /* tasks of each place that are played one by one */
    NEWEST = 16,    /* run times at least that are drawn from */
    TREND_ENDS = 64 /* ends that show whether run times grow */
};
#define NOISE 0.08     /* of what is not modelled */
#define BLUR 0.3       /* of a run time: part of the deviation */
#define BLUR_MOST 0.2  /* of a run time */
#define TREND_SURE 3.0 /* standard errors between two halves that are no chance */
#define TREND_FAR 3.0  /* times the change between the halves */
#define FACTOR_LEAST 0.3
#define SECOND 1e9
#define LONGEST 3e18 /* ns: 95 years */

static double seconds(int64_t from, int64_t to)
{
    return to > from ? (double)((uint64_t)to - (uint64_t)from) / SECOND : 0;
}

/* ---- Reports ---- */

/* Charges the time since the last report.  Marks have even distances: when their list is full,
 * each second one goes. */
static void charge(struct gpv_left *l, int64_t now)
{
    if (l->n_marks == 0) {
        l->changed = now;
        l->every = (uint64_t)SECOND;
    }
    l->area += seconds(l->changed, now) * l->running;
    l->changed = now > l->changed ? now : l->changed;
    if (l->n_marks > 0 && (uint64_t)l->changed - (uint64_t)l->mark[l->n_marks - 1].time < l->every)
        return;
    if (l->n_marks == GPV_LEFT_MARKS) {
        l->n_marks /= 2;
        l->every *= 2;
        for (uint32_t i = 1; i < l->n_marks; i++)
            l->mark[i] = l->mark[2 * i];
    }
    l->mark[l->n_marks++] = (struct gpv_left_mark){ l->changed, l->area };
}

void gpv_left_start(struct gpv_left *l, int64_t now)
{
    charge(l, now);
    if (l->n_started < GPV_LEFT_PLACES)
        l->started[l->n_started++] = now;
    l->running++;
}

void gpv_left_end(struct gpv_left *l, int64_t started, int64_t now)
{
    charge(l, now);
    l->run[l->ends++ % GPV_LEFT_RUNS] = (float)seconds(started, now);
    l->running -= l->running > 0;
    for (uint32_t i = 0; i < l->n_started; i++)
        if (l->started[i] == started) {
            l->started[i] = l->started[--l->n_started];
            return;
        }
}

/* ---- What the batch showed ---- */

struct rest {
    const struct gpv_left *l;
    int64_t now;
    uint64_t random;
    /* Run times in s: of the newest tasks that ended, oldest first; then, if these are all that
     * ended, what to expect of those that run.  Without these the short tasks, which end first,
     * would stand for all; later, the long ones, which run at most times, would. */
    double run[GPV_LEFT_RUNS + GPV_LEFT_PLACES];
    uint32_t n, ended;
    double trend;
    /* Of one play: */
    const double *from; /* a part of `run` */
    uint32_t n_from;
    double factor, blur;
    double until[GPV_LEFT_PLACES]; /* when places are free: s from now */
    uint32_t used;
};

struct spread {
    double mean, deviation; /* the latter as a part of the mean */
};

static struct spread spread_of(const double *run, uint32_t n)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += run[i];
        squares += run[i] * run[i];
    }
    double mean = sum / n, variance = squares / n - mean * mean;
    return (struct spread){ mean, mean > 0 && variance > 0 ? sqrt(variance) / mean : 0 };
}

/* The run time to expect of a task of some age: the mean of those that were longer. */
static double expected(const struct rest *r, double age)
{
    double sum = 0;
    uint32_t longer = 0;
    for (uint32_t i = 0; i < r->ended; i++)
        if (r->run[i] > age) {
            sum += r->run[i];
            longer++;
        }
    return longer > 0 ? sum / longer : age * 1.3;
}

static void collect(struct rest *r)
{
    const struct gpv_left *l = r->l;
    r->ended = l->ends < GPV_LEFT_RUNS ? (uint32_t)l->ends : GPV_LEFT_RUNS;
    for (; r->n < r->ended; r->n++)
        r->run[r->n] = (double)l->run[(l->ends - r->ended + r->n) % GPV_LEFT_RUNS];
    for (uint32_t i = 0; l->ends <= GPV_LEFT_RUNS && i < l->n_started; i++)
        r->run[r->n++] = expected(r, seconds(l->started[i], r->now));
}

/* By which part run times will have grown at the middle of the rest, as those of files in the
 * order of their sizes do; 0 where the growth may be chance. */
static double trend_of(const struct rest *r, uint32_t waiting)
{
    uint32_t half = r->ended / 2;
    if (r->ended < TREND_ENDS)
        return 0;
    double older = spread_of(r->run, half).mean;
    double newer = spread_of(r->run + r->ended - half, half).mean;
    double change = older > 0 ? newer / older - 1 : 0;
    if (fabs(change) < TREND_SURE * spread_of(r->run, r->ended).deviation * sqrt(2.0 / half))
        return 0;
    change *= fmin(1 + (double)waiting / r->ended, TREND_FAR);
    return fmax(change, -0.5);
}

/* ---- A play ---- */

static uint32_t draw(struct rest *r, uint32_t n)
{
    r->random = r->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((r->random >> 32) * n >> 32);
}

static double unit(struct rest *r)
{
    return draw(r, UINT32_MAX) / (double)UINT32_MAX;
}

/* About normal: mean 0, deviation 1, and never beyond 3.5. */
static double normal(struct rest *r)
{
    double sum = -2;
    for (int i = 0; i < 4; i++)
        sum += unit(r);
    return sum * sqrt(3);
}

static double draw_run(struct rest *r)
{
    return r->from[draw(r, r->n_from)] * r->factor * (1 + r->blur * normal(r));
}

/* How much longer a task of some age runs; if none was as long, up to half as much again. */
static double draw_rest(struct rest *r, double age)
{
    for (uint32_t i = 0; i < r->n; i++) {
        double run = draw_run(r);
        if (run > age)
            return run - age;
    }
    return age * unit(r) / 2;
}

/* How many tasks run at once: as many as now, or as on average since an earlier time. */
static double draw_parallel(struct rest *r, bool now)
{
    const struct gpv_left *l = r->l;
    const struct gpv_left_mark *since = &l->mark[draw(r, l->n_marks)];
    double time = seconds(since->time, r->now);
    double area = l->area - since->area + seconds(l->changed, r->now) * l->running;
    return (now && l->running > 0) || time <= 0 || area <= 0 ? fmax(l->running, 1) : area / time;
}

/* Chooses the run times of a play, and by which factor their mean is wrong. */
static struct spread draw_runs(struct rest *r)
{
    uint32_t newest = r->ended >> draw(r, 2);
    newest = newest > NEWEST ? newest : NEWEST;
    r->from = newest < r->ended ? r->run + r->ended - newest : r->run;
    r->n_from = newest < r->ended ? newest : r->n;
    struct spread spread = spread_of(r->from, r->n_from);
    r->factor = fmax(1 + normal(r) * spread.deviation / sqrt(r->n_from), FACTOR_LEAST);
    r->factor *= 1 + r->trend * unit(r);
    r->blur = fmin(BLUR * spread.deviation, BLUR_MOST);
    return (struct spread){ spread.mean * r->factor, spread.deviation };
}

static uint32_t first_free(const struct rest *r)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < r->used; i++)
        if (r->until[i] < r->until[first])
            first = i;
    return first;
}

/* Starts a task as soon as fewer than `places` are in use; returns its end. */
static double play_task(struct rest *r, uint32_t places, double at)
{
    while (r->used > places) {
        r->until[first_free(r)] = r->until[r->used - 1];
        r->used--;
    }
    uint32_t place = r->used;
    double from = at;
    if (r->used < places) {
        r->used++;
    } else {
        place = first_free(r);
        from = r->until[place];
    }
    r->until[place] = from + draw_run(r);
    return r->until[place];
}

/* The end of the last task: s from now.  Most of many tasks count as a sum; the last rounds are
 * played one by one, since in them places are idle. */
static double play(struct rest *r, double waiting, bool now)
{
    const struct spread spread = draw_runs(r);
    double parallel = draw_parallel(r, now), at = 0, end = 0;
    double scale = fmax(parallel / GPV_LEFT_PLACES, 1); /* more at once are played as so many */
    uint32_t places = (uint32_t)fmin(parallel / scale + unit(r), GPV_LEFT_PLACES);
    places = places > 0 ? places : 1;
    waiting /= scale;
    if (waiting > places * ROUNDS) {
        double sum = places * floor(waiting / places - ROUNDS + 1);
        at = fmax(sum + normal(r) * spread.deviation * sqrt(sum), 0);
        at *= spread.mean * scale / parallel;
        waiting -= sum;
    }
    r->used = 0;
    for (uint32_t i = 0; i < r->l->running && i < GPV_LEFT_PLACES; i++) {
        double rest = i < r->l->n_started ? draw_rest(r, seconds(r->l->started[i], r->now))
                                          : draw_run(r) * unit(r);
        r->until[r->used++] = at + rest;
        end = fmax(end, at + rest);
    }
    for (; waiting > 0; waiting--)
        end = fmax(end, play_task(r, places, at));
    return end * (1 + NOISE * normal(r));
}

/* ---- The range ---- */

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int64_t ns_of(double s)
{
    return s * SECOND < LONGEST ? (int64_t)(s * SECOND) : (int64_t)LONGEST;
}

/* Nothing runs for longer than a task takes: others, or a pause, keep the batch from running. */
static bool stands(const struct rest *r)
{
    return r->l->running == 0 && seconds(r->l->changed, r->now) > spread_of(r->run, r->n).mean;
}

void gpv_left(const struct gpv_left *l, int64_t now, uint32_t waiting, bool more, int64_t *least,
              int64_t *most)
{
    struct rest r = { .l = l, .now = now };
    double end[PLAYS];
    bool over = waiting == 0 && l->running == 0;
    *least = *most = over && !more ? 0 : -1;
    if (over || l->ends < GPV_LEFT_ENDS)
        return;
    collect(&r);
    if (stands(&r))
        return;
    r.trend = trend_of(&r, waiting);
    for (uint32_t i = 0; i < PLAYS; i++)
        end[i] = play(&r, waiting, i % 2 == 0);
    qsort(end, PLAYS, sizeof(end[0]), by_size);
    *least = ns_of(end[CUT_LEAST]);
    *most = more ? -1 : ns_of(end[PLAYS - 1 - CUT_MOST]);
}

void gpv_left_join(int64_t *least, int64_t *most, int64_t batch_least, int64_t batch_most)
{
    bool unknown = *most < 0 || batch_most < 0;
    *least = batch_least > *least ? batch_least : *least;
    *most = unknown ? -1 : batch_most > *most ? batch_most : *most;
}
