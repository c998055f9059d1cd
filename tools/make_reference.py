#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes docs/reference from the public headers: the overview of each, a page for each function,
options.md, and the tables by topic.

usage: make_reference.py [--check] [ROOT]      (the tree this file is in)

With --check it writes nothing, and fails when a page is not as it would be written.  The other
pages of docs/reference are written by hand and stay as they are.  tools/reference/headers.py
describes the grammar of the comments.
"""
import os
import pathlib
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
from reference import functions, headers, overviews, tables  # noqa: E402

# Every page of docs/reference/functions is written here; one that no function has goes.
WRITTEN = functions.FOLDER


def pages(tree):
    """Path and text of every page."""
    written = [*overviews.pages(tree), *tables.pages(tree), *functions.pages(tree)]
    return {page.path: page.text() for page in written}


def main():
    args = [a for a in sys.argv[1:] if a != "--check"]
    root = pathlib.Path(args[0] if args else pathlib.Path(__file__).parent.parent).resolve()
    tree = headers.Tree(root)
    if tree.unknown():
        raise SystemExit(f"make_reference.py: no page for {tree.unknown()}")
    fresh = pages(tree)
    stale = [name for name, text in fresh.items()
             if not (root / name).exists() or (root / name).read_text() != text]
    left = sorted(p for p in (root / WRITTEN).glob("*.md") if f"{WRITTEN}/{p.name}" not in fresh)
    if "--check" in sys.argv:
        for name in [*stale, *(p.relative_to(root) for p in left)]:
            print(f"{name} is stale: run tools/make_reference.py")
        if os.environ.get("GPUD_TEST_RESULTS"):
            with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
                out.write(f"{'fail' if stale or left else 'pass'} docs/reference\n")
        return 1 if stale or left else 0
    (root / WRITTEN).mkdir(exist_ok=True)
    for name in stale:
        (root / name).write_text(fresh[name])
    for page in left:
        page.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
