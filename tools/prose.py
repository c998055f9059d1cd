#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts how compressed the English is, per file: bare what and who, passives, stop words, long lines.

usage: prose.py [--check | --record | --where] [FILE...]     (without files: every text of the tree)

Without an option it prints, for each file, the number of sentences, of bare words, of passives, of
stop words and of long lines, and a last line with the sums and their share of the sentences.

 --check   fails where a file has more than tools/prose.txt records for it.  A file without a record
           may have 3 bare words and 3 passives per 100 sentences, no stop word, no long line.
 --record  writes the counts of all files that do not meet these limits to tools/prose.txt.  It
           refuses to raise a recorded number.
 --where   prints each place: file, line, kind, and the words.

Texts are Markdown without its code, comments of C headers and sources, and nothing else.
Indented code in a comment stands below an empty line.  Lines may have 100 columns, lines of public
headers 90, rows of tables 120.
"""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = "tools/prose.txt"
PER_CENT = 3  # of the sentences, for bare words and for passives
WIDTH, HEADER_WIDTH, ROW_WIDTH = 100, 90, 120
TEXTS = ("*.md", "docs/**/*.md", "bench/*.md", "examples/**/*.md", "include/**/*.h", "lib/**/*.[ch]")

# A pronoun in place of a noun.  "who" after a noun of persons is not bare.
PERSONS = r"(?:users?|readers?|people|persons?|developers?|colleagues?|operators?|authors?|maintainers?)"
BARE = re.compile(
    r"\b(?:what|whatever|whoever|somebody|someone|nobody|that which|those which|the things? that|the ones? (?:who|that)"
    r"|those (?:who|that))\b|(?<!the one )(?<!those )(?<!\w)who\b", re.I)
AFTER_PERSON = re.compile(PERSONS + r",?\s+$", re.I)
# The acting process is missing.
PASSIVE = re.compile(
    r"\b(?:is|are|was|were|be|been|being)\s+(?:(?:not|never|only|also|then|still|always|already)\s+)?"
    r"(?:said|heard|given|taken|told|asked|answered|looked)\b", re.I)
# Words for which the field has a better one.
STOP = re.compile(
    r"\b(?:maybe|for ever|as ever|so long|so many|by ctypes|by itself|by themselves|without rest|belongs? into|deaf"
    r"|poisonous|bury|buries|buried|dealt out|tells?|told|says?|said|hears?|heard|asks?|asked|gives?|gave"
    r"|given back|give back|a look|looks? at|answers(?: with)?|nothing speaks against|does not bear|by the host's wish|others"
    r"|(?:limit|deadline|time) (?:is over|passes|has passed))\b", re.I)


def plain_markdown(text):
    """Markdown without code: each line that goes keeps its place."""
    blank = lambda m: "\n" * m.group().count("\n")  # noqa: E731
    text = re.sub(r"^```.*?^```$", blank, text, flags=re.M | re.S)
    text = re.sub(r"(?:(?<=\n\n)|\A)(?: {4}[^\n]*\n)+", blank, text)
    text = re.sub(r"`[^`\n]*(?:\n[^`\n]*)?`", lambda m: "CODE" + "\n" * m.group().count("\n"), text)
    text = re.sub(r"\]\([^)\s]*\)", "]", text)
    text = re.sub(r'"[^"\n]*"', "CODE", text)  # quoted messages
    text = re.sub(r"^\|[-:| ]+\|$", "", text, flags=re.M)
    return re.sub(r"[*_\[\]#>]|^\s*(?:-|\d+\.) ", " ", text, flags=re.M)


def plain_comments(text):
    """The comments of C, each line in its place; indented lines in them are code."""
    out, position = [], 0
    for m in re.finditer(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/', text, flags=re.S):
        out.append("\n" * text.count("\n", position, m.start()))
        position = m.end()
        if m.group().startswith('"'):
            continue
        lines = [re.sub(r"^\s*\*( |$)", "", line) for line in m.group()[2:-2].split("\n")]
        for n, line in enumerate(lines):  # code: indented, below an empty line or other code
            if n and re.match(r" {4}", line) and not lines[n - 1].strip():
                lines[n] = ""
        comment = re.sub(r'"[^"\n]*"', "CODE", "\n".join(lines))
        out.append(re.sub(r"^ *- ", "\x00", comment, flags=re.M) + "\x00")
    return "".join(out)


def sentences(plain):
    """Number of sentences: of a paragraph, an item, a cell of a table; at least three words each."""
    pieces = re.split(r"\n\s*\n|\x00|\|\s|(?<=[.!?:;])\s+", plain)
    return sum(len(re.findall(r"[A-Za-z]{2,}", piece)) >= 3 for piece in pieces)


def width(path, line):
    if path.suffix == ".md":
        return ROW_WIDTH if line.startswith("|") else WIDTH
    return HEADER_WIDTH if "include" in path.parts else WIDTH


def findings(path, text):
    """Line, kind and words of everything that counts."""
    plain = plain_markdown(text) if path.suffix == ".md" else plain_comments(text)
    for kind, pattern in (("bare", BARE), ("passive", PASSIVE), ("stop", STOP)):
        for m in pattern.finditer(plain.replace("\x00", " ")):
            if m.group().lower() == "who" and AFTER_PERSON.search(plain[:m.start()]):
                continue
            yield plain.count("\n", 0, m.start()) + 1, kind, " ".join(m.group().split())
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > width(path, line) and not re.search(r"https?://\S{60}", line):
            yield number, "long", f"{len(line)} columns"


def count(path, text):
    """Sentences, bare words, passives, stop words, long lines."""
    plain = plain_markdown(text) if path.suffix == ".md" else plain_comments(text)
    kinds = [kind for _, kind, _ in findings(path, text)]
    return [sentences(plain), *(kinds.count(kind) for kind in ("bare", "passive", "stop", "long"))]


def faults(numbers, recorded):
    """Which of a file's numbers are too high, in words."""
    if recorded:
        bounds = recorded
    else:
        share = numbers[0] * PER_CENT // 100
        bounds = [share, share, 0, 0]
    return [f"{have} {name}, at most {bound}" for name, have, bound in
            zip(("bare what or who", "passives", "stop words", "long lines"), numbers[1:], bounds) if have > bound]


def read_record(root):
    path = root / RECORD
    lines = path.read_text().splitlines() if path.exists() else []
    return {name: [int(n) for n in rest] for name, *rest in (line.split() for line in lines if line and line[0] != "#")}


def texts(root):
    return sorted({path for pattern in TEXTS for path in root.glob(pattern)})


def record(root, counted):
    known, rows = read_record(root), {}
    for name, numbers in counted.items():
        if faults(numbers, None):
            if name in known and faults(numbers, known[name]):
                raise SystemExit(f"{name}: {'; '.join(faults(numbers, known[name]))}: mend the text")
            rows[name] = numbers[1:]
    head = "# Bare words, passives, stop words and long lines of texts that do not meet the limits of tools/prose.py.\n" \
           "# Numbers may only fall: python3 tools/prose.py --record\n"
    (root / RECORD).write_text(head + "".join(f"{name} {' '.join(map(str, n))}\n" for name, n in sorted(rows.items())))


def report(wrong):
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write(f"{'fail' if wrong else 'pass'} docs/prose\n")


def main():
    options = [a for a in sys.argv[1:] if a.startswith("--")]
    named = [pathlib.Path(a).resolve() for a in sys.argv[1:] if not a.startswith("--")]
    files = named or texts(ROOT)
    if "--where" in options:
        for path in files:
            for line, kind, words in findings(path, path.read_text()):
                print(f"{os.path.relpath(path)}:{line}: {kind}: {words}")
        return 0
    counted = {(p.relative_to(ROOT).as_posix() if p.is_relative_to(ROOT) else str(p)): count(p, p.read_text()) for p in files}
    if "--record" in options:
        record(ROOT, counted)
        return 0
    if "--check" in options:
        known = read_record(ROOT)
        wrong = [f"{name}: {'; '.join(f)}" for name, numbers in counted.items() if (f := faults(numbers, known.get(name)))]
        wrong += [f"{RECORD}: no such file: {name}" for name in known if not named and name not in counted]
        report(wrong)
        print("\n".join(wrong) or f"the prose of {len(counted)} files is within its limits")
        return 1 if wrong else 0
    for name, numbers in counted.items():
        print(name, *numbers)
    sums = [sum(column) for column in zip(*counted.values())]
    print(f"{sums[0]} sentences, bare {100 * sums[1] / sums[0]:.1f} %, passive {100 * sums[2] / sums[0]:.1f} %, "
          f"{sums[3]} stop words, {sums[4]} long lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
