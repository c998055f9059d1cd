# SPDX-License-Identifier: MIT
"""Names of arguments that are not there: the errors say which name is meant."""

from __future__ import annotations

import functools

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

# What other programs call them, where the names are not alike.
SYNONYMS = {
    "gpus": "devices", "gpu": "devices", "num_gpus": "devices", "n_gpus": "devices",
    "vram": "memory", "model": "worker",
}  # fmt: skip


def names(function: Any) -> set[str]:
    """The arguments of a function or a method."""
    code = getattr(function, "__wrapped__", function).__code__
    return {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]} - {"self"}


def hint(name: str, known: Iterable[str]) -> str:
    """The known name that is meant, or all of them."""
    import difflib  # costs 2 ms

    known = sorted(known)
    near = [SYNONYMS[name]] if SYNONYMS.get(name) in known else []
    near += difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]}?" if near else f"expected some of {', '.join(known)}"


def hinted(method: F) -> F:
    """A method whose calls with a wrong name, or with too few names, get such an error."""
    known, code = names(method), method.__code__
    label = method.__qualname__.removesuffix(".__init__")

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                raise TypeError(
                    f"{label}() got an unexpected keyword argument {name!r}; {hint(name, known)}"
                )
        if len(args) > code.co_argcount:
            last = code.co_varnames[code.co_argcount - 1]
            following = code.co_varnames[code.co_argcount]
            value = getattr(args[code.co_argcount], "__name__", "...")
            raise TypeError(
                f"{label}() takes arguments after {last!r} by name only: "
                f"write {following}={value}, for example"
            )
        return method(*args, **kwargs)

    return call  # type: ignore[return-value]
