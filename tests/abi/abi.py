#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The promise that a program which was compiled yesterday runs with the library of today.

usage: abi.py check ROOT SHARED_LIBRARY      abi.py update ROOT SHARED_LIBRARY

 - each public header alone, and all together, once and twice, compile without a warning in C99, C11
   and C++17, with gcc and with clang where that is installed, and include stddef.h, stdint.h and
   each other only;
 - the shared library exports exactly the functions that the headers declare and that
   tests/abi/symbols.txt lists, under the version that lib/gpudispatch.map names;
 - each struct's size and offsets and each enum's and macro's value are those of
   tests/abi/layout.txt;
 - the shared library needs no library but those of the C library;
 - struct_size comes first, fields lie without a hole, and each ..._INIT sets struct_size and
   nothing else.

update writes the two tables anew.  It prints each change that is not a mere addition; such a change
needs another soname after the first release.  tests/abi/update.sh is the same in one command.

The table is of machines with 8-byte pointers, little endian.
"""
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LANGUAGES = [("c99", "c"), ("c11", "c"), ("c++17", "cpp")]
# Each compiler with its package.
COMPILERS = {"c": {"gcc": "gcc", "clang": "clang"}, "cpp": {"g++": "g++", "clang++": "clang"}}
WARNINGS = ["-pedantic", "-Wall", "-Wextra", "-Werror"]
# Fields, beside struct_size, that an initialiser sets to the size of another record.
OTHER_SIZES = {"GPUD_CALLBACKS_INIT": {"task_size": "gpud_task_desc"}}

FIELD_TYPES = re.compile(r"^(u?int(8|16|32|64)_t|double|char|size_t)$")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
# Said per compiler and build, not part of the layout.
NOT_VALUES = {"GPUD_API", "GPUD_PLUGIN_EXPORT", "GPUD_BUILDING"}


def headers(root):
    return sorted(p.name for p in (root / "include/gpudispatch").glob("*.h"))


def run(command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True)


def umbrella(root):
    return "".join(f"#include <gpudispatch/{name}>\n" for name in headers(root))


# ---- headers ----

def check_headers(root, faults, results):
    """Each header alone is a translation unit; one call of a compiler takes them all."""
    bodies = {name: f"#include <gpudispatch/{name}>\n" for name in headers(root)}
    bodies["all.h"] = umbrella(root)
    bodies["twice.h"] = umbrella(root) * 2
    with tempfile.TemporaryDirectory() as scratch:
        for standard, suffix in LANGUAGES:
            sources = [pathlib.Path(scratch, f"{name}.{suffix}") for name in bodies]
            for source, body in zip(sources, bodies.values()):
                source.write_text(body + "extern int used;\nint used = 0;\n")
            for compiler, package in COMPILERS[suffix].items():
                case = f"abi/headers {standard} {compiler}"
                if not shutil.which(compiler):
                    results.append(f"skip {case}: needs the package {package}")
                    continue
                r = run([compiler, f"-std={standard}", *WARNINGS, "-fsyntax-only",
                         f"-I{root}/include", *map(str, sources)])
                results.append(f"{'fail' if r.returncode else 'pass'} {case}")
                if r.returncode:
                    faults.append(f"headers do not compile with {compiler} -std={standard}:\n"
                                  f"{r.stderr}")
    for name in headers(root):
        text = (root / "include/gpudispatch" / name).read_text()
        for found in re.findall(r"^\s*#\s*include\s*[<\"]([^>\"]+)", text, re.M):
            if found not in {"stddef.h", "stdint.h", *headers(root)}:
                faults.append(f"{name} includes {found}")


# ---- symbols ----

def declared(root):
    names = set()
    for name in headers(root):
        text = COMMENT.sub("", (root / "include/gpudispatch" / name).read_text())
        names |= set(re.findall(r"^GPUD_API\b[^;(]*?\b(gpud_\w+)\s*\(", text, re.M))
    return names


def exported(root, library):
    script = COMMENT.sub("", (root / "lib/gpudispatch.map").read_text())
    version = re.match(r"\s*(\w[\w.]*)\s*{", script).group(1)
    names, faults = set(), []
    listed = subprocess.check_output(
        ["nm", "-D", "--defined-only", "--with-symbol-versions", library], text=True)
    for line in listed.splitlines():
        kind, name = line.split()[-2:]
        if kind == "A":
            continue
        if re.match(r"_*(asan|tsan|ubsan|odr_asan|gcov|llvm|sanitizer)"
                    r"|_(init|fini|edata|end)\b|__bss_start", name):
            continue
        plain, _, its = name.partition("@")
        names.add(plain)
        if its.lstrip("@") != version:
            faults.append(f"{plain} is exported under {its.lstrip('@') or 'no version'},"
                          f" not {version}")
    return names, faults


def differences(what, wanted, found):
    return ([f"{what}: {n} is missing" for n in sorted(wanted - found)]
            + [f"{what}: {n} is new" for n in sorted(found - wanted)])


def check_symbols(root, library, faults):
    names, bad = exported(root, library)
    faults += bad
    faults += differences("exported, against what the headers declare", declared(root), names)
    faults += differences("exported, against tests/abi/symbols.txt",
                          set((root / "tests/abi/symbols.txt").read_text().split()), names)


# ---- layout ----

@functools.cache
def preprocessed(root):
    out = subprocess.run(["gcc", "-std=c11", "-E", "-P", f"-I{root}/include", "-"],
                         input=umbrella(root), capture_output=True, text=True, check=True).stdout
    return re.sub(r"__attribute__\s*\(\(.*?\)\)", "", out)


def fields_of(body):
    """[(name, type)]: our regular style is one declarator in each declaration."""
    fields = []
    for declaration in filter(None, map(str.strip, body.split(";"))):
        pointer = re.match(r"(.*)\(\s*\*\s*(\w+)\s*\)\s*\(.*\)$", declaration, re.S)
        if pointer:
            fields.append((pointer.group(2), "pointer"))
            continue
        m = re.match(r"(.*?)(\w+)\s*((?:\[[^]]*\])*)$", declaration, re.S)
        kind = " ".join(m.group(1).split())
        fields.append((m.group(2), "pointer" if "*" in kind else kind))
    return fields


def structs(root):
    text = preprocessed(root)
    return {name: fields_of(body)
            for name, body in re.findall(r"\bstruct (gpud_\w+)\s*{(.*?)}\s*;", text, re.S)}


def enums(root):
    text = preprocessed(root)
    return {name: re.findall(r"\b(GPUD_\w+)\s*(?:=|,|$)", body)
            for name, body in re.findall(r"\benum (gpud_\w+)\s*{(.*?)}\s*;", text, re.S)}


@functools.cache
def macros(root):
    out = subprocess.run(["gcc", "-std=c11", "-dM", "-E", f"-I{root}/include", "-"],
                         input=umbrella(root), capture_output=True, text=True, check=True).stdout
    plain = dict(re.findall(r"^#define (GPUD_\w+) +(.*)$", out, re.M))
    inits = {n for n in plain if n.endswith("_INIT")}
    values = sorted(n for n, text in plain.items()
                    if n not in inits | NOT_VALUES and "__attribute__" not in text)
    return values, sorted(inits)


def initialised(root, macro):
    """GPUD_TASK_DESC_INIT is of struct gpud_task_desc."""
    name = macro[: -len("_INIT")].lower()
    return name if name in structs(root) else None


def measuring_program(root):
    lines = [umbrella(root), "#include <stdio.h>", "#include <string.h>", "int main(void)", "{"]
    for name, fields in sorted(structs(root).items()):
        lines.append(f'printf("struct {name} %zu\\n", sizeof(struct {name}));')
        for field, kind in fields:
            lines.append(f'printf("field {name}.{field} %zu %zu {kind.replace(" ", "_")}\\n", '
                         f'offsetof(struct {name}, {field}), '
                         f'sizeof(((struct {name} *)0)->{field}));')
    for name, values in sorted(enums(root).items()):
        lines.append(f'printf("enum {name} %zu\\n", sizeof(enum {name}));')
        lines += [f'printf("value {v} %lld\\n", (long long){v});' for v in values]
    for name in macros(root)[0]:
        lines.append(f'printf("macro {name} %llu\\n", (unsigned long long)({name}));')
    for macro in macros(root)[1]:
        name = initialised(root, macro)
        more = "".join(f" zero.{field} = sizeof(struct {of});"
                       for field, of in OTHER_SIZES.get(macro, {}).items())
        lines.append(f'{{ struct {name} x = {macro}, zero; memset(&zero, 0, sizeof zero); '
                     f'zero.struct_size = sizeof zero;{more}\n  printf("init {macro} %s\\n", '
                     'memcmp(&x, &zero, sizeof x) ? "bad" : "good"); }')
    return "\n".join([*lines, "return 0;", "}", ""])


def layout(root):
    with tempfile.TemporaryDirectory() as scratch:
        source, program = pathlib.Path(scratch, "measure.c"), pathlib.Path(scratch, "measure")
        source.write_text(measuring_program(root))
        subprocess.run(["gcc", "-std=c11", f"-I{root}/include", str(source), "-o", str(program)],
                       check=True)
        return subprocess.check_output([str(program)], text=True).splitlines()


def check_rules(root, table, faults):
    ends, sizes = {}, {}
    for line in table:
        words = line.split()
        if words[0] == "struct":
            sizes[words[1]] = int(words[2])
        elif words[0] == "field":
            name, field = words[1].split(".")
            at, size = int(words[2]), int(words[3])
            if at == 0 and field != "struct_size":
                faults.append(f"struct {name} begins with {field}, not with struct_size")
            if at != ends.get(name, 0):
                faults.append(f"struct {name} has a hole of {at - ends.get(name, 0)} bytes before"
                              f" {field}")
            if words[4] != "pointer" and not FIELD_TYPES.match(words[4]):
                faults.append(f"struct {name}: {field} is {words[4]}, which is not of one width"
                              " everywhere")
            ends[name] = at + size
        elif words[0] == "init" and words[2] != "good":
            faults.append(f"{words[1]} does not set struct_size and zeros")
    faults += [f"struct {n} ends in a hole of {size - ends[n]} bytes"
               for n, size in sizes.items() if ends.get(n) != size]


def check_regular(root, faults):
    """What this script cannot read would not be checked."""
    text = "".join(COMMENT.sub("", (root / "include/gpudispatch" / n).read_text())
                   for n in headers(root))
    for kind, known in (("struct", structs(root)), ("enum", enums(root))):
        for name in set(re.findall(rf"\b{kind} (gpud_\w+)\s*{{", text)) - set(known):
            faults.append(f"{kind} {name} is not in the style that tests/abi/abi.py reads")
    for macro in macros(root)[1]:
        if not initialised(root, macro):
            faults.append(f"{macro} is of no struct")


def key(line):
    return tuple(line.split()[:2])


def compare(old, new):
    """What changed: (breaking, added).  A struct may grow at its end, a COUNT may rise."""
    before, after = {key(x): x for x in old}, {key(x): x for x in new}
    breaking = [f"gone: {x}" for k, x in before.items() if k not in after]
    added = [f"new: {x}" for k, x in after.items() if k not in before]
    end = {}
    for line in old:
        if line.startswith("struct "):
            end[line.split()[1]] = int(line.split()[2])
    for k, x in after.items():
        if (k not in before and k[0] == "field"
                and int(x.split()[2]) < end.get(k[1].split(".")[0], 0)):
            breaking.append(f"not at the end: {x}")
        elif k in before and before[k] != x:
            grows = k[0] == "struct" and int(x.split()[2]) > int(before[k].split()[2])
            counts = k[1].endswith(("_COUNT", "_API_NUMBER")) or k[1].startswith("GPUD_VERSION_")
            (added if grows or counts else breaking).append(f"was: {before[k]}; is: {x}")
    return breaking, added


def check_layout(root, faults):
    check_regular(root, faults)
    table = layout(root)
    check_rules(root, table, faults)
    breaking, added = compare((root / "tests/abi/layout.txt").read_text().splitlines(), table)
    faults += [f"layout broken: {x}" for x in breaking]
    faults += [f"layout grown, run tests/abi/update.sh: {x}" for x in added]


# ---- needed libraries ----

def strangers(listed):
    """The needed libraries, as readelf lists them, that do not belong to the C library."""
    # Before glibc 2.34 three parts of it have files of their own.  musl has one file.
    ours = r"(libc|libpthread|librt|libdl|ld-linux.*|libc\.musl-.*|ld-musl-.*)\.so(\.\d+)?"
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", listed)
    return [name for name in needed if not re.fullmatch(ours, name)]


def check_libraries(library, faults):
    listed = run(["readelf", "-d", library])
    if "(NEEDED)" not in listed.stdout:
        faults.append(f"readelf lists no needed library of {library}: {listed.stderr}")
    faults += [f"the shared library needs {name}" for name in strangers(listed.stdout)]


def update(root, library):
    table, path = layout(root), root / "tests/abi/layout.txt"
    breaking, added = compare(path.read_text().splitlines() if path.exists() else [], table)
    print("\n".join([*added, *(f"NO MERE ADDITION: {x}" for x in breaking)]))
    path.write_text("\n".join(table) + "\n")
    names, _ = exported(root, library)
    (root / "tests/abi/symbols.txt").write_text("\n".join(sorted(names)) + "\n")
    return 0


def main():
    what, root, library = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
    if what == "update":
        return update(root, library)
    faults, results = [], []
    checks = {"headers": lambda found: check_headers(root, found, results),
              "symbols": lambda found: check_symbols(root, library, found),
              "layout": lambda found: check_layout(root, found),
              "libraries": lambda found: check_libraries(library, found)}
    for name, check in checks.items():
        found = []
        check(found)
        results.append(f"{'fail' if found else 'pass'} abi/{name}")
        faults += found
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write("\n".join(results) + "\n")
    kept = f"{len(results)} checks: headers, symbols, layout and needed libraries are as they were"
    print("\n".join(faults) if faults else kept)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
