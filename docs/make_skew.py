"""Run the benchmark of skew and write docs/skew.md: `make skew`.

    python docs/make_skew.py [SHAPE/TRANSPORT ...]

What was measured is kept in .cache/skew, a file for each machine and transport; what is there already is not
measured again. The page is written when all are there. Takes about 15 minutes on two idle cores.
"""

import sys
import time
from pathlib import Path

from planner.base import BadInput, write_atomic
from planner.problem import TRANSPORTS
from planner.solvers import find_method
from probes.skew.measured import read_measured, write_measured
from probes.skew.page import page_text
from probes.skew.run import asked, key_of, measure
from probes.skew.shapes import SHAPES

ROOT = Path(__file__).resolve().parent.parent
PAGE, KEPT = ROOT / "docs/skew.md", ROOT / ".cache/skew"
METHODS = {"plan": find_method("refine"), "linear": find_method("linear")}
ALL = tuple(f"{shape}/{transport}" for shape in SHAPES for transport in TRANSPORTS)


def main(names: list[str]) -> None:
    """Measure what is missing of the named ones, all where none is; then the page."""
    unknown = [name for name in names if name not in ALL]
    if unknown:
        raise BadInput(f"{unknown[0]!r} is none of {', '.join(ALL)}")
    for name in names or ALL:
        shape, transport = name.split("/")
        question, path = asked(shape, transport, METHODS), path_of(name)
        if path.exists() and read_measured(path).key == key_of(question):
            print(f"{name}: measured before, {path.relative_to(ROOT)}", flush=True)
            continue
        began = time.perf_counter()
        write_measured(path, measure(shape, question))
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    missing = [name for name in ALL if not path_of(name).exists()]
    if missing:
        print(f"not measured: {', '.join(missing)}; {PAGE.name} is as it was")
        return
    write_atomic(PAGE, page_text([read_measured(path_of(name)) for name in ALL]))
    print(f"wrote {PAGE.relative_to(ROOT)}")


def path_of(name: str) -> Path:
    return KEPT / f"{name.replace('/', '-')}.json"


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BadInput as error:
        sys.exit(str(error))
