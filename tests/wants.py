#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stands in for a test that cannot be built: skips each case of its source, for want of a package.

usage: wants.py PACKAGE SOURCE
"""
import os
import pathlib
import re
import sys

SKIPPED = 77


def main():
    package, source = sys.argv[1], pathlib.Path(sys.argv[2])
    cases = re.findall(r"^T_(?:LONG_)?CASE\((\w+)", source.read_text(), flags=re.M) or ["all"]
    lines = [f"skip {source.stem}/{case}: needs the package {package}\n" for case in cases]
    print("".join(lines), end="")
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write("".join(lines))
    return SKIPPED


sys.exit(main())
