#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the statements of the documents against the tree.

usage: check_docs.py [--ids-only] [ROOT [BUILD_DIRECTORY]]    (the tree this file is in; ROOT/build)

 - links to files and headings, paths in backticks below a folder of the tree, and test cases
   (FILE.CASE) exist;
 - pages that other files of the tree name by path exist;
 - each page of docs/ can be reached from README.md;
 - every error code, event kind, counter and environment variable is in docs/reference;
   tests/entries.py checks functions and options;
 - docs/reference/python.md has each name, parameter and default of the Python package;
 - defaults in the headers' brackets and in the tables are those of the code;
 - each id of a guarantee (C, docs/guarantees.md; Q, a line of a comment that begins with it in a
   header of queue/) and of a failure mode (T and G, docs/explain/failures-elsewhere.md) is named by
   a test, Q by one of tests/queue: anywhere in the comment above a case, or as "C6 C7: ..." or
   "[T7]" in a comment above another function; the list is printed;
 - the table of XIDs in docs/reference/devices.md is that of the code;
 - the figures of docs/performance.md are those that docs/design/0002-speed.md has recorded;
 - the questions of docs/testing.md lead to every how-to and to ten headings of troubleshooting;
 - scripts and targets in README's command lines exist.
"""
import collections
import os
import pathlib
import re
import shlex
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
from reference import defaults, headers, python

FOLDERS = ("include/", "lib/", "queue/", "tests/", "tools/", "docs/", "bench/", "examples/")
ID = re.compile(r"\b([CTGQV][1-9]\d?)\b")
CASE = re.compile(r"\s*(?:T_CASE|T_LONG_CASE)\((\w+)")
# Defaults as they were decided (0: none; None: never).  ELSEWHERE has those that no line of
# options.c holds alone, each with words of the header, a file, and text of that file.
SECOND = 10**9
DECIDED = {
    "queue_size": 1024, "max_attempts": 1, "max_batch": 1, "failures_in_a_row": 3,
    "devices_per_worker": 1, "setup_limit": 900 * SECOND, "task_limit": None, "expires": None,
    "stall_limit": None, "grace": 2 * SECOND, "cleanup_limit": 10 * SECOND,
    "close_limit": 30 * SECOND, "kill_limit": 10 * SECOND, "backoff": SECOND,
    "backoff_cap": 60 * SECOND, "retry_backoff": 0, "retry_backoff_cap": 60 * SECOND,
    "batch_wait": 0, "stop_limit": 60 * SECOND,
}
ELSEWHERE = {
    "devices": ("cpu:1", "lib/api/create.c", 'o->devices : "cpu:1"'),
    "payload_budget": ("a quarter of", "lib/api/options.c", "gpi_headroom() / 4"),
    "sent_ahead": ("below 0.5 ms", "lib/sched/place.c", "#define SHORT_RUN_NS 500000u"),
    "xid_rules": ("environment GPUD_XID_RULES", "lib/api/options.c", 'getenv("GPUD_XID_RULES")'),
    "setup_concurrency": ("all", "lib/api/options.c", "UINT32_MAX, UINT32_MAX"),
}
CONSTANTS = (("lib/host/slot.h", "#define GPI_TAIL_SIZE 8192u"),
             ("lib/wire/page.h", "#define GPI_INLINE_SIZE 4096u"),
             ("lib/host/patience.c", "gpi_spawner_patience = 10 * GPI_S;"),
             ("lib/host/patience.c", "gpi_driver_patience = 10 * GPI_S;"))
# First words of README's command lines; tests run the lines that install the Python package.
CHECKED_COMMANDS = ("sh", "meson", "ninja", "ldconfig", "cc")
INSTALLS_THE_PACKAGE = ("python3 -m venv env && . env/bin/activate", "pip install .")
# The guarantees of the queue, which headers of queue/ define one by one as they are built.
QUEUE = {f"Q{i}" for i in range(1, 13)}
VIEWS = {f"V{i}" for i in range(1, 10)}
# Nothing but a GPU can show these.
NEED_A_GPU = {"T15"}


def documents(root):
    return [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "bench").glob("*.md"),
            *(root / "examples").rglob("*.md")]


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
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)", prose(doc), flags=re.M)}


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
                path = os.path.relpath(target, root)
                faults.append(f"{doc.relative_to(root)}: no such file: {path}")
            elif heading and target.suffix == ".md" and heading not in headings(target):
                faults.append(f"{doc.relative_to(root)}: no such heading: {target.name}#{heading}")


def check_paths(root, faults):
    for doc in documents(root):
        for path in re.findall(r"`([\w./-]+)`", prose(doc)):
            # bench/README.md names its own files, such as queue/run.h.
            if path.startswith(FOLDERS) and not any((top / path).exists()
                                                    for top in (root, doc.parent)):
                faults.append(f"{doc.relative_to(root)}: no such file: {path}")


def check_named_pages(root, faults):
    """Pages that code, headers, tests and scripts name by their path exist."""
    folders = ("bench", "cuda", "debian", "examples", "include", "lib", "queue", "tests", "tools")
    paths = [path for folder in folders for path in sorted((root / folder).rglob("*"))]
    for path in paths + [root / "meson.build"]:
        if path.suffix in (".md", ".pyc") or not path.is_file():
            continue
        text = path.read_text(errors="replace")
        for page in re.findall(r"(?<![\w/.-])(docs/[\w./-]+\.(?:md|svg|txt))", text):
            if "NAME" not in page and not (root / page).exists():
                faults.append(f"{path.relative_to(root)}: no such file: {page}")


def check_cases(root, faults):
    cases = collections.defaultdict(set)
    for source in (root / "tests").rglob("*.c*"):
        text = source.read_text(errors="replace")
        cases[source.stem] |= set(re.findall(r"^T_(?:LONG_)?CASE\((\w+)", text, flags=re.M))
    named = re.compile(r"(?<![\w./])(?:hosts/|proc/|unit/)?([a-z]\w*)\.([a-z]\w+)\b(?![\w.(])")
    suffixes = ("cc", "csv", "db", "html", "json", "jsonl", "md", "prom", "py", "sh", "svg", "txt")
    for doc in documents(root):
        for file, case in named.findall(doc.read_text()):
            if cases.get(file) and case not in cases[file] and case not in suffixes:
                faults.append(f"{doc.relative_to(root)}: no such test case: {file}.{case}")


def rows(text):
    """First and other cells of the rows of a document's tables."""
    return [[cell.strip().strip("`") for cell in line.strip("| ").split(" | ")]
            for line in text.splitlines() if line.startswith("| ")]


def defined(root, faults):
    """Every id there is."""
    guarantees = re.findall(r"^## (C\d+): ", (root / "docs/guarantees.md").read_text(), flags=re.M)
    modes = re.findall(r"^- \*\*([TG]\d+)\.\*\*",
                       (root / "docs/explain/failures-elsewhere.md").read_text(), flags=re.M)
    for where, found, letter, last in (("docs/guarantees.md", guarantees, "C", 20),
                                       ("docs/explain/failures-elsewhere.md", modes, "T", 27),
                                       ("docs/explain/failures-elsewhere.md", modes, "G", 20)):
        here = [name for name in found if name[0] == letter]
        if here != [f"{letter}{i}" for i in range(1, last + 1)]:
            faults.append(f"{where}: ids {letter}1 to {letter}{last} are not there once each and in"
                          f" order: {' '.join(here)}")
    return (guarantees + modes + defined_by_headers(root, "queue", QUEUE, faults)
            + defined_by_headers(root, "view", VIEWS, faults))


def defined_by_headers(root, folder, ids_there, faults):
    """The ids that headers of a folder define, each of which one header defines."""
    headers_of, letter = collections.defaultdict(list), min(ids_there)[0]
    for header in sorted((root / folder).rglob("*.h")):
        text, path = header.read_text(), header.relative_to(root).as_posix()
        for name in re.findall(rf"^ \* ({letter}\d+) +\S", text, flags=re.M):
            headers_of[name].append(path)
        for name in sorted(set(re.findall(rf"\b{letter}\d+\b", text)) - ids_there):
            faults.append(f"{path} names {name}, which is none of {folder}/")
    for name, paths in headers_of.items():
        if len(paths) > 1:
            faults.append(f"{name} is defined in {' and in '.join(paths)}")
    return sorted(headers_of, key=lambda name: int(name[1:]))


def ids(comment):
    """What a comment names: in brackets, or at its beginning before a colon."""
    tagged = " ".join(re.findall(r"\[((?:[CTGQV]\d+[ ,]*)+)\]", comment))
    begin = re.match(r"\W*((?:[CTGQV]\d+[ ,]*)+):", comment)
    return set(ID.findall(tagged + " " + (begin.group(1) if begin else "")))


def tagged_in_c(path, text):
    """Id and test of each comment above a case, or above a function that makes cases."""
    for m in re.finditer(r"/\*(?:(?!\*/).)*\*/\n(?=([^\n]*))", text, flags=re.S):
        case = CASE.match(m.group(1))
        function = re.match(r"[a-z][\w \*]*?\b(\w+)\(", m.group(1))
        place = case or function
        for name in set(ID.findall(m.group())) if case else ids(m.group()):
            yield name, f"{path}.{place.group(1)}" if place else path


def tagged_in_python(path, text):
    for m in re.finditer(r"((?:^[ \t]*#[^\n]*\n)+)(?=([^\n]*))", text, flags=re.M):
        function = re.match(r"\s*(?:async )?def (\w+)", m.group(2))
        if function and function.group(1).startswith("test"):
            names = set(ID.findall(m.group(1)))
        else:
            names = ids(re.sub(r"(?m)^[ \t]*# ?", "", m.group(1)))
        for name in names:
            yield name, f"{path}.{function.group(1)}" if function else path
    for m in re.finditer(r'^def (\w+)\([^)]*\):\n +"""(.*?)"""', text, flags=re.M | re.S):
        for name in ids(m.group(2)) & VIEWS:
            yield name, f"{path}.{m.group(1)}"


def check_ids(root, faults):
    shown, known = collections.defaultdict(list), defined(root, faults)
    for folder in ("tests", "bench"):
        for source in sorted((root / folder).rglob("*")):
            path = source.relative_to(root).with_suffix("").as_posix().removeprefix("tests/")
            if source.suffix in (".c", ".cc"):
                found = tagged_in_c(path, source.read_text())
            elif source.suffix == ".py":
                found = tagged_in_python(path, source.read_text())
            elif path.startswith("sched/") and source.is_file():  # a script: comment or brackets
                found = [(name, path) for name in ids(source.read_text())]
            else:
                continue
            for name, test in found:
                folders = {"Q": ("queue/",), "V": ("queue/", "view/")}.get(name[0], ("",))
                if not path.startswith(folders):
                    continue
                if test not in shown[name]:
                    shown[name].append(test)
    for name in known:
        none = "needs a GPU" if name in NEED_A_GPU else "NO TEST"
        print(f"{name}: {', '.join(shown[name]) or none}")
        if not shown[name] and name not in NEED_A_GPU:
            faults.append(f"no test names {name} in the comment above a case")
    for name in sorted(set(shown) - set(known) - QUEUE - VIEWS):
        if shown[name]:
            faults.append(f"{shown[name][0]} names {name}, which no document defines")
    for header in (root / "include").rglob("*.h"):
        for name in sorted(ids(header.read_text()) - set(known)):
            faults.append(f"{header.name} names {name}, which no document defines")


def variables(root):
    """Environment variables by name, each with a file that uses it."""
    found = {}
    for folder in ("lib", "queue", "tools", "tests", "bench", "examples"):
        for source in sorted((root / folder).rglob("*")):
            if source.suffix not in (".c", ".h", ".cc", ".py", ".sh"):
                continue
            if source.name == "check_docs.py" or source.parent.name == "reference":
                continue
            text = source.read_text()
            product = folder in ("lib", "queue")
            names = re.findall(r'getenv\("(\w+)"', text) if product else []
            names += re.findall(r'"(GPUD_[A-Z_]+)=?"', text) if product else []
            names += re.findall(r'"(GPUDISPATCH_[A-Z_]+)=', text) if folder == "queue" else []
            names += re.findall(r'(?:[gs]etenv\(|environ(?:\.get\(|\[))"(GPUD_\w+)"', text)
            if source.suffix == ".sh":
                names += re.findall(r"^\s*(GPUD_[A-Z_]+)=", text, flags=re.M)
            for name in names:
                found.setdefault(name, source.relative_to(root))
    for source in sorted((root / "python/gpudispatch").rglob("*.py")):
        for name in re.findall(r'environ(?:\.get\(|\[)"(GPUD\w+)"', source.read_text()):
            found.setdefault(name, source.relative_to(root))
    return found


def check_reference(root, faults):
    pages = {page.name: page.read_text() for page in (root / "docs/reference").glob("*.md")}
    page_of = {"GPUD_ERROR_MAP": "errors.md", "GPUD_STATS_MAP": "counters.md"}
    for item in headers.Tree(root).items.values():
        if item.kind == "map":
            page = page_of.get(item.name, "events.md")
            text = pages.get(page, "")
            for row in headers.entries(item):
                name = headers.MAPS[item.name][0] + row[0]
                if not re.search(rf"^(\| `{name}` \||- `{name}`:)", text, flags=re.M):
                    faults.append(f"docs/reference/{page}: no row for {name} of {item.header}.h")
    documented = {row[0] for row in rows(pages.get("environment.md", ""))}
    used = variables(root)
    for name, where in sorted(used.items()):
        if name not in documented:
            faults.append(f"docs/reference/environment.md: no row for {name}, which {where} uses")
    for name in sorted(n for n in documented if n.startswith("GPUD") and n not in used):
        faults.append(f"docs/reference/environment.md: nothing uses {name}")


def check_defaults(root, faults):
    """Brackets in the header, the code, and the table of limits say the same."""
    tree, coded = headers.Tree(root), defaults.coded(root)
    given = {name: bracket for name, bracket, _ in defaults.of_options(tree)}
    for name, value in coded.items():
        bracket = given.get(name)
        if bracket is None:
            faults.append(f"options.c gives a default to {name}, which dispatch.h does not have")
        elif bracket and defaults.as_number(bracket) is not None and isinstance(value, int):
            if defaults.as_number(bracket) != value and name not in defaults.WORKED_OUT:
                faults.append(f"dispatch.h says [{bracket}] for {name}, options.c takes {value}")
        elif bracket and isinstance(value, str) and value not in (bracket, "UINT32_MAX"):
            faults.append(f"dispatch.h says [{bracket}] for {name}, options.c takes {value}")
        elif not bracket and value and name not in defaults.WORKED_OUT:
            faults.append(f"dispatch.h has no default in brackets for {name}, options.c takes"
                          f" {value}")
    for name, bracket in given.items():
        if bracket and name not in coded and name not in defaults.WORKED_OUT:
            faults.append(f"options.c gives no default to {name}, dispatch.h says [{bracket}]")
    for name, value in DECIDED.items():
        if coded.get(name) != (defaults.NEVER if value is None else value):
            faults.append(f"options.c takes {coded.get(name)} for {name}, decided is {value}")
    for name, (words, where, code) in ELSEWHERE.items():
        if words not in given[name] or code not in (root / where).read_text():
            faults.append(f"the default of {name}: dispatch.h does not say \"{words}\", or {where}"
                          f" not: {code}")
    for where, code in CONSTANTS:
        if code not in (root / where).read_text():
            faults.append(f"{where} does not say: {code}")
    tasks = (root / "lib/host/submit.c").read_text()
    for name, bracket, _ in defaults.of_tasks(tree):
        option = re.fullmatch(r"option (\w+)", bracket)
        default = rf"set->{option.group(1)}\b" if option else re.escape(bracket)
        wanted = rf"desc->{name} \? desc->{name} : " + default
        if bracket not in ("", "0") and not re.search(wanted, tasks):
            faults.append(f"dispatch.h says [{bracket}] for a task's {name}, submit.c does not do"
                          " that")
    limits = (root / "docs/explain/time-limits.md").read_text()
    table = {row[0]: row[1] for row in rows(limits) if len(row) > 2}
    for name in ("setup_limit", "grace", "cleanup_limit", "close_limit", "kill_limit"):
        if table.get(name) != given[name]:
            faults.append(f"docs/explain/time-limits.md says {table.get(name)} for {name},"
                          f" dispatch.h [{given[name]}]")


def numbers(text):
    """"13, 37-38" as a set; other words are passed over."""
    return {n for first, last in re.findall(r"\b(\d+)(?:-(\d+))?\b", text)
            for n in range(int(first), int(last or first) + 1)}


def check_xids(root, faults):
    code = (root / "lib/device/xid.c").read_text()
    words = {name: word for name, word in re.findall(r'\[GPI_XID_(\w+)\] = "(\w+)"', code)}
    wanted = {word: set() for word in words.values()}
    for first, last, name in re.findall(r"^    X\((\d+), (\d+), (\w+),", code, flags=re.M):
        wanted[words[name]] |= set(range(int(first), int(last) + 1))
    page = (root / "docs/reference/devices.md").read_text()
    told = {row[0]: numbers(row[1]) for row in rows(page) if row[0] in wanted and len(row) > 1}
    for word in sorted(wanted):
        if told.get(word) != wanted[word]:
            odd = sorted(told.get(word, set()) ^ wanted[word])
            faults.append(f"docs/reference/devices.md: XIDs that are {word}: {odd} differ from"
                          " lib/device/xid.c")


def check_figures(root, faults):
    """docs/performance.md has no figure for a key of the benchmark that design/0002 has not
    recorded."""
    recorded = {row[0]: set(re.findall(r"[\d.]*\d", " ".join(row[1:])))
                for row in rows((root / "docs/design/0002-speed.md").read_text())}
    shown = [row for row in rows((root / "docs/performance.md").read_text())
             if re.fullmatch(r"\w+_\w+", row[-1])]
    for *cells, key in shown:
        for figure in re.findall(r"[\d.]*\d", " ".join(cells[1:])):
            if figure not in recorded.get(key, ()):
                faults.append(f"docs/performance.md: {figure} for {key} is not recorded in"
                              " docs/design/0002-speed.md")
    if not shown:
        faults.append("docs/performance.md has no figures")


def check_questions(root, faults):
    """The questions of docs/testing.md lead to every how-to and to ten headings of
    troubleshooting."""
    text = (root / "docs/testing.md").read_text().partition("\n## Questions and their pages\n")[2]
    asked = [row for row in rows(text) if len(row) > 1 and row[0] != "question"]
    targets = [re.search(r"\]\(([^)#]+)(#[^)]+)?\)", row[1]) for row in asked]
    if None in targets:
        faults.append("docs/testing.md: a question without a page")
        return
    recipes = sorted(t.group(1) for t in targets if t.group(1).startswith("howto/"))
    if recipes != sorted(f"howto/{p.name}" for p in (root / "docs/howto").glob("*.md")):
        faults.append("docs/testing.md: the questions do not lead to each how-to once")
    texts = {t.group(2) for t in targets if t.group(1) == "troubleshooting.md" and t.group(2)}
    if len(texts) != 10 or len(asked) != len(recipes) + len(texts):
        faults.append(f"docs/testing.md: {len(asked)} questions, {len(texts)} headings of"
                      " troubleshooting")


def check_commands(root, build, faults):
    """Files and Meson's options that README's command lines name."""
    text = prose(root / "README.md")
    options = (root / "meson_options.txt").read_text()
    for line in re.findall(r"^    (\S.*)$", text, flags=re.M):
        words = shlex.split(line, comments=True)
        if words[0] == "sh" and not (root / words[1]).exists():
            faults.append(f"README.md: no such script: {line}")
        elif words[0] not in CHECKED_COMMANDS and line not in INSTALLS_THE_PACKAGE:
            faults.append(f"README.md: a command that nobody checks: {line}")
    for name in re.findall(r"-D(\w+)=", text):
        if f"option('{name}'" not in options:
            faults.append(f"README.md: no such option: {name}")
    for path in re.findall(r"`[^`]*\bbuild/([\w./]+)[^`]*`", text):
        if not (build / path).exists():
            faults.append(f"README.md: the build makes no {path}")


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
        check_reference(root, faults)
        check_defaults(root, faults)
        python.check(root, faults)
        check_xids(root, faults)
        check_figures(root, faults)
        check_questions(root, faults)
        check_commands(root, build, faults)
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write(f"{'fail' if faults else 'pass'} docs/check\n")
    print("\n".join(faults) if faults else "the documents are in order")
    return 1 if faults else 0


sys.exit(main())
