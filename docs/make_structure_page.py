"""Write docs/structure.md: one line for each module, the first of its own docstring. Run it with `make docs`."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/structure.md"
HEAD = """\
# Structure

Generated from the modules' docstrings (`make docs`). Who may import whom is a contract that `make check` enforces; it stands in
`pyproject.toml` under `tool.importlinter`. From the bottom up:

1. `errors`, `units`, `files`: one line for bad input, SI inside, safe reads and writes.
2. nouns: `model`, `load`, `topology` (with `routes`, `bisection`), `placement`: frozen values, checked once.
3. what makes nouns from files and names: `catalog`, `hf_config`, `topology_yaml`, `load_files` and its neighbours.
4. laws: `problem`, `rules`, `replica`, `cost`, `bound`, `plan`: what a valid and a good placement is.
5. `solve` and `engines`, which do not know each other; above them `report` and `launch`.
6. `cli`: arguments in, text out. Only it imports `probes`, which touches machines.
"""


def structure_page() -> str:
    """The page's text."""
    return HEAD + "".join(_section(package) for package in ("planner", "probes"))


def _section(package: str) -> str:
    """A heading and a row for each module below the package, by path."""
    rows = [
        f"| `{path.relative_to(ROOT).as_posix()}` | {_first_line(path)} |\n"
        for path in sorted((ROOT / package).rglob("*.py"))
    ]
    return f"\n## `{package}`\n\n| module | what it is |\n|---|---|\n" + "".join(rows)


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0].replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(structure_page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
