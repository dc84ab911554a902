"""Constants: how far the cost model's constants of each chip are from what was measured of it.

Fitted anew to the tables of a wheel of aiconfigurator-core (needs pyarrow), or to a folder of its tables as
CSVs; beside them what another chip's constants, those of the H100, make of the same rows.
"""

from planner.bench.fits import Refit, read_tables, refit
from planner.bench.frame import Peers, Table
from planner.fitting import mean_error
from planner.solvers import Progress

TITLE = "Constants: mean relative error by chip, in sample, held out, and with the H100's constants"
USUAL = "H100"
ABSENT = "no figures to fit: give --peer aiconfigurator_core-0.12.0-*.whl, or a folder of its tables as CSVs"
NOTES = (
    (
        "held_out: each hidden size left out in turn (EP size or number of GPUs where there are too few); "
        "nodes: the same on rows of several nodes, a node count left out."
    ),
    "as_h100: the H100's constants on the same rows, its shares of this chip's rates.",
)


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """A row a fit."""
    del repeats
    if peers.figures is None:
        return Table(TITLE, (), (ABSENT,))
    found: list[Refit] = []
    for one in refit(read_tables(peers.figures)):
        found.append(one)
        if progress:
            progress(len(found) / 100, " ".join((*one.kind, one.chip)))
    usual = {one.kind: one for one in found if one.chip == USUAL}
    return Table(TITLE, tuple(_row(one, usual.get(one.kind)) for one in found), NOTES)


def _row(one: Refit, usual: Refit | None) -> dict[str, object]:
    as_usual = None
    if usual is not None and usual is not one:
        as_usual = mean_error(usual.seconds_N(one.rows), one.rows.seconds_N)
    return {
        "instance": " ".join(one.kind),
        "method": one.chip,
        "rows": one.fit.rows,
        "error": one.fit.error,
        "held_out": one.fit.held_out,
        "nodes": getattr(one.fit, "held_out_nodes", None),
        "as_h100": as_usual,
    }
