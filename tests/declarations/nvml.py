#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares lib/device/nvml.h with NVIDIA's nvml.h: records and numbers (nvml.c), and the parameters
of each call.

    python3 tests/declarations/nvml.py [--fetch DIRECTORY] [HEADER...]

Compares each HEADER, and with --fetch the headers of the PyPI packages below, which pip downloads
to DIRECTORY.  Exit status: 0 if all agree, 1 if one differs or there is none.  CC names the
compiler.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The last of CUDA 12 and one of CUDA 13; raised by hand.
PACKAGES = ["nvidia-nvml-dev-cu12==12.9.79", "nvidia-nvml-dev==13.5.37"]


def fetch(directory):
    """Downloads what is not there yet.  Yields the headers."""
    for package in PACKAGES:
        name, version = package.split("==")
        folder = directory / f"{name}-{version}"
        if not list(folder.glob("**/nvml.h")):
            pip = [sys.executable, "-m", "pip", "download", "--quiet",
                   "--disable-pip-version-check", "--no-deps"]
            subprocess.run([*pip, "--dest", str(folder), package], check=True)
            for wheel in folder.glob("*.whl"):
                zipfile.ZipFile(wheel).extractall(folder)
        yield from folder.glob("**/nvml.h")


def parameters(text):
    """The types in "unsigned int index, nvmlDevice_t *device": names go, "[]" does not occur."""
    words = [p.strip() for p in text.split(",") if p.strip() != "void"]
    return [re.sub(r"(?<=[\s*])\w+$", "", w).strip() for w in words]


def ours():
    """(symbol, parameter types) of each call in GPI_NVML_MAP; our types have no names to drop."""
    text = re.sub(r"\s*\\\n {5,}", " ", (ROOT / "lib/device/nvml.h").read_text())  # one line each
    entries = re.findall(r'^    X\(\w+, "([^"]+)", [01], \(([^()]*)\)\)', text, re.M)
    if len(entries) != text.count("\n    X("):
        sys.exit("lib/device/nvml.h: an entry of GPI_NVML_MAP cannot be read")
    for symbols, types in entries:
        for symbol in symbols.split():
            yield symbol, [t.strip() for t in types.split(",") if t.strip() != "void"]


def calls(header):
    """C that compares the calls with this header's prototypes, and the symbols that it lacks."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header.read_text(errors="replace"), flags=re.S)
    prototypes = dict(re.findall(r"nvmlReturn_t\s+DECLDIR\s+(\w+)\s*\(([^()]*)\)\s*;", text))
    lines, missing = [], []
    for symbol, mine in ours():
        if symbol not in prototypes:
            missing.append(symbol)
            continue
        theirs = parameters(prototypes[symbol])
        lines.append(f'_Static_assert({len(mine)} == {len(theirs)}, "parameters of {symbol}");')
        for number, (a, b) in enumerate(zip(mine, theirs), 1):
            holds = f"sizeof({a}) == sizeof({b})"
            if a.endswith("*") and a != "void *":
                holds += f" && sizeof(*({a})0) == sizeof(*({b})0)"
            lines.append(f'_Static_assert({holds}, "{symbol}: parameter {number} is {b}");')
    return "\n".join(lines), missing


def version(header):
    """As the folder of a package says, else the major version alone."""
    folder = re.search(r"nvidia-nvml-dev[^/]*-([\d.]+)/", str(header))
    text = header.read_text(errors="replace")
    return folder[1] if folder else re.search(r"NVML_API_VERSION_STR\s+\"(\d+)\"", text)[1]


def compare(header):
    """Whether this header agrees; complains otherwise."""
    checks, missing = calls(header)
    source = (ROOT / "tests/declarations/nvml.c").read_text() + "\n" + checks + "\n"
    command = [os.environ.get("CC", "cc"), "-std=c11", "-fsyntax-only", "-Wall", "-Werror",
               "-isystem", str(header.parent), "-I", str(ROOT / "lib"),
               "-I", str(ROOT / "include"), "-xc", "-"]
    done = subprocess.run(command, input=source, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        print(done.stdout)
    for symbol in missing:
        print(f"{header}: there is no {symbol}")
    agrees = done.returncode == 0 and not missing
    facts, parts = len(re.findall(r"^SAME", source, re.M)), checks.count("_Static_assert")
    verdict = "agrees" if agrees else "DIFFERS"
    print(f"NVML {version(header)}: {facts} facts of nvml.c, {parts} of calls: {verdict}")
    return agrees


def record(passed, name):
    """As tests/runner does, for tools/test.sh, which counts."""
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a", encoding="utf-8") as out:
            out.write(f"{'pass' if passed else 'fail'} declarations/{name}\n")


def main():
    ask = argparse.ArgumentParser(description=__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--fetch", type=pathlib.Path)
    ask.add_argument("headers", nargs="*", type=pathlib.Path)
    asked = ask.parse_args()
    headers = list(asked.headers)
    if asked.fetch:
        try:
            headers += fetch(asked.fetch)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"nvml.h cannot be fetched: {error}")
    good = 0
    for header in headers:
        passed = compare(header)
        good += passed
        record(passed, f"nvml_{version(header)}")
    print(f"{len(headers)} headers of NVML compared")
    return 0 if headers and good == len(headers) else 1


if __name__ == "__main__":
    sys.exit(main())
