#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables of docs/explain/core.md from lib/sched.

usage: make_core.py [--check] [ROOT]    --check writes nothing, reports stale tables, status 1

The page has a place for each table, from <!-- NAME --> to <!-- end -->:

    states     GPI_LIFE_MAP of event.h, with its comments
    inputs     GPI_INPUT_MAP of core.h: the conclusions of the core, with their comments
    table      the table of slot.c: for each state its inputs by rule, without the prefix of a rule
    files      the list of files in core.h
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = "docs/explain/core.md"
COMMENT = r"/\*\s*(.*?)\s*\*/"


class Wrong(Exception):
    pass


def rows_of(text, name):
    """[(name, comment)] of an X-macro; a row without a comment has ""."""
    body = re.search(rf"#define {name}\(X\)((?:.*\\\n)*.*\n)", text)
    if not body:
        raise Wrong(f"no {name}")
    body = re.sub(r"\\\n\s*", " ", body[1])
    return [(m[1], m[2] or "") for m in re.finditer(rf"X\((\w+)\)\s*(?:{COMMENT})?", body)]


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def states(root):
    text = (root / "lib/sched/event.h").read_text()
    return table(("state", "meaning"), rows_of(text, "GPI_LIFE_MAP"))


def inputs(root):
    text = (root / "lib/sched/core.h").read_text()
    return table(("input", "meaning"),
                 [row for row in rows_of(text, "GPI_INPUT_MAP") if row[1]])


def cells(text):
    """{state: {rule: [input]}}, in the order of the source."""
    body = re.search(r"^static rule_fn \*const table\[.*?\n(.*?)^};", text, re.M | re.S)
    if not body:
        raise Wrong("no table in slot.c")
    macros = {m[1]: m[2] for m in re.finditer(r"^#define (\w+) ((?:.*\\\n)+.*\n)", text, re.M)}
    found = {}
    for state, row in re.findall(r"\[GPI_LIFE_(\w+)\] = \{(.*?)\}", body[1], re.S):
        while any(re.search(rf"\b{name}\b", row) for name in macros):
            for name, more in macros.items():
                row = re.sub(rf"\b{name}\b", more, row)
        rules = found.setdefault(state, {})
        for cell, rule in re.findall(r"\[GPI_(?:IN|EV)_(\w+)\] = (?:gpi_[a-z]+_)?(\w+)", row):
            rules.setdefault(rule, []).append(cell)
    return found


def life(root):
    found = cells((root / "lib/sched/slot.c").read_text())
    rows = []
    for state, rules in found.items():
        name = state
        for rule in sorted(rules, key=lambda rule: rule == "nothing"):
            rows.append((name, f"`{rule}`", ", ".join(rules[rule])))
            name = ""
    return table(("state", "rule", "for the inputs"), rows)


def files(root):
    text = (root / "lib/sched/core.h").read_text()
    found = re.findall(r"^ \*   ((?:\w+\.c ?)+)\s+(\S.*)$", text, re.M)
    return table(("file", "subject"), [(f"`{' '.join(a.split())}`", b) for a, b in found])


TABLES = {"states": states, "inputs": inputs, "table": life, "files": files}


def write(text, root):
    for name, make in TABLES.items():
        place = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        text, n = re.subn(place, lambda m, make=make: f"{m[1]}\n{make(root)}\n\n{m[2]}", text,
                          flags=re.S)
        if n != 1:
            raise Wrong(f"{PAGE} has {n} places for the table {name}, expected 1")
    return text


def main(args):
    check = "--check" in args
    paths = [a for a in args if a != "--check"]
    root = pathlib.Path(paths[0]) if paths else ROOT
    page = root / PAGE
    before = page.read_text()
    try:
        after = write(before, root)
    except Wrong as reason:
        print(f"make_core.py: {reason}")
        return 1
    if check:
        if after != before:
            print(f"{PAGE} is stale: python3 tools/make_core.py")
        return after != before
    page.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
