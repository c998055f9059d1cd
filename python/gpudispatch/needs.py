# SPDX-License-Identifier: MIT
"""Checks the needs of a class or a task, and turns them into requests of the library.

As in settings.py each check names the argument.  A request is a dictionary with the fields of
struct gpud_request; a list of them has the variants, the preferred one first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gpudispatch import keywords, settings

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable

    Request = dict[str, object]

UNITS = {
    "B": 1,
    "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}  # fmt: skip
SIZE = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(UNITS)})")
WHOLE = 10_000  # shares of one device
VARIANTS = 4


def size(name: str, value: object, least: int = 1 << 20) -> int:
    """Bytes: a number of them, or a text such as "60GiB"."""
    if isinstance(value, str):
        found = SIZE.fullmatch(value.strip())
        if found is None:
            raise ValueError(
                f"{name} is {value!r}, expected bytes or a number with one of {', '.join(UNITS)}"
            )
        value = round(float(found[1]) * UNITS[found[2]])
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int or a str, not {type(value).__name__}")
    if value < least:
        raise ValueError(
            f'{name} is {value} bytes, expected at least {least}: write "18GiB", for example'
        )
    return settings.integer(name, value, least, 2**62)


def part(name: str, value: object) -> int:
    """A part of a device, or of its memory, in 1/10,000."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    if not 1 / WHOLE <= value <= 1:
        raise ValueError(f"{name} is {value}, expected a part of a device: 0.0001 to 1")
    return round(value * WHOLE)


def _compute(name: str, value: object) -> int:
    """A compute capability: "8.6" or 8.6 is 806."""
    found = re.fullmatch(r"(\d{1,3})(?:\.(\d{1,2}))?", str(value))
    if found is None or isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}, expected a compute capability such as '8.6'")
    return int(found[1]) * 100 + int(found[2] or 0)


def _names(name: str, value: object) -> str:
    """Names of devices, comma-separated."""
    if isinstance(value, str):
        return settings.text(name, value)
    if not isinstance(value, Iterable):
        raise TypeError(f"{name} must be a str or a sequence of str, not {type(value).__name__}")
    return ",".join(settings.text(name, one) for one in value)


def _devices(name: str, value: object) -> int:
    return settings.integer(name, value, 0, 16)


def _cpus(name: str, value: object) -> int:
    return settings.integer(name, value, 0)


CHECKS: dict[str, Callable[[str, object], object]] = {
    "devices": _devices,
    "cpus": _cpus,
    "share": part,
    "compute": _compute,
    "memory": size,
    "host_memory": size,
    "on": _names,
    "not_on": _names,
}


def request(needs: Mapping[str, object], where: str = "") -> Request:
    """A request of the library; None stands for the library's default."""
    made: Request = {}
    for name, value in needs.items():
        check = CHECKS.get(name)
        if check is None:
            raise TypeError(f"{where}has {name!r}; {keywords.hint(name, CHECKS)}")
        if value is not None:
            made[name] = check(f"{where}{name}", value)
    if not made.get("devices") and not made.get("cpus") and not made.get("host_memory"):
        raise ValueError(f"{where}devices is 0: a worker without devices needs cpus or host_memory")
    for name in ("memory", "share", "compute", "on", "not_on"):
        if name in made and not made.get("devices"):
            raise ValueError(f"{where}{name} is of devices, but devices is 0")
    if made.get("share", WHOLE) != WHOLE and made.get("devices") != 1:
        raise ValueError(f"{where}share is a part of one device, but devices is {made['devices']}")
    return made


def of(
    devices: object,
    memory: object,
    share: object,
    cpus: object,
    host_memory: object,
    compute: object,
    on: object,
    not_on: object,
    variants: object,
) -> list[Request]:
    """The requests of the arguments that add(), lease() and run() of a Pool have in common."""
    preferred = {
        "devices": devices, "memory": memory, "share": share, "cpus": cpus,
        "host_memory": host_memory, "compute": compute, "on": on, "not_on": not_on,
    }  # fmt: skip
    return requests(preferred, variants)


def requests(needs: Mapping[str, object], variants: object) -> list[Request]:
    """The preferred request and its variants."""
    if isinstance(variants, (str, bytes, Mapping)) or not isinstance(variants, Iterable):
        raise TypeError(f"variants must be a sequence of mappings, not {type(variants).__name__}")
    made = [request(needs)]
    for number, one in enumerate(variants):
        if not isinstance(one, Mapping):
            raise TypeError(f"variants has {one!r}, expected mappings such as {{'devices': 2}}")
        made.append(request({"devices": 1} | dict(one), f"variants[{number}] "))
    if len(made) > VARIANTS:
        raise ValueError(f"variants has {len(made) - 1}, expected up to {VARIANTS - 1}")
    return made
