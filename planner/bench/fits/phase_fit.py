"""Constants of dispatch and combine, fitted to measured rows of one chip.

seconds = fixed + per_doubling · log2(ranks / least) + per_slot · slots a GPU + bytes / (line rate · share)

`least` is the smallest number of ranks that was measured; fewer are taken to start as quickly, not quicker.
Rows of one node tell neither `per_doubling` nor the NIC's share: those of a chip with several are taken.

Shapes: N rows.
"""

from dataclasses import dataclass, replace

import numpy as np

from planner.bench.fits.phase_rows import Bools, Floats, PhaseRows
from planner.fitting import held_out_N, mean_error, relative_fit

ASSUMED_NIC = 0.85  # share of a NIC's line rate where no rows say it


@dataclass(frozen=True)
class PhaseFit:
    """Seconds and shares. Errors on rows of one node, and of several where there are any: in sample, and with
    each group left out in turn.
    """

    fixed: float
    per_doubling: float
    per_slot: float
    nvlink: float
    nic: float
    rows: int
    least: int
    ranks: int  # the most that any row has
    group: str
    error: float = 0.0
    held_out: float = 0.0
    error_nodes: float | None = None
    held_out_nodes: float | None = None

    def seconds_N(self, rows: PhaseRows) -> Floats:
        doublings_N = np.log2(np.maximum(rows.ranks_N / self.least, 1))
        grown_N = self.per_doubling * doublings_N + self.per_slot * rows.slots_N
        return self.fixed + grown_N + rows.nvlink_N / self.nvlink + rows.nic_N / self.nic


def fit_phase(rows: PhaseRows, several: "PhaseFit | None" = None) -> PhaseFit:
    """The form fitted to the rows; `several`: whose start per doubling and NIC share to take where these rows
    are of one number of ranks and one node.
    """

    def fit(seen_N: Bools) -> PhaseFit:
        return _fit(rows.kept(seen_N), several)

    found = fit(np.ones(len(rows.seconds_N), dtype=bool))
    fitted_N = found.seconds_N(rows)
    left_out_N = held_out_N(rows.group_N, fit, lambda one: one.seconds_N(rows))
    one_N = rows.group_N > 0
    near, held_out = (_errors(of_N, rows, one_N) for of_N in (fitted_N, left_out_N))
    assert near is not None
    assert held_out is not None
    found = replace(found, error=near, held_out=held_out)
    far, far_held_out = (_errors(of_N, rows, ~one_N) for of_N in (fitted_N, left_out_N))
    return replace(found, error_nodes=far, held_out_nodes=far_held_out)


def _errors(predicted_N: Floats, rows: PhaseRows, kept_N: Bools) -> float | None:
    return mean_error(predicted_N[kept_N], rows.seconds_N[kept_N]) if kept_N.any() else None


def _fit(rows: PhaseRows, several: PhaseFit | None) -> PhaseFit:
    doublings_N, one_N = np.log2(rows.ranks_N / rows.least), np.ones(len(rows.ranks_N))
    grows = bool(np.ptp(rows.ranks_N))
    columns = {
        "fixed": one_N,
        "per_doubling": doublings_N,
        "per_slot": rows.slots_N,
        "nvlink": rows.nvlink_N,
        "nic": rows.nic_N,
    }
    used = {
        name: column for name, column in columns.items() if column.any() and (name != "per_doubling" or grows)
    }
    fitted = relative_fit(np.stack(list(used.values()), axis=1), rows.seconds_N)
    value = dict(zip(used, fitted.tolist(), strict=True))
    per_doubling = value.get("per_doubling", several.per_doubling if several else 0.0)

    def share(name: str, otherwise: float) -> float:
        return 1 / value[name] if value.get(name) else otherwise

    return PhaseFit(
        value["fixed"],
        per_doubling,
        value.get("per_slot", 0.0),
        share("nvlink", 1.0),
        share("nic", several.nic if several else ASSUMED_NIC),
        len(rows.seconds_N),
        rows.least,
        int(rows.ranks_N.max()),
        rows.group,
    )
