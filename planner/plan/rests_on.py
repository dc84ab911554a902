"""What a plan's seconds rest on: the constants behind them, as plain values for its file."""

from dataclasses import asdict
from typing import Any

from planner.cost import constants_of
from planner.problem import Problem


def constants_to_dict(problem: Problem) -> dict[str, Any]:
    """Figures in seconds and shares, with source and error; compute: one entry a GPU model, in rank order."""
    found = constants_of(problem)
    return {
        "dispatch": asdict(found.dispatch),
        "combine": asdict(found.combine),
        "compute": [
            {"gpu_model": model.name, **asdict(one)}
            for model, one in zip(problem.topology.models, found.compute_M, strict=True)
        ],
    }
