# SPDX-License-Identifier: MIT
"""A page in Markdown: lines of at most 98 columns, names as code, links into the reference."""
import os
import re
import textwrap

WIDTH, ROW_WIDTH = 98, 120
# Names of C: a pointer, a name with an underscore, a constant of ours, perhaps with () behind it.
NAME = re.compile(r"(?<![\w`\"/.{\\-])(\*[a-z]\w*|\*?[a-z][a-z0-9]*_\w+(?:\.\w+)?|GPUD_\w+|_exit)"
                  r"(\(\w*\))?(?![\w`\"/]|\.\w|\.\.\.)")
DOCUMENT = re.compile(r"(?<![\w/`(\[-])docs/([\w./-]+\.md)")
# Structs whose fields are described in options.md, and the headings of these fields.
OPTIONS = {"gpud_options": "{}", "gpud_task_desc": "gpud_task_desc.{}"}
# A field in a list See: "option grace", "task field limit", "gpud_task_desc.limit", "grace".
FIELD = re.compile(r"(gpud_options\.|gpud_task_desc\.|task (?:field |option )?|option |field )?"
                   r"(\w+)")
KEEP = "\x1f"  # a blank at which no line ends


def capital(text):
    """A sentence begins with a capital, unless it begins with a name."""
    return text if re.match(r"\w*[_.]\w|\*|`", text) else text[:1].upper() + text[1:]


def ended(text):
    """A sentence ends with a full stop."""
    return text if not text or re.search(r"[.!?:][\"')]*( \[[CTG\d ,]+\])?$", text) else text + "."


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def wrapped(text, first="", rest=None):
    """A paragraph in lines.  Code, links and short messages stay on one line."""
    kept = re.sub(r'`[^`]{1,70}`|"[^"]{1,70}"|\[[^\[\]]{1,60}\]\([^)]*\)',
                  lambda m: m.group().replace(" ", KEEP), re.sub(r"\s+", " ", text))
    lines = textwrap.wrap(kept, WIDTH, initial_indent=first, break_long_words=False,
                          subsequent_indent=first if rest is None else rest, break_on_hyphens=False)
    # No line in the middle of a paragraph begins a list, a heading or a quotation.
    for n in range(1, len(lines)):
        lines[n] = re.sub(r"^(\s*)([-+#>]|\d+(?=[.)]))(?=\s|[.)]\s)", r"\1\\\2", lines[n])
    return "\n".join(lines).replace(KEEP, " ")


def bullets(texts):
    return "\n".join(wrapped(text, "- ", "  ") for text in texts)


def code(text):
    return "```c\n" + text.strip("\n") + "\n```"


def row_line(cells):
    return "| " + " | ".join(cells) + " |"


def too_long(cells):
    return len(row_line(cells)) > ROW_WIDTH


def table(heads, rows):
    """A table, or a list where a row would be too long."""
    if not any(map(too_long, rows)):
        return "\n".join([row_line(heads), "|" + "---|" * len(heads), *map(row_line, rows)])
    items = []
    for row in rows:
        cells = [part if len(heads) == 2 or head == "meaning" else f"{head} {part}"
                 for head, part in list(zip(heads, row))[1:] if part]
        items.append(f"{row[0]}: {'; '.join(cells)}".replace("\\|", "|") if cells else row[0])
    return bullets(items)


class Page:
    """A page at its path in the tree."""

    def __init__(self, tree, path, title, parameters=()):
        self.tree, self.path, self.parts = tree, path, [f"# {title}"]
        # Parameters of one letter are names in each text; others may be words of English.
        letters = "".join(name for name in parameters if len(name) == 1)
        self.own = letters and re.compile(
            rf"(?<![\w`\"/.<'-])(?<!\d )([{letters}])(?![\w`\"/'(-]|\.\w)")

    def add(self, *parts):
        self.parts += [part for part in parts if part]

    def text(self):
        return "\n\n".join(self.parts).rstrip() + "\n"

    def to(self, path, heading=""):
        """The address of a file of the tree in a link."""
        if path == self.path and heading:
            return f"#{heading}"
        there = os.path.relpath(path, os.path.dirname(self.path))
        return f"{there}#{heading}" if heading else there

    def named(self, text):
        """Names of C as code, documents as links; quoted messages and code stay as they are."""
        def document(m):
            known = (self.tree.root / m.group()).exists()
            return f"[{m.group()}]({self.to(m.group())})" if known else m.group()

        pieces = re.split(r'(`[^`]*`|"[^"]*")', text)
        for n in range(0, len(pieces), 2):
            piece = re.sub(r"(?<!\\)([<|])", r"\\\1", pieces[n])
            piece = NAME.sub(lambda m: f"`{m.group()}`", piece)
            inner = re.split(r"(`[^`]*`)", piece)
            if self.own:
                inner[::2] = [self.own.sub(r"`\1`", part) for part in inner[::2]]
                inner = re.split(r"(`[^`]*`)", "".join(inner))
            inner[::2] = [DOCUMENT.sub(document, part.replace("*", "\\*")) for part in inner[::2]]
            pieces[n] = "".join(inner)
        return re.sub(r"enum `(gpud_\w+)`", lambda m: self.link("enum " + m.group(1)),
                      "".join(pieces))

    def cell(self, text):
        """The same in a row of a table, where a bar ends the cell also inside code."""
        return self.named(text).replace("\\|", "|").replace("|", "\\|")

    def sentence(self, text):
        return wrapped(self.named(ended(capital(text))))

    def blocks(self, parts):
        """The blocks of a comment."""
        out = []
        for kind, part in parts:
            if kind == "code":
                out.append(code("\n".join(part)))
            elif kind == "list":
                out.append(bullets(self.named(text) for text in part))
            else:
                out.append(wrapped(self.named(part)))
        return "\n\n".join(out)

    def link(self, name, task=False):
        """A link to the place where the reference describes a name, or the name alone."""
        m = re.fullmatch(r"((?:task )?(?:option|field)) (\w+)", name)
        text = f"{m.group(1)} `{m.group(2)}`" if m else name
        if re.fullmatch(r"(?:struct |enum )?\*?\w+(?:\.\w+)?(?:\(\))?", name) and "/" not in name:
            text = f"`{name}`"
        found = target(self.tree, name, task)
        return f"[{text}]({self.to(*found)})" if found else text

    def see(self, comment, task=False):
        return [self.link(name, task) for name in comment.listed("See")]


def target(tree, name, task=False):
    """Where the reference describes a name: path and heading, or None.

    A name is that of a declaration, `option NAME`, `task field NAME`, an error code, or a path of
    the tree.  A bare name is an option, with `task` rather a field of gpud_task_desc.
    """
    item = tree.items.get(re.sub(r"^(?:struct|enum) ", "", name).removesuffix("()"))
    if item is not None and item.kind in ("function", "callback"):
        return f"docs/reference/functions/{item.name}.md", ""
    if item is not None:
        page = "options" if item.name in OPTIONS else item.header
        return f"docs/reference/{page}.md", anchor(item.name)
    m = FIELD.fullmatch(name)
    if m:
        kind, field = m.group(1) or "", m.group(2)
        option = field in {f.name for f in tree.options()}
        of_task = field in {f.name for f in tree.task_fields()}
        if of_task and ("task" in kind or not option or task and not kind):
            return "docs/reference/options.md", anchor(f"gpud_task_desc.{field}")
        if option:
            return "docs/reference/options.md", anchor(field)
    if name.startswith("GPUD_") and name[5:] in {row[0] for row in tree.map("GPUD_ERROR_MAP")}:
        return "docs/reference/errors.md", anchor(name)
    if re.fullmatch(r"[\w./-]+", name) and (tree.root / name).is_file():
        return name, ""
    return None
