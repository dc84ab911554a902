"""How skewed a load is: one row of figures a layer, and a picture for the terminal.

Shapes: L layers, E experts, C cells of a line.
"""

import textwrap
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.load import LoadProfile

EDGES = (
    0.25,
    0.5,
    0.7,
    0.9,
    1.1,
    1.4,
    2.0,
    4.0,
)  # multiples of the layer's mean at which the block changes; the middle one is the mean
BLOCKS, ASCII = " ▁▂▃▄▅▆▇█", " .:-=+*#@"
WIDEST_EXPERT = 4  # characters; wider says nothing more


@dataclass(frozen=True)
class LayerSkew:
    """The load of one layer, all windows together. Figures of a layer without signal are None: it is not balanced, it is unknown."""

    layer_id: int
    measured: bool  # False: the row was filled from other layers, or assumed
    total: int  # assignments
    max_over_mean: float | None  # hottest expert over the mean expert, >= 1
    hottest_tenth_share: (
        float | None
    )  # share of the assignments that the hottest tenth of the experts (rounded up) gets
    hottest_expert: int | None  # ties to the lower id
    effective_experts: float | None  # exp of the entropy: as many equally loaded experts would be as uneven


def skew_rows(load: LoadProfile) -> list[LayerSkew]:
    """One row a layer, in layer order."""
    tenth = -(-load.experts // 10)
    rows = []
    for layer_id, tokens_E in zip(load.layer_ids, load.total_LE, strict=True):
        total, measured = int(tokens_E.sum()), layer_id not in load.unmeasured_layer_ids
        if total == 0:
            rows.append(LayerSkew(layer_id, measured, 0, None, None, None, None))
            continue
        shares_E = tokens_E / total
        entropy = -float(np.sum(shares_E * np.log(np.where(shares_E > 0, shares_E, 1))))
        rows.append(
            LayerSkew(
                layer_id,
                measured,
                total,
                max_over_mean=float(shares_E.max() * load.experts),
                hottest_tenth_share=float(np.sort(shares_E)[-tenth:].sum()),
                hottest_expert=int(tokens_E.argmax()),
                effective_experts=float(np.exp(entropy)),
            )
        )
    return rows


def heatmap(load: LoadProfile, width: int = 80, *, ascii_only: bool = False) -> str:
    """Layers down, experts across, at most `width` (no less than 20) columns: each cell the hottest expert in it, over its layer's mean.

    Rows that were not measured are marked ~, rows without any assignment are drawn as dashes.
    """
    width, blocks = max(width, 20), ASCII if ascii_only else BLOCKS
    gutter = max(len(str(load.layer_ids[-1])), 2) + 3
    room = width - gutter - 1
    cells = min(load.experts, room)
    repeat = min(WIDEST_EXPERT, room // cells)
    bar = "|" if ascii_only else "│"
    lines = []
    for layer_id, multiples_E, tokens_E in zip(
        load.layer_ids, load.shares_LE * load.experts, load.total_LE, strict=True
    ):
        mark = "~" if layer_id in load.unmeasured_layer_ids else " "
        drawn = "".join(
            blocks[np.searchsorted(EDGES, multiple, side="right")] * repeat
            for multiple in _binned(multiples_E, cells)
        )
        lines.append(
            f"{layer_id:>{gutter - 3}} {mark}{bar}{drawn if tokens_E.any() else '-' * (cells * repeat)}{bar}"
        )
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
    return f"layers down, experts 0-{load.experts - 1} across; {what} over the mean of its layer: blank below {EDGES[0]:g}, {steps}{unmeasured}"


def load_report(load: LoadProfile, width: int = 100) -> RenderableType:
    """Skew per layer as a table, the picture, and what a reader must know of the figures."""
    table = Table(
        title=f"{load.source}: {load.windows} {load.window_unit}(s), {load.experts} experts",
        title_justify="left",
    )
    for name in ("layer", "assignments", "max/mean", "hottest tenth gets", "hottest expert", "as uneven as"):
        table.add_column(name, justify="right")
    for row in skew_rows(load):
        figures = ("no signal", "", "", "")
        if (
            row.max_over_mean is not None
            and row.hottest_tenth_share is not None
            and row.effective_experts is not None
        ):
            figures = (
                f"{row.max_over_mean:.3f}",
                f"{row.hottest_tenth_share:.1%}",
                str(row.hottest_expert),
                f"{row.effective_experts:.1f} even experts",
            )
        table.add_row(f"{row.layer_id}{'' if row.measured else ' ~'}", f"{row.total:,}", *figures)
    return Group(
        table, Text(heatmap(load, width)), *(Text(f"Note: {note}", style="dim") for note in load.notes)
    )


def load_summary(load: LoadProfile, top_k: int) -> dict[str, Any]:
    """The same for machines. `counts_sum_per_layer` is in the order of `layers`; `tokens` is what the middle measured layer implies."""
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
