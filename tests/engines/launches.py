"""Launches that an engine itself is asked about: every catalogue model on four machines, phases and roles.

What is the same for every engine; how the engine is asked, and what must hold of its answer, is its own.
"""

import copy
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from docs.make_engines_page import MACHINES
from planner.base import BadInput
from planner.engines import Emission, Verdict, find_engine
from planner.model import ModelSpec, find_model, model_names, spec_from_config
from planner.problem import Problem
from planner.topology import read_topology
from tests.engines.catalogue import QUANTISATIONS
from tests.engines.configs import CONFIGS, Config
from tests.planner.engines.examples import question

TOKENS = {"decode": 128, "prefill": 4096}
Answer = dict[str, Any]
Kind = TypeVar("Kind", bound="Launch")


@dataclass(frozen=True)
class Launch:
    """One launch: what is emitted, or why nothing is."""

    model: ModelSpec
    config: Config | None  # None: no config of the architecture is known here
    machine: str
    phase: str
    role: str
    attention_tp: int = 1

    ENGINE: ClassVar[str]
    CHECKED: ClassVar[str]  # by what, for the table of docs/engines.md

    def __str__(self) -> str:
        shared = f", attention TP{self.attention_tp}" if self.attention_tp > 1 else ""
        return f"{self.model.name}, {self.machine}, {self.phase}, {self.role}{shared}"

    @cached_property
    def problem(self) -> Problem:
        """BadInput where the experts do not fit the machine."""
        engine, topology = find_engine(self.ENGINE), read_topology(MACHINES[self.machine])
        redundant = -self.model.experts % topology.gpu_count
        asked = question(self.model, topology, redundant, self.phase, TOKENS[self.phase])
        transport = engine.transport(self.phase, topology, self.model)
        workload = replace(asked.workload, transport=transport, attention_tp=self.attention_tp)
        rule = engine.replica_rule(self.phase, topology, self.model)
        return replace(asked, workload=workload, replica_rule=rule)

    @cached_property
    def verdict(self) -> Verdict:
        return find_engine(self.ENGINE).judge(self.problem, role=self.role)

    @cached_property
    def emission(self) -> Emission | BadInput:
        engine = find_engine(self.ENGINE)
        try:
            placement = engine.default_placement(self.model, self.problem.gpus, self.problem.redundant)
            return engine.emit(placement, self.problem, "MODEL", role=self.role)
        except BadInput as refused:
            return refused

    @cached_property
    def launch(self) -> Answer:
        """The first node's, for the engine's resolver."""
        raise NotImplementedError

    @property
    def outcome(self) -> str:
        return self.verdict.outcome

    @property
    def is_asked(self) -> bool:
        return self.config is not None and isinstance(self.emission, Emission)

    @property
    def key(self) -> str:
        """Models of one shape have one launch."""
        return json.dumps(self.launch, sort_keys=True)

    def row(self) -> dict[str, Any]:
        """For the table of docs/engines.md."""
        row: dict[str, Any] = {
            "engine": self.ENGINE,
            "model": self.model.name,
            "family": self.model.architecture,
        }
        row |= {"quantisation": self.model.quantization or self.model.weight_dtype}
        row |= {"machine": self.machine, "phase": self.phase, "role": self.role, "checked": ""}
        row |= {"attention_tp": self.attention_tp} if self.attention_tp > 1 else {}
        if not isinstance(self.emission, Emission):
            return {**row, "outcome": "refused", "why": str(self.emission)}
        why = [finding.text for finding in self.verdict.findings if finding.rule in ("all-to-all", "map")]
        checked = self.CHECKED if self.is_asked else ""
        said = {"outcome": self.outcome, "why": "; ".join(why), "checked": checked}
        return {**row, **said, "flags": self.launch["words"]}


def catalogue(kind: type[Kind], config_of: Callable[[ModelSpec], Config | None]) -> Iterator[Kind]:
    """Every model, as a server for all traffic and as half of a pair."""
    for model in map(find_model, model_names()):
        config = config_of(model)
        for machine in MACHINES:
            for phase in TOKENS:
                yield from (kind(model, config, machine, phase, role) for role in ("mixed", phase))


def quantised(kind: type[Kind], roles: Sequence[tuple[str, str]]) -> Iterator[Kind]:
    """A small DeepSeek-V3 in every quantisation, read by moeplan from the same config.json.

    `roles`: (phase, role) of each launch.
    """
    for name, quantisation in QUANTISATIONS.items():
        config = copy.deepcopy(CONFIGS["deepseek_v3"])
        config |= {"quantization_config": quantisation} if quantisation else {}
        model = spec_from_config(config, name, "made for tests")
        for machine in ("8 x H100", "2 x 8 B200"):
            yield from (kind(model, config, machine, *role) for role in roles)


def shared_attention(kind: type[Kind], config_of: Callable[[ModelSpec], Config | None]) -> Iterator[Kind]:
    """Every model with the attention of a request over two GPUs, over four and over all of a node."""
    for model in map(find_model, model_names()):
        config = config_of(model)
        for machine, shared in (("8 x H100", 2), ("8 x H100", 8), ("2 x 8 H100", 4), ("2 x 8 B200", 4)):
            for phase in TOKENS:
                yield kind(model, config, machine, phase, "mixed", shared)


def record(launches: Sequence[Launch]) -> None:
    """A JSON object a line, where MOEPLAN_MATRIX_OUT names a file."""
    path = os.environ.get("MOEPLAN_MATRIX_OUT")
    if path:
        with Path(path).open("a", encoding="utf-8") as lines:
            lines.writelines(f"{json.dumps(one.row(), sort_keys=True)}\n" for one in launches)
