#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes docs/reference from the public headers: one page for each, and the tables by topic.

usage: make_reference.py [--check] [ROOT]      (the tree this file is in)

With --check it writes nothing, and fails when a page is not as it would be written.
docs/reference/environment.md is written by hand and stays as it is.
"""
import os
import pathlib
import re
import sys

HEADERS = ("dispatch", "worker", "device", "cuda", "types", "error", "stats", "shared", "plugin", "version", "gpudispatch")
# The lists of the headers: what the macro is called, what its names begin with, its heading, its columns.
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
# Defaults that depend on more than the option: what is written in options.c or beside it, and what it comes to.
WORKED_OUT = {
    "definition": "the only one",
    "xid_rules": "environment `GPUD_XID_RULES`, else none",
    "devices": '"cpu:1"',
    "sent_ahead": "2; up to 64 while the mean run time is below 0.5 ms; with `max_batch` above 1 twice that, up to 64",
    "payload_budget": "a quarter of what machine or memory cgroup has left",
    "setup_concurrency": "no bound",
    "retry_causes": "GPUD_RETRY_CRASH (1)",
    "log_level": "GPUD_LEVEL_INFO (3)",
    "drive": "GPUD_DRIVE_THREAD (0)",
    "start": "GPUD_START_AUTO (0)",
    "stdio": "GPUD_STDIO_TAIL (0)",
    "cwd": "as at `gpud_init`",
    "argv": "the same program again",
}
UNITS = {"ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
NEVER = 2**64 - 1
NOTE = "Written by `tools/make_reference.py` from the headers; do not edit."


def words(comment):
    """A comment without its stars, in lines."""
    lines = [re.sub(r"^ ?\*( |$)", "", line.strip() if i == 0 else line.rstrip().removeprefix(" "))
             for i, line in enumerate(comment.split("\n"))]
    lines = [re.sub(r"^\* ?", "", line) for line in lines]
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def escaped(text):
    return "`".join(part if i % 2 else re.sub(r"([*<|])", r"\\\1", part) for i, part in enumerate(text.split("`")))


def prose(lines):
    """Lines of a comment as Markdown: what is indented is code, a label such as Returns: begins a line."""
    out, code = [], False
    for line in lines:
        line = re.sub(r"  +\[(?=[CTG]\d)", " [", line)
        indented = line.startswith("    ")
        if indented and not code:
            out += ["```c"] if out and not out[-1] else ["", "```c"]
        elif code and not indented and line.strip():
            while out[-1] == "":
                out.pop()
            out += ["```", ""]
        code = indented or (code and not line.strip())
        if code:
            out.append(line[4:])
            continue
        if re.match(r"(Returns|Owns|Thread|Process|Since|From callbacks|Stability):", line) and out and out[-1]:
            out.append("")
        out.append(escaped(line))
    if code:
        out.append("```")
    return "\n".join(out).strip()


def one_line(comment):
    return escaped(" ".join(part.strip() for part in words(comment) if part.strip()))


class Item:
    def __init__(self, kind, name, text, comment):
        self.kind, self.name, self.text, self.comment = kind, name, text, comment


def declared(text):
    """Kind and name of a declaration."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    m = re.match(r"(enum|struct)\s+(\w+)\s*\{", text)
    if m:
        return m.group(1), m.group(2)
    m = re.match(r"typedef struct (\w+) \w+;", text)
    if m:
        return "handle", m.group(1)
    m = re.match(r"typedef \w+\s*\(\s*(\w+)\s*\)\(", text) or re.match(r"typedef \w+\((\w+)\)\(", text)
    if m:
        return "callback", m.group(1)
    m = re.match(r"GPUD_API [\w\s*]*?\b(gpud_\w+)\(", text)
    if m:
        return "function", m.group(1)
    m = re.match(r"extern .*?\b(gpud_\w+);", text)
    if m:
        return "symbol", m.group(1)
    raise SystemExit(f"make_reference.py: cannot read: {text}")


def items(text):
    """The introduction of a header, and what it declares."""
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
                found.append(Item("map" if define.group(1) in MAPS else "macro", define.group(1), line.group(), comment))
                comment = ""
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
        if kind != "handle":
            comment = ""
    return first or "", found


def entries(item):
    """The rows of a list macro: name, then the others as they stand."""
    rows = []
    for args in re.findall(r"X\(((?:[^()\"]|\"[^\"]*\")+)\)", item.text.split("\n", 1)[1]):
        rows.append([part.strip().strip('"') for part in re.findall(r'"[^"]*"|[^,"]+', args) if part.strip()])
    return rows


def fields(item):
    """Declaration, name and comment of each field of a struct."""
    body = item.text[item.text.index("{") + 1:item.text.rindex("}")]
    body = re.sub(r"^#.*$|^\s*GPUD_\w+_MAP\(.*$", "", body, flags=re.M)
    rows = []
    for m in re.finditer(r"([^;/]+);[ \t]*(?:/\*(.*?)\*/)?", body, flags=re.S):
        text = " ".join(m.group(1).split())
        name = re.search(r"\(\*(\w+)\)|(\w+)(?:\[\d+\])?$", text)
        rows.append((text, name.group(1) or name.group(2), " ".join((m.group(2) or "").replace("\n", " ").split())))
    return rows


def values(item):
    """Name, value and comment of each constant that an enum writes out."""
    return [(name, value, " ".join((note or "").replace("\n", " ").split()))
            for name, value, note in re.findall(r"^\s*(GPUD_\w+) = (\w+),?[ \t]*(?:/\*(.*?)\*/)?", item.text, flags=re.M | re.S)]


def table(heads, rows):
    return "\n".join(["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads), *("| " + " | ".join(row) + " |" for row in rows)])


def map_table(item):
    prefix, _, heads = MAPS[item.name]
    return table(("name", *heads), [[f"`{prefix}{row[0]}`", *(escaped(cell) for cell in row[1:])] for row in entries(item)])


def source(text):
    return "```c\n" + text.strip() + "\n```"


def section(item):
    out = [f"### `{item.name}`", prose(words(item.comment))]
    if item.kind == "map":
        out.append(map_table(item))
    elif item.kind == "struct":
        out.append(table(("field", "meaning"), [(f"`{text}`", escaped(note)) for text, _, note in fields(item)]))
        if "GPUD_STATS_MAP" in item.text:
            out.append("and one `uint64_t` for each row of [counters.md](counters.md).")
    elif item.kind == "enum":
        listed = re.search(r"(GPUD_\w+_MAP)\(", item.text)
        rows = values(item)
        if listed:
            out.append(f"The names of `{listed.group(1)}`, with the beginning `{MAPS[listed.group(1)][0]}`"
                       + (f", and `{rows[0][0]}` = {rows[0][1]}." if rows else "."))
        if rows and not listed:
            out.append(table(("name", "value", "meaning"), [(f"`{n}`", v, escaped(note)) for n, v, note in rows]))
    else:
        out.append(source(item.text.replace("GPUD_API ", "")))
    return "\n\n".join(part for part in out if part)


def header_page(name, text):
    first, found = items(text)
    lines = words(first)
    lines[0] = lines[0].split(" - ", 1)[-1]
    lines[0] = lines[0][0].upper() + lines[0][1:]
    out = [f"# {name}.h", NOTE, f"`include/gpudispatch/{name}.h`", prose(lines)]
    for kinds, heading in ((("function",), "Functions"), (("callback",), "Functions of yours"), (("struct",), "Structs"),
                           (("map", "enum"), "Enums and lists"), (("handle",), "Handles"), (("symbol",), "Symbols"), (("macro",), "Macros")):
        here = [item for item in found if item.kind in kinds]
        if here:
            out += [f"## {heading}", *(section(item) for item in here)]
    return "\n\n".join(out).rstrip() + "\n"


def bracket(note):
    """What a field's comment promises as default, or None."""
    m = re.search(r"\[([^\[\]]+)\]", note)
    return m.group(1) if m else None


def as_number(text):
    """A default in brackets as a number, where it is one."""
    if text == "GPUD_NEVER":
        return NEVER
    m = re.match(r"([\d,]+)(?: (ms|s|min|h))?(?=$|:)", text)
    return int(m.group(1).replace(",", "")) * UNITS.get(m.group(2), 1) if m else None


def coded_defaults(root):
    """What lib/api/options.c puts in place of zero: a number, or the name of a constant."""
    text = (root / "lib/api/options.c").read_text()
    start = text.index("*ret = (struct gpi_settings){")
    text = text[start:text.index("};", start)]
    found = {}
    for name, value in [*re.findall(r"or_default\(o->(\w+), ([^)]+)\)", text), *re.findall(r"o->(\w+) \? o->\w+ : ([\w ]+)", text)]:
        if name in found:
            continue  # what it is on other devices: the header's brackets tell
        if value == "GPI_NEVER":
            found[name] = NEVER
        elif re.fullmatch(r"(\d+ \* )?GPI_S", value):
            found[name] = int(value.split()[0]) * 10**9 if " " in value else 10**9
        else:
            found[name] = int(value) if value.isdigit() else value
    for name in re.findall(r"= o->(\w+),", text):
        found.setdefault(name, 0)
    return found


def shown(value, is_time):
    if value == NEVER:
        return "GPUD_NEVER: no limit"
    return f"{value:,} ns" if is_time and value else f"{value:,}" if isinstance(value, int) else str(value)


def option_defaults(root):
    """Field, default in brackets, real value: of every option."""
    coded = coded_defaults(root)
    _, found = items((root / "include/gpudispatch/dispatch.h").read_text())
    rows = []
    for text, name, note in fields(next(item for item in found if item.name == "gpud_options")):
        if name == "struct_size":
            continue
        is_time = text.startswith("uint64_t") and name not in ("payload_budget", "setup_size", "seed")
        value = WORKED_OUT.get(name) or (shown(coded[name], is_time) if name in coded else "none" if "*" in text else "0")
        rows.append((name, bracket(note) or "", value))
    return rows


def task_defaults(root):
    _, found = items((root / "include/gpudispatch/dispatch.h").read_text())
    rows = []
    for text, name, note in fields(next(item for item in found if item.name == "gpud_task_desc")):
        given = bracket(note)
        if name != "struct_size":
            rows.append((name, given or "", given or ("none" if "*" in text else "0")))
    return rows


def topic_pages(root, texts):
    maps = {item.name: item for text in texts.values() for item in items(text)[1] if item.kind == "map"}
    pages = {}
    pages["errors.md"] = "\n\n".join(["# Error codes", NOTE, "A call that fails answers with one of these and has changed nothing. "
                                      "`gpud_error_name` and `gpud_error_text` give name and sentence. `GPUD_OK` is 0.",
                                      map_table(maps["GPUD_ERROR_MAP"])]) + "\n"
    pages["counters.md"] = "\n\n".join(["# Counters and gauges", NOTE, "Fields of `struct gpud_stats`, in the order of `gpud_stats_info`. "
                                        "A COUNTER only rises; a GAUGE goes up and down.", map_table(maps["GPUD_STATS_MAP"])]) + "\n"
    events = ["# Events and states", NOTE]
    for name in ("GPUD_EVENT_MAP", "GPUD_OUTCOME_MAP", "GPUD_PHASE_MAP", "GPUD_SLOT_MAP", "GPUD_HEALTH_MAP", "GPUD_DEVICE_KIND_MAP", "GPUD_DRIVER_MAP",
                 "GPUD_LEVEL_MAP"):
        events += [f"## {MAPS[name][1]}", map_table(maps[name])]
    pages["events.md"] = "\n\n".join(events) + "\n"
    heads = ("field", "in the header", "value")
    pages["defaults.md"] = "\n\n".join([
        "# Defaults", NOTE, "Zero means the default. The second column is what the header says in brackets, the third what the code does.",
        "## Options of a dispatcher", table(heads, [(f"`{n}`", escaped(b), v) for n, b, v in option_defaults(root)]),
        "## Tasks", table(heads, [(f"`{n}`", escaped(b), v) for n, b, v in task_defaults(root)])]) + "\n"
    return pages


def pages(root):
    texts = {name: (root / f"include/gpudispatch/{name}.h").read_text() for name in HEADERS}
    found = {f"{name}.md": header_page(name, text) for name, text in texts.items()}
    found.update(topic_pages(root, texts))
    return found


def main():
    args = [a for a in sys.argv[1:] if a != "--check"]
    root = pathlib.Path(args[0] if args else pathlib.Path(__file__).parent.parent).resolve()
    folder = root / "docs/reference"
    fresh = pages(root)
    stale = [name for name, text in fresh.items()
             if not (folder / name).exists() or (folder / name).read_text() != text]
    known = {p.stem for p in (root / "include/gpudispatch").glob("*.h")} - set(HEADERS)
    if known:
        raise SystemExit(f"make_reference.py: no page for {sorted(known)}")
    if "--check" in sys.argv:
        for name in stale:
            print(f"docs/reference/{name} is stale: run tools/make_reference.py")
        if os.environ.get("GPUD_TEST_RESULTS"):
            with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
                out.write(f"{'fail' if stale else 'pass'} docs/reference\n")
        return 1 if stale else 0
    folder.mkdir(exist_ok=True)
    for name in stale:
        (folder / name).write_text(fresh[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
