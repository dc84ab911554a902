"""Write docs/rooms.svg and the tables of modules in docs/structure.md from the code (`make docs`)."""

import ast
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parent.parent
PAGE, PICTURE = ROOT / "docs/structure.md", ROOT / "docs/rooms.svg"
GENERATED = "<!-- generated from here on: make docs -->\n"
FLOORS = (  # as in the contract of pyproject.toml, from the top down
    ("cli",),
    ("page",),
    ("report",),
    ("bench", "watching"),
    ("planning",),
    ("exchange", "launch", "maps"),
    ("engines", "solvers"),
    ("plan",),
    ("bounds",),
    ("cost",),
    ("problem",),
    ("replica",),
    ("load", "placement", "topology"),
    ("model",),
    ("schema",),
    ("base", "fitting"),
)
ROOM_WIDTH, ROOM_HEIGHT, FLOOR_HEIGHT, FLOOR_WIDTH = 118, 30, 56, 640


def structure_page() -> str:
    """The page's text: the prose that it has, then a row for each module."""
    prose = PAGE.read_text(encoding="utf-8").partition(GENERATED)[0]
    return prose + GENERATED + "".join(_section(package) for package in ("planner", "probes"))


def rooms_picture() -> str:
    """Rooms of `planner` and who imports whom, as SVG. An arrow that others imply is left out."""
    arrows = nx.transitive_reduction(nx.DiGraph(sorted(_imports())))
    lines = [_arrow(*_middle(user), *_middle(used)) for user, used in sorted(arrows.edges)]
    boxes = [_box(room) for floor in FLOORS for room in floor]
    height = FLOOR_HEIGHT * len(FLOORS)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {FLOOR_WIDTH} {height}" '
        f'font-family="sans-serif" font-size="14" role="img" aria-label="rooms of planner">\n'
        f'<rect width="{FLOOR_WIDTH}" height="{height}" fill="#ffffff"/>\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#667"/></marker></defs>\n'
        + "\n".join([*lines, *boxes])
        + "\n</svg>\n"
    )


def _imports() -> set[tuple[str, str]]:
    """(room, room it imports from) of `planner`."""
    found = set()
    for path in (ROOT / "planner").rglob("*.py"):
        here = path.relative_to(ROOT / "planner").parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            there = module.split(".")[1] if module.startswith("planner.") else ""
            if there and there != here and not here.startswith("__"):
                found.add((here, there))
    return found


def _middle(room: str) -> tuple[float, float]:
    """The middle of the room's box."""
    row, floor = next((row, floor) for row, floor in enumerate(FLOORS) if room in floor)
    return FLOOR_WIDTH * (floor.index(room) + 1) / (len(floor) + 1), FLOOR_HEIGHT * (row + 0.5)


def _arrow(from_x: float, from_y: float, to_x: float, to_y: float) -> str:
    """To the floor below from foot to head; further down from side to side, around what is between."""
    if to_y - from_y <= FLOOR_HEIGHT:
        path = f"M{from_x:.0f} {from_y + ROOM_HEIGHT / 2:.0f} L{to_x:.0f} {to_y - ROOM_HEIGHT / 2:.0f}"
    else:
        side = 1 if from_x + to_x > FLOOR_WIDTH else -1
        start, end = from_x + side * ROOM_WIDTH / 2, to_x + side * ROOM_WIDTH / 2
        aside = side * 0.45 * (to_y - from_y)
        bend = f"{start + aside:.0f} {from_y:.0f} {end + aside:.0f} {to_y:.0f}"
        path = f"M{start:.0f} {from_y:.0f} C{bend} {end:.0f} {to_y:.0f}"
    return f'<path d="{path}" fill="none" stroke="#667" marker-end="url(#tip)"/>'


def _box(room: str) -> str:
    x, y = _middle(room)
    corner = f'x="{x - ROOM_WIDTH / 2:.0f}" y="{y - ROOM_HEIGHT / 2:.0f}"'
    size = f'width="{ROOM_WIDTH}" height="{ROOM_HEIGHT}" rx="6"'
    shape = f'<rect {corner} {size} fill="#eef3fa" stroke="#345"/>'
    return f'{shape}<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle" fill="#123">{room}</text>'


def _section(package: str) -> str:
    """A heading and a row for each module below the package, by path."""
    paths = sorted((ROOT / package).rglob("*.py"))
    rows = [f"| `{path.relative_to(ROOT).as_posix()}` | {_first_line(path)} |\n" for path in paths]
    return f"\n## Modules of `{package}`\n\n| module | what it is |\n|---|---|\n" + "".join(rows)


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0].replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(structure_page(), encoding="utf-8")
    PICTURE.write_text(rooms_picture(), encoding="utf-8")
    print(f"wrote {PAGE.name}, {PICTURE.name}")
