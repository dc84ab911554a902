"""The page of the benchmark of skew, docs/skew.md, from what was measured. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from probes.skew.calibrated import Calibrated, calibrated, mean_error
from probes.skew.judge import (
    APART,
    Cell,
    Errors,
    Whole,
    by_load,
    by_placement,
    by_transport,
    cells_of,
    correlations,
    errors_of,
    waits,
    wholes_of,
    winners,
)
from probes.skew.measured import Measured
from probes.skew.settings import EXPERTS, REDUNDANT_A_GPU, TOKENS, TOP_K, WIDTH
from probes.skew.shapes import NIC, NVLINK, SHAPES

ALIKE = 0.01  # predictions that are no order: a few thousandths apart, as all of an all-gather's are
LEAST_SETTINGS, MAPE, CALIBRATED_MAPE, CORRELATION, NAMED = 60, 0.10, 0.05, 0.95, 0.9


def page_text(found: Sequence[Measured]) -> str:
    """The whole page. Every figure is computed from what is given."""
    cells, fits = cells_of(found), calibrated(found)
    wholes = wholes_of(cells)
    parts = [
        _head(found),
        _aims(found, cells, wholes, fits),
        _by_transport(cells),
        _by_fit(fits),
        _by_setting(wholes),
        _wrong(wholes),
        _tail(),
    ]
    return "\n\n".join(parts) + "\n"


def _head(found: Sequence[Measured]) -> str:
    dates = sorted({one.date for one in found})
    machines = sorted({one.machine for one in found})
    shapes = "\n".join(f"* `{name}`: {words}" for name, (*_, words) in SHAPES.items())
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"""\
# All-to-alls under skew

`make skew` runs this benchmark and writes this page. {when}, {"; ".join(machines)}.

Dispatch and combine of a step, run by one process a rank in emulated clusters whose links are shaped
to {NIC} (NICs) and {NVLINK} (NVLink), beside what the [cost model](cost-model.md) says of the same
step: {TOKENS} tokens a rank, top-{TOP_K} of {EXPERTS} experts, {WIDTH} bf16 elements wide. A setting is a
machine, a transport, a load and a placement: `linear`, or `plan`, made by `refine` with {REDUNDANT_A_GPU}
spare slot a GPU for the load that was known. Seconds are of the slowest rank, the median over
repeats. "Modelled" is the expectation from the load, "drawn" the same of the tokens that were drawn
from it.

{shapes}"""


def _aims(
    found: Sequence[Measured], cells: Sequence[Cell], wholes: Sequence[Whole], fits: Sequence[Calibrated]
) -> str:
    modelled = errors_of(cells, lambda one: one.modelled)
    correlation, waited, left = correlations(wholes), waits(found), mean_error(fits)
    told_apart = correlations(wholes, ALIKE)
    placements, transports, loads = (
        winners(wholes, alike) for alike in (by_placement, by_transport, by_load)
    )
    lines = [
        Aim(
            "settings", f"at least {LEAST_SETTINGS}", f"{len(wholes)}", reached=len(wholes) >= LEAST_SETTINGS
        ),
        Aim(
            "mean error before calibration",
            f"at most {MAPE:.0%}",
            _errors(modelled),
            reached=modelled.mape <= MAPE,
        ),
        Aim(
            "mean error after calibration, on loads left out",
            f"at most {CALIBRATED_MAPE:.0%}",
            "not all could be calibrated" if left is None else f"{left:.1%}",
            reached=left is not None and left <= CALIBRATED_MAPE,
        ),
        Aim(
            "rank correlation within a machine",
            f"at least {CORRELATION}",
            ", ".join(f"{name} {value:.3f}" for name, value in correlation.items()),
            reached=min(correlation.values()) >= CORRELATION,
        ),
        Aim(
            f"the same, predictions within {ALIKE:.0%} of each other as one",
            f"at least {CORRELATION}",
            ", ".join(f"{name} {value:.3f}" for name, value in told_apart.items()),
            reached=min(told_apart.values()) >= CORRELATION,
        ),
        *(
            Aim(
                f"winner of two {what} measured more than {APART:.0%} apart",
                "every pair",
                f"{one.right} of {one.pairs}",
                reached=one.right == one.pairs,
            )
            for what, one in (("placements", placements), ("transports", transports), ("loads", loads))
        ),
        Aim(
            "resource waited for, by dispatch or combine",
            f"at least {NAMED:.0%}",
            f"{waited.right} of {waited.phases}; {waited.untold} not to be told",
            reached=waited.right >= NAMED * waited.phases,
        ),
    ]
    return "## What was aimed at\n\n" + _table(
        ("figure", "aim", "found", "reached"),
        ((one.what, one.aim, one.found, "yes" if one.reached else "no") for one in lines),
    )


@dataclass(frozen=True)
class Aim:
    """One line of what was aimed at."""

    what: str
    aim: str
    found: str
    reached: bool


def _errors(found: Errors) -> str:
    return f"{found.mape:.1%} (bias {found.bias:+.1%}, worst {found.worst:.1%})"


def _by_transport(cells: Sequence[Cell]) -> str:
    rows = []
    for shape in SHAPES:
        for transport in dict.fromkeys(one.transport for one in cells if one.shape == shape):
            row = [f"`{shape}`", f"`{transport}`"]
            for phase in ("dispatch", "combine"):
                these = [
                    one for one in cells if (one.shape, one.transport, one.phase) == (shape, transport, phase)
                ]
                for of in _PREDICTIONS:
                    error = errors_of(these, of)
                    row.append(f"{error.mape:.1%} / {error.bias:+.1%}")
            rows.append(row)
    head = ("machine", "transport", "dispatch, modelled", "drawn", "combine, modelled", "drawn")
    return "## Errors\n\nMean error / bias, over loads and placements.\n\n" + _table(head, rows)


def _by_fit(fits: Sequence[Calibrated]) -> str:
    rows = [
        (
            f"`{one.transport}`",
            one.phase,
            f"{one.settings}",
            "" if one.error is None else f"{one.error:.1%}",
            one.said,
        )
        for one in fits
    ]
    head = ("transport", "phase", "settings", "mean error on loads left out", "fitted")
    return "## After calibration\n\nOne fit over all machines, each load left out in turn.\n\n" + _table(
        head, rows
    )


_PREDICTIONS: tuple[Callable[[Cell], float], ...] = (lambda one: one.modelled, lambda one: one.drawn)


def _by_setting(wholes: Sequence[Whole]) -> str:
    parts = ["## Every setting", "Dispatch and combine together, modelled / measured, milliseconds."]
    for shape in SHAPES:
        here = [one for one in wholes if one.shape == shape]
        if not here:
            continue
        transports = list(dict.fromkeys(one.transport for one in here))
        rows = []
        for setting, side in dict.fromkeys((one.setting, one.side) for one in here):
            by_name = {one.transport: one for one in here if (one.setting, one.side) == (setting, side)}
            rows.append([setting, side, *(_milliseconds(by_name.get(name)) for name in transports)])
        parts.append(f"### {SHAPES[shape][-1].capitalize()}")
        parts.append(_table(("load", "placement", *(f"`{name}`" for name in transports)), rows))
    return "\n\n".join(parts)


def _milliseconds(one: Whole | None) -> str:
    return f"{one.modelled * 1e3:.0f} / {one.measured * 1e3:.0f}" if one else ""


def _wrong(wholes: Sequence[Whole]) -> str:
    found = [
        (what, pair)
        for what, alike in (("placements", by_placement), ("transports", by_transport), ("loads", by_load))
        for pair in winners(wholes, alike).wrong
    ]
    if not found:
        return (
            f"## Winners that were wrong\n\nNone of the pairs that were measured more than {APART:.0%} apart."
        )
    rows = [(what, _named(faster), _named(slower)) for what, (faster, slower) in found]
    return "## Winners that were wrong\n\nModelled / measured, milliseconds.\n\n" + _table(
        ("pairs of", "was faster", "was predicted faster, or as fast"), rows
    )


def _named(one: Whole) -> str:
    return f"`{one.shape}` `{one.transport}` {one.setting}, {one.side}: {_milliseconds(one)}"


def _tail() -> str:
    return """\
## What is not in it

* Uneven sources: every rank has as many tokens. A load has no source axis and a step one number of
  tokens a rank, so neither the cost model nor a run of a plan can be told of them.
* Links of GPUs: rates are a thousandth of theirs, over TCP. What is judged are the bytes, the resources
  and the order of things; start-up and efficiency of GPU kernels are
  [another matter](cost-model.md#from-messages-to-seconds).
* Expert compute, which here is that of the CPU."""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
