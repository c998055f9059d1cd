# SPDX-License-Identifier: MIT
"""load_pool(): a Pool from a file, for those who do not write classes.

    [pool]                            # the arguments of Pool()
    devices = "all"

    [class."qwen2.5:14b"]             # those of Pool.add()
    server = { command = ["llama-server", "-m", "qwen.gguf", "--port", "{port}"] }
    memory = "12GiB"

    [class.whisper]
    worker = "models:Whisper"         # module and class
    setup = { size = "large" }

    [class.embed]
    plugin = "./libembed.so"
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping

from gpudispatch import keywords, settings
from gpudispatch.pool import Pool

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from typing import Any

KINDS = ("worker", "plugin", "server")
CODE = ("initializer", "initargs", "on_class")  # arguments that no file can have


def load_pool(path: str | os.PathLike[str], **options: Any) -> Pool:
    """Makes the Pool of a TOML file with all its classes.  `options` are arguments of Pool() that
    replace those of the file: load_pool("pool.toml", devices="fake:8").

    Paths in the file are relative to its directory, which comes first in sys.path for modules."""
    path = os.path.abspath(path)
    with open(path, "rb") as file:
        try:
            tables = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path}: {error}") from None
    _known(path, "the file", tables, {"pool", "class"})
    of_the_pool, classes = dict(_table(path, tables, "pool")), _table(path, tables, "class")
    _known(path, "pool", of_the_pool, _arguments(Pool.__init__))
    if "decision_log" in of_the_pool:
        of_the_pool["decision_log"] = _beside(path, of_the_pool["decision_log"])
    if not classes:
        raise ValueError(f"{path}: no [class.NAME], expected one or more")
    made = {name: _class(path, name, _table(path, classes, name)) for name in classes}
    try:
        pool = Pool(**{**of_the_pool, **options})
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: pool: {error}") from None
    try:
        for name, arguments in made.items():
            try:
                pool.add(name, **arguments)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{path}: class.{name}: {error}") from None
            except Exception as error:
                error.add_note(f"in class.{name} of {path}")
                raise
    except BaseException:
        pool.kill_workers()
        pool.shutdown()
        raise
    return pool


def _class(path: str, name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of Pool.add() for a class."""
    where = f"class.{name}"
    _known(path, where, table, {*_arguments(Pool.add), "server"} - {"name"})
    given = [kind for kind in KINDS if kind in table]
    if len(given) != 1:
        had = " and ".join(given) or "none"
        raise ValueError(f"{path}: {where} has {had} of {', '.join(KINDS)}, expected one")
    arguments = dict(table)
    if "cwd" in table:
        arguments["cwd"] = _beside(path, table["cwd"])
    if settings.is_file(table.get("output")):
        arguments["output"] = _beside(path, table["output"])
    if given == ["plugin"]:
        arguments["plugin"] = _found(path, table["plugin"])
    elif given == ["worker"]:
        arguments["worker"] = _named(path, where, table["worker"])
    else:
        arguments["worker"] = _server(path, where, arguments.pop("server"))
    return arguments


def _beside(path: str, name: Any) -> Any:
    """A path in the file; what is no text is left to the check of its argument."""
    return os.path.join(os.path.dirname(path), name) if isinstance(name, str) else name


def _found(path: str, name: Any) -> Any:
    """The same of a program or a plugin: one without a directory is searched for by the system."""
    return _beside(path, name) if isinstance(name, str) and os.sep in name else name


def _server(path: str, where: str, table: object) -> Any:
    from gpudispatch.servers import ServerWorker

    if not isinstance(table, Mapping):
        raise TypeError(f"{path}: {where}: server must be a table with command and its like")
    _known(path, f"{where}.server", table, _arguments(ServerWorker.__init__))
    if "command" not in table:
        raise ValueError(f"{path}: {where}: server has no command")
    command = table["command"]
    if isinstance(command, list) and command:
        command = [_found(path, command[0]), *command[1:]]
    try:
        return ServerWorker(**{**table, "command": command})
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {where}: server: {error}") from None


def _named(path: str, where: str, name: object) -> Any:
    """The class that "module:Class" names."""
    from importlib import import_module

    module, colon, rest = str(name).partition(":")
    if not isinstance(name, str) or not module or not colon or not rest:
        raise ValueError(f'{path}: {where}: worker is {name!r}, expected "module:Class"')
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as that of a script; workers find the module there, too
    try:
        found: Any = import_module(module)
        for part in rest.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        error.add_note(f"worker = {name!r} in {where} of {path}")
        raise
    return found


def _table(path: str, tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, Mapping):
        raise ValueError(f"{path}: {name} is {table!r}, expected a table")
    return table


def _arguments(function: Any) -> set[str]:
    """The names of a function's arguments that a file may have."""
    return keywords.names(function).difference(CODE)


def _known(path: str, where: str, table: Mapping[str, Any], known: set[str]) -> None:
    for name in table:
        if name not in known:
            raise ValueError(f"{path}: {where} has {name!r}; {keywords.hint(name, known)}")
