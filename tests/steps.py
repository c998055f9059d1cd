#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares each program of the tutorial, docs/start/N-NAME.md, with the program it grows out of.

usage: steps.py

A line that the older program lacks ends in the mark "/* new */", in Python "# new"; a reason may
follow, "/* new: REASON */".  Every other line is in the older program.  Lines are compared without
indentation and comments; blank lines and lone braces need no mark.

The older program is the one of the page before.  A comment of HTML ahead of a program names
another one, "<!-- after: PAGE FILE -->", or "<!-- after: none -->" for a program that is new as a
whole and has no marks.

The pages are numbered from 1 without a gap.  Each links to the next one, README.md to all.
"""
import collections
import os
import pathlib
import re
import sys

START = pathlib.Path(__file__).resolve().parent.parent / "docs/start"
PARTS = re.compile(r"^<!-- after: (.*?) -->$|^```(c|python) (\S+)\n(.*?)^```$", flags=re.M | re.S)
MARK = {"c": re.compile(r"\s*/\* new(?:: (?:(?!\*/).)*)? \*/$"),
        "python": re.compile(r"\s*# new(?:: .*)?$")}
COMMENT = {"c": re.compile(r"\s*/\*(?:(?!\*/).)*\*/$"), "python": re.compile(r"(?:^|\s+)#.*$")}
UNMARKED = ("", "{", "}")


def lines(language, program):
    """Number, code and mark of each line that may have a mark."""
    for number, line in enumerate(program.splitlines(), 1):
        code = MARK[language].sub("", line)
        marked = code != line
        code = COMMENT[language].sub("", code).strip()
        if marked or code not in UNMARKED:
            yield number, code, marked


def compare(language, older, newer):
    """The faults in the marks of a program; without an older one it has no marks."""
    found = list(lines(language, newer))
    if older is None:
        return [f"line {number} has a mark in a program that is new as a whole: {code}"
                for number, code, marked in found if marked]
    left = collections.Counter(code for _, code, _ in lines(language, older))
    faults = []
    for number, code, marked in found:
        if not marked and left[code] < 1:
            faults.append(f"line {number} has no mark, and the older program lacks it: {code}")
        left[code] -= not marked
    for number, code, marked in found:
        if marked and (code in UNMARKED or left[code] > 0):
            faults.append(f"line {number} has a mark, and the older program has it: {code}")
    return faults if any(marked for _, _, marked in found) else [*faults, "no line has a mark"]


def check(pages):
    """The faults of all pages, which are pairs of a name and a text, in their order."""
    programs, faults, page_before = {}, [], {}
    for page, text in pages:
        here, named = {}, ()
        for after, language, name, program in PARTS.findall(text):
            if after:
                named = tuple(after.split())
                continue
            older = named or page_before.get(language)
            if older == ("none",) or older in programs:
                faults += [f"{page}: {name}: {fault}"
                           for fault in compare(language, programs.get(older), program)]
            else:
                faults.append(f"{page}: {name}: no such older program: {older}")
            programs[page, name] = program
            here.setdefault(language, (page, name))
            named = ()
        if not here:
            faults.append(f"{page}: there is no program")
        page_before = here
    return faults


def check_order(names, texts):
    """The faults in numbers and links of the pages; texts has README.md, too."""
    faults = [f"{name}: expected {n}-NAME.md" for n, name in enumerate(names, 1)
              if not name.startswith(f"{n}-")]
    for name in names:
        if f"]({name})" not in texts["README.md"]:
            faults.append(f"README.md: no link to {name}")
    for name, following in zip(names, names[1:]):
        if not re.search(rf"^Next: \[.*\]\({re.escape(following)}\)", texts[name], flags=re.M):
            faults.append(f"{name}: no \"Next:\" with a link to {following}")
    return faults


# An older program, a newer one, and the number of faults.
CASES = (
    ("c", "a;\n", "a;\n  b; /* new */\n", 0),
    ("c", "a; /* why */\nb; /* new: then */\n", "/* how */\n{\n\n  b;\n}\nc; /* new: now */\n", 0),
    ("python", "a = 1\n", "a = 1  # one\nb = 2  # new: two\n", 0),
    ("c", "a;\n", "a;\nb;\nc; /* new */\n", 1),  # b is not in the older one
    ("c", "a;\n", "a;\nb;\nb;\nc; /* new */\n", 2),
    ("c", "a;\nb;\n", "a;\nb; /* new */\n", 1),  # b is
    ("c", "a;\n", "a;\na; /* new */\n", 0),  # a second a
    ("c", "a;\n", "a;\na;\nb; /* new */\n", 1),
    ("c", "a;\n", "a;\n} /* new */\n", 1),
    ("c", "a;\n", "a;\n", 1),  # nothing is new
    ("c", None, "a;\n", 0),
    ("c", None, "a; /* new */\n", 1),
)
# Two pages, and the number of faults.
FIRST = "<!-- after: none -->\n```c a.c\nx;\n```\n"
PAGES = (
    (FIRST, "```c b.c\nx;\ny; /* new */\n```\n", 0),
    (FIRST, "<!-- after: 1-a.md a.c -->\n```c b.c\ny; /* new */\n```\n", 0),
    (FIRST, "```c b.c\ny;\n```\n", 2),  # y is new, and there is no mark
    (FIRST, "<!-- after: 2-b.md b.c -->\n```c b.c\nx;\n```\n", 1),  # itself
    (FIRST, "```python b.py\nx\n```\n", 1),  # no older one in this language
    (FIRST.replace("<!-- after: none -->", ""), "```c b.c\nx;\ny; /* new */\n```\n", 1),
    (FIRST, "No program.\n", 1),
)
# The index, the first of two pages, and the number of faults.
ORDERS = (
    ("[a](1-a.md) [b](2-b.md)", "Next: [b](2-b.md).", 0),
    ("[a](1-a.md)", "Next: [b](2-b.md).", 1),
    ("[a](1-a.md) [b](2-b.md)", "The end.", 1),
)


def check_self():
    """The cases whose faults are not those that are known."""
    wrong = [f"{older!r}, {newer!r}" for language, older, newer, known in CASES
             if len(compare(language, older, newer)) != known]
    wrong += [f"{one!r}, {two!r}" for one, two, known in PAGES
              if len(check([("1-a.md", one), ("2-b.md", two)])) != known]
    both = ["1-a.md", "2-b.md"]
    wrong += [f"{index!r}, {one!r}" for index, one, known in ORDERS
              if len(check_order(both, {"README.md": index, "1-a.md": one})) != known]
    if not check_order(["2-b.md"], {"README.md": "[b](2-b.md)"}):
        wrong.append("a gap in the numbers")
    return [f"steps.py: unexpected number of faults: {case}" for case in wrong]


def main():
    names = sorted((page.name for page in START.glob("[0-9]*-*.md")),
                   key=lambda name: int(name.split("-")[0]))
    texts = {name: (START / name).read_text() for name in ["README.md", *names]}
    faults = check_self() + check_order(names, texts)
    faults += check([(name, texts[name]) for name in names])
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write(f"{'fail' if faults else 'pass'} docs/steps\n")
    print("\n".join(faults) or f"{len(names)} pages: each changed line has its mark")
    return 1 if faults or not names else 0


sys.exit(main())
