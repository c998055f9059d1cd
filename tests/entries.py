#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether the reference has an entry for everything, and each entry its parts.

usage: entries.py ROOT BUILD

 - each exported function has a page and a manual page, and each option and each field of a task
   has an entry in both;
 - each function's comment has the labels Thread, From callbacks, Process and Since, where functions
   of the worker may leave From callbacks out;
 - each parameter of a function or callback occurs in its comment;
 - no two functions share the text of an error's cause, unless the text names a parameter of both;
 - each error code has cause and remedy, and each text of an outcome is one of lib/;
 - each option has an effect and a default, and a row in lib/api/option_kinds.h, and sched.h lists
   the options that a class may not have;
 - names behind "See:" exist, and files behind "Example:" exist and call the function.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT, BUILD = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
sys.path.insert(0, str(ROOT / "tools"))
from reference import headers, markdown, tables  # noqa: E402

THREAD_LINE = ("Thread", "From callbacks", "Process", "Since")


def exports():
    library = str(BUILD / "lib/libgpudispatch.so")
    listed = subprocess.run(["nm", "-D", "--defined-only", "-P", library],
                            capture_output=True, text=True, check=True).stdout
    return sorted(set(re.findall(r"^(gpud_\w+)", listed, flags=re.M)))


def settings(tree):
    return (("gpud_options", tree.options()), ("gpud_task_desc", tree.task_fields()))


def word(name, text):
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def entries(tree):
    """Entries that are missing altogether."""
    names = exports()
    if not names:
        yield "the library exports nothing"
    for name in [*names, *(item.name for item in tree.functions() if item.kind == "callback")]:
        for path in (ROOT / f"docs/reference/functions/{name}.md", BUILD / f"docs/man3/{name}.3"):
            if not path.exists():
                yield f"{name}: there is no {path.name}"
    options = (ROOT / "docs/reference/options.md").read_text()
    for struct, fields in settings(tree):
        manual = (BUILD / f"docs/man3/{struct}.3").read_text()
        for field in fields:
            if f"### `{markdown.OPTIONS[struct].format(field.name)}`\n" not in options:
                yield f"docs/reference/options.md: no entry for {struct}.{field.name}"
            if f"\\fB{field.text}\\fR\n" not in manual:
                yield f"{struct}.3: no entry for {field.name}"


def calls(path, item):
    """Whether a file calls the function, or names the callback type's argument."""
    text = path.read_text(errors="replace")
    return item.kind == "callback" or re.search(rf"\b{item.name}\s*\(", text) is not None


def names(tree):
    """Names in See and Example that lead nowhere."""
    comments = [(item.name, item.comment, False) for item in tree.items.values()]
    comments += [(field.name, field.comment, False) for field in tree.options()]
    comments += [(field.name, field.comment, True) for field in tree.task_fields()]
    for where, comment, of_task in comments:
        for name in comment.listed("See"):
            if markdown.target(tree, name, of_task) is None:
                yield f"{where}: \"See: {name}\" leads nowhere"
    for item in tree.functions():
        for example in item.comment.listed("Example"):
            if not (ROOT / example).is_file():
                yield f"{item.name}: no such example: {example}"
            elif not calls(ROOT / example, item):
                yield f"{item.name}: {example} does not call it"


def lines(tree):
    for item in tree.functions():
        if item.kind == "function":
            worker = item.comment.value("Process").startswith("worker")
            for label in THREAD_LINE:
                if not item.comment.label(label) and not (worker and label == "From callbacks"):
                    yield f"{item.name}: no \"{label}:\""


def parameters(tree):
    for item in tree.functions():
        for name in item.parameters():
            if not word(name, item.comment.text):
                yield f"{item.name}: the comment does not name the parameter {name}"
        for names, _ in item.comment.parameters():
            for name in names.split(", "):
                if name not in item.parameters():
                    yield f"{item.name}: has no parameter {name}"


def causes(tree):
    """Two entries with one text are one of them too little said."""
    found = collections.defaultdict(list)
    codes = {f"GPUD_{row[0]}" for row in tree.map("GPUD_ERROR_MAP")}
    for item in tree.functions():
        for names, cause in item.comment.errors():
            for code in names.split(", "):
                if code not in codes:
                    yield f"{item.name}: there is no code {code}"
            if len(cause.split()) < 2:
                yield f"{item.name}: {names} has no cause"
            found[" ".join(re.findall(r"\w+", cause.lower()))].append((item, cause))
    for same in found.values():
        first, cause = same[0]
        for other, _ in same[1:]:
            common = set(first.parameters()) & set(other.parameters())
            if first is other or not any(word(name, cause) for name in common):
                yield f"{first.name} and {other.name} share a cause: {cause}"


def codes(tree):
    for row in tree.map("GPUD_ERROR_MAP"):
        cause, remedy = tree.remedies.get(row[0], ("", ""))
        if not cause or not remedy:
            yield f"GPUD_{row[0]}: no {'cause' if not cause else 'remedy'} in error.h"
    known = {row[0] for row in tree.map("GPUD_ERROR_MAP")}
    for name in sorted(set(tree.remedies) - known):
        yield f"error.h has a remedy for {name}, which is no code"


def texts(_):
    """The texts of outcomes in docs/reference/errors.md are those of the code."""
    code = "\n".join(path.read_text() for path in sorted((ROOT / "lib").rglob("*.c")))
    code = re.sub(r'"\s*"', "", code)
    for text, fixed, _, _ in tables.OUTCOME_TEXTS:
        if fixed not in code:
            yield f"tools/reference/tables.py: no text of lib/ has the words of \"{text}\""


def options(tree):
    for struct, fields in settings(tree):
        for field in fields:
            if not field.comment.summary:
                yield f"{struct}.{field.name}: no effect"
            if not field.comment.label("Default"):
                yield f"{struct}.{field.name}: no \"Default:\""
            ranged = field.type() == "uint64_t" and field.comment.label("Range")
            if ranged and not field.comment.label("Unit"):
                yield f"{struct}.{field.name}: no \"Unit:\""


def kinds(tree):
    """The table of lib/api/option_kinds.h has one row for each field, in the same order."""
    text = (ROOT / "lib/api/option_kinds.h").read_text()
    rows = re.findall(r"^    X\((\w+), (\w+)\)", text, flags=re.M)
    fields = ["struct_size", *(field.name for field in tree.options())]
    for field in fields:
        if field not in dict(rows):
            yield f"lib/api/option_kinds.h: no row for {field}"
    for row, kind in rows:
        if row not in fields:
            yield f"lib/api/option_kinds.h: there is no option {row}"
        if kind not in ("POOL", "CLASS", "TASKS", "BOTH"):
            yield f"lib/api/option_kinds.h: {row} is {kind}, expected POOL, CLASS, TASKS or BOTH"
    if sorted(fields) == sorted(row for row, _ in rows) and fields != [row for row, _ in rows]:
        yield "lib/api/option_kinds.h: its rows are not in the order of the fields"
    pool = [row for row, kind in rows if kind == "POOL"]
    own = next(f for f in headers.fields(tree.items["gpud_class"]) if f.name == "options")
    for row in (row for row, kind in rows if kind == "TASKS"):
        if not word(row, own.comment.text):
            yield f"gpud_class.options: the comment does not name {row}, an option of TASKS"
    for row in pool[:pool.index("pooled") + 1]:
        if not word(row, own.comment.text):
            yield f"gpud_class.options: the comment does not name {row}, an option of POOL"
    for row, kind in rows[fields.index("pooled"):]:
        if kind != "POOL":
            yield f"gpud_class.options: {row}, which follows pooled, is an option of a class"


CHECKS = (entries, names, lines, parameters, causes, codes, texts, options, kinds)


def report(case, faults):
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write(f"{'fail' if faults else 'pass'} entries/{case}\n")


def main():
    tree, failed = headers.Tree(ROOT), 0
    for check in CHECKS:
        faults = list(check(tree))
        print("".join(f"{check.__name__}: {fault}\n" for fault in faults), end="")
        failed += len(faults)
        report(check.__name__, faults)
    print(f"{len(tree.functions())} functions, {len(tree.options())} options, "
          f"{len(tree.task_fields())} fields of tasks: {failed} faults")
    return 1 if failed else 0


sys.exit(main())
