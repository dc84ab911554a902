"""Whole steps: predicted TPOT beside what was measured, and beside AIConfigurator's prediction of the same.

The rows ship with aiconfigurator-core (extra `aiconfigurator`) and are read from there.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from planner.bench.frame import Peers, Table, each
from planner.bench.whole_data import calibrated
from planner.bench.whole_law import SPLIT, TPOT, TTFT, Predict, Target, errors, halves
from planner.bench.whole_peer import peer_found, peer_tpot_seconds
from planner.bench.whole_rows import MACHINES, read_rows, rows_folder
from planner.bench.whole_terms import Measured, measured, possible
from planner.cost import JUDGED_REQUESTS, Judged, calibration
from planner.solvers import Progress

TITLE = "Whole step: predicted and measured TPOT, configurations held out of the fit"
WITHOUT_EP = "tpot, without EP, not fitted"
ABSENT = "not measured: aiconfigurator-core is not installed (pip install 'moeplan[aiconfigurator]')"
PEER_ABSENT = "AIConfigurator's own predictions are left out: aiconfigurator is not installed beside its core"
NOTES = (
    f"Laws are {SPLIT}; both sides have every system. Errors are shares of the measured seconds.",
    (
        "trivial: the median of the system and model on the fitted side. by both: rows for which "
        "AIConfigurator has tables; it takes the engine versions it has, not those that were measured."
    ),
    (
        "without EP: rows whose experts are sliced over all GPUs, up to 8; nothing is fitted to them. As "
        "listed: with those that took less than reading their caches and experts takes."
    ),
    f"ttft: servers that decode on the same GPUs, at most {JUDGED_REQUESTS} requests open; not a queue.",
)


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """Every row of the package, once."""
    del peers, repeats
    folder = rows_folder()
    if folder is None:
        return Table(TITLE, (), (ABSENT,))
    rows = [measured(row) for row in each(read_rows(folder), _part(progress, 0.0), lambda row: row.name)]
    sliced = [measured(row) for row in read_rows(folder, sliced=True)]
    kept = possible(sliced)
    again = calibrated(rows, kept)
    fitted, held_out = halves(rows)
    predicts = {"moeplan": TPOT.predict(calibration().tpot.law), "trivial": _trivial(fitted)}
    table = [
        *_rows("tpot, held out", held_out, TPOT, predicts),
        *(_beside_peer(held_out, predicts, _part(progress, 0.5)) if peer_found() else ()),
        *_otherwise(again, TPOT),
        *_rows(WITHOUT_EP, kept, TPOT, {"moeplan": predicts["moeplan"]}),
        *_without_ep_as_listed(sliced, predicts["moeplan"]),
        *_rows("ttft, held out", held_out, TTFT, {"moeplan": TTFT.predict(calibration().ttft.law)}),
        *_otherwise(again, TTFT),
    ]
    missing = () if peer_found() else (PEER_ABSENT,)
    return Table(TITLE, tuple(table), (*NOTES, _noise(rows), _shipped(again), *missing))


def _rows(
    name: str, rows: Sequence[Measured], target: Target, predicts: Mapping[str, Predict]
) -> Iterator[dict[str, object]]:
    """Errors of each prediction by system, then of all."""
    for system in (*MACHINES, None):
        own = [one for one in target.kept(rows) if system in (one.row.system, None)]
        took = [target.took(one) for one in own]
        instance = f"{name}, {MACHINES[system][2] if system else 'all'}"
        for method, predict in predicts.items() if own else ():
            yield _row(instance, method, *errors(list(map(predict, own)), took))


def _row(instance: str, method: str, judged: Judged, bias: float | None) -> dict[str, object]:
    return {
        "instance": instance,
        "method": method,
        "rows": judged.rows,
        "mean_error_share": judged.mean_error,
        "median_error_share": judged.median_error,
        "bias_share": bias,
    }


def _beside_peer(
    rows: Sequence[Measured], predicts: Mapping[str, Predict], progress: Progress | None
) -> Iterator[dict[str, object]]:
    """Errors on the rows that AIConfigurator predicts too."""
    asked = each(rows, progress, lambda one: f"AIConfigurator: {one.row.name}")
    told = {one.row.name: peer_tpot_seconds(one.row) for one in asked}
    both = [one for one in rows if told[one.row.name] is not None]
    peer = {"AIConfigurator": lambda one: told[one.row.name] or 0.0}
    yield from _rows("tpot, by both", both, TPOT, {**predicts, **peer})


def _otherwise(again: Mapping[str, Any], target: Target) -> Iterator[dict[str, object]]:
    for key in ("halves_swapped", "model_left_out", "gpu_left_out"):
        yield _row(
            f"{target.name}, {key.replace('_', ' ')}", "moeplan", Judged(**again[target.name][key]), None
        )


def _without_ep_as_listed(rows: Sequence[Measured], predict: Predict) -> Iterator[dict[str, object]]:
    if not rows:
        return
    judged = errors(list(map(predict, rows)), list(map(TPOT.took, rows)))
    yield _row(f"{WITHOUT_EP}, as listed", "moeplan", *judged)


def _trivial(fitted: Sequence[Measured]) -> Predict:
    """The median step of the system and the kind of model, or of all steps."""

    def predict(one: Measured) -> float:
        alike = [
            TPOT.took(other)
            for other in fitted
            if other.row.system == one.row.system
            and other.row.model.architecture == one.row.model.architecture
        ]
        return median(alike or map(TPOT.took, fitted))

    return predict


def _noise(rows: Sequence[Measured]) -> str:
    """What the best single figure for each configuration would miss its own measurements by."""
    by_configuration: dict[str, list[float]] = {}
    for one in rows:
        by_configuration.setdefault(one.row.configuration, []).append(TPOT.took(one))
    recurring = [took for took in by_configuration.values() if len(took) > 1]
    if not recurring:
        return "no configuration was measured twice"
    apart = max(max(took) / min(took) for took in recurring)
    floor = errors(
        [median(took) for took in recurring for _ in took], [one for took in recurring for one in took]
    )
    return (
        f"{len(recurring)} configurations were measured more than once, up to {apart:.2f} x apart: "
        f"their own median misses them by {floor[0].mean_error:.1%}, and no prediction can do better"
    )


def _shipped(again: Mapping[str, Any]) -> str:
    """Whether what ships is what this run fits."""
    shipped = calibration()
    pairs = [(shipped.tpot.law, again["tpot"]["law"]), (shipped.ttft.law, again["ttft"]["law"])]
    if all(vars(law) == fitted for law, fitted in pairs):
        return "refitted in this run: the coefficients that ship, digit for digit"
    base = again["tpot"]["law"]["base"]
    far = max(abs(shipped.tpot.law.base.get(term, 0.0) / value - 1) for term, value in base.items())
    return (
        f"refitted in this run: the coefficients that ship are up to {far:.1%} from these, which "
        "docs/make_whole_step.py writes"
    )


def _part(progress: Progress | None, begins: float) -> Progress | None:
    """Half of the study, from this share of it on."""
    return None if progress is None else lambda share, text: progress(begins + share / 2, text)
