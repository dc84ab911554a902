"""How skewed a load is: one row of figures a layer, and a picture for the terminal.

Shapes: L layers, E experts, C cells of a line.
"""

import textwrap
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Group, RenderableType
from rich.text import Text

from planner.load import LoadProfile
from planner.report.tables import table_of

# multiples of the layer's mean at which the block changes; the middle one is the mean
EDGES = (0.25, 0.5, 0.7, 0.9, 1.1, 1.4, 2.0, 4.0)
BLOCKS, ASCII = " ▁▂▃▄▅▆▇█", " .:-=+*#@"
WIDEST_EXPERT = 4  # characters; wider says nothing more


@dataclass(frozen=True)
class LayerSkew:
    """The load of one layer, all windows together.

    Figures of a layer without signal are None: it is not balanced, it is unknown.
    """

    layer_id: int
    measured: bool  # False: the row was filled from other layers, or assumed
    total: int  # assignments
    max_over_mean: float | None  # hottest expert over the mean expert, >= 1
    hottest_tenth_share: float | None  # of the assignments, to the hottest tenth of the experts (rounded up)
    hottest_expert: int | None  # ties to the lower id
    effective_experts: float | None  # exp of the entropy: as many equally loaded experts would be as uneven


def skew_rows(load: LoadProfile) -> list[LayerSkew]:
    """One row a layer, in layer order."""
    return [
        _skew(layer_id, tokens_E, measured=layer_id not in load.unmeasured_layer_ids)
        for layer_id, tokens_E in zip(load.layer_ids, load.total_LE, strict=True)
    ]


def _skew(layer_id: int, tokens_E: npt.NDArray[np.int64], *, measured: bool) -> LayerSkew:
    total, experts = int(tokens_E.sum()), len(tokens_E)
    if total == 0:
        return LayerSkew(layer_id, measured, 0, None, None, None, None)
    tenth = -(-experts // 10)
    shares_E = tokens_E / total
    entropy = -float(np.sum(shares_E * np.log(np.where(shares_E > 0, shares_E, 1))))
    return LayerSkew(
        layer_id,
        measured,
        total,
        max_over_mean=float(shares_E.max() * experts),
        hottest_tenth_share=float(np.sort(shares_E)[-tenth:].sum()),
        hottest_expert=int(tokens_E.argmax()),
        effective_experts=float(np.exp(entropy)),
    )


def heatmap(load: LoadProfile, width: int = 80, *, ascii_only: bool = False) -> str:
    """Layers down, experts across, at most `width` (no less than 20) columns: each cell the hottest expert in
    it, over its layer's mean.

    Rows that were not measured are marked ~, rows without any assignment are drawn as dashes.
    """
    width, blocks = max(width, 20), ASCII if ascii_only else BLOCKS
    gutter = max(len(str(load.layer_ids[-1])), 2) + 3
    room = width - gutter - 1
    cells = min(load.experts, room)
    repeat = min(WIDEST_EXPERT, room // cells)
    bar = "|" if ascii_only else "│"
    lines = []
    layers = zip(load.layer_ids, load.shares_LE * load.experts, load.total_LE, strict=True)
    for layer_id, multiples_E, tokens_E in layers:
        mark = "~" if layer_id in load.unmeasured_layer_ids else " "
        step_C = np.searchsorted(EDGES, _binned(multiples_E, cells), side="right")
        drawn = "".join(blocks[step] * repeat for step in step_C) if tokens_E.any() else "-" * cells * repeat
        lines.append(f"{layer_id:>{gutter - 3}} {mark}{bar}{drawn}{bar}")
    return "\n".join([*lines, *textwrap.wrap(_legend(load, blocks, cells), width)])


def _binned(multiples_E: npt.NDArray[np.float64], cells: int) -> npt.NDArray[np.float64]:
    """Hottest value of each of C runs of neighbouring experts, whose sizes differ by one at most."""
    return np.maximum.reduceat(multiples_E, np.arange(cells) * len(multiples_E) // cells)


def _legend(load: LoadProfile, blocks: str, cells: int) -> str:
    steps = ", ".join(f"{block} from {edge:g}" for block, edge in zip(blocks[1:], EDGES, strict=True))
    what = (
        "each expert" if cells == load.experts else f"the hottest of each {load.experts / cells:.3g} experts"
    )
    unmeasured = "; ~ not measured" if load.unmeasured_layer_ids else ""
    return (
        f"layers down, experts 0-{load.experts - 1} across; {what} over the mean of its layer: "
        f"blank below {EDGES[0]:g}, {steps}{unmeasured}"
    )


def load_report(load: LoadProfile, width: int = 100) -> RenderableType:
    """Skew per layer as a table, the picture, and what a reader must know of the figures."""
    names = ("layer", "assignments", "max/mean", "hottest tenth gets", "hottest expert", "as uneven as")
    title = f"{load.source}: {load.windows} {load.window_unit}(s), {load.experts} experts"
    table = table_of(names, map(_cells, skew_rows(load)), title=title)
    notes = (Text(f"Note: {note}", style="dim") for note in load.notes)
    return Group(table, Text(heatmap(load, width)), *notes)


def _cells(row: LayerSkew) -> tuple[str, ...]:
    layer, total = f"{row.layer_id}{'' if row.measured else ' ~'}", f"{row.total:,}"
    if row.max_over_mean is None:
        return layer, total, "no signal", "", "", ""
    return (
        layer,
        total,
        f"{row.max_over_mean:.3f}",
        f"{row.hottest_tenth_share:.1%}",
        str(row.hottest_expert),
        f"{row.effective_experts:.1f} even experts",
    )


def load_summary(load: LoadProfile, top_k: int) -> dict[str, Any]:
    """The same for machines.

    `counts_sum_per_layer` is in the order of `layers`; `tokens` is what the middle measured layer implies.
    """
    sums_L = load.total_LE.sum(axis=1)
    measured_L = np.array([layer not in load.unmeasured_layer_ids for layer in load.layer_ids]) & (sums_L > 0)
    return {
        "source": load.source,
        "windows": load.windows,
        "window_unit": load.window_unit,
        "experts": load.experts,
        "tokens": round(float(np.median(sums_L[measured_L if measured_L.any() else slice(None)])) / top_k),
        "top_k": top_k,
        "phase": load.phase,
        "traced": load.trace is not None,
        "notes": list(load.notes),
        "warnings": list(load.notes),
        "counts_sum_per_layer": sums_L.tolist(),
        "layers": [asdict(row) for row in skew_rows(load)],
    }
