#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts how compressed the English of each file is: bare what and who, passives, stop words.

It also counts long lines.

usage: prose.py [--check | --record | --where] [FILE...]     (without files: every text of the tree)

Without an option it prints, for each file, the number of sentences, of bare words, of passives, of
stop words and of long lines, and a last line with the sums and their share of the sentences.

 --check   fails where a file has more than tools/prose.txt records for it.  A file without a record
           may have 3 bare words and 3 passives per 100 sentences, no stop word, no long line.
 --record  writes the counts of all files that do not meet these limits to tools/prose.txt.  It
           refuses to raise a recorded number.
 --where   prints each place: file, line, kind, and the words.

Texts are Markdown without its code, and comments of the public headers and of lib/.  Indented code
in a comment stands below an empty line.  Lines may have 100 columns, lines of public headers 90,
rows of tables 120.  Of all other sources only the long lines count.
"""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = "tools/prose.txt"
PER_CENT = 3  # of the sentences, for bare words and for passives
WIDTH, HEADER_WIDTH, ROW_WIDTH = 100, 90, 120
TEXTS = ("*.md", "docs/**/*.md", "bench/*.md", "examples/**/*.md", "include/**/*.h",
         "lib/**/*.[ch]")
FOLDERS = ("bench", "cuda", "debian", "docs", "examples", "include", "lib", "queue", "tests",
           "tools")
SOURCES = (".c", ".cc", ".cpp", ".cu", ".h", ".py", ".sh", ".build")

# A pronoun in place of a noun.  "who" after a noun of persons is not bare.
PERSONS = (r"(?:users?|readers?|people|persons?|developers?|colleagues?|operators?|authors?"
           r"|maintainers?)")
BARE = re.compile(
    r"\b(?:what|whatever|whoever|somebody|someone|nobody|that which|those which|the things? that"
    r"|the ones? (?:who|that)|those (?:who|that))\b|(?<!the one )(?<!those )(?<!\w)who\b", re.I)
AFTER_PERSON = re.compile(PERSONS + r",?\s+$", re.I)
# The acting process is missing.
PASSIVE = re.compile(
    r"\b(?:is|are|was|were|be|been|being)\s+"
    r"(?:(?:not|never|only|also|then|still|always|already)\s+)?"
    r"(?:said|heard|given|taken|told|asked|answered|looked)\b", re.I)
# Words for which the field has a better one.
STOP = re.compile(
    r"\b(?:maybe|for ever|as ever|so long|so many|by ctypes|by itself|by themselves|without rest"
    r"|belongs? into|deaf|poisonous|bury|buries|buried|dealt out|tells?|told|says?|said|hears?"
    r"|heard|asks?|asked|gives?|gave|given back|give back|a look|looks? at|answers(?: with)?"
    r"|nothing speaks against|does not bear|by the host's wish|others"
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
    text = re.sub(r"^[ \t]*(?:-|\d+\.) ", "\x00 ", text, flags=re.M)  # an item begins a sentence
    return re.sub(r"[*_\[\]#>]", " ", text)


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


def plain_text(path, text):
    if not is_text(path):
        return ""
    return plain_markdown(text) if path.suffix == ".md" else plain_comments(text)


def sentences(plain):
    """Counts sentences of at least three words; a paragraph, an item and a table cell end one."""
    pieces = re.split(r"\n\s*\n|\x00|\|\s|(?<=[.!?:;])\s+", plain)
    return sum(len(re.findall(r"[A-Za-z]{2,}", piece)) >= 3 for piece in pieces)


def folders(path):
    """The folders of a file within the tree, which may itself lie in a folder "lib"."""
    return (path.relative_to(ROOT) if path.is_relative_to(ROOT) else path).parts


def is_text(path):
    """Whether more than the width of its lines counts."""
    is_ours = {"lib", "include"} & set(folders(path))
    return path.suffix == ".md" or path.suffix in (".c", ".h") and is_ours


def width(path, line):
    if path.suffix == ".md":
        return ROW_WIDTH if line.startswith("|") else WIDTH
    return HEADER_WIDTH if "include" in folders(path) else WIDTH


def findings(path, text):
    """Line, kind and words of everything that counts."""
    plain = plain_text(path, text)
    for kind, pattern in (("bare", BARE), ("passive", PASSIVE), ("stop", STOP)):
        for m in pattern.finditer(plain.replace("\x00", " ")):
            if m.group().lower() == "who" and AFTER_PERSON.search(plain[: m.start()]):
                continue
            yield plain.count("\n", 0, m.start()) + 1, kind, " ".join(m.group().split())
    quoted = set()  # lines of output, as a program prints them
    for m in re.finditer(r"^```text\n.*?^```$", text, flags=re.M | re.S):
        quoted |= set(range(text.count("\n", 0, m.start()) + 1, text.count("\n", 0, m.end()) + 1))
    for number, line in enumerate(text.splitlines(), 1):
        if number in quoted or len(line) <= width(path, line):
            continue
        if not re.search(r"https?://\S{60}", line):
            yield number, "long", f"{len(line)} columns"


def count(path, text):
    """Sentences, bare words, passives, stop words, long lines."""
    plain = plain_text(path, text)
    kinds = [kind for _, kind, _ in findings(path, text)]
    return [sentences(plain), *(kinds.count(kind) for kind in ("bare", "passive", "stop", "long"))]


def faults(numbers, recorded):
    """Returns a text for each of a file's numbers that is too high."""
    if recorded:
        bounds = recorded
    else:
        share = numbers[0] * PER_CENT // 100
        bounds = [share, share, 0, 0]
    names = ("bare what or who", "passives", "stop words", "long lines")
    return [f"{have} {name}, at most {bound}" for name, have, bound in
            zip(names, numbers[1:], bounds) if have > bound]


def read_record(root):
    path = root / RECORD
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [line.split() for line in lines if line and line[0] != "#"]
    return {name: [int(n) for n in numbers] for name, *numbers in rows}


def texts(root):
    found = {path for pattern in TEXTS for path in root.glob(pattern)} | {root / "meson.build"}
    found |= {path for folder in FOLDERS for path in (root / folder).rglob("*")
              if path.suffix in SOURCES}
    return sorted(path for path in found if path.is_file())


def record(root, counted):
    known, rows = read_record(root), {}
    for name, numbers in counted.items():
        if faults(numbers, None):
            if name in known and faults(numbers, known[name]):
                found = "; ".join(faults(numbers, known[name]))
                raise SystemExit(f"{name}: {found}: mend the text")
            rows[name] = numbers[1:]
    head = ("# Bare words, passives, stop words and long lines of each file above the limits of\n"
            "# tools/prose.py.  Numbers may only fall: python3 tools/prose.py --record\n")
    (root / RECORD).write_text(head + "".join(
        f"{name} {' '.join(map(str, n))}\n" for name, n in sorted(rows.items())))


def name_of(path):
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


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
    counted = {name_of(path): count(path, path.read_text()) for path in files}
    if "--record" in options:
        record(ROOT, counted)
        return 0
    if "--check" in options:
        known = read_record(ROOT)
        wrong = [f"{name}: {'; '.join(f)}" for name, numbers in counted.items()
                 if (f := faults(numbers, known.get(name)))]
        wrong += [f"{RECORD}: no such file: {name}" for name in known
                  if not named and name not in counted]
        report(wrong)
        print("\n".join(wrong) or f"the prose of {len(counted)} files is within its limits")
        return 1 if wrong else 0
    for name, numbers in counted.items():
        print(name, *numbers)
    sums = [sum(column) for column in zip(*counted.values())]
    print(f"{sums[0]} sentences, bare {100 * sums[1] / max(sums[0], 1):.1f} %,"
          f" passive {100 * sums[2] / max(sums[0], 1):.1f} %,"
          f" {sums[3]} stop words, {sums[4]} long lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
