#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what the documents say against the tree.

usage: check_docs.py [ROOT [BUILD_DIRECTORY]]      (the tree this file is in; ROOT/build)

 - links to files, and paths in backticks below a folder of the tree, exist;
 - each guarantee id that a public header names, such as [C7], is in the README and in a test;
 - README's program compiles without a warning and prints the block of text after it, in any order.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FOLDERS = ("include/", "lib/", "tests/", "tools/", "docs/", "bench/", "examples/")


def documents(root):
    return [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "bench").glob("*.md")]


def check_paths(root, faults):
    for doc in documents(root):
        text = doc.read_text()
        prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#\s]+)", prose):
            if "://" not in target and not (doc.parent / target).exists():
                faults.append(f"{doc.relative_to(root)}: no such file: {target}")
        for path in re.findall(r"`([\w./-]+)`", prose):
            if path.startswith(FOLDERS) and not (root / path).exists():
                faults.append(f"{doc.relative_to(root)}: no such file: {path}")


def ids(text):
    return set(re.findall(r"\bC\d{1,2}\b", text))


def check_ids(root, faults):
    promised = set()
    for header in (root / "include").rglob("*.h"):
        promised |= set(re.findall(r"\[(C\d{1,2})\]", header.read_text()))
    in_readme = ids((root / "README.md").read_text())
    in_tests = set()
    for source in [*(root / "tests").rglob("*.[ch]"), *(root / "bench").glob("*.c")]:
        in_tests |= ids(source.read_text())
    for name in sorted(promised - in_readme):
        faults.append(f"README.md does not name the guarantee {name}")
    for name in sorted(promised - in_tests):
        faults.append(f"no test names the guarantee {name}")


def block(text, language):
    return re.search(rf"^```{language}\n(.*?)^```", text, flags=re.M | re.S).group(1)


def lines(text):
    return sorted(line.rstrip() for line in text.splitlines())


def check_program(root, build, faults):
    text = (root / "README.md").read_text()
    with tempfile.TemporaryDirectory() as scratch:
        source, program = pathlib.Path(scratch, "program.c"), pathlib.Path(scratch, "program")
        source.write_text(block(text, "c"))
        command = [os.environ.get("CC", "cc"), "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{root}/include",
                   str(source), "-o", str(program), f"-L{build}/lib", f"-Wl,-rpath,{build}/lib", "-lgpudispatch"]
        compiled = subprocess.run(command, capture_output=True, text=True)
        if compiled.returncode:
            faults.append("README.md: the program does not compile:\n" + compiled.stderr)
            return
        ran = subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
    if ran.returncode or lines(ran.stdout) != lines(block(text, "text")):
        faults.append(f"README.md: the program exits {ran.returncode} and prints:\n{ran.stdout}{ran.stderr}")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    build = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else root / "build"
    faults = []
    check_paths(root, faults)
    check_ids(root, faults)
    check_program(root, build, faults)
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write(f"{'fail' if faults else 'pass'} check/docs\n")
    print("\n".join(faults) if faults else "the documents are in order")
    return 1 if faults else 0


sys.exit(main())
