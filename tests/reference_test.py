#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/reference on comments whose parts are known.

usage: reference_test.py
"""
import os
import pathlib
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from reference import functions, headers, man, markdown, roff, simple  # noqa: E402

HEADER = '''/* SPDX-License-Identifier: MIT */
/*
 * made.h - a header for this test.
 */

/*
 * Cancels one task, e.g. the last.  A queued task ends at once.
 *
 * For a running task:
 * - gpud_task_cancelled becomes true, and
 *   SIGALRM interrupts process
 * - "GPUD_CANCEL_HARD | SOFT" kills
 *
 *     gpud_made(d, 1 < 2);
 *
 * Parameters:
 *   d        the dispatcher
 *   task_id  the id that submit returned;
 *            a second line
 * Returns: 0.
 * Errors:
 *   GPUD_ENOTFOUND  no task with this task_id is queued or running; it
 *                   never was
 *   GPUD_EFORKED    d belongs to the parent of this process
 * Owns: borrows *text until the call returns.  [C5]
 * Thread: any.  From callbacks: yes, with
 * wait 0.  Process: host.  Since: 1.
 * See: gpud_options, options grace and limit, struct gpud_options.
 * Example: examples/a.c, examples/b.c
 */
GPUD_API int gpud_made(struct gpud_options *d, uint64_t task_id,
                       int (*next)(int a, int b), const char *const names[2]);

/* The names as text.  Thread: any.  Since: 1. */
GPUD_API const char *gpud_first(void);
GPUD_API const char *gpud_second(uint32_t kind);

/* Runs one task. */
typedef int(gpud_made_fn)(gpud_task *t, void **ret_state);

/* Options of a test. */
struct gpud_options {
    uint32_t struct_size;

    /* a group of fields */
    uint64_t behind; /* for tasks that
                        name none [2 s] */
    /*
     * Kills the worker.
     * Default: [10 s; 60 s on a GPU].  Range: GPUD_AT_ONCE, 1 us to 292 years.  Unit: ns.
     * See: behind.
     */
    uint64_t before;
    char text[16];
    void (*unblock)(void *user); /* may be NULL */
    uint32_t reserved2;
};

enum gpud_kind {
    GPUD_KIND_A = 0, /* the first, with a comma */
    /*
     * The second.
     */
    GPUD_KIND_B = 2
};

/*
 * Codes.
 *
 * Causes and remedies:
 *   EFULL       the queue is full.  Remedy: wait,
 *               or poll first.
 *   GPUD_EGONE  it is gone.  Remedy: none.
 */
#define GPUD_ERROR_MAP(X)                  \\
    X(EFULL, -1, "full, so "               \\
                 "to speak")               \\
    X(EGONE, -2, "gone")
'''
PAGE = '''# gpud_made

Written by `tools/make_reference.py` from `include/gpudispatch/made.h`; do not edit.

Cancels one task, e.g. the last.

```c
#include <gpudispatch/made.h>

int gpud_made(struct gpud_options *d, uint64_t task_id,
              int (*next)(int a, int b), const char *const names[2]);
```

## Description

A queued task ends at once.

For a running task:

- `gpud_task_cancelled` becomes true, and SIGALRM interrupts process
- "GPUD_CANCEL_HARD | SOFT" kills

```c
gpud_made(d, 1 < 2);
```

## Parameters

- `d`: the dispatcher.
- `task_id`: the id that submit returned; a second line.

## Return value

0.

## Errors

`GPUD_ENOTFOUND`: no task with this `task_id` is queued or running; it never was.

`GPUD_EFORKED`: `d` belongs to the parent of this process.

## Ownership

Borrows `*text` until the call returns. [C5]

## Threads

| Thread | From callbacks | Process | Since API number |
|---|---|---|---|
| any | yes, with wait 0 | host | 1 |

## Example

- examples/a.c
- examples/b.c

## See also

[`gpud_options`](../options.md#gpud_options), option `grace`, option `limit`,
[`struct gpud_options`](../options.md#gpud_options), [made.h](../made.md).
'''
GLOSSARY = '''# Glossary

| word | meaning |
|---|---|
| host | links the [library](a.md) |

**slot**: a place for
one worker

### two words
A term of `gpud_made`. See [a](b.md) and [c](d.md#e).

## More

See [a](b.md#c) ([x](y.md)), but [d](e.md).

- `task`: bytes \\- and *options*
- a point
    of two lines

```c
int a\\n;
```
'''
MANUAL = '''.TP
\\fBhost\\fR
links the library.
.TP
\\fBslot\\fR
a place for one worker.
.TP
\\fBtwo words\\fR
A term of \\fBgpud_made\\fR(3).
.SS "More"
See a, but d.
.TP
\\fBtask\\fR
bytes - and options.
.IP \\(bu 2
a point of two lines
.PP
.RS 4
.nf
int a\\en;
.fi
.RE
'''


class Tree:
    """What a page needs of headers.Tree, from one header."""

    def __init__(self):
        self.root = ROOT / "tests"  # none of the examples is there
        _, found = headers.items(HEADER)
        for item in found:
            item.header = "made"
        self.items = {item.name: item for item in found}

    def options(self):
        return [f for f in headers.fields(self.items["gpud_options"]) if not f.is_filler()]

    def task_fields(self):
        return []

    def map(self, name):
        return []


class Version:
    number, date = "1", ""


def main():
    tree, wrong = Tree(), []

    def equal(what, found, wanted):
        if found != wanted:
            wrong.append(f"{what}: {found!r}, expected {wanted!r}")

    made, options = tree.items["gpud_made"], tree.items["gpud_options"]
    page = functions.function_page(tree, made).text()
    for line, (found, wanted) in enumerate(zip(page.split("\n"), PAGE.split("\n"))):
        equal(f"line {line + 1} of the page", found, wanted)
    equal("length of the page", len(page), len(PAGE))
    equal("items", {item.name: item.kind for item in tree.items.values()}, {
        "gpud_made": "function", "gpud_first": "function", "gpud_second": "function",
        "gpud_made_fn": "callback", "gpud_options": "struct", "gpud_kind": "enum",
        "GPUD_ERROR_MAP": "map"})
    equal("parameters", made.parameters(), ["d", "task_id", "next", "names"])
    equal("parameters of void", tree.items["gpud_first"].parameters(), [])
    equal("parameters of a callback", tree.items["gpud_made_fn"].parameters(),
          ["t", "ret_state"])
    equal("shared comment", tree.items["gpud_second"].comment.summary, "The names as text.")
    equal("label in a line", tree.items["gpud_second"].comment.value("Since"), "1")
    equal("fields", [(f.name, f.type(), f.comment.summary, f.bracket(), f.comment.value("Unit"))
                     for f in headers.fields(options)], [
        ("struct_size", "uint32_t", "", None, ""),
        ("behind", "uint64_t", "for tasks that name none [2 s]", "2 s", ""),
        ("before", "uint64_t", "Kills the worker.", "10 s; 60 s on a GPU", "ns"),
        ("text", "char[16]", "", None, ""),
        ("unblock", "void (*unblock)(void *user)", "may be NULL", None, ""),
        ("reserved2", "uint32_t", "", None, "")])
    equal("options", [f.name for f in tree.options()], ["behind", "before", "text", "unblock"])
    equal("constants", [(f.name, f.value, f.comment.summary)
                        for f in headers.values(tree.items["gpud_kind"])],
          [("GPUD_KIND_A", "0", "the first, with a comma"), ("GPUD_KIND_B", "2", "The second.")])
    codes = tree.items["GPUD_ERROR_MAP"]
    equal("list", headers.entries(codes),
          [["EFULL", "-1", "full, so to speak"], ["EGONE", "-2", "gone"]])
    equal("remedies", headers.remedies(HEADER), {
        "EFULL": ("the queue is full.", "wait, or poll first."), "EGONE": ("it is gone.", "none.")})
    equal("comment of the codes", (codes.comment.summary, codes.comment.blocks), ("Codes.", []))
    equal("purpose", man.purpose(made.comment.summary), "cancels one task, e.g. the last")
    equal("synopsis", man.prototype(made), [
        "\\fBint gpud_made(struct gpud_options *\\fId\\fB, uint64_t \\fItask_id\\fB,\\fR",
        "\\fB    int (*\\fInext\\fB)(int a, int b), const char *const \\fInames\\fB[2]);\\fR"])
    equal("control characters", roff.sentences(roff.plain(".so x. 'Tis a\\b \u2013 c")),
          ["\\&.so x. 'Tis a\\eb \\[u2013] c"])
    page = roff.Writer(tree, "gpudispatch", 7, Version, "a test")
    del page.out[:]
    page.head("X")
    simple.write(page, GLOSSARY, True)
    equal("glossary", "\n".join(page.out[1:]) + "\n", MANUAL)
    equal("too long a row", markdown.table(("a", "b"), [("x", "y " * 70)])[:8], "- x: y y")
    equal("no list in a paragraph", markdown.wrapped("word " * 19 + "abc - more"),
          "word " * 19 + "abc\n\\- more")
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write(f"{'fail' if wrong else 'pass'} docs/reference_test\n")
    print("\n".join(wrong) or "comments, pages and manual pages are as expected")
    return 1 if wrong else 0


sys.exit(main())
