"""What a plan file holds.

What is read back is said to its range; figures that only people read, as the numbers and texts they are.
"""

from planner.bounds import PARTS
from planner.model import MODEL_SHAPE
from planner.problem import BYTES_PER_ELEMENT, TRANSPORTS, Objective, Workload
from planner.replica import RULES
from planner.schema import (
    Flag,
    Kind,
    Listing,
    Maybe,
    Number,
    Plain,
    Record,
    Shape,
    Table,
    Text,
    Whole,
    shape_of,
)
from planner.topology import LARGEST_GPUS, TOPOLOGY_SHAPE

SCHEMA = "moeplan/plan/1"
TRACE_PARTS = ("held out", "fitted")
MOST_SLOTS = 1 << 20  # of a layer
MOST_TOKENS = 1 << 40
_SECONDS, _SHARE = Number(0, 1e9), Number(0, 1)
_BYTES = Number(-1e18, 1e18)
_COUNT = Whole(0, (1 << 62) - 1)
_LAYER = Text(form="0|[1-9][0-9]{0,6}", said="a layer id")
_SHA256 = Text(form="[0-9a-f]{64}", said="a SHA-256")
_COST: dict[str, Shape] = {
    **{f"{part}_seconds": _SECONDS for part in PARTS},
    "bottleneck": Text(),
    "max_over_mean": Number(0, 1e9),
    "balancedness": Number(0, 1e9),
    "cross_node_share": _SHARE,
}
_OF_LAYER = Record({"layer": _COUNT, "silent": Flag(), **{key: _COST[key] for key in sorted(_COST)}})
_SUMMED = {"total_seconds": _SECONDS, **{key: _COST[key] for key in sorted(_COST)}}
_WHOLE = Record({**_SUMMED, "layers": Listing(_OF_LAYER)})
_SIDE = Record({**_SUMMED, "windows": _COUNT, "objective_seconds": Maybe(_SECONDS)})
_BASELINE = Record(
    {
        "name": Text(),
        "redundant": _COUNT,
        "survives": Flag(),
        "fitted": Record(_SUMMED),
        "held_out": Maybe(Record(_SUMMED)),
    }
)
_PREDICTED = Record(
    {
        "fitted": _WHOLE,
        "held_out": Maybe(_WHOLE),
        "fitted_objective_seconds": _SECONDS,
        "held_out_objective_seconds": Maybe(_SECONDS),
    },
    {
        "domains": Listing(Record({"name": Text(), "fitted": Maybe(_SIDE), "held_out": Maybe(_SIDE)})),
        "baselines": Listing(_BASELINE),
        "after_loss": Plain(),
    },
)
_BOUND = Record(
    {"max_over_mean": Listing(Number(0, 1e9)), "reason": Listing(Text()), "gap": Number()},
    {
        "total_seconds": _SECONDS,
        "gap_seconds_share": Number(),
        "parts": Table(Plain(), Text(PARTS)),
        **dict.fromkeys(("proven_balance", "proven_time", "proven_objective"), Listing(Flag())),
    },
)
_LOAD = Record(
    {"source": Text(), "counts": Listing(Listing(_COUNT, 1), 1)},
    {
        "windows": _COUNT,
        "window_unit": Text(),
        "window_names": Listing(Text()),
        "domain_names": Listing(Text()),
        "phase": Text(),
        "traced": Flag(),
        "unmeasured_layer_ids": Listing(_COUNT),
    },
)
_REQUEST = Whole(1, MOST_TOKENS)
_WORKLOAD = shape_of(
    Workload,
    {
        "tokens_per_rank": _REQUEST,
        "phase": Text(("prefill", "decode")),
        **dict.fromkeys(("dispatch_dtype", "combine_dtype"), Text(tuple(BYTES_PER_ELEMENT))),
        "transport": Text(tuple(TRANSPORTS)),
        **dict.fromkeys(("prompt_tokens", "output_tokens"), _REQUEST),
        "attention_tp": Whole(1, LARGEST_GPUS),
    },
).needing("tokens_per_rank", "phase", "dispatch_dtype", "combine_dtype", "transport")
_PROVENANCE = Record(
    {},
    {
        **dict.fromkeys(
            ("moeplan", "method", "model_source", "topology_source", "load_source", "python"), Text()
        ),
        **dict.fromkeys(("topology_sha256", "load_sha256"), _SHA256),
        "seed": _COUNT,
        "budget_seconds": Maybe(Number(0)),
        "prove": Flag(),
        "held_out_share": _SHARE,
        "without": Listing(_COUNT),
    },
)
_REQUIRED: dict[str, Shape] = {
    "schema": Text((SCHEMA,)),
    "model": MODEL_SHAPE,
    "gpus": Whole(1, LARGEST_GPUS),
    "slots_per_gpu": Whole(1, MOST_SLOTS),
    "replica_rule": Text(tuple(RULES)),
    "workload": _WORKLOAD,
    # its ids are judged by layer and slot, with every other rule of rows
    "placement": Table(Listing(Plain(), 1, MOST_SLOTS), _LAYER, 1),
    "predicted": _PREDICTED,
    "bound": _BOUND,
    "load": _LOAD,
    "topology": TOPOLOGY_SHAPE,
    "provenance": _PROVENANCE,
}
_OPTIONAL: dict[str, Shape] = {
    "redundant": _COUNT,
    "engine": Maybe(Text()),
    "method": Text(),
    "kv_floor_bytes": Number(0, 1e18),
    "survive": Maybe(Text(form="node|[1-9][0-9]{0,5}", said="a number of GPUs, or node")),
    "objective": shape_of(Objective, {"kind": Text(("mean", "worst", "risk")), "z": Number(0, 1e6)}),
    "resplittable": Flag(),
    "constants": Plain(),
    "moves": Plain(),
    "memory": Plain(),
    "held_out_load": Maybe(_LOAD),
    "traffic": Maybe(Record({"sha256": _SHA256, "tokens": Whole(1, MOST_TOKENS), "part": Text(TRACE_PARTS)})),
    "redundant_curve": Maybe(Listing(Table(Maybe(Number())))),
    "notes": Listing(Text()),
}
PLAN = Kind("a plan file", SCHEMA, "`moeplan solve -o plan.json` writes one", Record(_REQUIRED, _OPTIONAL))
