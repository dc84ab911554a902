"""The launches of test_sglang_launches.py.

Every catalogue model on four machines, for both phases, as a server for all traffic and as half of a pair;
and a small model with each quantisation.
"""

import copy
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from planner.base import BadInput
from planner.engines import Emission, Verdict, find_engine, judge_launch
from planner.model import ModelSpec, find_model, model_names, spec_from_config
from planner.problem import Problem, Workload
from planner.topology import read_topology
from tests.engines.catalogue import QUANTISATIONS
from tests.engines.configs import CONFIGS, Config
from tests.engines.sglang_catalogue import config_of
from tests.planner.engines.examples import question

ENGINE = find_engine("sglang")
MACHINES = {  # preset, MiB of memory and compute capability as the driver says them
    "8 x H100": ("hgx-h100", 81559, (9, 0)),
    "2 x 8 H100": ("hgx-h100:2", 81559, (9, 0)),
    "2 x 8 B200": ("hgx-b200:2", 183359, (10, 0)),
    "GB200 rack": ("gb200-nvl72", 189471, (10, 0)),
}
TOKENS = {"decode": 128, "prefill": 4096}
Answer = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """One launch: what is emitted, or why nothing is."""

    model: ModelSpec
    config: Config | None  # None: no config of the architecture is known here
    machine: str
    phase: str
    role: str

    def __str__(self) -> str:
        return f"{self.model.name}, {self.machine}, {self.phase}, {self.role}"

    @cached_property
    def problem(self) -> Problem:
        """BadInput where the experts do not fit the machine."""
        topology = read_topology(MACHINES[self.machine][0])
        redundant = -self.model.experts % topology.gpu_count
        asked = question(self.model, topology, redundant, self.phase, TOKENS[self.phase])
        transport = ENGINE.transport(self.phase, topology, self.model)
        workload = Workload(TOKENS[self.phase], self.phase, transport=transport)
        rule = ENGINE.replica_rule(self.phase, topology, self.model)
        return Problem(topology, self.model, asked.load, workload, asked.slots_per_gpu, rule)

    @cached_property
    def verdict(self) -> Verdict:
        return judge_launch("sglang", self.problem, role=self.role)

    @cached_property
    def emission(self) -> Emission | BadInput:
        try:
            placement = ENGINE.default_placement(self.model, self.problem.gpus, self.problem.redundant)
            return ENGINE.emit(placement, self.problem, "MODEL", role=self.role)
        except BadInput as refused:
            return refused

    @property
    def launch(self) -> Answer:
        """The first node's, for the resolver."""
        assert isinstance(self.emission, Emission)
        _, memory, capability = MACHINES[self.machine]
        command, topology = self.emission.commands[0], self.problem.topology
        told = " ".join(command.words).replace('"$PLAN_DIR"', "/plan").replace("$HEAD_ADDRESS", "10.0.0.1")
        words = shlex.split(told)
        return {
            "words": words[words.index("MODEL") + 1 :], "env": dict(command.environment),
            "config": self.config, "memory_mib": memory, "capability": capability,
            "devices": topology.gpu_count // topology.node_count,
        }  # fmt: skip

    @property
    def is_asked(self) -> bool:
        return self.config is not None and isinstance(self.emission, Emission)


def catalogue() -> Iterator[Asked]:
    for model in map(find_model, model_names()):
        config = config_of(model)
        for machine in MACHINES:
            for phase in TOKENS:
                yield from (Asked(model, config, machine, phase, role) for role in ("mixed", phase))


def quantised() -> Iterator[Asked]:
    """A small DeepSeek-V3 in every quantisation, read by moeplan from the same config.json."""
    for name, quantisation in QUANTISATIONS.items():
        config = copy.deepcopy(CONFIGS["deepseek_v3"])
        config |= {"quantization_config": quantisation} if quantisation else {}
        model = spec_from_config(config, name, "made for tests")
        for machine in ("8 x H100", "2 x 8 B200"):
            yield from (Asked(model, config, machine, phase, phase) for phase in TOKENS)
            yield Asked(model, config, machine, "decode", "mixed")


def key(asked: Asked) -> str:
    """Models of one shape have one launch."""
    return json.dumps(asked.launch, sort_keys=True)
