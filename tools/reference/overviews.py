# SPDX-License-Identifier: MIT
"""docs/reference/NAME.md for each header: introduction, functions, structs, enums.  options.md."""
import re

from . import defaults, functions, headers
from . import markdown as md

NOTE = "Written by `tools/make_reference.py` from the headers; do not edit."
HEADINGS = ((("function",), "Functions"), (("callback",), "Functions of your program"),
            (("struct",), "Structs"), (("map", "enum"), "Enums and lists"),
            (("handle",), "Handles"), (("symbol",), "Symbols"), (("macro",), "Macros"))


def whole(comment):
    """The blocks of a comment, with its summary in the first paragraph."""
    if not comment.summary:
        return comment.blocks
    if comment.blocks and comment.blocks[0][0] == "p" and comment.summary_ends_inside:
        return [("p", f"{comment.summary} {comment.blocks[0][1]}"), *comment.blocks[1:]]
    return [("p", comment.summary), *comment.blocks]


def meaning(field):
    """A field's comment in one line, its labels included."""
    text = field.comment.plain()
    for label in ("Default", "Range", "Unit"):
        if field.comment.label(label):
            text += f" {label}: {md.ended(field.comment.value(label))}"
    return text.strip()


def map_table(page, item):
    prefix, _, heads = headers.MAPS[item.name]
    rows = []
    for row in headers.entries(item):
        cells = [f"`{prefix}{row[0]}`", *map(page.cell, row[1:])]
        if md.too_long(cells):  # names in it stay plain, so that the table stays one
            cells[-1] = row[-1]
        rows.append(cells)
    return md.table(("name", *heads), rows)


def struct(page, item):
    if item.name in md.OPTIONS:
        return md.wrapped(f"[options.md](options.md#{md.anchor(item.name)}) describes its fields, "
                          "with type, unit, default and range.")
    out = [md.table(("field", "meaning"), [(f"`{field.text}`", page.cell(meaning(field)))
                                           for field in headers.fields(item)])]
    if "GPUD_STATS_MAP" in item.text:
        out.append("Behind them stands one `uint64_t` for each row of [counters.md](counters.md).")
    return "\n\n".join(out)


def enum(page, item):
    listed = next((name for name in headers.MAPS if f"{name}(" in item.text), None)
    rows = headers.values(item)
    if listed:
        also = f", and `{rows[0].name}` = {rows[0].value}" if rows else ""
        begin = headers.MAPS[listed][0]
        return md.wrapped(f"The names of `{listed}`, which begin with `{begin}`{also}.")
    return md.table(("name", "value", "meaning"),
                    [(f"`{field.name}`", field.value, page.cell(meaning(field))) for field in rows])


def section(page, item):
    body = {"map": map_table, "struct": struct, "enum": enum}.get(item.kind)
    page.add(f"### `{item.name}`", page.blocks(whole(item.comment)),
             body(page, item) if body else md.code(item.text))
    if item.name == "GPUD_ERROR_MAP":
        page.add("[errors.md](errors.md) has causes and remedies of each code.")


def header_page(tree, header):
    page = md.Page(tree, f"docs/reference/{header.name}.md", f"{header.name}.h")
    page.add(NOTE, f"`include/gpudispatch/{header.name}.h`", page.blocks(whole(header.comment)))
    if header.comment.label("Stability"):
        page.add(f"Stability: {header.comment.label('Stability')}")
    if header.comment.label("See"):
        page.add(md.wrapped(f"See {', '.join(page.see(header.comment))}."))
    for kinds, heading in HEADINGS:
        here = header.of(*kinds)
        if here:
            page.add(f"## {heading}")
        if kinds[0] in ("function", "callback"):
            page.add(functions.listed(page, here))
        else:
            for item in here:
                section(page, item)
    if header.of("function"):
        page.add("[functions/README.md](functions/README.md) lists all functions by name.")
    return page


def without_bracket(text):
    """A comment without its default, which has a line of its own."""
    return re.sub(r"\s*\[(?![CTG]\d)[^\[\]]*\]", "", text).strip()


def effect(comment):
    """The text of a field's comment.  Without labels it begins with no capital in the header."""
    if comment.label("Default"):
        return whole(comment)
    return [(kind, part if kind != "p" else md.ended(md.capital(without_bracket(part))))
            for kind, part in whole(comment)]


def entry(page, field, heading, default, task):
    """One field: what it does, and its type, unit, default, range and further reading."""
    comment = field.comment
    unit = f", unit {comment.value('Unit')}" if comment.label("Unit") else ""
    facts = [f"Type: `{field.type()}`{unit}", f"Default: {page.named(default)}"]
    if comment.label("Range"):
        facts.append(f"Range: {page.named(comment.value('Range'))}")
    if comment.label("See"):
        facts.append(f"See: {', '.join(page.see(comment, task))}")
    page.add(f"### `{heading}`", page.blocks(effect(comment)), md.bullets(facts))


def options_page(tree):
    page = md.Page(tree, "docs/reference/options.md", "Options")
    page.add(NOTE, md.wrapped("Two structs hold all settings: `struct gpud_options` those of a "
                              "dispatcher, `struct gpud_task_desc` those of a task. Zero means the "
                              "default. [defaults.md](defaults.md) compares these defaults with "
                              "the code."))
    for name, found, fields in (("gpud_options", defaults.of_options(tree), tree.options()),
                                ("gpud_task_desc", defaults.of_tasks(tree), tree.task_fields())):
        known = {field: bracket or value for field, bracket, value in found}
        page.add(f"## `{name}`", page.blocks(whole(tree.items[name].comment)))
        for field in fields:
            entry(page, field, md.OPTIONS[name].format(field.name), known[field.name],
                  name == "gpud_task_desc")
    return page


def pages(tree):
    return [*(header_page(tree, header) for header in tree.headers.values()), options_page(tree)]
