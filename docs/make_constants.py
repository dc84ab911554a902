"""Write planner/data/constants.yaml: the cost model's constants, fitted anew to published tables.

    python docs/make_constants.py aiconfigurator_core-0.12.0-*.whl

Needs pyarrow. `moeplan bench --study constants --peer WHEEL` prints how far off they are.
"""

import sys
from datetime import datetime, timezone
from pathlib import Path

from planner.bench.fits import Refit, read_tables, refit
from planner.bench.fits.compute import ComputeFit
from planner.bench.fits.phase_fit import PhaseFit

TARGET = Path(__file__).resolve().parent.parent / "planner/data/constants.yaml"
HEAD = """\
# Constants of the cost model by chip, fitted by docs/make_constants.py to what others measured.
# Not to be edited by hand. docs/cost-model.md has the forms, and which rows they are fitted to.
# _us: microseconds; _ps: picoseconds an element; nvlink, nic, flops, memory: shares of the line or peak rate.
# least, ranks: GPUs of the smallest and the largest group that was measured.
# error: mean relative error on the rows of the fit; held_out: each `group` left out in turn.
# error_nodes, held_out_nodes: the same of the rows of several nodes, a node count left out.
"""


def constants_text(fits: list[Refit], source: str, date: str) -> str:
    """The file's text: a line a chip."""
    lines = [HEAD + f"source: {source}", f"date: {date}"]
    before: tuple[str, ...] = ()
    for one in fits:
        for depth, key in enumerate(one.kind):
            if one.kind[: depth + 1] != before[: depth + 1]:
                lines.append(f"{'  ' * depth}{key}:")
        before = one.kind
        cells = ", ".join(f"{name}: {value}" for name, value in entry(one.fit).items())
        lines.append(f"{'  ' * len(one.kind)}{one.chip}: {{{cells}}}")
    return "\n".join(lines) + "\n"


def entry(fit: PhaseFit | ComputeFit) -> dict[str, object]:
    """The figures of one line, to four digits; what there is none of is left out."""
    scales = {
        "fixed": ("_us", 1e6),
        "per_doubling": ("_us", 1e6),
        "per_slot": ("_us", 1e6),
        "per_value": ("_ps", 1e12),
    }
    found: dict[str, object] = {}
    for name, value in vars(fit).items():
        unit, scale = scales.get(name, ("", 1.0))
        if value is not None:
            found[name + unit] = float(f"{value * scale:.4g}") if isinstance(value, float) else value
    return found


if __name__ == "__main__":
    wheel = Path(sys.argv[1])
    name = "-".join(wheel.name.split("-")[:2]).replace("_", "-").replace("-0", " 0")
    fits = list(refit(read_tables(wheel)))
    date = datetime.now(timezone.utc).date().isoformat()
    TARGET.write_text(constants_text(fits, f"{name}, Apache-2.0", date), encoding="utf-8")
    print(f"{len(fits)} fits to {TARGET}")
