# SPDX-License-Identifier: MIT
"""Text as roff, with the macros of man(7), for groff and mandoc."""
import re
import textwrap

from .markdown import NAME

PARAGRAPHS = (".IP", ".PP", ".SH", ".SS", ".TP")
SPECIAL = {"\\": "\\e", "^": "\\(ha", "~": "\\(ti", "`": "\\(ga"}


def plain(text, code=False):
    """Text that roff shows as it is.  In code a hyphen is a minus and a quote is straight."""
    special = {**SPECIAL, "-": "\\-", "'": "\\(aq"} if code else SPECIAL
    return "".join(special.get(c, c if c.isascii() else f"\\[u{ord(c):04X}]") for c in text)


def line(text):
    """One line of input, which begins with no control character."""
    return re.sub(r"^([.'])", r"\\&\1", text)


def sentences(text):
    """Each sentence begins a line of input, as roff wants it; none is longer than 78 columns."""
    found = re.split(r"(?<=[a-z0-9)\]\"R][.!?]) +(?=[A-Z0-9\\\"`])", text)
    return [line(part) for sentence in found
            for part in textwrap.wrap(sentence, 78, break_long_words=False, break_on_hyphens=False)]


def reference(name, section):
    """Another manual page."""
    return f"\\fB{plain(name, True)}\\fR({section})"


class Writer:
    """One manual page.  `tree` knows which names have pages."""

    def __init__(self, tree, name, section, version, purpose):
        self.tree, self.name, self.section = tree, name, section
        self.out = [f'.TH {name} {section} "{version.date}" "gpudispatch {version.number}" '
                    '"libgpudispatch"', ".nh", ".ad l",
                    ".SH NAME", f"{plain(name, True)} \\- {plain(purpose)}"]

    def text(self, text):
        """A text with the names in it: pages in bold with their section, constants in bold, other
        names of C in italics."""
        pieces = re.split(r"(`[^`]*`)", re.sub(r"\s+", " ", text))
        for n, piece in enumerate(pieces):
            if n % 2:
                pieces[n] = self.name_of(piece[1:-1])
                continue
            out, end = [], 0
            for m in NAME.finditer(piece):
                out += [plain(piece[end:m.start()]), self.name_of(m.group())]
                end = m.end()
            pieces[n] = "".join([*out, plain(piece[end:])])
        return "".join(pieces)

    def name_of(self, name):
        item = self.tree.items.get(name.removesuffix("()"))
        has_page = item is not None and item.kind in ("function", "callback", "struct")
        if has_page and item.name != self.name:
            return reference(item.name, 3)
        bold = item is not None or name.isupper() or name.startswith("GPUD_")
        return f"\\f{'B' if bold else 'I'}{plain(name, True)}\\fR"

    def head(self, title):
        self.out.append(f".SH {title}" if " " not in title else f'.SH "{title}"')

    def subhead(self, title):
        self.out.append(f'.SS "{plain(title, True)}"')

    def paragraph(self, text):
        self.out += [*self.gap(), *sentences(self.text(text))]

    def gap(self):
        """Between paragraphs, but not below a heading."""
        return [] if self.out[-1].startswith((".SH", ".SS")) else [".PP"]

    def tagged(self, tag, text):
        """A tag, which is ready roff, and an indented text."""
        before = next((text for text in reversed(self.out) if text[:3] in PARAGRAPHS), "")
        indent = " 7" if before.startswith(".IP") else ""  # in place of that of the bullet
        self.out += [f".TP{indent}", tag, *(sentences(self.text(text)) or ["\\&"])]

    def bullet(self, text):
        self.out += [".IP \\(bu 2", *sentences(self.text(text))]

    def blocks(self, parts):
        """The blocks of a comment."""
        for kind, part in parts:
            if kind == "code":
                self.code("\n".join(part))
            elif kind == "list":
                for item in part:
                    self.bullet(item)
            else:
                self.paragraph(part)

    def code(self, text):
        """Lines as they stand."""
        shown = [line(plain(part, True)) for part in text.strip("\n").split("\n")]
        self.out += [*self.gap(), ".RS 4", ".nf", *shown, ".fi", ".RE"]

    def lines(self, texts):
        self.out += texts

    def result(self):
        return "\n".join(self.out) + "\n"


def strong(text):
    return f"\\fB{plain(text, True)}\\fR"

