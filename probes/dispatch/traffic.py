"""Which tokens a run of a plan sends, in words and as the load that predictions are made for.

First what a person gives; then the rows of a trace that lie beside the plan; else tokens are drawn by the
plan's load, which says nothing of which experts go together. No torch here.

Shapes: L the plan's layers, T tokens, K = top_k, E experts.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.load import LoadProfile, load_of_rows, named_spans, read_load, split_windows
from planner.plan import SavedPlan, kept_file, kept_of, read_kept
from planner.problem import Problem

HELD_OUT_SHARE = 1 / 3  # of plans that are older than its place in the file


@dataclass(frozen=True, eq=False)
class Traffic:
    """The tokens of a run: those of the load's trace, and where it has none tokens drawn by its counts.

    Predictions of the run are of the plan's problem with this load.
    """

    kind: str  # given, kept, drawn
    text: str  # a sentence without its end
    load: LoadProfile

    @property
    def drawn_layer_ids(self) -> tuple[int, ...]:
        """Layers whose tokens are drawn."""
        trace, layer_ids = self.load.trace, self.load.layer_ids
        if trace is None:
            return layer_ids
        return tuple(layer for layer, known in zip(layer_ids, trace.recorded_L, strict=True) if not known)

    @property
    def trace_LTK(self) -> npt.NDArray[np.int32] | None:
        """Its rows by the plan's layers, -1 where they are drawn; None where all are."""
        return None if self.load.trace is None else self.load.trace.experts_LTK

    def of(self, problem: Problem) -> Problem:
        """The question whose cost is the prediction of these tokens."""
        return replace(problem, load=self.load)


def own_traffic(load: LoadProfile) -> Traffic:
    """The traffic of a load by itself: its trace, else tokens drawn by its counts."""
    if load.trace is None:
        return Traffic("drawn", f"tokens drawn by the load of {load.source}", load)
    return Traffic("given", f"tokens of {load.source}", load)


def choose_traffic(
    saved: SavedPlan, plan_file: Path, tokens: int, trace_files: Sequence[Path] = ()
) -> Traffic:
    """The traffic of a run with so many tokens in all, over all ranks.

    Of a trace with more, rows evenly spread are sent. BadInput where a file is not what it must be.
    """
    if trace_files:
        return _traced("given", *_given(saved, plan_file, trace_files), saved.problem, tokens)
    kept = kept_of(saved.value)
    rows = read_kept(kept, plan_file, saved.problem) if kept else None
    if kept and rows:
        return _traced("kept", rows, f"{kept.part} tokens of the plan's trace", saved.problem, tokens)
    why = "it was not made from a trace"
    if kept:
        why = f"{kept_file(plan_file)} is not there (--trace names another place)"
    elif saved.value["load"].get("traced"):
        why = "no rows of its trace were kept (--trace gives them)"
    return Traffic("drawn", f"tokens drawn by the plan's load: {why}", saved.problem.load)


def _given(saved: SavedPlan, plan_file: Path, files: Sequence[Path]) -> tuple[LoadProfile, str]:
    """The rows of the files that the plan was not fitted to, where they are the plan's own trace."""
    load = read_load(files, saved.problem.model)
    name = ", ".join(map(str, files))
    if load.trace is None:
        raise BadInput(
            f"{name}: holds counts, not a trace; without --trace tokens are drawn by the plan's load"
        )
    provenance = saved.value["provenance"]
    if provenance.get("load_sha256") != hashlib.sha256(load.tokens_WLE.tobytes()).hexdigest():
        return load, f"tokens of {name}, all of it: {plan_file} was made from another load"
    _, held_out = split_windows(load, provenance.get("held_out_share", HELD_OUT_SHARE))
    if held_out is None:
        return load, f"tokens of {name}, all fitted: nothing was held out"
    return held_out, f"held out tokens of {name}"


def _traced(kind: str, rows: LoadProfile, text: str, problem: Problem, tokens: int) -> Traffic:
    """Those rows; layers that they lack have the plan's load."""
    assert rows.trace is not None
    sent = rows.trace.thinned(tokens)
    load = load_of_rows(sent.experts_LTK, problem.load, rows.source)
    there, used = rows.trace.experts_LTK.shape[1], sent.experts_LTK.shape[1]
    traffic = Traffic(kind, f"{used} of {there} {text}", load)
    lacking = traffic.drawn_layer_ids
    if len(lacking) == len(load.layer_ids):
        raise BadInput(f"{rows.source}: no layer of the plan is in this trace")
    if not lacking:
        return traffic
    return replace(traffic, text=f"{traffic.text}; {named_spans('layer', lacking)} not recorded: drawn")
