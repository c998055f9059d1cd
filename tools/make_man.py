#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the manual pages of section 3 and 7 from the public headers and docs/.

usage: make_man.py OUTPUT [ROOT]      (the tree this file is in)

OUTPUT/man3 and OUTPUT/man7 are made anew.  The build runs this, see docs/meson.build.
"""
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
from reference import headers, man  # noqa: E402


def main():
    output, *root = map(pathlib.Path, sys.argv[1:])
    root = (root or [pathlib.Path(__file__).parent.parent])[0].resolve()
    pages = man.pages(headers.Tree(root))
    for folder in sorted({name.split("/")[0] for name in pages}):
        shutil.rmtree(output / folder, ignore_errors=True)
        (output / folder).mkdir(parents=True)
    for name, text in pages.items():
        (output / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
