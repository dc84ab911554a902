"""What `moeplan validate --json` prints, read back: checked by its shape, then against the plan."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.base import BadInput, read_json
from planner.bounds import PARTS
from planner.problem import Problem
from planner.schema import Flag, Kind, Listing, Maybe, Number, Plain, Record, Shape, Table, Text, Whole

_SECONDS = Table(Table(Number(0, 1e9), Text(PARTS)))
_CHECK = Record({"name": Text(), "ok": Flag(), "detail": Text()})
_FIGURES: dict[str, Shape] = {
    **dict.fromkeys(("median", "p95", "modelled", "drawn"), Number(0, 1e9)),
    **dict.fromkeys(("spread", "error", "modelled_error"), Number()),
}
_PHASE = Record(
    {
        "side": Text(),
        "phase": Text(),
        **_FIGURES,
        **dict.fromkeys(("mape", "bias", "modelled_mape", "modelled_bias"), Number()),
        "holds": Flag(),
    }
)
_GAIN = Record(
    {
        "against": Text(),
        "phases": Listing(Text()),
        **dict.fromkeys(("measured", "promised", "drawn"), Number()),
        **dict.fromkeys(("low", "high", "tolerance"), Maybe(Number())),
        "state": Text(),
    }
)
_VERDICT = Record(
    {
        "state": Text(),
        "judged": Listing(Text()),
        "tolerances": Plain(),
        "phases": Listing(_PHASE),
        "gains": Listing(_GAIN),
        "slowest_rank": Whole(0, 1 << 20),
        "waited_for": Maybe(Text()),
        "cause": Plain(),
    }
)
_RUN: dict[str, Shape] = {
    "schema": Text(("moeplan/validation/1",)),
    "ok": Flag(),
    "answer": Text(),
    "device": Text(),
    "hosts": Listing(Text(), 1),
    "layers": Listing(Whole(0, 1 << 20), 1),
    "checks": Listing(_CHECK),
    "verdict": Maybe(_VERDICT),
    "measured_seconds": _SECONDS,
    "predicted_seconds": _SECONDS,
    "resources": Listing(Text()),
    "transport": Text(),
    "notes": Listing(Text()),
    **dict.fromkeys(("tokens", "width", "repeats"), Whole(0, 1 << 40)),
}
_OTHERS = (
    *("seed", "dispatch_dtype", "combine_dtype", "traffic", "emulated_scale", "unjudged"),
    *("dispatch_bytes", "compute_seconds_G", "timed"),
)
RUN = Kind(
    "what `moeplan validate --json` printed",
    "moeplan/validation/1",
    "`moeplan validate PLAN --json > run.json` makes one",
    Record(_RUN, {name: Plain() for name in _OTHERS}),
)


def read_validation(path: Path) -> Mapping[str, Any]:
    """BadInput where the file is nothing of the kind."""
    value = read_json(path)
    RUN.check(value, str(path))
    found: Mapping[str, Any] = value
    return found


def check_of_plan(run: Mapping[str, Any], problem: Problem, layer_ids: tuple[int, ...], where: str) -> None:
    """BadInput where the run was of another machine, transport or layers than the plan's."""
    names = [one.name for one in problem.topology.resources]
    if run["resources"] != names or len(run["hosts"]) != problem.gpus:
        of = f"{len(run['hosts'])} ranks and {len(run['resources'])} links"
        raise BadInput(
            f"{where}: the run was of {of}, the plan has {problem.gpus} GPUs and {len(names)} links "
            "of other names or number"
        )
    if run["transport"] != problem.workload.transport or not set(run["layers"]) <= set(layer_ids):
        raise BadInput(
            f"{where}: the run was of layers {run['layers']} by transport '{run['transport']}', which "
            f"are not the plan's ('{problem.workload.transport}')"
        )
