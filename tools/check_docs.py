#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what the documents say against the tree.

usage: check_docs.py [--ids-only] [ROOT [BUILD_DIRECTORY]]      (the tree this file is in; ROOT/build)

 - links to files and headings, paths in backticks below a folder of the tree, and test cases (FILE.CASE) exist;
 - pages that other files of the tree name by path exist;
 - each page of docs/ can be reached from README.md;
 - every export, error code, event kind, counter, option and environment variable is in docs/reference;
 - defaults in the headers' brackets and in the tables are those of the code;
 - each id of a guarantee (C, README.md) and of a failure mode (T and G, docs/explain/failures-elsewhere.md) is named by a
   test: anywhere in the comment above a case, or as "C6 C7: ..." or "[T7]" in one above something else; the
   list is printed;
 - the table of XIDs in docs/explain/devices.md is that of the code;
 - the figures of docs/performance.md are those that docs/design/0002-speed.md has recorded;
 - scripts and targets in README's command lines exist;
 - README's program compiles without a warning and prints the block of text after it, in any order.
"""
import collections
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the tree stays as it is
import make_reference as reference

FOLDERS = ("include/", "lib/", "tests/", "tools/", "docs/", "bench/", "examples/")
ID = re.compile(r"\b([CTG][1-9]\d?)\b")
CASE = re.compile(r"\s*(?:T_CASE|T_LONG_CASE)\((\w+)")
# Defaults as they were decided (0: none; None: never), and those that no line of options.c holds alone: what the code
# says, and where.
SECOND = 10**9
DECIDED = {
    "queue_size": 1024, "max_attempts": 1, "max_batch": 1, "failures_in_a_row": 3, "devices_per_worker": 1,
    "setup_limit": 900 * SECOND, "task_limit": None, "expires": None, "stall_limit": None, "grace": 2 * SECOND,
    "cleanup_limit": 10 * SECOND, "close_limit": 30 * SECOND, "kill_limit": 10 * SECOND, "backoff": SECOND,
    "backoff_cap": 60 * SECOND, "retry_backoff": 0, "retry_backoff_cap": 60 * SECOND, "batch_wait": 0,
    "stop_limit": 60 * SECOND,
}
ELSEWHERE = {
    "devices": ("cpu:1", "lib/api/dispatcher.c", 'o->devices : "cpu:1"'),
    "payload_budget": ("a quarter of", "lib/api/options.c", "gpi_headroom() / 4"),
    "sent_ahead": ("below 0.5 ms", "lib/sched/place.c", "#define SHORT_RUN_NS 500000u"),
    "xid_rules": ("environment GPUD_XID_RULES", "lib/api/options.c", 'getenv("GPUD_XID_RULES")'),
    "setup_concurrency": ("all", "lib/api/options.c", "o->setup_concurrency : UINT32_MAX"),
}
CONSTANTS = (("lib/host/slot.h", "#define GPI_TAIL_SIZE 8192u"), ("lib/wire/page.h", "#define GPI_INLINE_SIZE 4096u"),
             ("lib/host/patience.c", "gpi_spawner_patience = 10 * GPI_S;"), ("lib/host/patience.c", "gpi_driver_patience = 10 * GPI_S;"))
# Nothing but a GPU can show these.
NEED_A_GPU = {"T15"}


def documents(root):
    return [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "bench").glob("*.md"), *(root / "examples").rglob("*.md")]


def prose(doc):
    """A document without its blocks of code."""
    return re.sub(r"^```.*?^```", "", doc.read_text(), flags=re.M | re.S)


def links(doc):
    """File and heading of each link into the tree."""
    for target, heading in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", prose(doc)):
        if "://" not in target and (target or heading):
            yield (doc.parent / target).resolve() if target else doc, heading


def headings(doc):
    """The names under which a document's headings can be linked to."""
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in re.findall(r"^#+ (.*)", prose(doc), flags=re.M)}


def check_links(root, faults):
    """No link leads nowhere, and no page of docs/ is without a way to it from the README."""
    reached, todo = set(), [root / "README.md"]
    while todo:
        doc = todo.pop()
        if doc in reached or doc.suffix != ".md":
            continue
        reached.add(doc)
        todo += [target for target, _ in links(doc) if target.exists()]
    for doc in documents(root):
        if doc.is_relative_to(root / "docs") and doc not in reached:
            faults.append(f"{doc.relative_to(root)}: no way leads there from README.md")
        for target, heading in links(doc):
            if not target.exists():
                faults.append(f"{doc.relative_to(root)}: no such file: {os.path.relpath(target, root)}")
            elif heading and target.suffix == ".md" and heading not in headings(target):
                faults.append(f"{doc.relative_to(root)}: no such heading: {target.name}#{heading}")


def check_paths(root, faults):
    for doc in documents(root):
        for path in re.findall(r"`([\w./-]+)`", prose(doc)):
            if path.startswith(FOLDERS) and not (root / path).exists():
                faults.append(f"{doc.relative_to(root)}: no such file: {path}")


def check_named_pages(root, faults):
    """Pages that code, headers, tests and scripts name by their path exist."""
    for path in [p for folder in ("bench", "cuda", "debian", "examples", "include", "lib", "tests", "tools")
                 for p in sorted((root / folder).rglob("*"))] + [root / "meson.build"]:
        if path.suffix in (".md", ".pyc") or not path.is_file():
            continue
        for page in re.findall(r"(?<![\w/.-])(docs/[\w./-]+\.(?:md|svg|txt))", path.read_text(errors="replace")):
            if "NAME" not in page and not (root / page).exists():
                faults.append(f"{path.relative_to(root)}: no such file: {page}")


def check_cases(root, faults):
    cases = collections.defaultdict(set)
    for source in (root / "tests").rglob("*.c*"):
        cases[source.stem] |= set(re.findall(r"^T_(?:LONG_)?CASE\((\w+)", source.read_text(errors="replace"), flags=re.M))
    for doc in documents(root):
        for file, case in re.findall(r"(?<![\w./])(?:hosts/|proc/|unit/)?([a-z]\w*)\.([a-z]\w+)\b(?![\w.(])", doc.read_text()):
            if cases.get(file) and case not in cases[file] and case not in ("cc", "md", "py", "sh", "svg", "txt"):
                faults.append(f"{doc.relative_to(root)}: no such test case: {file}.{case}")


def rows(text):
    """First and other cells of the rows of a document's tables."""
    return [[cell.strip().strip("`") for cell in line.strip("| ").split(" | ")] for line in text.splitlines() if line.startswith("| ")]


def defined(root, faults):
    """Every id there is."""
    guarantees = [row[0] for row in rows((root / "README.md").read_text()) if re.fullmatch(r"C\d+", row[0])]
    modes = [row[0] for row in rows((root / "docs/explain/failures-elsewhere.md").read_text()) if re.fullmatch(r"[TG]\d+", row[0])]
    for where, found, letter, last in (("README.md", guarantees, "C", 20), ("docs/explain/failures-elsewhere.md", modes, "T", 27), ("docs/explain/failures-elsewhere.md", modes, "G", 20)):
        here = [name for name in found if name[0] == letter]
        if here != [f"{letter}{i}" for i in range(1, last + 1)]:
            faults.append(f"{where}: ids {letter}1 to {letter}{last} are not there once each and in order: {' '.join(here)}")
    return guarantees + modes


def ids(comment):
    """What a comment names: in brackets, or at its beginning before a colon."""
    tagged = " ".join(re.findall(r"\[((?:[CTG]\d+[ ,]*)+)\]", comment))
    begin = re.match(r"\W*((?:[CTG]\d+[ ,]*)+):", comment)
    return set(ID.findall(tagged + " " + (begin.group(1) if begin else "")))


def tagged_in_c(path, text):
    """Id and test of each comment above a case, or above a function that makes cases."""
    for m in re.finditer(r"/\*(?:(?!\*/).)*\*/\n(?=([^\n]*))", text, flags=re.S):
        case = CASE.match(m.group(1))
        function = re.match(r"[a-z][\w \*]*?\b(\w+)\(", m.group(1))
        for name in set(ID.findall(m.group())) if case else ids(m.group()):
            yield name, f"{path}.{case.group(1)}" if case else f"{path}.{function.group(1)}" if function else path


def tagged_in_python(path, text):
    for m in re.finditer(r"((?:^[ \t]*#[^\n]*\n)+)(?=([^\n]*))", text, flags=re.M):
        function = re.match(r"\s*(?:async )?def (\w+)", m.group(2))
        for name in set(ID.findall(m.group(1))) if function and function.group(1).startswith("test") else ids(re.sub(r"(?m)^[ \t]*# ?", "", m.group(1))):
            yield name, f"{path}.{function.group(1)}" if function else path


def check_ids(root, faults):
    shown, known = collections.defaultdict(list), defined(root, faults)
    for folder in ("tests", "bench"):
        for source in sorted((root / folder).rglob("*")):
            path = source.relative_to(root).with_suffix("").as_posix().removeprefix("tests/")
            if source.suffix in (".c", ".cc"):
                found = tagged_in_c(path, source.read_text())
            elif source.suffix == ".py":
                found = tagged_in_python(path, source.read_text())
            else:
                continue
            for name, test in found:
                if test not in shown[name]:
                    shown[name].append(test)
    for name in known:
        print(f"{name}: {', '.join(shown[name]) or ('needs a GPU' if name in NEED_A_GPU else 'NO TEST')}")
        if not shown[name] and name not in NEED_A_GPU:
            faults.append(f"no test names {name} in the comment above a case")
    for name in sorted(set(shown) - set(known)):
        if shown[name]:
            faults.append(f"{shown[name][0]} names {name}, which no document defines")
    for header in (root / "include").rglob("*.h"):
        for name in sorted(ids(header.read_text()) - set(known)):
            faults.append(f"{header.name} names {name}, which no document defines")


def exports(library):
    listed = subprocess.run(["nm", "-D", "--defined-only", "-P", str(library)], capture_output=True, text=True, check=True).stdout
    return sorted({line.split()[0].split("@")[0] for line in listed.splitlines() if line.startswith("gpud_")})


def variables(root):
    """Environment variables by name, each with a file that uses it."""
    found = {}
    for folder in ("lib", "tools", "tests", "bench", "examples"):
        for source in sorted((root / folder).rglob("*")):
            if source.suffix not in (".c", ".h", ".cc", ".py", ".sh") or source.name in ("check_docs.py", "make_reference.py"):
                continue
            text = source.read_text()
            names = re.findall(r'getenv\("(\w+)"', text) if folder == "lib" else []
            names += re.findall(r'"(GPUD_[A-Z_]+)=?"', text) if folder == "lib" else []
            names += re.findall(r'(?:[gs]etenv\(|environ(?:\.get\(|\[))"(GPUD_\w+)"', text)
            names += re.findall(r"^\s*(GPUD_[A-Z_]+)=", text, flags=re.M) if source.suffix == ".sh" else []
            for name in names:
                found.setdefault(name, source.relative_to(root))
    return found


def check_reference(root, build, faults):
    pages = {page.name: page.read_text() for page in (root / "docs/reference").glob("*.md")}
    everything = "\n".join(pages.values())
    names = exports(build / "lib/libgpudispatch.so")
    if not names:
        faults.append("the library exports nothing")
    for name in names:
        if f"### `{name}`" not in everything:
            faults.append(f"docs/reference: no section for the function {name}")
    for header, text in {p.name: p.read_text() for p in (root / "include/gpudispatch").glob("*.h")}.items():
        for item in reference.items(text)[1]:
            if item.kind == "map":
                page = {"GPUD_ERROR_MAP": "errors.md", "GPUD_STATS_MAP": "counters.md"}.get(item.name, "events.md")
                for row in reference.entries(item):
                    name = reference.MAPS[item.name][0] + row[0]
                    if f"| `{name}` |" not in pages.get(page, ""):
                        faults.append(f"docs/reference/{page}: no row for {name} of {header}")
    documented = {row[0] for row in rows(pages.get("environment.md", ""))}
    used = variables(root)
    for name, where in sorted(used.items()):
        if name not in documented:
            faults.append(f"docs/reference/environment.md: no row for {name}, which {where} uses")
    for name in sorted(n for n in documented if n.startswith("GPUD_") and n not in used):
        faults.append(f"docs/reference/environment.md: nothing uses {name}")


def check_defaults(root, faults):
    """Brackets in the header, the code, and the table of limits say the same."""
    coded = reference.coded_defaults(root)
    given = {name: bracket for name, bracket, _ in reference.option_defaults(root)}
    for name, value in coded.items():
        bracket = given.get(name)
        if bracket is None:
            faults.append(f"options.c gives a default to {name}, which dispatch.h does not have")
        elif bracket and reference.as_number(bracket) is not None and isinstance(value, int):
            if reference.as_number(bracket) != value and name not in reference.WORKED_OUT:
                faults.append(f"dispatch.h says [{bracket}] for {name}, options.c takes {value}")
        elif bracket and isinstance(value, str) and value not in (bracket, "UINT32_MAX"):
            faults.append(f"dispatch.h says [{bracket}] for {name}, options.c takes {value}")
        elif not bracket and value and name not in reference.WORKED_OUT:
            faults.append(f"dispatch.h has no default in brackets for {name}, options.c takes {value}")
    for name, bracket in given.items():
        if bracket and name not in coded and name not in reference.WORKED_OUT:
            faults.append(f"options.c gives no default to {name}, dispatch.h says [{bracket}]")
    for name, value in DECIDED.items():
        if coded.get(name) != (reference.NEVER if value is None else value):
            faults.append(f"options.c takes {coded.get(name)} for {name}, decided is {value}")
    for name, (words, where, code) in ELSEWHERE.items():
        if words not in given[name] or code not in (root / where).read_text():
            faults.append(f"the default of {name}: dispatch.h does not say \"{words}\", or {where} not: {code}")
    for where, code in CONSTANTS:
        if code not in (root / where).read_text():
            faults.append(f"{where} does not say: {code}")
    tasks = (root / "lib/host/tasks.c").read_text()
    for name, bracket, _ in reference.task_defaults(root):
        option = re.fullmatch(r"option (\w+)", bracket)
        wanted = rf"desc->{name} \? desc->{name} : " + (rf"d->set\.{option.group(1)}\b" if option else re.escape(bracket))
        if bracket not in ("", "0") and not re.search(wanted, tasks):
            faults.append(f"dispatch.h says [{bracket}] for a task's {name}, tasks.c does not do that")
    table = {row[0]: row[1] for row in rows((root / "docs/explain/time-limits.md").read_text()) if len(row) > 2}
    for name in ("setup_limit", "grace", "cleanup_limit", "close_limit", "kill_limit"):
        if table.get(name) != given[name]:
            faults.append(f"docs/explain/time-limits.md says {table.get(name)} for {name}, dispatch.h [{given[name]}]")


def numbers(text):
    """"13, 37-38" as a set; other words are passed over."""
    return {n for first, last in re.findall(r"\b(\d+)(?:-(\d+))?\b", text) for n in range(int(first), int(last or first) + 1)}


def check_xids(root, faults):
    code = (root / "lib/device/xid.c").read_text()
    words = {name: word for name, word in re.findall(r'\[GPI_XID_(\w+)\] = "(\w+)"', code)}
    wanted = {word: set() for word in words.values()}
    for first, last, name in re.findall(r"^    X\((\d+), (\d+), (\w+),", code, flags=re.M):
        wanted[words[name]] |= set(range(int(first), int(last) + 1))
    told = {row[0]: numbers(row[2]) for row in rows((root / "docs/explain/devices.md").read_text()) if row[0] in wanted and len(row) > 2}
    for word in sorted(wanted):
        if told.get(word) != wanted[word]:
            faults.append(f"docs/explain/devices.md: XIDs that are {word}: {sorted(told.get(word, set()) ^ wanted[word])} differ from lib/device/xid.c")


def check_figures(root, faults):
    """docs/performance.md has no figure for a key of the benchmark that design/0002 has not recorded."""
    recorded = {row[0]: set(re.findall(r"[\d.]*\d", " ".join(row[1:]))) for row in rows((root / "docs/design/0002-speed.md").read_text())}
    shown = [row for row in rows((root / "docs/performance.md").read_text())
             if len(row) == 5 and re.fullmatch(r"\w+_\w+", row[4])]
    for row in shown:
        for figure in re.findall(r"[\d.]*\d", " ".join(row[1:4])):
            if figure not in recorded.get(row[4], ()):
                faults.append(f"docs/performance.md: {figure} for {row[4]} is not recorded in "
                              "docs/design/0002-speed.md")
    if not shown:
        faults.append("docs/performance.md has no figures")


def check_commands(root, build, faults):
    """Files and Meson's options that README's command lines name."""
    text = prose(root / "README.md")
    options = (root / "meson_options.txt").read_text()
    for line in re.findall(r"^    (\S.*)$", text, flags=re.M):
        words = shlex.split(line, comments=True)
        if words[0] == "sh" and not (root / words[1]).exists():
            faults.append(f"README.md: no such script: {line}")
        elif words[0] not in ("sh", "meson", "ninja", "ldconfig", "cc"):
            faults.append(f"README.md: a command that nobody checks: {line}")
    for name in re.findall(r"-D(\w+)=", text):
        if f"option('{name}'" not in options:
            faults.append(f"README.md: no such option: {name}")
    for path in re.findall(r"`[^`]*\bbuild/([\w./]+)[^`]*`", text):
        if not (build / path).exists():
            faults.append(f"README.md: the build makes no {path}")


def block(text, language):
    return re.search(rf"^```{language}\n(.*?)^```", text, flags=re.M | re.S).group(1)


def lines(text):
    return sorted(line.rstrip() for line in text.splitlines())


def check_program(root, build, faults):
    text = (root / "README.md").read_text()
    with tempfile.TemporaryDirectory() as scratch:
        source, program = pathlib.Path(scratch, "program.c"), pathlib.Path(scratch, "program")
        source.write_text(block(text, "c"))
        command = [os.environ.get("CC", "cc"), "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{root}/include",
                   str(source), "-o", str(program), f"-L{build}/lib", f"-Wl,-rpath,{build}/lib", "-lgpudispatch"]
        compiled = subprocess.run(command, capture_output=True, text=True)
        if compiled.returncode:
            faults.append("README.md: the program does not compile:\n" + compiled.stderr)
            return
        ran = subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
    if ran.returncode or lines(ran.stdout) != lines(block(text, "text")):
        faults.append(f"README.md: the program exits {ran.returncode} and prints:\n{ran.stdout}{ran.stderr}")


def main():
    args = [a for a in sys.argv[1:] if a != "--ids-only"]
    root = pathlib.Path(args[0] if args else pathlib.Path(__file__).parent.parent).resolve()
    build = pathlib.Path(args[1]).resolve() if len(args) > 1 else root / "build"
    faults = []
    check_ids(root, faults)
    if "--ids-only" not in sys.argv:
        check_links(root, faults)
        check_paths(root, faults)
        check_named_pages(root, faults)
        check_cases(root, faults)
        check_reference(root, build, faults)
        check_defaults(root, faults)
        check_xids(root, faults)
        check_figures(root, faults)
        check_commands(root, build, faults)
        check_program(root, build, faults)
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write(f"{'fail' if faults else 'pass'} docs/check\n")
    print("\n".join(faults) if faults else "the documents are in order")
    return 1 if faults else 0


sys.exit(main())
