# SPDX-License-Identifier: MIT
"""A page in Markdown as part of a manual page: headings, paragraphs, lists, code.

Tables become tagged paragraphs, and so do the terms of a glossary, which are headings of the third
level with one paragraph below.  Pictures go, and so do sentences and parentheses that only lead to
another page; of other links the text stays.
"""
import re

from . import roff
from .markdown import ended


LINK = r"\[[^\]]*\]\([^)]*\)"
LINKS = rf"{LINK}(?:(?:,|;| and|, and) {LINK})*"
SEE = re.compile(rf"(?:^|(?<=[.!?])) *See {LINKS}\.(?= |$)| \({LINKS}\)")


def inline(text):
    """A text without links and pictures.  Bold and italic words stay as they are."""
    text = SEE.sub("", " ".join(text.split()))
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"(?<![\w*])\*{1,2}([^*\n]+)\*{1,2}(?![\w*])", r"\1", text)
    return re.sub(r"\\([*<|>_#\[\]-])", r"\1", text).strip()


def tag(page, text):
    """The first cell of a row, or the term of a definition, in bold."""
    return roff.strong(inline(text).replace("`", ""))


def row(page, heads, cells):
    texts = [inline(cell) for cell in cells[1:]]
    if len(texts) > 1:
        texts = [f"{head}: {text}" for head, text in zip(heads[1:], texts) if text]
    page.tagged(tag(page, cells[0]), ended("; ".join(texts)))


def table(page, lines):
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
            for line in lines]
    for cells in rows[2:]:
        row(page, rows[0], cells)


# A term and its meaning as one line has them: "**term**: meaning", "- `term` - meaning".
TERM = re.compile(rf"(?:[-*] )?(\*\*[^*]+\*\*|`[^`]+`|{LINK})\s*(?::|--?|\u2013|\u2014)\s+(.+)",
                  re.S)


def paragraph(page, text):
    m = TERM.match(text)
    if m:
        page.tagged(tag(page, m.group(1)), ended(inline(m.group(2))))
    elif inline(text):
        page.paragraph(inline(text))


def bullets(page, lines):
    items = []
    for line in lines:
        if re.match(r"\s*(?:[-*]|\d+\.) ", line):
            items.append(line.strip())
        else:
            items[-1] += " " + line.strip()
    for item in items:
        if TERM.match(item):
            paragraph(page, item)
        else:
            page.bullet(inline(re.sub(r"^(?:[-*]|\d+\.) ", "", item)))


def chunks(text):
    """Kind and lines of each part of a page, without its title."""
    text = re.sub(r"\A# [^\n]*\n", "", text)
    found, fence = [], None
    for line in [*text.split("\n"), ""]:
        if fence is not None:
            if line.startswith("```"):
                found.append(("code", fence))
                fence = None
            else:
                fence.append(line)
        elif line.startswith("```"):
            fence = []
        else:
            kind = ("head" if line.startswith("#") else "table" if line.startswith("|") else
                    "blank" if not line.strip() else
                    "list" if re.match(r"(?:[-*]|\d+\.) ", line) else
                    "indented" if line.startswith("    ") else "text")
            last = found[-1][0] if found else "blank"
            if kind != "blank" and last == "list" and (kind == "text" or kind == "indented"):
                kind = "list"  # a second line of an item
            elif kind == "indented" and last == "text":
                kind = "text"
            if found and kind == last and kind != "head":
                found[-1][1].append(line)
            else:
                found.append((kind, [line]))
    return [(kind, lines) for kind, lines in found if kind != "blank"]


def write(page, text, terms=False):
    """With `terms` the page is a glossary."""
    found, n = [*chunks(text), ("head", [""])], 0
    while n + 1 < len(found):
        kind, lines = found[n]
        n += 1
        term = terms and lines[0].startswith("### ") and found[n][0] == "text"
        if term and found[n + 1][0] == "head":
            page.tagged(tag(page, lines[0].lstrip("# ")), ended(inline(" ".join(found[n][1]))))
            n += 1
        elif kind == "head":
            page.subhead(inline(lines[0].lstrip("# ")).replace("`", ""))
        elif kind == "table":
            table(page, lines)
        elif kind == "list":
            bullets(page, lines)
        elif kind in ("code", "indented"):
            page.code("\n".join(line.removeprefix("    ") for line in lines))
        else:
            paragraph(page, " ".join(lines))
