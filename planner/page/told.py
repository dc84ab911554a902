"""What the page of a plan tells: the plan file's own figures, and what it takes no room to keep.

Seconds, bounds and the choice of R stand in the file and are shown as they stand there. Loads of GPUs are
counted anew from the file's counts, and traffic from the rows kept beside it.

Shapes: L placed layers, E experts, G GPUs.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, read_bytes
from planner.cost import Cost, cost
from planner.engines import default_placement
from planner.load import LoadProfile
from planner.page.links import Traffic, traffic_of
from planner.placement import Placement
from planner.plan import SavedPlan, disagreements, held_out_load, kept_of, read_kept, read_plan
from planner.problem import Problem

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Told:
    """A plan file with what is worked out from it. `validation`: what a run of it found, as plain data."""

    file: Path
    saved: SavedPlan
    validation: Mapping[str, Any] | None = None

    @property
    def value(self) -> dict[str, Any]:
        return self.saved.value

    @property
    def problem(self) -> Problem:
        return self.saved.problem

    @property
    def placement(self) -> Placement:
        return self.saved.placement

    @property
    def engine(self) -> str | None:
        engine = self.value.get("engine")
        return None if engine is None else str(engine)

    @property
    def layer_ids(self) -> tuple[int, ...]:
        return self.placement.layer_ids

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(read_bytes(self.file)).hexdigest()

    @cached_property
    def held_out_load(self) -> LoadProfile | None:
        return held_out_load(self.value, self.problem.model, str(self.file))

    @cached_property
    def fitted(self) -> Cost:
        return self._cost(self.placement, self.problem.load, "fitted")

    @cached_property
    def held_out(self) -> Cost | None:
        load = self.held_out_load
        if load is None or self.value["predicted"]["held_out"] is None:
            return None
        return self._cost(self.placement, load, "held_out")

    @property
    def side(self) -> str:
        """The load that the plan is judged on: held_out where something was held out."""
        return "fitted" if self.held_out is None else "held_out"

    @property
    def judged(self) -> Cost:
        return self.held_out or self.fitted

    @property
    def judged_load(self) -> LoadProfile:
        load = self.held_out_load
        return self.problem.load if self.held_out is None or load is None else load

    @cached_property
    def default(self) -> Placement:
        """What the engine would do by itself with as many slots."""
        return default_placement(self.engine, self.problem)

    @cached_property
    def default_cost(self) -> Cost:
        """Of the default, on the load that the plan is judged on; worked out here."""
        return cost(self.problem, self.default, self.judged_load)

    @cached_property
    def rows(self) -> LoadProfile | None:
        """The tokens kept beside the plan; None where there are none."""
        kept = kept_of(self.value)
        return read_kept(kept, self.file, self.problem) if kept else None

    @cached_property
    def sent_load(self) -> LoadProfile:
        """Whose traffic is shown: the kept tokens, else the counts that the plan is judged on."""
        return self.rows or self.judged_load

    @cached_property
    def traffic(self) -> Mapping[str, Traffic]:
        """By side: of the plan, and of the default."""
        problem = replace(self.problem, load=self.sent_load)
        return {
            "plan": traffic_of(problem, self.placement),
            "engine default": traffic_of(problem, self.default),
        }

    @cached_property
    def worst_first(self) -> list[int]:
        """Rows of the layers, the one whose busiest GPU is most above the mean first; ties by layer."""
        over_L = self.judged.max_over_mean_L
        return sorted(range(len(self.layer_ids)), key=lambda row: (-over_L[row].round(12), row))

    @cached_property
    def doubts(self) -> list[str]:
        """Where today's moeplan comes to other figures than the file."""
        return disagreements(self.problem, self.placement, self.value)

    def _cost(self, placement: Placement, load: LoadProfile, side: str) -> Cost:
        """Loads counted here, all else as the file has it."""
        rows = self.value["predicted"][side]["layers"]
        if [row["layer"] for row in rows] != list(self.layer_ids):
            raise BadInput(
                f"{self.file}: predicted.{side} has {len(rows)} layers that are not the plan's "
                f"{len(self.layer_ids)}; solve again"
            )
        return replace(
            cost(self.problem, placement, load),
            dispatch_seconds_L=_column(rows, "dispatch_seconds"),
            compute_seconds_L=_column(rows, "compute_seconds"),
            combine_seconds_L=_column(rows, "combine_seconds"),
            bottleneck_L=tuple(row["bottleneck"] for row in rows),
            cross_node_L=_column(rows, "cross_node_share"),
        )


def _column(rows: list[dict[str, Any]], name: str) -> Floats:
    return np.array([row[name] for row in rows], dtype=np.float64)


def read_told(file: Path, validation: Mapping[str, Any] | None = None) -> Told:
    """BadInput where the file is not a plan, or holds figures of other layers than its own."""
    told = Told(file, read_plan(file), validation)
    _check_layers(told)
    return told


def _check_layers(told: Told) -> None:
    """That lists of figures by layer are as long as there are layers."""
    bound, layers = told.value["bound"], len(told.layer_ids)
    lists = {name: bound[name] for name in ("max_over_mean", "reason")}
    lists |= {
        name: bound[name] for name in ("proven_balance", "proven_time", "proven_objective") if name in bound
    }
    for name, entries in lists.items():
        if len(entries) != layers:
            raise BadInput(
                f"{told.file}: bound.{name} has {len(entries)} entries for {layers} layers; solve again"
            )
    _ = told.fitted, told.held_out
