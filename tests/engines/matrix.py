"""The matrix that `make engines` asks the engines about: models x EP sizes x nodes x redundant experts.

Each with a random valid placement.
"""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from planner.base import BadInput
from planner.engines import Emission, find_engine, plugin_engines
from planner.model import ModelSpec, spec_from_config
from planner.placement import Placement
from planner.problem import Problem
from tests.engines.configs import CONFIGS
from tests.planner.engines.examples import machine, question, random_placement, started

SHAPES = [(gpus, nodes) for gpus in (4, 8, 16, 32) for nodes in (1, 2, 4)]
HOT = 5  # experts that share all replicas in every third combination


@dataclass(frozen=True)
class Combination:
    """A model on a machine, and a placement of its experts there."""

    problem: Problem
    placement: Placement

    def __str__(self) -> str:
        problem = self.problem
        size = f"EP {problem.gpus}, {problem.topology.node_count} nodes, R {problem.redundant}"
        return f"{problem.model.name}, {size}, {problem.workload.phase}"

    def emitted(self, engine: str, *, plugin: bool = False) -> Emission | None:
        """What `moeplan emit` would write, or None where it refuses."""
        emit = plugin_engines()[engine].emit_with_plugin if plugin else find_engine(engine).emit
        try:
            return emit(self.placement, self.problem, "MODEL")
        except BadInput:
            return None


@cache
def spec(name: str) -> ModelSpec:
    return spec_from_config(CONFIGS[name], name, f"the matrix's {name}")


def combinations(name: str) -> Iterator[Combination]:
    """Every shape with three amounts of redundancy, the least that divide. Decode and prefill take turns."""
    model, count = spec(name), 0
    for gpus, nodes in SHAPES:
        for redundant in [fits for fits in (0, 8, 16, 32, 64) if (model.experts + fits) % gpus == 0][:3]:
            hot = HOT if count % 3 == 1 and redundant <= HOT * (gpus - 1) else None
            topology, phase = machine(*[gpus // nodes] * nodes), ("decode", "prefill")[count % 2]
            problem = question(model, topology, redundant, phase)
            yield Combination(problem, random_placement(model, gpus, redundant, seed=count, hot=hot))
            count += 1


def flags(emission: Emission, folder: Path, program: str, node: int) -> list[str]:
    """What launch.sh really hands to `program` on one node; the files lie in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    loaded = {name: text for name, text in emission.files.items() if "/" not in name}
    return started(Emission(loaded, emission.launch, emission.notes), folder, program, node_rank=node)


def asked(python: str, oracle: str, request: Any, seconds: float = 600) -> Any:
    """What a program of this folder, run by an engine's interpreter, prints last: one process for many
    questions, since imports are most of its time.
    """
    script = Path(__file__).with_name(oracle)
    run = subprocess.run(
        [python, str(script)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout.splitlines()[-1])
