"""What a plan's seconds rest on: the constants behind them, as plain values for its file."""

from dataclasses import asdict
from typing import Any

from planner.cost import PhaseConstants, constants_of
from planner.problem import Problem


def constants_to_dict(problem: Problem) -> dict[str, Any]:
    """Figures in seconds and shares, with source and error; compute: one entry a GPU model, in rank order."""
    found = constants_of(problem)
    return {
        "dispatch": _phase(found.dispatch),
        "combine": _phase(found.combine),
        "compute": [
            {"gpu_model": model.name, **asdict(one)}
            for model, one in zip(problem.topology.models, found.compute_M, strict=True)
        ],
    }


def _phase(found: PhaseConstants) -> dict[str, Any]:
    """The shares of single tiers only where the machine is calibrated."""
    figures = asdict(found)
    shares = dict(figures.pop("calibrated"))
    return {**figures, "calibrated": shares} if shares else figures
