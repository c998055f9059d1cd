#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/pages.py on pages that keep their word, and on pages that do not.

usage: pages_test.py
"""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RUN = "Run by the tests."
PASS, FAIL, SKIP = 0, 1, 77
PACKAGES = {"c++": "g++", "go": "golang-go", "rustc": "rustc", "systemd-analyze": "systemd"}


def block(language, contents):
    return f"```{language}\n{contents}\n```\n\n"


def not_run(checkers):
    return f"Not run: needs a moon; checked: {checkers}."


HELLO = block("sh", "echo hello; echo you")
C, VERIFY = "cc -fsyntax-only", "systemd-analyze verify"
INCLUDE = "#include <gpudispatch/gpudispatch.h>\n"
# Blocks, the last line, the status that they must have, and a part of the output.
CASES = (
    # A page that is run.
    (HELLO + block("text", "you\nhello"), RUN, PASS, "1 pages: 1 run"),
    (HELLO + block("text", "h...o\n..."), RUN, PASS, "1 pages: 1 run"),
    (block("c NAME.c", "no C") + block("sh", "cat NAME.c"), RUN, PASS, "1 blocks"),
    (HELLO + block("text", "hello\nme"), RUN, FAIL, "is not printed: me"),
    (HELLO + block("text", "hello"), RUN, FAIL, "is printed as well: you"),
    (block("sh", "exit 3"), RUN, FAIL, "exits 3"),
    (block("sh", "false\ntrue"), RUN, FAIL, "exits 1"),
    (block("c a.c", "int a;"), RUN, FAIL, "there are no commands"),
    (block("c", "int a;"), RUN, FAIL, "a block of c without a name"),
    ("```sh\necho\n", RUN, FAIL, "without a language or an end"),
    ("- item:\n\n  ```sh\n  echo\n  ```\n", RUN, FAIL, "or indented"),
    # The last line.
    (HELLO, "", FAIL, "the last line is neither"),
    (HELLO, "Run by the tests", FAIL, "the last line is neither"),
    (HELLO, RUN + " Mostly.", FAIL, "the last line is neither"),
    (HELLO, "Not run: needs a moon.", FAIL, "the last line is neither"),
    (HELLO, "Not run: needs ; checked: sh -n.", FAIL, "the last line is neither"),
    (HELLO, not_run("sh -n")[:-1], FAIL, "the last line is neither"),
    # A page that is only checked, by exactly the listed checkers.
    (block("sh", "exit 3"), not_run("sh -n"), PASS, "1 pages: 1 only checked"),
    (HELLO + block("json", "[1]"), not_run("sh -n, JSON"), PASS, "1 only checked"),
    (HELLO, not_run("sh -n, JSON"), FAIL, "lists sh -n, JSON; the blocks need sh -n"),
    (HELLO + block("json", "[1]"), not_run("sh -n"), FAIL, "the blocks need JSON, sh -n"),
    (HELLO, not_run("eyes"), FAIL, "the blocks need sh -n"),
    ("", not_run("sh -n"), FAIL, "the blocks need none"),
    (HELLO + block("text", "hello"), not_run("sh -n"), FAIL, "a block of text, which no checker"),
    # What each checker accepts and refuses.
    (block("sh", "if true; then"), not_run("sh -n"), FAIL, "sh -n refuses"),
    (block("json", "{1}"), not_run("JSON"), FAIL, "JSON refuses"),
    (block("python", "def f():\n    pass"), not_run("python -m py_compile"), PASS, "1 only"),
    (block("python", "def f(:"), not_run("python -m py_compile"), FAIL, "py_compile refuses"),
    (block("c", INCLUDE + "int a = GPUD_NO_SLOT == 1;"), not_run(C), PASS, "1 only"),
    (block("c", "int a = \"one\";"), not_run(C), FAIL, "-fsyntax-only refuses"),
    (block("c", "class A { int a; };"), not_run(C), FAIL, "-fsyntax-only refuses"),
    (block("dockerfile", "FROM a\nRUN a && \\\n    b\n# c"), not_run("dockerfile"), PASS, "1 only"),
    (block("text Dockerfile", "FROM debian\nINSTALL gcc"), not_run("dockerfile"), FAIL,
     "unknown instruction: INSTALL"),
)
UNIT = "[Service]\nType=notify\nExecStart=/opt/night\n"
# The same for checkers whose program may be missing: then the page is skipped.
OPTIONAL = (
    ("c++", block("c++", INCLUDE + "class A { int a; };"), not_run(C), PASS, "1 only"),
    ("c++", block("cpp", "clas A;"), not_run(C), FAIL, "-fsyntax-only refuses"),
    ("rustc", block("rust", "fn main() {\n}"), not_run("rustc"), PASS, "1 only"),
    ("rustc", block("rs a.rs", "pub fn f() {}"), not_run("rustc"), PASS, "1 only"),
    ("rustc", block("rs", "fn main() { f() }"), not_run("rustc"), FAIL, "rustc refuses"),
    ("go", block("go", "package main\n\nfunc main() {\n}"), not_run("go vet"), PASS, "1 only"),
    ("go", block("go", "package main\n\nfunc main() { f() }"), not_run("go vet"), FAIL, "refuses"),
    ("systemd-analyze", block("ini a.service", UNIT), not_run(VERIFY), PASS, "1 only"),
    ("systemd-analyze", block("ini a.service", UNIT + "Typ=1"), not_run(VERIFY), FAIL, "Typ"),
    ("python3-yaml", block("yaml", "a: [1, 2]"), not_run("YAML"), PASS, "1 only"),
    ("python3-yaml", block("yaml", "a: [1, 2"), not_run("YAML"), FAIL, "YAML refuses"),
)


def is_there(program):
    if program == "python3-yaml":
        return importlib.util.find_spec("yaml") is not None
    return shutil.which(program) is not None


class Room:
    """A folder howto, and pages.py in it."""

    def __init__(self, scratch):
        self.folder, self.results = pathlib.Path(scratch, "howto"), pathlib.Path(scratch, "results")
        self.folder.mkdir()
        self.failed = self.count = 0

    def pages(self, *arguments, **variables):
        self.results.unlink(missing_ok=True)
        command = [sys.executable, HERE / "pages.py", "--build", HERE, *arguments]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env=dict(os.environ, GPUD_TEST_RESULTS=str(self.results), **variables))
        results = self.results.read_text() if self.results.exists() else ""
        return ran.returncode, ran.stdout, results

    def write(self, text, name="page.md"):
        (self.folder / name).write_text(text)
        return self.folder / name

    def expect(self, text, found, status, said, result):
        self.count += 1
        if found[0] != status or said not in found[1] or found[2] != result:
            self.failed += 1
            print(f"{text}\nexpected {status}, {said!r}, {result!r}; found", *map(repr, found))

    def page(self, text, status, said, reason="", **variables):
        word = {PASS: "pass", FAIL: "fail", SKIP: "skip"}[status]
        result = f"{word} docs/howto/page{f': {reason}' if reason else ''}\n"
        self.expect(text, self.pages(self.write(text), **variables), status, said, result)


def check_skips(room):
    """Without a program the page is skipped, with the package's name, unless it is wrong anyway."""
    room.page("<!-- needs: sh, no-such-program -->\n" + HELLO + RUN, SKIP, "1 pages: 1 skipped",
              "needs the package no-such-program")
    room.page("<!-- needs: no-such-program -->\n" + HELLO, FAIL, "the last line is neither")
    bare = room.folder.parent / "bin"
    bare.mkdir()
    (bare / "sh").symlink_to(shutil.which("sh"))
    for program, language, checker in (
            ("rustc", "rust", "rustc"), ("go", "go", "go vet"), ("c++", "c++", C),
            ("systemd-analyze", "ini a.service", VERIFY)):
        reason = f"needs the package {PACKAGES[program]}"
        room.page(HELLO + block(language, "?") + not_run(f"sh -n, {checker}"), SKIP, reason, reason,
                  PATH=str(bare), CXX="")
    room.page(block("sh", "if") + block("rust", "?") + not_run("sh -n, rustc"), FAIL,
              "sh -n refuses", PATH=str(bare))


def check_folders(room):
    """Every page of a folder is run or checked, and nothing else lies there."""
    room.write(HELLO + RUN, "a.md")
    room.write(HELLO + not_run("sh -n"), "b.md")
    (room.folder / "page.md").unlink()
    both = "pass docs/howto/a\npass docs/howto/b\n"
    room.expect("two pages", room.pages(room.folder), PASS, "2 pages: 1 run, 1 only checked", both)
    (room.folder / "more").mkdir()
    room.write(HELLO + RUN, "more/c.md")
    room.expect("a third below", room.pages(room.folder), FAIL, "more/c.md is no page",
                both + "fail docs/howto: more/c.md is no page\n")
    room.expect("an empty folder", room.pages(room.folder.parent / "bin"), FAIL, "is no page",
                "fail docs/bin: sh is no page\nfail docs/bin: there are no pages\n")
    # Elsewhere, as in docs/start, a page needs no such line.
    start = room.folder.parent / "start"
    start.mkdir()
    (start / "a.md").write_text(HELLO)
    room.expect("a page of start", room.pages(start), PASS, "1 run", "pass docs/start/a\n")


def check_data(room):
    """A page that is run has its data checked, too."""
    room.page(HELLO + block("json a.json", "{") + RUN, FAIL, "JSON refuses a.json")
    room.page(HELLO + block("json a.json", "{}") + RUN, PASS, "1 run")
    room.page(HELLO + block("dockerfile Dockerfile", "FORM debian") + RUN, FAIL,
              "unknown instruction")


def check_that_nothing_runs(room):
    room.page(block("sh", f"echo > {room.folder}/ran") + not_run("sh -n"), PASS, "1 only checked")
    room.count += 1
    if (room.folder / "ran").exists():
        room.failed += 1
        print("a page that is not to be run was run")


def main():
    with tempfile.TemporaryDirectory(prefix="pages-") as scratch:
        room = Room(scratch)
        for text, last, status, said in CASES:
            room.page(f"# A page\n\n{text}\n{last}\n", status, said)
        for program, text, last, status, said in OPTIONAL:
            reason = ""
            if not is_there(program):
                reason = f"needs the package {PACKAGES.get(program, program)}"
                status, said = SKIP, "1 skipped"
            room.page(f"# A page\n\n{text}\n{last}\n", status, said, reason)
        check_that_nothing_runs(room)
        check_data(room)
        check_skips(room)
        check_folders(room)
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write(f"{'fail' if room.failed else 'pass'} docs/pages_test\n")
    missed = f"{room.failed} of {room.count} expectations are not met"
    print(missed if room.failed else f"{room.count} expectations are met")
    return 1 if room.failed else 0


sys.exit(main())
