# SPDX-License-Identifier: MIT
"""docs/reference by topic: errors.md, events.md, counters.md, defaults.md."""
from . import defaults, headers, overviews
from . import markdown as md
from .overviews import NOTE

EVENTS = ("GPUD_EVENT_MAP", "GPUD_OUTCOME_MAP", "GPUD_PHASE_MAP", "GPUD_SLOT_MAP",
          "GPUD_HEALTH_MAP", "GPUD_DEVICE_KIND_MAP", "GPUD_DRIVER_MAP", "GPUD_LEVEL_MAP")
MANY = 12  # functions, above which a code does not name them
# Texts of outcomes: an example, its fixed words as a string of lib/ has them, the outcome, the
# reason. tests/entries.py looks for the words in lib/.
OUTCOME_TEXTS = (
    ("process returned 9", "process returned", "ERROR",
     "`process` returned 9 and left no text. `gpud_task_fail` leaves one."),
    ("ERESULTSPACE: no room for the result in ...", "%s: %s", "ERROR",
     "`process` returned a code of this library. The text is its name and its meaning."),
    ("exceeded its time limit of 30.000 s (task_limit)", "exceeded its time limit of %s (%s)",
     "TIMEOUT",
     "The attempt lasted longer than option `task_limit`, or than `limit` of the task. With "
     "`and the grace of 2.000 s (grace)` the worker did not return in time either, and the keeper "
     "killed it."),
    ("no progress for 5.000 s (stall_limit)", "no progress for %s (%s)", "TIMEOUT",
     "The task called `gpud_task_progress` too rarely for its `stall_limit`."),
    ("not started within 2.000 s (expires)", "not started within %s (%s)", "TIMEOUT, phase QUEUED",
     "The task waited longer than `expires` allows, and never started."),
    ("stopped for 60.000 s (stop_limit)", "stopped for %s (stop_limit)", "TIMEOUT, phase HARD",
     "A signal such as SIGSTOP had stopped the worker for longer than `stop_limit`."),
    ("killed by signal 6 (SIGABRT)", "killed by ", "CRASHED",
     "A signal ended the worker. If it was SIGKILL and the library had not sent it, the kernel's "
     "out-of-memory killer is the usual cause: see the kernel log."),
    ("exited with status 3", "exited with status %d", "CRASHED",
     "The task called `exit` or `_exit`, or a library that it uses did."),
    ("died with its keeper", "died with its keeper", "CRASHED",
     "The keeper of the slot died first, and the kernel killed the worker. The exit status is "
     "unknown."),
    ("survived SIGKILL for 10.000 s (kill_limit)", "survived %s for %s (kill_limit)",
     "CRASHED, TIMEOUT or CANCELLED, phase KILL",
     "The kernel could not end the worker, such as one that waits for a hung driver. Its slot is "
     "QUARANTINED."),
    ("gpu:1 failed: ...", "%s failed: %s", "CRASHED, code GPUD_EDEVICE",
     "A fault of the device made the library kill the worker. The rest of the text is the "
     "evidence."),
    ("killed at the close limit of 30.000 s (gpud_dispatcher_close)", "killed at the %s",
     "CANCELLED, phase HARD",
     "The task still ran when the limit of a close expired. The name in parentheses is the call or "
     "the option that set the limit."),
    ("cancelled by the host", "cancelled by the host", "CANCELLED",
     "The host cancelled the task, or stopped or closed the dispatcher, before the task ended."),
    ("all 4 slots have failed; slot 0: ...", "slots have failed", "NO_WORKER",
     "Each slot failed `failures_in_a_row` times. The rest of the text is the last failure."),
    ("attempt 1: ...; attempt 2: ...", "%sattempt %u: %s", "any",
     "The task had several attempts; each part is the text of one. A SUCCESS lists the failed "
     "attempts before it."),
)


def returned_by(page, code):
    """Links to the functions whose Errors list the code."""
    return [page.link(item.name) for item in page.tree.functions()
            if any(code in names.split(", ") for names, _ in item.comment.errors())]


def error_section(page, row):
    name, value, meaning = row[:3]
    cause, remedy = page.tree.remedies.get(name, ("", ""))
    facts = [f"{label}: {page.named(md.ended(md.capital(text)))}"
             for label, text in (("Cause", cause), ("Remedy", remedy)) if text]
    calls = returned_by(page, f"GPUD_{name}")
    if len(calls) > MANY:
        facts.append(f"Returned by {len(calls)} functions: the page of each has its causes.")
    elif calls:
        facts.append(f"Returned by {', '.join(calls)}.")
    page.add(f"### `GPUD_{name}`", md.wrapped(f"Value {value}: {page.named(md.ended(meaning))}"),
             md.bullets(facts))


def errors(tree):
    page = md.Page(tree, "docs/reference/errors.md", "Error codes")
    rows = tree.map("GPUD_ERROR_MAP")
    many = page.link("gpud_dispatcher_submit_many")
    page.add(NOTE,
             md.wrapped("A call that fails returns one of these codes and has changed nothing. The "
                        f"exception is {many}: the tasks before the refused task stay accepted. "
                        "`gpud_error_name` and `gpud_error_text` return name and meaning of a "
                        "code. `GPUD_OK` is 0."),
             md.table(("name", "value", "meaning"),
                      [(f"`GPUD_{row[0]}`", row[1], page.cell(row[2])) for row in rows]),
             md.wrapped("Causes and remedies of each code follow, then the [outcomes](#outcomes) "
                        "of tasks with their texts. An outcome is no error of a call."),
             "## Causes and remedies")
    for row in rows:
        error_section(page, row)
    page.add("## Outcomes",
             md.wrapped("The event of an ended task has one of these in `outcome`. Its `text` "
                        "explains every outcome but a SUCCESS at the first attempt."),
             overviews.map_table(page, tree.items["GPUD_OUTCOME_MAP"]),
             "## Texts of outcomes", "The numbers and names in these examples vary.",
             md.bullets(f"`{text}`: {outcome}. {page.named(reason)}"
                        for text, _, outcome, reason in OUTCOME_TEXTS))
    return page


def counters(tree):
    page = md.Page(tree, "docs/reference/counters.md", "Counters and gauges")
    page.add(NOTE, md.wrapped("These are fields of `struct gpud_stats`, in the order of "
                              "`gpud_stats_info`. A COUNTER only rises; a GAUGE goes up and down."),
             overviews.map_table(page, tree.items["GPUD_STATS_MAP"]))
    return page


def events(tree):
    page = md.Page(tree, "docs/reference/events.md", "Events and states")
    page.add(NOTE)
    for name in EVENTS:
        page.add(f"## {headers.MAPS[name][1]}", overviews.map_table(page, tree.items[name]))
    return page


def defaults_page(tree):
    page = md.Page(tree, "docs/reference/defaults.md", "Defaults")
    heads = ("field", "in the header", "value")

    def rows(found):
        return [(f"`{name}`", page.cell(bracket), page.cell(value))
                for name, bracket, value in found]

    page.add(NOTE, md.wrapped("Zero means the default. The second column holds the brackets of the "
                              "header, the third the value in the code. [options.md](options.md) "
                              "describes each field."),
             "## Options of a dispatcher", md.table(heads, rows(defaults.of_options(tree))),
             "## Tasks", md.table(heads, rows(defaults.of_tasks(tree))))
    return page


def pages(tree):
    return [errors(tree), counters(tree), events(tree), defaults_page(tree)]
