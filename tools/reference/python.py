# SPDX-License-Identifier: MIT
"""Compares docs/reference/python.md with the Python package.

The sources are parsed, not imported: a tree without the package's extension is checked, too.

 - Each name of `__all__` has a place: a heading, or a row of the exceptions.
 - A method or function stands there with all its parameters and defaults: as a block of code, or
   in a row of a table.
 - The tables of options have each option, its default, and no other.
 - The table of exceptions has their attributes and no others.
"""
import ast
import re

PAGE = "docs/reference/python.md"
PACKAGE = "python/gpudispatch"
# Heading, file and classes of the members that this heading's section has.  Submitter is the base
# of Executor, of PoolClass and of their views, Owner that of Executor and Pool.
MEMBERS = (("Executor", "submitter", ("Submitter",)), ("Executor", "owner", ("Owner",)),
           ("Executor", "executor", ("Executor",)), ("Pool", "pool", ("Pool",)),
           ("PoolClass", "pool_class", ("PoolClass",)), ("Lease", "leases", ("Lease",)),
           ("Revoked", "leases", ("Revoked",)), ("Needs", "tables", ("Needs",)),
           ("Reason", "tables", ("Reason",)), ("ClassStats", "tables", ("ClassStats",)),
           ("ClassChange", "tables", ("ClassChange",)),
           ("Pool.outcomes", "pool_progress", ("PoolSnapshot", "ClassProgress")),
           ("Future", "future", ("Future",)),
           ("Outcome", "outcomes", ("Outcome",)), ("Times", "future", ("Times",)),
           ("Progress", "future", ("Progress",)), ("outcomes", "progress", ("Snapshot",)),
           ("read_journal", "records", ("JournalRecord",)),
           ("current_task, current_worker", "current", ("CurrentTask", "CurrentWorker")),
           ("ServerWorker", "servers", ("ServerWorker",)),
           ("BaseWorker", "classic", ("BaseWorker",)),
           ("Dispatcher", "classic", ("Dispatcher",)),
           ("RichDispatcher", "classic", ("RichDispatcher",)))
CALLS = (("get_executor", "named"), ("get_pool", "named"), ("load_pool", "config"),
         ("read_journal", "records"), ("current_task", "current"), ("current_worker", "current"),
         ("empty", "current"))
# Fields of JournalRecord and ServerWorker that only the package's own modules use.
INSIDE = {"offset", "key_bytes", "turn", "payload", "clock", "journal_state"}
# Heading of a table of options, and the function that has them.
TABLES = (("Options of Executor", "executor", "Executor", "__init__"),
          ("outcomes", "submitter", "Submitter", "outcomes"),
          ("options", "submitter", "Submitter", "options"),
          ("Options of Pool", "pool", "Pool", "__init__"),
          ("Pool.add", "pool", "Pool", "add"), ("Pool.outcomes", "pool", "Pool", "outcomes"),
          ("Pool.lease", "pool", "Pool", "lease"), ("Pool.run", "pool", "Pool", "run"))
# Classes whose attributes are those that __init__ makes.
PLAIN = {"Revoked"}
# Methods whose table has all their parameters, with those of section Needs.
IN_TABLES = {"add", "lease", "run"}


def squeezed(text):
    """Without white space, and with one kind of quotes."""
    return re.sub(r"\s+", "", text).replace("'", '"')


def parameters(function):
    """The parameters of a function as they stand on the page: without self and annotations."""
    found = ast.parse(ast.unparse(function)).body[0].args
    for arg in (*found.posonlyargs, *found.args, *found.kwonlyargs, found.vararg, found.kwarg):
        if arg is not None:
            arg.annotation = None
    for some in (found.posonlyargs, found.args):
        if some and some[0].arg == "self":
            del some[0]
            break
    return re.sub(r"^/, ", "", re.sub(r"^/$", "", ast.unparse(found)))


def defaults_of(function):
    """Default by name, of parameters that have one."""
    given = function.args
    plain = given.args[len(given.args) - len(given.defaults):]
    pairs = [*zip(plain, given.defaults), *zip(given.kwonlyargs, given.kw_defaults)]
    return {arg.arg: ast.unparse(value) for arg, value in pairs if value is not None}


class Module:
    def __init__(self, path):
        self.there = path.exists()
        body = ast.parse(path.read_text()).body if self.there else []
        self.classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
        self.functions = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def has_decorator(node, name):
    return any(isinstance(d, ast.Name) and d.id == name for d in node.decorator_list)


def is_property(node):
    return has_decorator(node, "property")


def fields(node):
    """Names of the annotated fields and slots of a class."""
    for part in node.body:
        if isinstance(part, ast.AnnAssign):
            yield part.target.id
        elif isinstance(part, ast.Assign) and part.targets[0].id == "__slots__":
            yield from ast.literal_eval(part.value)


def own_attributes(node):
    """Names of the attributes that __init__ makes."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            for each in ast.walk(part):
                if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
                    yield each.attr


def members(node):
    """Methods with their parameters, fields, properties and attributes with None."""
    for name in (*fields(node), *(own_attributes(node) if node.name in PLAIN else ())):
        yield name, None
    for part in node.body:
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if has_decorator(part, "overload"):
                continue  # the page has the signature of the last one, which is for all
            yield part.name, None if is_property(part) else parameters(part)


def sections(text):
    """Each heading with its text; that of a heading above others includes theirs."""
    found = [(len(m.group(1)), m.group(2), m.start(), m.end())
             for m in re.finditer(r"^(#+) (.*)$", text, flags=re.M)]
    for number, (level, name, _, begin) in enumerate(found):
        later = [start for depth, _, start, _ in found[number + 1:] if depth <= level]
        yield name, text[begin:later[0] if later else len(text)]


def table(text):
    """The rows of a text's first table without its head: cells, without backticks of the first."""
    found = re.search(r"(?:^\|.*\n)+", text + "\n", flags=re.M)
    lines = found.group().splitlines()[2:] if found else []
    return [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines]


def names(cell):
    return re.findall(r"`(\w+)", cell)


def public_names(root):
    tree = ast.parse((root / PACKAGE / "__init__.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return ast.literal_eval(node.value)
    return []


def has_member(text, name, signature):
    if signature is None:
        return re.search(rf"`{name}`", text)
    return squeezed(f"{name}({signature})") in squeezed(text)


def check_members(page, module_of, faults):
    for heading, file, kinds in MEMBERS:
        module = module_of(file)
        for kind in kinds if module.there else ():
            for name, signature in members(module.classes[kind]):
                if name == "__init__" and kind in ("Dispatcher", "RichDispatcher", "ServerWorker"):
                    name = kind
                elif name.startswith("_") or name in INSIDE:
                    continue
                elif kind == "Pool" and name in IN_TABLES:
                    continue
                if not has_member(page.get(heading, ""), name, signature):
                    what = f"{name}({signature})" if signature is not None else name
                    faults.append(f"{PAGE}: section {heading} lacks {what} of {file}.py")
    for name, file in CALLS:
        signature = parameters(module_of(file).functions[name])
        if not has_member("".join(page.values()), name, signature):
            faults.append(f"{PAGE}: {name}({signature}) is missing")


def check_tables(page, module_of, faults):
    for heading, file, kind, method in TABLES:
        function = next(n for n in module_of(file).classes[kind].body
                        if isinstance(n, ast.FunctionDef) and n.name == method
                        and not has_decorator(n, "overload"))
        wanted = defaults_of(function)
        text = [page.get("Needs", "")] if kind == "Pool" and method in IN_TABLES else []
        rows = {names(row[0])[0]: row[1].strip("`")
                for part in (*text, page.get(heading, "")) for row in table(part)}
        for name in sorted(wanted.keys() ^ rows.keys()):
            faults.append(f"{PAGE}: {heading}: {name} is "
                          f"{'missing' if name in wanted else 'no parameter'}")
        for name, default in wanted.items():
            if default != "..." and squeezed(rows.get(name, default)) != squeezed(default):
                faults.append(f"{PAGE}: {heading}: the default of {name} is {default},"
                              f" not {rows[name]}")


def check_exceptions(page, module_of, public, faults):
    rows = {names(row[0])[0]: row for row in table(page.get("Exceptions", ""))}
    for name, node in module_of("errors").classes.items():
        if name not in public or name == "RemoteTraceback":
            continue
        attributes = set(names(rows[name][2])) if name in rows else set()
        if attributes != set(fields(node)):
            faults.append(f"{PAGE}: the attributes of {name} are {', '.join(fields(node))}")
        bases = {base.id for base in node.bases} - {"GpuDispatchError", "Exception"}
        if name in rows and set(names(rows[name][1])) != bases:
            faults.append(f"{PAGE}: {name} is also a {', '.join(sorted(bases))}")
        rows.pop(name, None)
    faults += [f"{PAGE}: no exception {name}" for name in rows]


def check(root, faults):
    modules = {}

    def module_of(file):
        return modules.setdefault(file, Module(root / PACKAGE / f"{file}.py"))

    text = (root / PAGE).read_text()
    page, public = dict(sections(text)), public_names(root)
    placed = set(re.findall(r"\w+", " ".join(page))) | {
        name for row in table(page.get("Exceptions", "")) for name in names(row[0])}
    for name in public:
        if name not in placed and f"- `{name}` is " not in text:
            faults.append(f"{PAGE}: nothing about {name} of gpudispatch.__all__")
    check_members(page, module_of, faults)
    check_tables(page, module_of, faults)
    check_exceptions(page, module_of, public, faults)
