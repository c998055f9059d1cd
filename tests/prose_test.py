#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/prose.py on lines whose numbers are known.

usage: prose_test.py
"""
import os
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
import prose  # noqa: E402

PAGE = pathlib.Path("page.md")
HEADER = pathlib.Path("include/gpudispatch/page.h")
# A text, and its sentences, bare words, passives, stop words and long lines.
CASES = (
    (PAGE, "The keeper kills the worker.  The host reads its exit status.", [2, 0, 0, 0, 0]),
    (PAGE, "It returns what was sent; whoever waits gets that which is left.", [2, 3, 0, 0, 0]),
    (PAGE, "A user who waits reads the reply. The one who drives is told.", [2, 1, 1, 1, 0]),
    (PAGE, "The host is not told, and the thing that failed was then given up.", [1, 1, 2, 1, 0]),
    (PAGE, "A task may so long wait, maybe for ever, as nobody tells it.", [1, 1, 0, 4, 0]),
    (PAGE, "Its state is `what is told` and \"what was said\", as in this code:\n\n"
           "    who says what\n", [1, 0, 0, 0, 0]),
    (PAGE, "| one two three | four five six |\n|---|---|\n| " + "cell " * 30 + "| x |",
     [3, 0, 0, 0, 1]),
    (PAGE, "- one two three\n- four five six\n\n1. seven eight nine: what?", [3, 1, 0, 0, 0]),
    (PAGE, "word " * 21, [1, 0, 0, 0, 1]),
    (HEADER, "int n; /* What it counts. */\n"
             "/* Gives the number of tasks.\n *\n *     what = code\n */\nchar *what;",
     [2, 1, 0, 1, 0]),
    (HEADER, "/* " + "word " * 18 + "*/", [1, 0, 0, 0, 1]),
)


def main():
    failed = 0
    for path, text, wanted in CASES:
        found = prose.count(path, text)
        if found != wanted:
            print(f"{text!r}: {found}, expected {wanted}")
            failed += 1
    # The limits without a record: 3 of 100 sentences, and nothing of the other two.
    for numbers, bad in (([100, 3, 3, 0, 0], 0), ([100, 4, 3, 0, 0], 1), ([33, 1, 0, 0, 0], 1),
                         ([100, 0, 4, 1, 1], 3)):
        if len(prose.faults(numbers, None)) != bad:
            print(f"{numbers}: {prose.faults(numbers, None)}")
            failed += 1
    # A tree below a folder "lib": its tests are no sources of the library.
    prose.ROOT = pathlib.Path("/home/lib/tree")
    if prose.is_text(prose.ROOT / "tests/a.c") or not prose.is_text(prose.ROOT / "lib/a.c"):
        print("the folders above the tree count")
        failed += 1
    # A recorded number holds, also above the limits.
    numbers = [10, 5, 0, 0, 2]
    if prose.faults(numbers, [5, 0, 0, 2]) or not prose.faults(numbers, [4, 0, 0, 2]):
        print("recorded numbers are not the bound")
        failed += 1
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write(f"{'fail' if failed else 'pass'} docs/prose_test\n")
    count = len(CASES) + 6
    print(f"{failed} of {count} counts are wrong" if failed else f"{count} counts are right")
    return 1 if failed else 0


sys.exit(main())
