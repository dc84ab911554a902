"""Measure every setting of one machine and transport in one launch, in an emulated cluster."""

import hashlib
import os
import platform
from collections.abc import Collection, Mapping
from datetime import datetime, timezone

import numpy as np

from probes.dispatch.validation import Contender, Settings, validate
from probes.emulation.namespaces import emulated
from probes.emulation.scale import as_shaped, scale_for
from probes.ranks.party import RunFailed
from probes.skew.measured import Measured
from probes.skew.settings import TOKENS, WIDTH, Question, Solve, question
from probes.skew.shapes import shape

REPEATS = 3
LONGEST_SECONDS = 300.0


def asked(
    name: str, transport: str, methods: Mapping[str, Solve], loads: Collection[str] | None = None
) -> Question:
    """The question about the cluster as it will be shaped; of those loads, all where none is named."""
    topology = shape(name)
    return question(as_shaped(topology, scale_for(topology)), transport, methods, loads)


def measure(name: str, question: Question, repeats: int = REPEATS) -> Measured:
    """BadInput where clusters cannot be emulated here; RunFailed where a rank fails or a sum is wrong."""
    problem = question.problem
    sides = {side: Contender(problem, placement) for side, placement in question.placements.items()}
    how = Settings(
        layers=None,
        tokens=TOKENS,
        hidden=WIDTH,
        repeats=repeats,
        timeout_seconds=LONGEST_SECONDS,
        device="cpu",
    )
    topology = shape(name)
    with emulated(topology, scale_for(topology)) as cluster:
        outcome = validate(sides, how, cluster)
    transport = problem.workload.transport
    if not outcome.report.ok:  # whether it was as fast as predicted is judged over all of them
        raise RunFailed(f"{name}, {transport}: {outcome.failed[0]}")
    return Measured(
        name,
        transport,
        tuple(one.name for one in question.settings),
        outcome.timed,
        key_of(question, repeats),
        datetime.now(timezone.utc).date().isoformat(),
        machine(),
    )


def key_of(question: Question, repeats: int = REPEATS) -> str:
    """What tells results of one question from those of another."""
    problem = question.problem
    digest = hashlib.sha256(f"{problem.workload} {WIDTH} {repeats} {problem.topology.digest()}".encode())
    for array in (problem.load.tokens_WLE, *(one.expert_LP for one in question.placements.values())):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def machine() -> str:
    """The machine at hand, in words that hold on any."""
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, CPU only"
