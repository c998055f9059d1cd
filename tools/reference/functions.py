# SPDX-License-Identifier: MIT
"""docs/reference/functions: a page for each function and callback type, and their index."""
from . import markdown as md

FOLDER = "docs/reference/functions"
# Labels whose text is a section of its own, and the heading.
SECTIONS = (("Owns", "Ownership"), ("Waits", "Waiting"))
THREADS = {"Thread": "Thread", "From callbacks": "From callbacks", "Process": "Process",
           "Since": "Since API number"}


def synopsis(item):
    return md.code(f"#include <gpudispatch/{item.header}.h>\n\n{item.prototype()}")


def threads(page, comment):
    """The table of threads.  A column without a text is left out."""
    columns = [(head, page.cell(comment.value(label))) for label, head in THREADS.items()
               if comment.value(label)]
    if not columns:
        return ""
    if sum(len(text) + 3 for _, text in columns) < md.ROW_WIDTH:
        return md.table([head for head, _ in columns], [[text for _, text in columns]])
    return md.bullets(f"{head}: {md.ended(text)}" for head, text in columns)


def errors(page, comment):
    """One paragraph for each code."""
    return "\n\n".join(
        md.wrapped(f"{', '.join(page.link(code) for code in names.split(', '))}: "
                   f"{page.named(md.ended(cause))}") for names, cause in comment.errors())


def function_page(tree, item):
    """A section for each label that the comment has."""
    page = md.Page(tree, f"{FOLDER}/{item.name}.md", item.name, item.parameters())
    comment = item.comment

    def section(heading, text):
        if text:
            page.add(f"## {heading}", text)

    page.add(f"Written by `tools/make_reference.py` from `include/gpudispatch/{item.header}.h`; "
             "do not edit.",
             md.wrapped(page.named(comment.summary)), synopsis(item))
    section("Description", page.blocks(comment.blocks))
    section("Parameters", md.bullets(
        ", ".join(f"`{name}`" for name in names.split(", ")) + f": {page.named(md.ended(text))}"
        for names, text in comment.parameters()))
    section("Return value", page.sentence(comment.label("Returns")))
    section("Errors", errors(page, comment))
    for label, heading in SECTIONS:
        section(heading, page.sentence(comment.label(label)))
    section("Threads", threads(page, comment))
    section("Example", md.bullets(page.link(name) for name in comment.listed("Example")))
    header = f"[{item.header}.h]({page.to(f'docs/reference/{item.header}.md')})"
    section("See also", md.wrapped(", ".join([*page.see(comment), header]) + "."))
    return page


def listed(page, items):
    """Functions with their purpose, as a list of links."""
    return md.bullets(f"{page.link(item.name)}: {page.named(item.comment.summary)}"
                      for item in items)


def index(tree):
    page = md.Page(tree, f"{FOLDER}/README.md", "Functions")
    page.add("Written by `tools/make_reference.py` from the headers; do not edit.",
             md.wrapped("Each page is a manual page, too: where the library is installed, "
                        "`man gpud_init` shows it. [How the pages are "
                        f"made]({page.to('docs/design/0011-reference.md')})."))
    by_name = sorted(tree.functions(), key=lambda item: item.name)
    for kind, heading in (("function", "Functions of the library"),
                          ("callback", "Functions of your program")):
        page.add(f"## {heading}", listed(page, [item for item in by_name if item.kind == kind]))
    return page


def pages(tree):
    return [*(function_page(tree, item) for item in tree.functions()), index(tree)]
