#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the pages of docs/start and docs/howto: writes their programs, runs their commands, compares the output.

usage: pages.py [--build DIRECTORY] PAGE...     with the library of a build tree, else with the installed
                                                one that pkg-config and the loader find

Each page has a directory of its own.  A block "```LANGUAGE NAME" is the file NAME, "```sh" are commands, "```text" is what the commands before it
print, in any order; in it "..." stands for anything, and alone on a line for any lines.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PATIENCE = 120  # seconds for one block of commands
WARNINGS = "-std=gnu11 -Wall -Wextra -Werror"


def blocks(text):
    """Language, name and contents of each block of code."""
    return re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", text, flags=re.M | re.S)


def environment(build, scratch):
    """That of somebody who has installed what lies in the build tree."""
    found = {name: value for name, value in os.environ.items() if not name.startswith("GPUD_")}
    if build:
        headers = pathlib.Path(__file__).resolve().parent.parent / "include"
        pathlib.Path(scratch, "gpudispatch.pc").write_text(
            f"worker_program={build}/lib/gpudispatch-worker\nName: gpudispatch\nDescription: not installed\nVersion: 0\n"
            f"Cflags: -I{headers}\nLibs: -L{build}/lib -lgpudispatch\n")
        for name, folder in (("PKG_CONFIG_PATH", scratch), ("LD_LIBRARY_PATH", build / "lib"), ("PATH", build / "tools/gpudispatch")):
            found[name] = os.pathsep.join([str(folder), *filter(None, [found.get(name)])])
    return found


def differs(wanted, said):
    """What is wrong with these lines; None when nothing is."""
    left = [line.rstrip() for line in said.splitlines()]
    for line in wanted.splitlines():
        if line == "...":
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in line.rstrip().split("...")))
        match = next((i for i, have in enumerate(left) if pattern.fullmatch(have)), None)
        if match is None:
            return f"is not printed: {line}"
        del left[match]
    if left and "..." not in wanted.splitlines():
        return f"is printed as well: {left[0]}"
    return None


def run(commands, where, variables):
    """Output and status; a compiler is asked for warnings, too."""
    commands = re.sub(r"^cc ", f"${{CC:-cc}} {WARNINGS} ", commands, flags=re.M)
    ran = subprocess.run(["sh", "-eu", "-c", commands], cwd=where, env=variables, text=True, timeout=PATIENCE,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return ran.stdout, ran.returncode


def check(document, build):
    """The first thing that is wrong, and how many blocks of commands there are."""
    said, shown, count = "", "", 0
    with tempfile.TemporaryDirectory(prefix="page-") as scratch:
        variables = environment(build, scratch)
        for language, name, contents in blocks(document.read_text()):
            if name:
                pathlib.Path(scratch, name).write_text(contents)
            elif language == "sh":
                shown, (said, status) = contents, run(contents, scratch, variables)
                count += 1
                if status:
                    return f"{shown}exits {status} and prints:\n{said}", count
            elif language == "text":
                wrong = differs(contents, said)
                if wrong:
                    return f"{shown}{wrong}\nIt prints:\n{said}", count
            else:
                return f"a block of {language} without a name", count
    return None, count


def report(page, wrong):
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write(f"{'fail' if wrong else 'pass'} docs/{page.parent.name}/{page.stem}\n")


def main():
    args, build, failed = sys.argv[1:], None, 0
    if args and args[0] == "--build":
        build, args = pathlib.Path(args[1]).resolve(), args[2:]
    for page in map(pathlib.Path, args):
        wrong, count = check(page, build)
        if not wrong and not count:
            wrong = "there are no commands"
        report(page, wrong)
        failed += bool(wrong)
        print(f"{page.name}: {wrong or f'{count} blocks of commands do what it says'}", flush=True)
    return 1 if failed or not args else 0


sys.exit(main())
