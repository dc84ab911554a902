"""Things that are found by name: the names like a wrong one, and the modules of a folder."""

import difflib
import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import TypeVar

from planner.base.errors import BadInput

Found = TypeVar("Found")


def nearest(text: str, names: Iterable[str]) -> str:
    """The three names most like `text`, as words for a message.

    >>> nearest("mixtrl", ["mixtral", "olmoe"])
    "'mixtral' or 'olmoe'"
    """
    spelled = {name.lower(): name for name in sorted(names)}
    close = difflib.get_close_matches(text[:100].lower(), spelled, n=3, cutoff=0.0)
    found = [f"'{spelled[name]}'" for name in close]
    return " or ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)


def modules_with(package: str, attribute: str) -> dict[str, ModuleType]:
    """The modules of a folder that offer `attribute`, by name. Others are what those share."""
    folder = importlib.import_module(package)
    names = sorted(found.name for found in pkgutil.iter_modules(folder.__path__))
    modules = {name: importlib.import_module(f"{package}.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, attribute)}


def find_named(name: str, known: Mapping[str, Found], kind: str) -> Found:
    """known[name]. BadInput with the nearest name and all of them where it is unknown."""
    if name not in known:
        like = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.4)
        meant = f"did you mean {like[0]!r}? " if like else ""
        raise BadInput(f"{kind} {name!r} is unknown; {meant}known are {', '.join(sorted(known))}")
    return known[name]
