#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether the manual pages of a build tree are sound: for groff, for mandoc and for man.

usage: manual.py ROOT BUILD

 - groff and, where it is installed, mandoc format each page without a warning;
 - man shows NAME as "gpud_x - " and the first sentence of the comment, and lexgrog finds both;
 - a page that another page names exists.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT, BUILD = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
sys.path.insert(0, str(ROOT / "tools"))
from reference import headers, man  # noqa: E402

# Before a release the pages have no date, which mandoc remarks.
EXPECTED = re.compile(r'WARNING: missing date, using ""')
ELSEWHERE = {"gpudispatch(1)"}  # written by the program gpudispatch


class Missing(Exception):
    pass


def need(program, package):
    if not shutil.which(program):
        raise Missing(f"needs the package {package}")


def run(*command):
    variables = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "400", "MANPAGER": "cat"}
    return subprocess.run(list(map(str, command)), env=variables, capture_output=True, text=True,
                          timeout=120)


def pages():
    return sorted(path for section in (3, 7)
                  for path in (BUILD / f"docs/man{section}").glob(f"*.{section}"))


def groff():
    need("groff", "groff-base")
    ran = run("groff", "-man", "-ww", "-z", *pages())
    return ran.stderr.splitlines() or ([f"groff exits {ran.returncode}"] if ran.returncode else [])


def mandoc():
    need("mandoc", "mandoc")
    ran = run("mandoc", "-T", "lint", "-W", "warning", *pages())
    return [line for line in ran.stdout.splitlines() if not EXPECTED.search(line)]


def name_line(path):
    """The paragraph below NAME as man shows it."""
    shown = run("man", "--no-hyphenation", "--no-justification", "-l", path).stdout
    shown = re.sub(r".\x08", "", shown)
    m = re.search(r"^NAME\n(.*?)\n\n", shown, flags=re.M | re.S)
    return " ".join(m.group(1).split()) if m else ""


def names():
    need("man", "man-db")
    wanted = {item.name: f"{item.name} - {man.purpose(item.comment.summary)}"
              for item in headers.Tree(ROOT).functions()}
    found = {path.stem: path for path in pages()}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        shown = dict(zip(found, pool.map(name_line, found.values())))
    for name, line in sorted(shown.items()):
        if line != wanted.get(name, line) or not re.fullmatch(rf"{name} - \w.+[^.]", line):
            yield f"{name}: man shows \"{line}\", expected \"{wanted.get(name, name + ' - ...')}\""
    for name in sorted(set(wanted) - set(shown)):
        yield f"{name}: there is no manual page"


def index():
    need("lexgrog", "man-db")
    for path in pages():
        ran = run("lexgrog", path)
        if ran.returncode or f'"{path.stem} - ' not in ran.stdout:
            yield f"{path.name}: lexgrog finds no name and purpose: {ran.stdout.strip()}"


def references():
    there = {f"{path.stem}({path.suffix[1:]})" for path in pages()} | ELSEWHERE
    for path in pages():
        found = re.findall(r"\\fB([\w\\-]+)\\fR\((\d)\)", path.read_text())
        for name, section in sorted(set(found)):
            page = f"{name}({section})".replace("\\", "")
            if page not in there:
                yield f"{path.name} names {page}, which does not exist"


def main():
    failed, lines = 0, []
    if not pages():
        raise SystemExit(f"{BUILD}/docs has no manual pages")
    for check in (groff, mandoc, names, index, references):
        try:
            faults = list(check())
            print("".join(f"{check.__name__}: {fault}\n" for fault in faults), end="")
            failed += len(faults)
            lines.append(f"{'fail' if faults else 'pass'} manual/{check.__name__}\n")
        except Missing as reason:
            lines.append(f"skip manual/{check.__name__}: {reason}\n")
    print("".join(lines) + f"{len(pages())} pages, {failed} faults")
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write("".join(lines))
    return 1 if failed else 0


sys.exit(main())
