# SPDX-License-Identifier: MIT
"""Manual pages: man3 from the headers, and gpudispatch(7) from the glossary and task-life.md."""
import re

from . import defaults, headers, overviews, roff, simple
from .functions import SECTIONS
from .markdown import capital, ended

DEFAULTS = {"gpud_options": defaults.of_options, "gpud_task_desc": defaults.of_tasks}
ATTRIBUTES = ("Thread", "From callbacks", "Process", "Since")
OVERVIEWS = tuple(name for name in headers.HEADERS if name != "gpudispatch")


class Version:
    """Number and date of what the pages describe.  Before a release there is no date."""

    def __init__(self, root):
        text = (root / "include/gpudispatch/version.h").read_text()
        self.number = ".".join(re.findall(r"#define GPUD_VERSION_[MP][A-Z]+ (\d+)", text))
        changes = root / "CHANGES.md"
        dated = re.findall(r"^## \S+, (\d{4}-\d\d-\d\d)$",
                           changes.read_text() if changes.exists() else "", flags=re.M)
        self.date = dated[0] if dated else ""


def purpose(text):
    """A sentence as the line NAME has it: without capital and full stop."""
    text = re.sub(r"( \[[CTG\d ,]+\])?$", "", text).rstrip(".:").replace("`", "")
    return text if re.match(r"\w*_|[A-Z]{2}", text) else text[:1].lower() + text[1:]


def page_of(tree, name):
    """The manual page of a name in a list See, as ready roff, or None."""
    bare = re.sub(r"^(?:struct|enum) ", "", name)
    item = tree.items.get(bare)
    if item is not None and item.kind in ("function", "callback", "struct"):
        return roff.reference(item.name, 3)
    if item is not None:
        return roff.reference(f"gpudispatch-{item.header}", 3)
    if re.fullmatch(r"(?:(?:task )?(?:option|field) )\w+", name):
        options = {field.name for field in tree.options()}
        of_task = name.startswith("task") or name.split()[-1] not in options
        return roff.reference("gpud_task_desc" if of_task else "gpud_options", 3)
    return None


def see_also(page, tree, comment, more):
    """Pages first, each once; other names of the list as they stand."""
    found, others = [], []
    for name in comment.listed("See"):
        where = page_of(tree, name)
        (found if where else others).append(where or page.text(name))
    every = list(dict.fromkeys([*found, *more, *others]))
    page.head("SEE ALSO")
    page.lines([*(f"{text}," for text in every[:-1]), every[-1]])


def around(item):
    """The pages that every function and struct leads to."""
    return [roff.reference(f"gpudispatch-{item.header}", 3), roff.reference("gpudispatch", 7)]


def prototype(item):
    """The declaration in lines of at most 70 columns, its parameters in italics."""
    head, parts = item.head(), item.declarations()
    lines = [head]
    for n, part in enumerate(parts):
        text = part + (", " if n + 1 < len(parts) else ");")
        if len(lines[-1] + text.rstrip()) > 70:
            lines.append("    ")
        lines[-1] += text
    out = []
    for text in lines if parts else [head + "void);"]:
        text = roff.plain(text.rstrip(), True)
        for name in item.parameters():
            text = re.sub(rf"(?<![\w\\])({name})(?=[,)\[])", r"\\fI\1\\fB", text)
        out.append(f"\\fB{text}\\fR")
    return out


def include(header):
    return f"\\fB#include <gpudispatch/{header}.h>\\fR"


def function(tree, version, item):
    comment = item.comment
    page = roff.Writer(tree, item.name, 3, version, purpose(comment.summary))
    page.head("SYNOPSIS")
    page.lines([".nf", include(item.header), ".PP", *prototype(item), ".fi"])
    if item.kind == "function":
        page.lines([".PP", "Link with \\fI\\-lgpudispatch\\fR."])
    page.head("DESCRIPTION")
    page.blocks(overviews.whole(comment))
    if comment.parameters():
        page.subhead("Parameters")
        for names, text in comment.parameters():
            page.tagged(", ".join(f"\\fI{name}\\fR" for name in names.split(", ")), ended(text))
    if comment.label("Returns"):
        page.head("RETURN VALUE")
        page.paragraph(ended(capital(comment.label("Returns"))))
    if comment.errors():
        page.head("ERRORS")
        for names, text in comment.errors():
            page.tagged(roff.strong(names), ended(text))
    attributes = [(name, comment.value(name)) for name in ATTRIBUTES if comment.value(name)]
    if attributes:
        page.head("ATTRIBUTES")
        for name, text in attributes:
            page.tagged(roff.strong(name), "API number " + text if name == "Since" else text)
    for label, heading in SECTIONS:
        if comment.label(label):
            page.head(heading.upper())
            page.paragraph(ended(capital(comment.label(label))))
    if comment.listed("Example"):
        page.head("EXAMPLES")
        page.paragraph(f"See {' and '.join(comment.listed('Example'))} among the installed "
                       "documents.")
    see_also(page, tree, comment, around(item))
    return page


def struct_fields(page, item, known=None):
    """A tagged paragraph for each field; `known` has the defaults of options."""
    for field in headers.fields(item):
        comment = field.comment
        if known is None:
            page.tagged(roff.strong(field.text), ended(overviews.meaning(field)))
            continue
        if field.name not in known:
            continue
        text = " ".join(part if isinstance(part, str) else " ".join(part)
                        for kind, part in overviews.effect(comment) if kind != "code")
        facts = [f"Default: {known[field.name]}."]
        facts += [f"{label}: {ended(comment.value(label))}" for label in ("Range", "Unit")
                  if comment.label(label)]
        page.tagged(roff.strong(field.text), f"{ended(text)} {' '.join(facts)}".strip())
        if comment.label("See"):
            found = [name if "/" in name else f"`{name.split()[-1]}`"
                     for name in comment.listed("See")]
            page.lines([f"See {', '.join(map(page.text, found))}."])


def struct(tree, version, item):
    page = roff.Writer(tree, item.name, 3, version,
                       purpose(item.comment.summary or f"struct {item.name}"))
    page.head("SYNOPSIS")
    page.lines([".nf", include(item.header), ".PP", f"\\fBstruct {item.name};\\fR", ".fi"])
    page.head("DESCRIPTION")
    page.blocks(overviews.whole(item.comment))
    page.head("FIELDS")
    known = DEFAULTS.get(item.name)
    struct_fields(page, item,
                  known and {name: bracket or value for name, bracket, value in known(tree)})
    if "GPUD_STATS_MAP" in item.text:
        for name, unit, kind, text in tree.map("GPUD_STATS_MAP"):
            page.tagged(roff.strong(f"uint64_t {name}"), f"{text} ({unit}, {kind}).")
    see_also(page, tree, item.comment, around(item))
    return page


def named_pages(page, items):
    for item in items:
        page.tagged(roff.reference(item.name, 3), item.comment.summary or f"struct {item.name}.")


def lists(page, tree, header):
    """Constants of a header: its lists and the enums that are no such list."""
    found = [item for item in header.of("map", "enum")
             if item.kind == "map" and item.name != "GPUD_STATS_MAP" or
             item.kind == "enum" and not any(f"{name}(" in item.text for name in headers.MAPS)]
    if not found:
        return
    page.head("CONSTANTS")
    for item in found:
        prefix, heading, _ = headers.MAPS.get(item.name, ("", f"enum {item.name}", ()))
        page.subhead(heading)
        page.blocks(overviews.whole(item.comment))
        if item.kind == "enum":
            for field in headers.values(item):
                page.tagged(roff.strong(field.name) + f" ({roff.plain(field.value, True)})",
                            ended(overviews.meaning(field)))
            continue
        known = tree.remedies if item.name == "GPUD_ERROR_MAP" else {}
        for name, value, text in (row[:3] for row in headers.entries(item)):
            cause, remedy = known.get(name, ("", ""))
            more = [ended(text), f"Cause: {ended(cause)}" if cause else "",
                    f"Remedy: {ended(remedy)}" if remedy else ""]
            page.tagged(f"{roff.strong(prefix + name)} ({roff.plain(value, True)})",
                        " ".join(part for part in more if part))


def overview(tree, version, header):
    comment = header.comment
    page = roff.Writer(tree, f"gpudispatch-{header.name}", 3, version, purpose(comment.summary))
    page.head("SYNOPSIS")
    page.lines([".nf", include(header.name), ".fi"])
    page.head("DESCRIPTION")
    page.blocks(overviews.whole(comment))
    for kind, heading in (("function", "FUNCTIONS"), ("callback", "FUNCTIONS OF YOUR PROGRAM"),
                          ("struct", "STRUCTS")):
        if header.of(kind):
            page.head(heading)
            named_pages(page, header.of(kind))
    lists(page, tree, header)
    see_also(page, tree, comment, [roff.reference("gpudispatch", n) for n in (3, 7)])
    return page


def library(tree, version):
    """gpudispatch(3): from here on a reader finds every page."""
    comment = tree.headers["gpudispatch"].comment
    page = roff.Writer(tree, "gpudispatch", 3, version,
                       "dispatch tasks to worker processes on GPUs and CPUs")
    page.head("SYNOPSIS")
    compiled = roff.strong("cc program.c -o program $(pkg-config --cflags --libs gpudispatch)")
    page.lines([".nf", include("gpudispatch"), ".PP", compiled, ".fi"])
    page.head("DESCRIPTION")
    page.blocks(overviews.whole(comment))
    page.paragraph("Each header has an overview page, and each function and each struct a page of "
                   "its own.")
    page.head("HEADERS")
    for name in OVERVIEWS:
        page.tagged(roff.reference(f"gpudispatch-{name}", 3), tree.headers[name].comment.summary)
    page.head("FILES")
    page.tagged("\\fIshare/doc/gpudispatch\\fR",
                "Below the prefix: README.md, and the pages and programs that manual pages call "
                "docs/... and examples/...  A name in brackets such as [C5] is a guarantee or a "
                "failure mode; the documents define each.")
    others = [("gpudispatch", 1), ("gpudispatch", 7),
              *((f"gpudispatch-{name}", 3) for name in OVERVIEWS)]
    see_also(page, tree, comment, [roff.reference(*other) for other in others])
    return page


def concepts(tree, version):
    """gpudispatch(7): the terms, and the life of a task."""
    page = roff.Writer(tree, "gpudispatch", 7, version,
                       "terms of libgpudispatch, and the life of a task")
    docs = tree.root / "docs"
    glossary, life = docs / "glossary.md", docs / "explain/task-life.md"
    page.head("DESCRIPTION")
    page.paragraph("The library libgpudispatch runs tasks in worker processes, one for each device "
                   "set. This page defines its terms and follows a task from submit to its "
                   "outcome.")
    if glossary.exists():
        page.head("TERMS")
        text = glossary.read_text()
        simple.write(page, re.sub(r"\A.*?(?=^###? )", "", text, flags=re.S | re.M), True)
    if life.exists():
        page.head("TASKS")
        simple.write(page, life.read_text())
    see_also(page, tree, headers.Comment(), [roff.reference("gpudispatch", n) for n in (1, 3)])
    return page


def pages(tree):
    """Path below the manual's folder, and text, of every page."""
    version = Version(tree.root)
    found = [function(tree, version, item) for item in tree.functions()]
    found += [struct(tree, version, item) for item in tree.items.values() if item.kind == "struct"]
    found += [overview(tree, version, tree.headers[name]) for name in OVERVIEWS]
    found += [library(tree, version), concepts(tree, version)]
    return {f"man{page.section}/{page.name}.{page.section}": page.result() for page in found}
