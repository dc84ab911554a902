"""Rooms: who is in `planner/`, what each hands on, and that nobody enters one by the window."""

import ast
import importlib
from functools import cache
from pathlib import Path

import pytest

import planner
from tests.places import ROOT

PLANNER = ROOT / "planner"
ROOMS = sorted(path.parent.name for path in PLANNER.glob("*/__init__.py"))
CLOSED = [room for room in ROOMS if room not in ("cli", "report")]  # these two are used by nobody below them
MODULES = sorted([*PLANNER.rglob("*.py"), *(ROOT / "probes").rglob("*.py")])


@cache
def imports(path: Path) -> tuple[tuple[str, str], ...]:
    """(module, name) of every `from ... import ...` in a file."""
    nodes = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
    ]
    return tuple((node.module or "", alias.name) for node in nodes for alias in node.names)


def test_planner_holds_rooms() -> None:
    assert {path.stem for path in PLANNER.glob("*.py")} == {"__init__", "__main__", "placement"}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_in_one_line_what_it_is_for(room: str) -> None:
    docstring = importlib.import_module(f"planner.{room}").__doc__ or ""
    assert docstring.strip()
    assert "\n" not in docstring.strip()


@pytest.mark.parametrize("room", CLOSED)
def test_a_room_is_entered_by_its_door(room: str) -> None:
    """Others import from `planner.<room>`, whose `__init__` names what they may use."""
    handed_on = set(importlib.import_module(f"planner.{room}").__all__)
    entered, used = [], set()
    for path in MODULES:
        if PLANNER / room in path.parents:
            continue
        for module, name in imports(path):
            if module == f"planner.{room}":
                used.add(name)
            elif module.startswith(f"planner.{room}."):
                entered.append(f"{path.relative_to(ROOT)} imports {name} from {module}")
    assert not entered
    assert not used - handed_on, f"imported from planner.{room}, which does not hand it on"
    offered = {name for door, name in planner._FACE.values() if door == f"planner.{room}"}
    assert not handed_on - used - offered, f"handed on by planner.{room} and used by nobody"
