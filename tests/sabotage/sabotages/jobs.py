# SPDX-License-Identifier: MIT
"""Faults in queue/jobs/: templates, lines, CSV and JSON lines."""

from .entry import Sabotage

SABOTAGES = [
    # ---- Templates ----
    Sabotage(
        "the value of a column is a name of the start", "queue/jobs/template.c",
        "        if (m.is_value || gpq_start_named(name, size) != GPQ_STARTS)\n            spell(",
        "        if (m.is_value)\n            spell(",
        "queue/jobs_template.submit_and_start"),
    Sabotage(
        "braces of values count as braces of a name", "queue/jobs/template.c",
        "    *ret_open = m->before - both + n;\n",
        "    *ret_open = m->before - both + n - (m->is_value && both ? 1 : 0);\n",
        "queue/jobs_template.values_come_through"),
    Sabotage(
        "a variable of the shell is replaced", "queue/jobs/template.c",
        "    return dollar && outermost && (pairs == 1 || pairs == 2) ? 3 - pairs : pairs;\n",
        "    return dollar && outermost && pairs == 0 ? 3 - pairs : pairs;\n",
        "queue/jobs_template.start"),
    Sabotage(
        "a doubled brace that no name of the start needs stays doubled", "queue/jobs/make.c",
        "    if (!braces || m->replace) /* written",
        "    if (!braces || !m->replace) /* written",
        "queue/jobs_lines.lines"),
    Sabotage(
        "a misspelt column is the first one", "queue/jobs/csv.c",
        "        return gpq_make_unknown(name, why, e);\n",
        "        c->columns[i] = 0;\n",
        "queue/jobs_csv.templates"),
    Sabotage(
        "an argument that the kernel refuses is submitted", "queue/jobs/make.c",
        "> GPQ_JOBS_ARGUMENT_MOST && !(m->is_line && i == 2))",
        "> 2 * GPQ_JOBS_ARGUMENT_MOST && !(m->is_line && i == 2))",
        "queue/jobs_jsonl.long_arguments"),
    # ---- Bad lines ----
    Sabotage(
        "jobs go on behind a bad line", "queue/jobs/reader.c",
        "        code = r->first.code == 0 ? r->fn(&job, r->user, e) : 0;\n",
        "        code = r->fn(&job, r->user, e);\n",
        "queue/jobs_lines.the_caller_refuses_a_line"),
    Sabotage(
        "the last bad line is reported", "queue/jobs/reader.c",
        "    if (r->first.code != 0)\n        return;\n",
        "",
        "queue/jobs_lines.lines"),
    Sabotage(
        "a text of an error is cut in a character", "queue/jobs/reader.c",
        "    gpq_utf8_clean(r->first.text);\n",
        "",
        "queue/jobs_lines.the_caller_refuses_a_line"),
    Sabotage(
        "a line that goes on is two jobs", "queue/jobs/lines.c",
        "    return n % 2 == 1;\n",
        "    return n == SIZE_MAX;\n",
        "queue/jobs_lines.lines"),
    Sabotage(
        "the beginning of a line is a job", "queue/jobs/lines.c",
        "    if (!r->broken && size > 0)\n        (void)keep(r, data, size);\n",
        "    if (!r->broken && size > 0)\n        end_line(r, data, size);\n",
        "queue/jobs_lines.a_growing_file"),
    Sabotage(
        "a surrogate is UTF-8", "queue/utf8.c",
        "        most = 0x9f; /* surrogates */\n",
        "        most = 0xbf; /* surrogates */\n",
        "queue/jobs_lines.lines"),
    Sabotage(
        "a path that begins with # is a comment", "queue/jobs/lines.c",
        "    if (r->how.format == GPQ_JOBS_FILES)\n        return size == 0;\n",
        "    if (r->how.format == GPQ_JOBS_FILES && size == 0)\n        return true;\n"
        "    if (r->how.format == GPQ_JOBS_FILES)\n        return text[0] == '#';\n",
        "queue/jobs_lines.paths"),
    # ---- CSV and JSON ----
    Sabotage(
        "a row may have fewer fields", "queue/jobs/csv.c",
        "    if (c->fields != c->header.n) {\n",
        "    if (c->fields > c->header.n) {\n",
        "queue/jobs_csv.commands"),
    Sabotage(
        "a quote is closed by the end of the file", "queue/jobs/csv.c",
        "    if (c->state == QUOTED)\n        fault(",
        "    if (c->state > RETURN)\n        fault(",
        "queue/jobs_csv.commands"),
    Sabotage(
        "an empty field sets its option", "queue/jobs/csv.c",
        "        if (*value)\n            code = gpq_make_option(",
        "        if (value)\n            code = gpq_make_option(",
        "queue/jobs_csv.commands"),
    Sabotage(
        "line breaks in quotes are not counted", "queue/jobs/csv.c",
        "        r->line++;\n    if (nul)\n",
        "        r->line += 0;\n    if (nul)\n",
        "queue/jobs_csv.commands"),
    Sabotage(
        "the last of two equal members counts", "queue/jobs/jsonl.c",
        "json_loadb(text, size, JSON_REJECT_DUPLICATES, &fault)",
        "json_loadb(text, size, 0, &fault)",
        "queue/jobs_jsonl.objects"),
]
