# SPDX-License-Identifier: MIT
"""Faults in queue/, of each guarantee of the store at least one."""

from .entry import Sabotage

SABOTAGES = [
    # ---- Q1, Q2 ----
    Sabotage(
        "a commit is acknowledged before its sync", "queue/sqlite/db.c",
        '"PRAGMA synchronous = FULL;"',
        '"PRAGMA synchronous = NORMAL;"',
        "queue/cut.what_was_acknowledged_is_there"),
    Sabotage(
        "a refused submit leaves its first tasks", "queue/sqlite/submit.c",
        "        gpq_db_run(w->db, gpq_db_use(w->db, GPQ_SQL_SAVEPOINT_UNDO), NULL);\n",
        "",
        "queue/conformance.a_key_with_two_contents_in_one_submit_sqlite"),
    Sabotage(
        "a request that is sent twice is carried out twice", "queue/sqlite/submit.c",
        "    if (!what->request)\n        return 0;\n    sqlite3_stmt",
        "    if (what->request)\n        return 0;\n    sqlite3_stmt",
        "queue/conformance.a_request_is_carried_out_once_sqlite"),
    Sabotage(
        "a claim is not charged", "queue/sqlite/attempt.c",
        "    r.charged++;\n",
        "",
        "queue/conformance.a_claim_raises_and_charges_sqlite"),
    Sabotage(
        "counts survive a rollback", "queue/sqlite/open.c",
        "    gpq_counts_drop(db);\n    gpq_rows_drop(db);\n    db->order",
        "    gpq_rows_drop(db);\n    db->order",
        "queue/in_step.the_engines_agree"),
    Sabotage(
        "rows survive a rollback", "queue/sqlite/open.c",
        "    gpq_counts_drop(db);\n    gpq_rows_drop(db);\n    db->order",
        "    gpq_counts_drop(db);\n    db->order",
        "queue/in_step.the_engines_agree"),
    # ---- What views need ----
    Sabotage(
        "a claim forgets since when the task was ready", "queue/sqlite/attempt.c",
        "    gpq_bind(st, 7, (int64_t)r.ready);\n",
        "    gpq_bind(st, 7, 0);\n",
        "queue/conformance.ready_since_the_submit_sqlite"),
    Sabotage(
        "a turn does not make a task ready by now", "queue/sqlite/settle.c",
        "            code = give_turns(db, (uint32_t)chore.id, now, e);\n",
        "            code = give_turns(db, (uint32_t)chore.id, 0, e);\n",
        "queue/in_step.the_engines_agree"),
    Sabotage(
        "a history takes any last attempt for the end of its task", "queue/sqlite/history.c",
        " && last->outcome == end->outcome;\n",
        ";\n",
        "queue/conformance.ends_without_an_attempt_sqlite"),
    Sabotage(
        "a history begins again with the rounds of a task", "queue/sqlite/history.c",
        "a->number - 1 > b->number - 1;\n",
        "a->number - 1 >= b->number - 1;\n",
        "queue/conformance.a_history_goes_on_behind_a_row_sqlite"),
    Sabotage(
        "a migration leaves a column out", "queue/sqlite/migrate.c",
        '    "ALTER TABLE attempt ADD COLUMN ready INTEGER NOT NULL DEFAULT 0;"\n',
        "",
        "queue/migrate.a_file_of_version_1_goes_on"),
    # ---- Q3 ----
    Sabotage(
        "no fence: an old attempt may end the task", "queue/sqlite/attempt.c",
        "    return r->state == GPQ_RUNNING && r->attempt == attempt ? 0 : stale(r, attempt, e);\n",
        "    return r->state == GPQ_RUNNING ? 0 : stale(r, attempt, e);\n",
        "queue/conformance.a_stale_attempt_changes_nothing_sqlite"),
    Sabotage(
        "a new round forgets the old one", "queue/sqlite/round.c",
        "    int code = GPQ_DB_DO(db, GPQ_SQL_ROUND_KEEP, e,",
        "    int code = GPQ_DB_ANY(db, GPQ_SQL_ROUNDS, e,",
        "queue/conformance.rounds_are_kept_sqlite"),
    # ---- Q5, Q9, Q12: files ----
    Sabotage(
        "directories of outputs are not synced", "queue/files/publish.c",
        "            ret = gpq_sync_directory(f, path);\n",
        "            ret = 0;\n",
        "queue/files_cut.cuts"),
    Sabotage(
        "outputs that are a file are a success", "queue/files/out.c",
        "    if (!ret && kind != 1)\n",
        "    if (!ret && kind < 0)\n",
        "queue/out.no_directory"),
    Sabotage(
        "deep trees stay", "queue/files/tree.c",
        "enum { DEPTH = 1024 };\n",
        "enum { DEPTH = 9999 };\n",
        "queue/out.a_tree_that_is_too_deep"),
    Sabotage(
        "outputs that cannot be removed stop the queue", "queue/agent/adopt.c",
        "    if (code < 0 && !gpq_fault_of_all(code)) {\n",
        "    if (code < 0 && !gpq_fault_of_all(code) && !e) {\n",
        "agent/losses.odd_outputs"),
    Sabotage(
        "an agent opens without the reserve", "queue/agent/main.c",
        "    if (code == 0)\n        keep_reserve(a);\n",
        "    if (code > 0)\n        keep_reserve(a);\n",
        "agent/starts.reserve"),
    Sabotage(
        "a saved file is renamed before its sync", "queue/files/save.c",
        "    while (!ret && f->fsync(f->user, fd))\n",
        "    while (0 && f->fsync(f->user, fd))\n",
        "queue/files_cut.cuts"),
    Sabotage(
        "the reserve is kept on a full disk", "queue/files/reserve.c",
        "    if (f->unlink(f->user, path))\n        return errno == ENOENT ? 0 : -errno;\n"
        "    ret = gpq_sync",
        "    if (!f->unlink)\n        return errno == ENOENT ? 0 : -errno;\n    ret = gpq_sync",
        "queue/files_cut.the_reserve_makes_room"),
    Sabotage(
        "a state directory may be open to others", "queue/files/statedir.c",
        "    if (st.st_mode & 077)\n",
        "    if (st.st_mode & 0)\n",
        "queue/statedir.a_mode_for_others"),
    # ---- programs ----
    Sabotage(
        "a program beside the caller is not found", "queue/files/program.c",
        "    if (p->own && gpq_path(path, \"%s/%s\", p->own, name) == 0",
        "    if (!p->own && gpq_path(path, \"%s/%s\", p->own, name) == 0",
        "queue/program.the_first_place_that_has_it"),
    Sabotage(
        "a wrong path of the environment is passed over", "queue/files/program.c",
        "    if (is_set(p->given))\n        return check_given(p, path, e);\n",
        "    if (is_set(p->given) && check_given(p, path, e) == 0)\n        return 0;\n",
        "queue/program.what_is_no_program"),
    # ---- Q6 ----
    Sabotage(
        "joining trusts the hash", "queue/sqlite/join.c",
        "    bool equal = gpq_same(gpq_column_bytes(st, 2), item->content) &&\n",
        "    bool equal = gpq_column_bytes(st, 2).data &&\n",
        "queue/sqlite.lines_with_one_hash"),
    Sabotage(
        "a changed file is joined", "queue/sqlite/join.c",
        "    code = stamp.size != 0 && !gpq_same(stamp, item->stamp);\n",
        "    code = stamp.size == 0 && !gpq_same(stamp, item->stamp);\n",
        "queue/conformance.a_changed_file_makes_a_new_task_sqlite"),
    Sabotage(
        "a success keeps no state of its files", "queue/runner/life.c",
        "    if (stamp && strcmp(stamp, GPQ_STAMP_NONE) != 0)\n",
        "    if (stamp && strcmp(stamp, GPQ_STAMP_NONE) == 0)\n",
        "agent/ends.changed_files"),
    Sabotage(
        "an agent that adopts forgets the files of a success", "queue/agent/adopt.c",
        "    end.stamp = (struct gpq_bytes){ stamp, stamp ? strlen(stamp) : 0 };\n",
        "    end.stamp = (struct gpq_bytes){ 0 };\n",
        "agent/ends.changed_files"),
    Sabotage(
        "a file with another time is the same", "queue/files/stamp.c",
        "st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec, name);\n",
        "st->st_mode + 0 * st->st_mtim.tv_nsec, name);\n",
        "queue/stamp.files_and_their_state"),
    # ---- Q7, Q8 ----
    Sabotage(
        "the last of a shape comes first", "queue/sqlite/schema.h",
        "ORDER BY priority DESC, place LIMIT ?4\")",
        "ORDER BY priority DESC, place DESC LIMIT ?4\")",
        "queue/conformance.ready_tasks_come_by_priority_and_then_in_order_sqlite"),
    Sabotage(
        "the end of a task releases nothing", "queue/sqlite/states.c",
        "    if (to == GPQ_DONE && r->links & GPQ_LINK_SOURCE)\n",
        "    if (to == GPQ_HELD && r->links & GPQ_LINK_SOURCE)\n",
        "queue/conformance.a_task_waits_for_its_conditions_sqlite"),
    Sabotage(
        "a followed batch may grow by tasks that wait", "queue/sqlite/submit.c",
        "    if (followed)\n        return gpq_fail",
        "    if (followed > 1)\n        return gpq_fail",
        "queue/conformance.cycles_are_refused_sqlite"),
    # ---- Q10, Q11 ----
    Sabotage(
        "the wish to cancel is forgotten", "queue/sqlite/change.c",
        "        r->cancel = true;\n",
        "        r->cancel = false;\n",
        "queue/conformance.cancelling_what_runs_sqlite"),
    Sabotage(
        "equal lines are searched for", "queue/sqlite/schema.h",
        "CREATE INDEX task_key ON task(key) WHERE key IS NOT NULL;",
        "CREATE INDEX task_key ON task(ended) WHERE key IS NOT NULL;",
        "queue/sqlite.no_statement_scans"),
    Sabotage(
        "each part of a purge reads all tasks that will go", "queue/sqlite/purge.c",
        "GPQ_PURGE_LOOKS : AT_ONCE,",
        "GPQ_PURGE_LOOKS : INT64_MAX,",
        "queue/sqlite.a_purge_in_parts_reads_parts"),
    # ---- versions ----
    Sabotage(
        "a newer file is written back by its close", "queue/sqlite/open.c",
        "        sqlite3_db_config(db->file, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);\n",
        "        sqlite3_db_config(db->file, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);\n",
        "queue/migrate.a_newer_file_is_not_written"),
    Sabotage(
        "a migration keeps no copy", "queue/sqlite/migrate.c",
        "    if (ret == 0 && rename(unfinished, path) < 0)\n",
        "    if (ret == 0 && unlink(unfinished) < 0)\n",
        "queue/migrate.a_migration_keeps_all_and_a_copy"),
    # ---- check ----
    Sabotage(
        "a check goes on with a damaged file", "queue/sqlite/check_file.c",
        "    if (code == 0 && n != 0)\n        code = gpq_db_damaged",
        "    if (code == 0 && n > 1000)\n        code = gpq_db_damaged",
        "queue/check.a_damaged_file_is_not_written"),
    Sabotage(
        "a check that repairs nothing writes the file", "queue/sqlite/check.c",
        "    if (repair)\n        code = gpq_db_write(db, e);\n",
        "    code = gpq_db_write(db, e);\n",
        "queue/check.a_check_writes_nothing"),
    Sabotage(
        "a repair forgets what follows", "queue/sqlite/check.c",
        "    if (code == 0 && r->mend != MEND_SQL)\n        code = gpq_settle",
        "    if (code == 0 && r->mend == MEND_SQL)\n        code = gpq_settle",
        "queue/check.each_fault_is_found_and_repaired"),
    Sabotage(
        "a check takes forgotten tasks for lost counts", "queue/sqlite/check_batch.c",
        "    uint64_t forgotten = (uint64_t)(t->numbers - n->own) + (t->joined - n->joined)",
        "    uint64_t forgotten = (uint64_t)(t->joined - n->joined)",
        "queue/check.a_random_store_is_healthy"),
    Sabotage(
        "a check runs beside an agent", "queue/agent/fsck.c",
        "        code = take_lock(state, ret_lock, &read_only, e);\n",
        "        code = *ret_lock < 0 ? 0 : GPQ_EBUSY;\n",
        "agent/fsck.an_agent_runs"),
    Sabotage(
        "a check removes the record of a runner that lives", "queue/agent/leftovers.c",
        "        gpq_lock_check(path) == 0)\n",
        "        gpq_lock_check(path) <= 0)\n",
        "agent/fsck.a_runner_without_a_task"),
    Sabotage(
        "a file beside the record of a running command is a leftover", "queue/agent/leftovers.c",
        "n, 3, &rest) || (*rest && *rest != '.'))\n",
        "n, 3, &rest) || *rest)\n",
        "agent/fsck.killed_while_commands_run"),
    Sabotage(
        "a check repairs beside a runner of which the store does not know", "queue/agent/fsck.c",
        "    return lives < 0 ? lives : lives == 0;\n",
        "    return lives < 0 ? lives : 1;\n",
        "agent/fsck.a_runner_without_an_attempt"),
    Sabotage(
        "outputs of running commands are leftovers", "queue/agent/belongs.c",
        "    if (t.state == GPQ_RUNNING)\n        return GPQ_OUT_KEEP;\n",
        "    if (t.state == GPQ_RUNNING)\n        return GPQ_OUT_DROP;\n",
        "agent/fsck.killed_while_commands_run"),
    # ---- the agent ----
    Sabotage(
        "set visits all tasks for each spec", "queue/agent/set.c",
        "    const struct gpq_select which = { .tasks = f->task + i, .n_tasks = n };\n",
        "    struct gpq_select which = asked->which.select;\n"
        "    which.spec = n != 0 ? f->one[i].spec : 0;\n",
        "queue/requests.set_of_many_specs"),
    Sabotage(
        "no shape leaves the dispatcher for one that comes first", "queue/agent/ahead.c",
        "    if (!last || !gpq_windows_before(w, last))\n",
        "    if (last || !gpq_windows_before(w, last))\n",
        "agent/starts.order_of_many_needs"),
    Sabotage(
        "shapes become open in the order of their arrival", "queue/agent/windows.c",
        "    if (place == GPQ_CLOSED)\n        sift(&all->in[place], w);\n",
        "",
        "agent/starts.order_of_many_needs"),
    Sabotage(
        "the place of a shape is that of a task that has started", "queue/agent/ahead.c",
        "    w->ready += by;\n    w->stale = true;\n",
        "    w->ready += by;\n    w->stale = by > 0;\n",
        "agent/starts.order_of_many_needs"),
    Sabotage(
        "a new agent forgets the ports of commands that run", "queue/agent/adopt.c",
        "    gpq_ports_keep(&a->ports, u->port);\n",
        "    u->port = 0;\n",
        "agent/starts.ports"),
    Sabotage(
        "a new agent forgets attached tasks", "queue/agent/adopt.c",
        "        code = gpq_attached_end_all(a->store, gpq_wall(), e);\n",
        "        code = 0;\n",
        "agent/ends.attached"),
    Sabotage(
        "attached tasks of a full disk are forgotten", "queue/agent/server.c",
        "        if (code == 0 && one->ended) {\n",
        "        if (code <= 0 && one->ended) {\n",
        "queue/server.attached_tasks_end_with_their_connection"),
    Sabotage(
        "a retry has no more memory", "queue/agent/oom.c",
        "    if (code == 0 && retries)\n",
        "    if (code == 0 && retries && !a)\n",
        "agent/ends.out_of_memory"),
    Sabotage(
        "a new agent forgets why a command failed", "queue/agent/adopt.c",
        "    gpq_oom_judge(a, &c->claimed.id, &c->found.record, &end, text, sizeof(text), &said);",
        "    said = NULL;",
        "agent/ends.out_of_memory"),
    Sabotage(
        "commands have the limit of the agent", "queue/agent/runs.c",
        "                             .descriptors = a->descriptors,\n",
        "",
        "agent/starts.descriptors"),
    Sabotage(
        "the file of a long line stays", "queue/agent/runs.c",
        "    static const char *const suffixes[] = { \"\", GPQ_RUN_STAMP, GPQ_RUN_LINE };\n",
        "    static const char *const suffixes[] = { \"\", GPQ_RUN_STAMP };\n",
        "agent/starts.long_lines"),
    Sabotage(
        "a turn shows what it has not committed", "queue/agent/turn.c",
        "    code = o->commit(a->store, e);\n    if (code == 0)\n        a->next_due",
        "    o->rollback(a->store);\n    if (code == 0)\n        a->next_due",
        "agent/ends.ends"),
    Sabotage(
        "a new agent returns the commands that run", "queue/agent/adopt.c",
        "        all->adopted++;\n        return adopt_one(a, c, &task, pidfd, e);\n",
        "        return give_back(a, c, GPQ_RETURN_UNSTARTED, \"it runs\", e);\n",
        "agent/losses.stopped_agent"),
    Sabotage(
        "commands that ended without an agent are lost", "queue/agent/adopt.c",
        "            return book_end(a, all, c, &task, e);\n",
        "            return give_back(a, c, GPQ_RETURN_LOST, \"it ended\", e);\n",
        "agent/losses.ended_meanwhile"),
    Sabotage(
        "the crash of a line is the error of its shell", "queue/agent/runs.c",
        "    int signal = shell ? signal_of_shell(status) : 0;\n",
        "    int signal = shell && status == 0 ? signal_of_shell(status) : 0;\n",
        "agent/ends.shell_reports"),
    Sabotage(
        "the agent forgets that a command is a line", "queue/agent/command.c",
        "    c->shell = json_is_true(json_object_get(options, \"shell\"));\n",
        "    c->shell = json_is_true(json_object_get(options, \"line\"));\n",
        "agent/ends.shell_reports"),
    Sabotage(
        "a command that a reboot ends has crashed", "queue/agent/runs.c",
        "    ret->outcome = GPQ_OUTCOME_LOST;\n",
        "    ret->outcome = GPQ_OUTCOME_CRASHED;\n",
        "agent/losses.reboot"),
    Sabotage(
        "a new agent forgets a drain at once", "queue/agent/adopt.c",
        "    int evicted = t->cancel ? 0 : gpq",
        "    int evicted = t->cancel || t->id ? 0 : gpq",
        "agent/losses.evicted"),
    Sabotage(
        "a process without its main thread has ended", "queue/runner/process.c",
        "(p->state == 'Z' && p->threads <= 1);\n",
        "p->state == 'Z';\n",
        "agent/losses.ended_main_thread"),
    Sabotage(
        "a task that was lost expires", "queue/sqlite/attempt.c",
        "r.expires != 0 && why != GPQ_RETURN_UNSTARTED",
        "r.expires != 0 && why >= GPQ_RETURNS",
        "queue/conformance.what_has_run_does_not_expire_sqlite"),
    Sabotage(
        "a logout with SIGKILL alone is charged", "queue/agent/adopt.c",
        "    if (ended && killed == 0) {\n",
        "    if (ended && killed == 0 && !all) {\n",
        "agent/losses.killed_without_agent"),
    Sabotage(
        "an agent that runs charges a stopped command", "queue/agent/dispatch.c",
        "event->outcome == GPUD_OUTCOME_CRASHED && u->stopped)\n",
        "event->outcome == GPUD_OUTCOME_SUCCESS && u->stopped)\n",
        "agent/losses.stopped_runner"),
    Sabotage(
        "SIGTERM after the order of an agent is a stop", "queue/runner/life.c",
        "    if (l->phase == JUDGED || l->ordered || l->stopped)\n",
        "    if (l->phase == JUDGED || l->stopped)\n",
        "queue/runner.stop_after_an_order"),
    Sabotage(
        "a stop that reaches the command first is not waited for", "queue/runner/life.c",
        "    for (bool last = false; !last && has_failed(",
        "    for (bool last = true; !last && has_failed(",
        "queue/runner.stop_of_the_command_first"),
    Sabotage(
        "a stop is written with the end alone", "queue/runner/life.c",
        "    (void)record_stop(l);\n",
        "",
        "queue/runner_crash.killed_after_a_stop"),
    Sabotage(
        "the command of a killed runner goes on", "queue/agent/runs.c",
        "        if (!swept(u, &found->record))\n",
        "        if (!u && !swept(u, &found->record))\n",
        "agent/losses.killed_runner"),
    Sabotage(
        "outputs of a success are not published", "queue/agent/turn.c",
        "    if (n->kind == ENDED && n->outcome == GPUD_OUTCOME_SUCCESS && u->outputs)\n",
        "    if (n->kind == ENDED && n->outcome == GPUD_OUTCOME_COUNT && u->outputs)\n",
        "agent/ends.outputs"),
    Sabotage(
        "a purge leaves the results of its tasks", "queue/agent/forget.c",
        "        (void)gpq_result_drop(&gpq_system_files, a->state, result, &e);\n",
        "        (void)result;\n",
        "agent/fsck.purged"),
    Sabotage(
        "agent stop leaves the files of purged tasks", "queue/agent/forget.c",
        "    return a->forget && a->forget->n != 0;\n",
        "    return a->forget && a->forget->n != 0 && !a->stop.now;\n",
        "agent/fsck.purged_before_the_end"),
    Sabotage(
        "a need that cannot be met alone is not named", "queue/agent/fit.c",
        "        if (!fits_alone(a, r, (enum need)need, amount_of(r, (enum need)need))) {\n",
        "        if (!fits_alone(a, r, (enum need)need, 0)) {\n",
        "client/refusals.needs"),
    Sabotage(
        "the names of GPUs are not completed", "queue/agent/needs.c",
        "    if (code == 0 && strcmp(ret, text) != 0 &&\n",
        "    if (code == 0 && strcmp(ret, text) == 0 &&\n",
        "client/refusals.needs"),
    Sabotage(
        "a new agent does not know since when a task runs", "queue/agent/adopt.c",
        "    u->since = r->has_start ? r->wall : 0;\n",
        "    u->since = 0;\n",
        "client/evening_faults.running"),
    Sabotage(
        "the drain of a person is the fault of a device", "queue/agent/runs.c",
        "                          u->faulty ? \"its device is out of use\" : GPQ_DRAINED);\n",
        "                          !u->faulty ? \"its device is out of use\" : GPQ_DRAINED);\n",
        "client/evening_faults.sick_gpu"),
    Sabotage(
        "a change of a batch leaves out what it has joined", "queue/sqlite/select.c",
        "    if (gpq_select_joined(which))\n        return GPQ_DB_IDS",
        "    if (gpq_select_joined(which) && first == 0)\n        return GPQ_DB_IDS",
        "queue/conformance.selections_sqlite"),
    Sabotage(
        "an open batch stays open after its cancel", "queue/sqlite/change.c",
        "    if (count >= 0 && gpq_select_is_batch(which))\n",
        "    if (count < 0 && gpq_select_is_batch(which))\n",
        "queue/conformance.an_open_batch_is_cancelled_sqlite"),
    Sabotage(
        "a watched file is read on where it was written anew", "queue/client/submit_verbs.c",
        "    if (at < 0 || fstat(w->fd, &st) < 0 || st.st_size >= at)\n",
        "    if (at < 0 || fstat(w->fd, &st) < 0 || st.st_size >= 0)\n",
        "client/evening_jobs.watched_file_changes"),
    Sabotage(
        "the limit of a task is an estimate", "queue/agent/reasons.c",
        "    if (code == 0 && r->until != 0 && is_limit(a, r))\n",
        "    if (code != 0 && r->until != 0 && is_limit(a, r))\n",
        "client/evening_waits.why_limits"),
    Sabotage(
        "a second drain forgets the reason", "queue/agent/facts.c",
        "{ kind, subject, text ? text : e.text, e.since }",
        "{ kind, subject, text ? text : \"\", e.since }",
        "client/evening_waits.why"),
    Sabotage(
        "a class that nothing has is paused", "queue/agent/facts.c",
        "    struct known k = { name, !*name || strcmp(name, GPQ_COMMANDS) == 0 };\n",
        "    struct known k = { name, *name != '\\0' };\n",
        "client/refusals.needs"),
    Sabotage(
        "a notification runs elsewhere than its submit", "queue/agent/notify.c",
        "    f->cwd = own && cwd ? strdup(cwd) : NULL;\n",
        "    f->cwd = own && !cwd ? strdup(\"/\") : NULL;\n",
        "client/evening_faults.notified"),
    Sabotage(
        "lines of agent.log have no time", "queue/agent/main.c",
        "    fprintf(stderr, \"%sgpudispatch-agent: %s\\n\", at, text);\n",
        "    fprintf(stderr, \"gpudispatch-agent: %s\\n\", text);\n",
        "client/evening_faults.notified"),
    Sabotage(
        "a new agent forgets a pause", "queue/agent/marks.c",
        "        *paused = c.paused;\n",
        "        *paused = c.paused && *paused;\n",
        "agent/starts.paused"),
    # ---- verbs ----
    Sabotage(
        "the beginning of an option is the option", "tools/cli/call.c",
        "        if (is_unknown(call->verb, argv[at], &name))\n",
        "        if (is_unknown(call->verb, argv[at], &name) && i == OPTION_END)\n",
        "client/refusals.usage"),
    Sabotage(
        "the part of a log that was dropped is printed as bytes", "queue/client/log.c",
        "        size_t size = skip_hole(l); /* moves l->read */\n",
        "        size_t size = PIECE;\n        (void)skip_hole;\n",
        "queue/client_log.freed_blocks_are_said"),
    Sabotage(
        "a file that a line writes is one that it reads", "queue/files/stamp.c",
        "        if (n != 0 && !is_output(text, at))\n",
        "        if (n != 0)\n",
        "queue/stamp.words"),
    Sabotage(
        "the file of a class may change unnoticed", "queue/agent/workers.c",
        "    p->u->stamp = stamp_of(gpq_payload_of(t->content));\n",
        "    p->u->stamp = p->code == 0 ? stamp_of(gpq_payload_of(t->content)) : NULL;\n",
        "client/evening_jobs.loaded_model"),
    Sabotage(
        "half a line is submitted at an interrupt", "queue/client/submit_verbs.c",
        "    if (line != 0)\n",
        "    if (line == UINT64_MAX)\n",
        "client/evening_jobs.watch_file"),
    Sabotage(
        "--failed adds tasks to those of --state", "queue/client/ids.c",
        "    if (call->given[OPTION_STATE] && (call->given[OPTION_FAILED]",
        "    if (!call->verb && (call->given[OPTION_FAILED]",
        "client/refusals.ids"),
    Sabotage(
        "the tasks that --max-fails cancelled do not run again", "queue/client/wait.c",
        "             others = c->stopped +",
        "             others = 0 * c->stopped +",
        "client/evening_waits.ends"),
    Sabotage(
        "wait ends with its agent", "queue/client/wait.c",
        "            status = wait_again(s, w);\n",
        "            status = wait_again(s, w) ? EXIT_FAILED : EXIT_NONE;\n",
        "client/evening_waits.look"),
    Sabotage(
        "log -f ends with its agent", "queue/client/follow.c",
        "        if (end == LOST_END && (status = gpq_session_again(&f->end)) != 0)\n",
        "        if (end == LOST_END && (status = gpq_session_again(&f->end) ? 1 : 4) != 0)\n",
        "client/evening_waits.look"),
    Sabotage(
        "wait has more requests than a connection may have", "queue/client/wait.c",
        "enum { WAITS = 64, TASKS = 50000 };",
        "enum { WAITS = 65, TASKS = 50000 };",
        "client/evening_waits.follow_ends"),
    Sabotage(
        "show prints the environment unasked", "queue/client/show.c",
        "    bool environment = s->call->given[OPTION_SHOW_ENV];\n",
        "    bool environment = !s->call->given[OPTION_DRY_RUN];\n",
        "client/evening_jobs.environment"),
    Sabotage(
        "agent start ignores the options of the last one", "queue/client/start.c",
        "    if (!chooses)\n        add_chosen(&c, state);\n",
        "    if (strcmp(call->verb->name, \"agent\") != 0)\n        add_chosen(&c, state);\n",
        "client/evening_faults.start_again"),
    Sabotage(
        "agent start with other options is not refused", "queue/client/start.c",
        "        differs = differs || (value ? strcmp(value, running) != 0 : given);\n",
        "        differs = differs && (value ? strcmp(value, running) != 0 : given);\n",
        "client/evening_faults.start_again"),
    Sabotage(
        "wait counts from the first submit after a retry", "queue/client/wait.c",
        "    c->from = c->retried ? claimed : c->from;\n",
        "",
        "client/evening_waits.again"),
    Sabotage(
        "a need of a queue is called by its member", "queue/client/session.c",
        "                   text ? gpq_options_text(text, room, sizeof(room))\n",
        "                   text ? gpq_options_text(text, room, 0)\n",
        "client/evening_faults.changes"),
    Sabotage(
        "a started agent keeps the files of its caller", "queue/client/start.c",
        "    (void)syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);\n",
        "",
        "client/evening_faults.agent_alone"),
    Sabotage(
        "any status of a reply is that of the program", "queue/client/session.c",
        "    return status > 0 && status < 126 ? (int)status : EXIT_FAILED;\n",
        "    return status > 0 ? (int)status : EXIT_FAILED;\n",
        "client/refusals.strangers"),
    Sabotage(
        "an agent of another version is spoken to", "queue/client/session.c",
        "    if (strcmp(name, GPQ_PROTOCOL) != 0 || version != GPQ_PROTOCOL_VERSION)\n",
        "    if (strcmp(name, GPQ_PROTOCOL) != 0)\n",
        "client/refusals.strangers"),
    # ---- units of systemd ----
    Sabotage(
        "a stop of the service ends its commands", "queue/systemd/gpudispatch-agent.service.in",
        "KillMode=process\n",
        "KillMode=control-group\n",
        "agent/unit.stops_user"),
    Sabotage(
        "the service starts against another agent for ever",
        "queue/systemd/gpudispatch-agent@.service.in",
        "RestartPreventExitStatus=2 75\n",
        "RestartPreventExitStatus=2\n",
        "agent/unit.stops_system"),
]
