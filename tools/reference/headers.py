# SPDX-License-Identifier: MIT
"""Reads the public headers: their declarations, and the grammar of the comments above them.

A comment of a function, in this order; a label that is missing leaves its section out:

    Cancels one task.                             the summary: the first sentence

    Paragraphs, lists with "- ", and code that is indented by 4 below an empty line.

    Parameters:
      task_id  the id that submit returned; a second line
               is indented to the text
    Returns: 0.
    Errors:
      GPUD_ENOTFOUND  no task with this id is queued or running
    Owns: borrows text until the call returns.
    Waits: up to wait nanoseconds.
    Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
    See: gpud_dispatcher_stop, option grace.
    Example: examples/timeout.c

A field of a struct has a block comment before it or one line behind it, with the labels Default
(the value in square brackets), Range, Unit and See.
"""
import pathlib
import re

HEADERS = ("dispatch", "sched", "external", "worker", "device", "cuda", "types", "error", "stats",
           "shared", "plugin", "version", "gpudispatch")
# The lists of the headers: how their names begin, the heading, the columns.
MAPS = {
    "GPUD_ERROR_MAP": ("GPUD_", "Error codes", ("value", "meaning")),
    "GPUD_OUTCOME_MAP": ("GPUD_OUTCOME_", "Outcomes", ("value", "meaning")),
    "GPUD_PHASE_MAP": ("GPUD_PHASE_", "Phases", ("value", "meaning")),
    "GPUD_EVENT_MAP": ("GPUD_EVENT_", "Event kinds", ("value", "meaning")),
    "GPUD_SLOT_MAP": ("GPUD_SLOT_", "Slot states", ("value", "meaning")),
    "GPUD_LEVEL_MAP": ("GPUD_LEVEL_", "Levels", ("value", "meaning")),
    "GPUD_HEALTH_MAP": ("GPUD_HEALTH_", "Health of devices", ("value", "meaning")),
    "GPUD_DEVICE_KIND_MAP": ("GPUD_DEVICE_", "Kinds of devices", ("value", "meaning")),
    "GPUD_DRIVER_MAP": ("GPUD_DRIVER_", "States of the driver", ("value", "meaning")),
    "GPUD_STATS_MAP": ("", "Counters and gauges", ("unit", "kind", "meaning")),
}
INNER = re.compile(r"GPUDISPATCH_|GPUD_X_|GPUD_(API|ERROR_X|STATS_X|STATS_ZERO|PLUGIN_EXPORT)\b")
LABELS = ("Parameters", "Returns", "Errors", "Owns", "Waits", "Thread", "From callbacks", "Process",
          "Since", "See", "Example", "Default", "Range", "Unit", "Stability", "Causes and remedies")
LABEL = re.compile(rf"({'|'.join(LABELS)}):(?: +(.*)|$)")
INLINE_LABEL = re.compile(rf"(?<=\S) {{2,}}(?=(?:{'|'.join(LABELS)}): )")
ITEM = re.compile(r" {1,3}(\*?\w+(?:, \*?\w+)*)(?: {2,}(\S.*)|\s*$)")
ID = re.compile(r" +\[(?=[CTG]\d)")
SENTENCE = re.compile(r"(.+?(?<!e\.g)(?<!i\.e)[.!?][\"')\]]*)(?:\s+|$)(.*)", re.S)


# ---- comments ----

def words(comment):
    """The lines of a comment without its stars.  Comments behind a field lose their indentation."""
    lines = comment.split("\n")
    if all(re.match(r"\s*\*(?: |$)", line) or not line.strip() for line in lines[1:]):
        rest = [re.sub(r"^\s*\*(?: |$)", "", line).rstrip() for line in lines[1:]]
    else:
        rest = [line.strip() for line in lines[1:]]
    lines = [re.sub(r"^\*\s?", "", lines[0].strip()).strip(), *rest]
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def one_line(lines):
    return " ".join(" ".join(lines).split())


def blocks(lines):
    """Pairs of a kind and its text: p (a string), list (strings), code (lines)."""
    out, paragraph, items, code = [], [], None, None

    def close():
        nonlocal paragraph, items, code
        if paragraph:
            out.append(("p", one_line(paragraph)))
        if items is not None:
            out.append(("list", [one_line(item) for item in items]))
        if code is not None:
            while code and not code[-1].strip():
                code.pop()
            out.append(("code", code))
        paragraph, items, code = [], None, None

    for line in [*lines, None]:
        if line is None:
            close()
        elif code is not None and (line.startswith("    ") or not line.strip()):
            code.append(line[4:])
        elif not line.strip():
            close()
        elif line.startswith("    ") and items is None:
            close()
            code = [line[4:]]
        elif re.match(r" {0,2}- ", line):
            if items is None:
                close()
                items = []
            items.append([line.strip()[2:]])
        elif items is not None and line.startswith(" "):
            items[-1].append(line)
        else:
            if items is not None or code is not None:
                close()
            paragraph.append(line)
    return out


def pairs(lines):
    """The items of Parameters and Errors: a name and its text."""
    found = []
    for line in lines:
        m = ITEM.match(line)
        if m:
            found.append([m.group(1), m.group(2) or ""])
        elif found:
            found[-1][1] += " " + line.strip()
    return [(name, " ".join(text.split())) for name, text in found]


def first_sentence(text):
    """The first sentence, and the rest."""
    m = SENTENCE.match(text)
    return (m.group(1), m.group(2).strip()) if m else (text, "")


class Comment:
    """A comment by the grammar: summary, blocks of the description, labels."""

    def __init__(self, text=""):
        self.text, self.summary, self.summary_ends_inside, self.lines = text, "", False, {}
        current, plain = None, []
        for line in self.split(words(text)):
            label = LABEL.match(line)
            if label:
                current = self.lines.setdefault(label.group(1), [])
                if label.group(2):
                    current.append(label.group(2))
            elif current is None or not line.strip():
                current = None
                plain.append(line)
            else:
                current.append(line)
        self.blocks = blocks([ID.sub(" [", line) for line in plain])
        if self.blocks and self.blocks[0][0] == "p":
            self.summary, rest = first_sentence(self.blocks[0][1])
            self.summary_ends_inside = bool(rest)  # the paragraph goes on behind it
            self.blocks[:1] = [("p", rest)] if rest else []

    @staticmethod
    def split(lines):
        """Each label at the beginning of a line of its own."""
        for n, line in enumerate(lines):
            code = line.startswith("    ") and (not n or not lines[n - 1].strip())
            yield from [line] if code or re.match(r" {2}", line) else INLINE_LABEL.split(line)

    def label(self, name):
        """The text behind a label in one line, or "" where there is none."""
        return ID.sub(" [", one_line(self.lines.get(name, [])))

    def value(self, name):
        """The same without the full stop: for a label with a value in place of a sentence."""
        return re.sub(r"\.$", "", self.label(name))

    def listed(self, name):
        """The names behind a label.  "options a and b" are two of the kind option."""
        found, kind = [], ""
        for part in re.split(r"[,;] +(?:and )?| and ", self.value(name)):
            m = re.fullmatch(r"(option|field)s (\w+)", part)
            if m:
                kind, part = m.group(1), m.group(2)
            kind = kind if re.fullmatch(r"(?!gpud_)[a-z]\w*", part) else ""
            found.append(f"{kind} {part}".strip())
        return [part for part in found if part]

    def parameters(self):
        return pairs(self.lines.get("Parameters", []))

    def errors(self):
        return pairs(self.lines.get("Errors", []))

    def plain(self):
        """Summary and paragraphs in one line, without labels."""
        texts = [part for kind, body in self.blocks if kind != "code"
                 for part in ([body] if kind == "p" else body)]
        return " ".join([self.summary, *texts]).strip()


# ---- declarations ----

class Item:
    """A declaration, its comment, and the header that has it."""

    def __init__(self, kind, name, text, comment):
        self.kind, self.name, self.text = kind, name, text
        self.comment, self.header = Comment(comment), ""

    def prototype(self):
        """A function as its page shows it."""
        text = self.text.replace("GPUD_API ", "").strip()
        lines = text.split("\n")
        moved = len("GPUD_API ") if self.text.startswith("GPUD_API ") else 0
        return "\n".join([lines[0], *(line[min(moved, len(line) - len(line.lstrip())):]
                                      for line in lines[1:])])

    def head(self):
        """A function up to its first parameter."""
        text = " ".join(self.prototype().split())
        before = ")(" if self.kind == "callback" else "("
        return text[:text.index(before) + len(before)]

    def declarations(self):
        """The parameters of a function as it declares them."""
        text, found, depth, part = " ".join(self.prototype().split()), [], 0, ""
        for c in text[len(self.head()):text.rindex(")")] + ",":
            depth += {"(": 1, ")": -1}.get(c, 0)
            if c != "," or depth:
                part += c
            else:
                found.append(part.strip())
                part = ""
        return [part for part in found if part != "void"]

    def parameters(self):
        """The names of a function's parameters."""
        return [(re.search(r"\(\*(\w+)\)", part) or re.search(r"(\w+)(?:\[\w*\])?$", part)).group(1)
                for part in self.declarations()]


def declared(text):
    """Kind and name of a declaration."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    m = re.match(r"(enum|struct)\s+(\w+)\s*\{", text)
    if m:
        return m.group(1), m.group(2)
    m = re.match(r"typedef struct (\w+) \w+;", text)
    if m:
        return "handle", m.group(1)
    m = re.match(r"typedef \w+\s*\(\s*(\w+)\s*\)\(", text)
    if m:
        return "callback", m.group(1)
    m = re.match(r"GPUD_API [\w\s*]*?\b(gpud_\w+)\(", text)
    if m:
        return "function", m.group(1)
    m = re.match(r"extern .*?\b(gpud_\w+);", text)
    if m:
        return "symbol", m.group(1)
    raise SystemExit(f"tools/reference/headers.py: cannot read: {text}")


def items(text):
    """The introduction of a header, and its declarations.

    A comment belongs to the declaration below it, and to those that follow on the next lines
    without one of their own.
    """
    found, pos, comment, first = [], 0, "", None
    while pos < len(text):
        rest = text[pos:]
        blank = re.match(r"\s+", rest)
        if blank:
            if blank.group().count("\n") > 1:
                comment = ""
            pos += blank.end()
            continue
        note = re.match(r"/\*(.*?)\*/", rest, flags=re.S)
        if note:
            comment = note.group(1)
            if first is None and "SPDX" not in comment:
                first = comment
            pos += note.end()
            continue
        line = re.match(r"#(?:[^\n]*\\\n)*[^\n]*", rest)
        if line:
            define = re.match(r"#define (\w+)", line.group())
            if define and not INNER.match(define.group(1)):
                kind = "map" if define.group(1) in MAPS else "macro"
                found.append(Item(kind, define.group(1), line.group(), comment))
                comment = comment if kind == "macro" else ""
            pos += line.end()
            continue
        linkage = re.match(r'extern "C" \{|\}', rest)
        if linkage:
            pos += linkage.end()
            continue
        depth = end = 0
        for m in re.finditer(r"/\*.*?\*/|[{};]", rest, flags=re.S):
            depth += {"{": 1, "}": -1}.get(m.group(), 0)
            if m.group() == ";" and depth == 0:
                end = m.end()
                break
        after = re.match(r"[ \t]*/\*(.*?)\*/", rest[end:], flags=re.S)
        kind, name = declared(rest[:end])
        found.append(Item(kind, name, rest[:end], after.group(1) if after else comment))
        pos += end + (after.end() if after else 0)
        if kind not in ("handle", "function"):
            comment = ""
    return first or "", found


def entries(item):
    """The rows of a list macro: name, then the other cells as they stand."""
    rows = []
    body = re.sub(r"/\*.*?\*/", "", item.text, flags=re.S).split("\n", 1)[1].replace("\\\n", " ")
    for args in re.findall(r"X\(((?:[^()\"]|\"[^\"]*\")+)\)", body):
        cells = re.findall(r'(?:"[^"]*"\s*)+|[^,"]+', args)
        rows.append([re.sub(r'"\s*"', "", cell.strip()).strip('"')
                     for cell in cells if cell.strip()])
    return rows


class Field:
    """A field of a struct, or an enumerator with its value."""

    def __init__(self, text, name, comment, value=""):
        self.text, self.name, self.value = text, name, value
        self.comment = Comment(comment)

    def type(self):
        """`uint64_t`; of a pointer to a function the whole declaration."""
        if "(" in self.text:
            return self.text
        array = re.search(r"(\[\w+\])?$", self.text).group()
        return re.sub(rf"{self.name}(\[\w+\])?$", "", self.text).strip() + array

    def bracket(self):
        """The default that the comment promises, or None."""
        text = self.comment.label("Default") or (
            "" if self.comment.lines else one_line(words(self.comment.text)))
        m = re.search(r"\[(?![CTG]\d)([^\[\]]+)\]", text)
        return m.group(1) if m else None

    def is_filler(self):
        return self.name == "struct_size" or re.fullmatch(r"reserved\d*", self.name) is not None


def parts(body, end):
    """Each declaration of a struct or an enum with its comment: before it, or behind it."""
    found, note, pos = [], "", 0
    pattern = re.compile(rf"\s*?(?:(?P<blank>\n\s*\n)|/\*(?P<note>.*?)\*/"
                         rf"|(?P<line>#[^\n]*|GPUD_\w+_MAP\(\w+\))|(?P<code>[^\s/][^/{end}]*){end}?"
                         rf"[ \t]*(?:/\*(?P<behind>.*?)\*/)?)", re.S)
    while True:
        m = pattern.match(body, pos)
        if not m or m.end() == pos:
            return found
        pos = m.end()
        if m.group("blank"):
            note = ""
        elif m.group("note") is not None:
            note = m.group("note")
        elif m.group("code"):
            found.append((" ".join(m.group("code").split()), m.group("behind") or note))
            note = ""


def body(item):
    return item.text[item.text.index("{") + 1:item.text.rindex("}")]


def fields(item):
    """The fields of a struct in their order."""
    found = []
    for text, note in parts(body(item), ";"):
        name = re.search(r"\(\*(\w+)\)|(\w+)(?:\[\w+\])?$", text)
        found.append(Field(text, name.group(1) or name.group(2), note))
    return found


def values(item):
    """The constants that an enum writes out."""
    found = []
    for text, note in parts(body(item), ","):
        name, _, value = text.partition("=")
        found.append(Field(text, name.strip(), note, value.strip()))
    return found


class Header:
    def __init__(self, root, name):
        self.name = name
        self.source = (root / f"include/gpudispatch/{name}.h").read_text()
        first, self.items = items(self.source)
        lines = words(first)
        if lines:
            lines[0] = lines[0].split(" - ", 1)[-1]
            lines[0] = lines[0][0].upper() + lines[0][1:]
        self.comment = Comment("\n".join(["", *(f" * {line}" for line in lines)]))
        for item in self.items:
            item.header = name

    def of(self, *kinds):
        return [item for item in self.items if item.kind in kinds]


def remedies(text):
    """Cause and remedy of each code: the list "Causes and remedies:" of error.h."""
    found = {}
    for note in re.findall(r"/\*(.*?)\*/", text, flags=re.S):
        for name, both in pairs(Comment(note).lines.get("Causes and remedies", [])):
            cause, _, remedy = both.partition("Remedy:")
            found[name.removeprefix("GPUD_")] = (cause.strip(), remedy.strip())
    return found


class Tree:
    """All headers of a tree, and where each name of theirs is described."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.headers = {name: Header(self.root, name) for name in HEADERS}
        # A symbol may have the name of its struct, which is the one with a description.
        every = [item for header in self.headers.values() for item in header.items]
        self.items = {item.name: item for item in sorted(every, key=lambda i: i.kind != "symbol")}
        self.remedies = remedies(self.headers["error"].source)

    def unknown(self):
        """Headers for which there is no page."""
        there = {path.stem for path in (self.root / "include/gpudispatch").glob("*.h")}
        return sorted(there - set(HEADERS))

    def functions(self):
        """Functions and callback types in the order of the headers."""
        return [item for header in self.headers.values()
                for item in header.of("function", "callback")]

    def options(self):
        return [f for f in fields(self.items["gpud_options"]) if not f.is_filler()]

    def task_fields(self):
        return [f for f in fields(self.items["gpud_task_desc"]) if not f.is_filler()]

    def map(self, name):
        return entries(self.items[name])
