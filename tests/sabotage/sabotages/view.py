# SPDX-License-Identifier: MIT
"""Faults in the views of a night."""

from .entry import Sabotage

SABOTAGES = [
    # ---- Lines ----
    Sabotage(
        "a line of a later version is not counted", "view/line.c",
        "    n->unknown += !known || f.strange;\n",
        "    n->unknown += f.strange;\n",
        "view/recordings.all"),
    Sabotage(
        "bytes that are no UTF-8 stay in a text", "view/line.c",
        "length ? text + i : \"\\xef\\xbf\\xbd\", length ? length : 3);\n",
        "length ? text + i : \"\\xff\\xff\\xff\", length ? length : 3);\n",
        "view/recordings.hostile"),
    Sabotage(
        "a page keeps the names of all tasks", "view/records.c",
        "    return n->attempts.n < n->limit.names || gpv_is_bad(outcome);\n",
        "    return n->limit.names > 0 || gpv_is_bad(outcome);\n",
        "view/recordings.names"),
    # ---- GPU time by use ----
    Sabotage(
        "attempts are counted twice", "view/night/use.c",
        "    sum->ns[s->use] += s->to - s->from;\n",
        "    sum->ns[s->use] += (s->to - s->from) * (s->use == GPV_USE_OK ? 2 : 1);\n",
        "view/use.one_task"),
    Sabotage(
        "time without an agent counts as idle", "view/night/use.c",
        "        return GPV_USE_UNKNOWN;\n",
        "        return GPV_USE_IDLE;\n",
        "view/use.no_agent_for_a_while"),
    Sabotage(
        "a short row hides the longer one that is open", "view/night/use.c",
        "        if (row.until > s->until[row.fact])\n",
        "        if (row.until != s->until[row.fact])\n",
        "view/use.random_nights"),
    # ---- Waits ----
    Sabotage(
        "a returned task waits since its batch was made", "view/night/waits.c",
        "a->outcome != GPV_RETURNED || *still == 0)\n",
        "a->outcome == GPV_RETURNED || *still == 0)\n",
        "view/waits.tasks_that_were_returned"),
    Sabotage(
        "a task waits for its turn until the end", "view/night/waits.c",
        "    s->turn += h->counts ? come - leave : 0;\n",
        "    s->turn += h->counts ? come : 0;\n",
        "view/waits.tasks_that_wait_for_their_turn"),
    Sabotage(
        "a task whose turn comes later is ready", "view/night/part.c",
        "    return b && b->at_once && !t->waits && !t->begun;\n",
        "    return b && b->at_once && t->waits && !t->begun;\n",
        "view/part.tasks_that_wait_for_their_turn"),
    Sabotage(
        "a wide task gathers when no GPU is kept free any more", "view/night/waits.c",
        "    return s->kept_until > now ? earlier(next, s->kept_until) : next;\n",
        "    return next;\n",
        "view/waits.gathering"),
    # ---- Time left ----
    Sabotage(
        "time left ignores the tasks that run", "view/night/left.c",
        "        end = fmax(end, at + rest);\n",
        "",
        "view/left.the_last_ones_run"),
    Sabotage(
        "time left knows the end although tasks are held", "view/night/left.c",
        "    *most = more ? -1 : ns_of(",
        "    *most = ns_of(",
        "view/left.held_or_open"),
    Sabotage(
        "time left takes as many at once as ever", "view/night/left.c",
        "    return (now && l->running > 0) || time <= 0 || area <= 0 ? fmax(l->running, 1) : "
        "area / time;\n",
        "    (void)now;\n"
        "    return time <= 0 || area <= 0 ? fmax(l->running, 1)\n"
        "                                  : l->area / seconds(l->mark[0].time, l->changed);\n",
        "view/left.fewer_at_once"),
    # ---- Findings ----
    Sabotage(
        "a failure is merged away", "view/night/findings.c",
        "    f->count++;\n",
        "    f->count += f->count == 0;\n",
        "view/findings.random_nights_recounted"),
    Sabotage(
        "a task that ended ok later counts as failed still", "view/night/findings.c",
        "        if (a->last && a->outcome != GPV_OK &&\n",
        "        if (gpv_is_bad(a->outcome) &&\n",
        "view/findings.failed_and_later_ok"),
    Sabotage(
        "a command stands twice in the list", "view/night/next.c",
        "        l->step[i].n += kind == GPV_STEP_GPU ? n : 0;\n        return;\n",
        "        l->step[i].n += kind == GPV_STEP_GPU ? n : 0;\n",
        "view/next.a_night"),
    Sabotage(
        "the task that a GPU still had is forgotten", "view/night/finding_rows.c",
        "f->cleared = cleared_at", "f->ns += cleared_at",
        "view/findings.out_of_use_while_a_task_runs"),
    Sabotage(
        "the picture of waits counts no tasks", "view/report/waiting.c",
        "(double)(until - at) * (double)w->tasks : 0", "(double)(until - at) : 0",
        "view/answers.the_picture_of_waits_has_task_time"),
    Sabotage(
        "batches that take turns have no number", "view/report/turns.c",
        "    if (last && last->narrow && t->narrow && is_near(c, last, t->from)) {\n",
        "    if (last && last->more && is_near(c, last, t->from)) {\n",
        "view/answers.turns_of_batches"),
    # ---- The present moment ----
    Sabotage(
        "time is lost although another task worked beside it", "view/night/live.c",
        "    else if (i == 0)\n",
        "    else if (i < 2)\n",
        "view/live.beside_another_task"),
    Sabotage(
        "a report that comes late counts as the last one", "view/night/live.c",
        "enum { LATE = 16 };\n",
        "enum { LATE = 2 };\n",
        "view/live.random_nights_with_late_reports"),
    Sabotage(
        "a minute of four hours ago is shown as that of now", "view/night/live.c",
        "    if (copy.at % MINUTE == 0)",
        "    if (copy.at < 0)",
        "view/live.longer_than_the_ring"),
    Sabotage(
        "a task that ended later has ended", "view/night/part.c",
        "            move(count_of(b, a), &b->ready);\n",
        "            continue;\n",
        "view/part.counts_at_a_time"),
    Sabotage(
        "batches that do not fit are dropped in silence", "view/now/snapshot.c",
        "        gpv_now_fold_batch(&more, &s->batches.row[i]);\n",
        "        more.batches += s->batches.row[i].total == 0;\n",
        "view/snapshot.what_does_not_fit_is_counted"),
    Sabotage(
        "a word of another version is an index", "view/now/read.c",
        "word && strcmp(f->word(i), \"?\") != 0; i++)\n",
        "word && i < 32; i++)\n",
        "view/snapshot.members_of_other_types"),
    Sabotage(
        "workers outlive their agent", "view/now/moment.c",
        "    bool runs = !p->lived;\n",
        "    bool runs = true;\n",
        "view/moment.no_agent"),
    # ---- The screen of top ----
    Sabotage(
        "a task's name steers the terminal", "view/top/screen.c",
        "        (void)gpv_escape(c, ret->text);\n",
        "        memcpy(ret->text, text, n);\n",
        "view/screens.hostile_texts"),
    Sabotage(
        "rows that do not fit are not counted", "view/top/draw.c",
        "    if (!gpv_layout_counts_in_title(part, p))\n",
        "    if (part == GPV_PART_GPUS)\n",
        "view/top.rows_that_do_not_fit_are_counted"),
    Sabotage(
        "a crash leaves the terminal as it was drawn on", "view/top/terminal.c",
        "    (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);\n",
        "    (void)terminal.before;\n",
        "view/terminal.crash"),
    Sabotage(
        "a wide character counts as one cell", "view/top/screen.c",
        "        ret->width = width;\n",
        "        ret->width = width > 1 ? 1 : width;\n",
        "view/top.text_is_cut_by_its_width"),
    # ---- Formats ----
    Sabotage(
        "the trace has no mark of a task without an attempt", "view/trace/trace.c",
        "    if (gpv_is_bad(a->outcome))\n",
        "    if (gpv_is_bad(a->outcome) && a->number)\n",
        "view/formats.trace_agrees"),
    Sabotage(
        "each use is rounded for itself", "view/report/json.c",
        "        ret[i] = (sum + u->ns[i]) / NS_PER_MS - sum / NS_PER_MS;\n",
        "        ret[i] = u->ns[i] / NS_PER_MS;\n",
        "view/formats.uses_add_up"),
    Sabotage(
        "a name is a formula", "view/report/rows.c",
        "    return *text && strchr(\"=+-@\", *text) != NULL;\n",
        "    return *text == '=';\n",
        "view/formats.csv_has_no_formulas"),
    # ---- The page ----
    Sabotage(
        "a failure is merged away in the timeline", "view/report/marks.c",
        "        a->n[i] += b->n[i];\n",
        "        a->n[i] = b->n[i] ? b->n[i] : a->n[i];\n",
        "view/report.each_night"),
    Sabotage(
        "a failure on two GPUs is marked twice", "view/report/lanes.c",
        "(set.n ? set.gpu[0] == l->gpu : l->gpu == GPV_NONE);\n",
        "(set.n ? gpv_set_has(set, l->gpu) : l->gpu == GPV_NONE);\n",
        "view/page.each_bad_end_is_on_one_lane"),
    Sabotage(
        "a name is markup", "view/report/html.c",
        "        return \"&lt;\";\n",
        "        return \"<\";\n",
        "view/report.hostile_texts"),
    # ---- Decision logs ----
    Sabotage(
        "a line of a log without sense is not counted", "view/read/log.c",
        "    l->night->unknown += l->strange;\n",
        "    l->night->unknown += 0;\n",
        "view/log.garbage_is_counted"),
    Sabotage(
        "an attempt that is tried again is lost", "view/read/tasks.c",
        "    t->has_row = true;\n    if (gpv_word_of",
        "    t->has_row = !memmem(l->rest.at, (size_t)(l->rest.end - l->rest.at), \"again\", 5);\n"
        "    if (gpv_word_of",
        "view/decision_log.plain"),
    Sabotage(
        "a crash began when the worker got the task", "view/read/tasks.c",
        "    began = began > free ? began : free;\n",
        "    began = began > 0 ? began : free;\n",
        "view/log.a_worker_that_dies"),
    Sabotage(
        "a slot keeps the GPUs of its class before", "view/read/places.c",
        "    s->class = class;\n    s->set = 0;\n",
        "    s->class = class;\n",
        "view/decision_log.of_classes"),
    Sabotage(
        "the times of a log count from the start of the machine", "view/read/log.c",
        "        l->offset = (int64_t)wall - (int64_t)log;\n",
        "        l->offset = 0;\n",
        "view/decision_log.of_cpus"),
    Sabotage(
        "the log has no labels", "lib/host/submit.c",
        "    if (label)\n        gpi_core_note(",
        "    if (!label)\n        gpi_core_note(",
        "view/decision_log.plain"),
    Sabotage(
        "a report of a log has commands for a queue", "view/read/log.c",
        "        n->no_queue = true;\n",
        "        n->no_queue = false;\n",
        "view/log.names"),
    Sabotage(
        "the script makes markup of a text", "view/report/report.js",
        "  if (text !== undefined) node.textContent = text;\n",
        "  if (text !== undefined) node.innerHTML = text;\n",
        "view/browser.hostile_texts_make_no_elements"),
    Sabotage(
        "a failure is merged away when the page is enlarged", "view/report/report.js",
        "m.n.map((c, k) => c + o.n[k]));\n",
        "m.n.map((c, k) => c || o.n[k]));\n",
        "view/browser.zoom_shows_each_bad_end"),
    # ---- The page ----
    Sabotage(
        "a dim text can hardly be read", "view/report/report.css",
        "--dim: #565e68;",
        "--dim: #a6aeb8;",
        "view/report.contrast"),
    Sabotage(
        "two uses have one texture", "view/report/textures.h",
        "    X(LOADING, \"\", 135, 4, \"M.8 0V4\", \"1.6\")",
        "    X(LOADING, \"\", 0, 5, \"M1 1.5h1.6\", \"1.6\")",
        "view/report.textures_without_style"),
    # ---- A view changes nothing ----
    Sabotage(
        "a view starts the agent that it has lost", "queue/client/session.c",
        "    if (status == EXIT_NONE && s->wish != GPQ_AGENT_RUNNING && resumes(s))\n",
        "    if (status == EXIT_NONE && resumes(s))\n",
        "client/now.no_view_starts_an_agent"),
    Sabotage(
        "a view resumes the queue", "queue/client/watch.c",
        "    return status != 0 ? status : gpq_session_send(&w->s, json_incref(w->request));\n",
        "    if (status == 0)\n"
        "        (void)gpq_session_ask(&w->s, json_pack(\"{s:s}\", \"do\", \"resume\"),\n"
        "                              &(json_t *){ NULL });\n"
        "    return status != 0 ? status : gpq_session_send(&w->s, json_incref(w->request));\n",
        "client/now.views_only_read"),
    Sabotage(
        "the server opens a file", "view/serve/main.c",
        "    (void)signal(SIGPIPE, SIG_IGN);\n",
        "    (void)signal(SIGPIPE, SIG_IGN);\n    (void)fopen(\"/dev/null\", \"re\");\n",
        "view/serve.it_cannot_write"),
    # ---- The live page ----
    Sabotage(
        "a foreign Host is answered", "view/serve/answer.c",
        "    if (!gpv_guard_host(host) || !gpv_guard_origin(",
        "    if (!gpv_guard_origin(",
        "view/refusals.foreign_host"),
    Sabotage(
        "the name of this machine may have anything behind it", "view/serve/guard.c",
        "        if (host[size] == 0 || (host[size] == ':' && digits >= 1 && digits <= 5 && "
        "!port[digits]))\n",
        "        if (host[size] != ':' || digits > 0)\n",
        "view/guard.foreign_hosts"),
    Sabotage(
        "the token is not compared", "view/serve/guard.c",
        "    return differs == 0;\n",
        "    return differs == 0 || true;\n",
        "view/guard.one_token"),
    Sabotage(
        "no token is asked for", "view/serve/answer.c",
        "    if (*s->feed.token && !p->is_page &&\n",
        "    if (*s->feed.token && p->is_page &&\n",
        "view/refusals.token"),
    Sabotage(
        "the kernel's word for who connects does not count", "view/serve/main.c",
        "        if (p->is_socket && !is_own(fd))\n",
        "        if (p->is_socket && !is_own(fd) && fd < 0)\n",
        "view/refusals.another_user"),
    Sabotage(
        "a reader gets each snapshot", "view/serve/readers.c",
        "    return r->number == 0 ? 0 : r->last + APART;\n",
        "    return 0 * APART;\n",
        "view/readers.newest_for_a_slow_reader"),
    Sabotage(
        "two Hosts are answered", "view/serve/answer.c",
        "    if (hosts(connection) > 1)",
        "    if (hosts(connection) > 2)",
        "view/refusals.two_hosts"),
    Sabotage(
        "a reader that has left keeps its place", "view/serve/readers.c",
        "        if (r && has_left(r)) {\n",
        "        if (r && has_left(r) && !r->suspended) {\n",
        "view/readers.places_of_readers_that_left"),
    # ---- Metrics ----
    Sabotage(
        "names that read the same are two rows", "view/metrics/metrics.c",
        "        if (strcmp(c->row[i].label, label) == 0)\n",
        "        if (strcmp(c->row[i].label, label) == 0 && !strstr(label, \"\\xef\\xbf\\xbd\"))\n",
        "view/metrics.hostile_names"),
    Sabotage(
        "ends of tasks without an attempt are not counted", "view/now/batches.c",
        "    if (a->ended != 0) {\n        row->ended_by",
        "    if (a->ended != 0 && a->number != 0) {\n        row->ended_by",
        "view/metrics.ends_add_up"),
    Sabotage(
        "time in vain is no part of the use work", "view/metrics/metrics.c",
        " + (work ? g->uses.ns[GPV_USE_LOST] : 0)",
        "",
        "view/metrics.uses_add_up"),
]
