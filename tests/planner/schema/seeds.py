"""One value of each kind of file, as we write it, from small questions."""

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from planner.maps import emit_plan, write_emission
from planner.plan import plan_to_dict, write_plan
from planner.planning import PlanRequest, answer
from planner.topology import Seat, compare, read_topology
from planner.topology.calibrated import calibrated
from planner.topology.calibration_dict import calibration_to_dict
from planner.topology.calibration_shape import SCHEMA
from probes.base.facts import MeasureFacts, Sample
from probes.measure.file import SCHEMA as MEASURE_SCHEMA
from probes.measure.file import Measurement
from probes.record.facts_json import to_plain
from probes.record.file import record_to_dict
from tests.planner.calibrations import calibration_of
from tests.probes.records import record

SMALL = PlanRequest("mixtral", topology="hgx-h100:2x2", redundant=4, method="greedy")


@cache
def plan() -> Any:
    return answer(SMALL)


def plain(value: Any) -> Any:
    """As JSON would give it back."""
    return json.loads(json.dumps(value))


@cache
def seeds() -> dict[str, Any]:
    """By the names of `moeplan schema`."""
    machine = read_topology("hgx-h100:2")
    calibration = calibration_of(machine)
    seats = tuple(Seat(rank, f"host{rank // 4}", rank % 4, uuid=f"GPU-{rank}") for rank in range(4))
    row = Sample(1 << 20, 1e-3, 1e9, 2e9, 2e9, in_place=True)
    measured = MeasureFacts("here", "torch-gloo", "alltoall", 2, ("a", "b"), ("H100",), samples=(row,))
    with TemporaryDirectory() as name:
        folder = Path(name)
        file = write_plan(plan(), folder / "plan.json")
        write_emission(emit_plan(file, "trtllm"), file, folder / "out")
        manifest = json.loads((folder / "out" / "moeplan-emission.json").read_text())
    found: dict[str, Any] = plain(
        {
            "plan": plan_to_dict(plan()),
            "topology": calibrated(machine, calibration, "here").to_dict(),
            "calibration": {"schema": SCHEMA, **calibration_to_dict(calibration)},
            "load": {
                "counts": [[[3, 1, 2, 2]], [[4, 4, 0, 0]]],
                "layer_ids": [0],
                "windows": ["morning", "noon"],
                "window_unit": "hour",
                "phase": "decode",
                "source": "by hand",
                "notes": ["made for tests"],
            },
            "emission": manifest,
            "traffic": _traffic(),
            "seats": compare(seats, seats).to_dict(),
            "probe": record_to_dict(record(1)),
            "measure": {
                "schema": MEASURE_SCHEMA,
                **to_plain(Measurement("2026-01-15T09:30:00Z", (measured,))),
            },
        }
    )
    return found


def _traffic() -> dict[str, Any]:
    from planner.exchange.folder import SCHEMA as TRAFFIC_SCHEMA
    from planner.exchange.folder import Written

    one = Written(
        "plan/layer-000/dispatch",
        "plan",
        0,
        "dispatch",
        "",
        1.5,
        2,
        1,
        1,
        1e-3,
        "nic",
        1e-3,
        {"a": "b"},
        {"nccl": "x"},
    )
    return {"schema": TRAFFIC_SCHEMA, "plan_sha256": "0" * 64, "ranks": 4, "exchanges": [asdict(one)]}
