"""Rows of a trace that are kept beside a plan, so that a run can send the tokens that the plan is for.

They are of the held-out sequences where something was held out, as many as the cost model looks at. The plan
has their digest and no name: beside `plan.json` lies `plan.trace.npz`, beside a copy a copy.

Shapes: L recorded layers, T tokens, K = top_k.
"""

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, parse_npz, read_bytes
from planner.cost import TRACED_TOKENS
from planner.load import LoadProfile, Trace, load_of_rows
from planner.plan.plan import Plan
from planner.plan.plan_shape import TRACE_PARTS
from planner.problem import Problem

MOST_TOKENS = 2 * TRACED_TOKENS - 1  # of more, the cost model would not look at every one


@dataclass(frozen=True)
class KeptTrace:
    """What a plan file says of the rows beside it."""

    sha256: str
    tokens: int
    part: str  # of the load: one of TRACE_PARTS


def traced_load(plan: Plan) -> LoadProfile | None:
    """The part of the plan's load whose tokens are kept; None where it has no trace."""
    held_out = plan.held_out_load
    load = held_out if held_out is not None and held_out.trace is not None else plan.problem.load
    return load if load.trace is not None else None


def kept_rows(plan: Plan) -> tuple[KeptTrace, bytes] | None:
    """The rows to keep beside the plan, as a load file (.npz), and what is said of them.

    None where the load has no trace.
    """
    load = traced_load(plan)
    if load is None or load.trace is None:
        return None
    trace = load.trace.thinned(MOST_TOKENS)
    content = _npz(trace, load, plan.problem)
    part = TRACE_PARTS[0 if load is plan.held_out_load else 1]
    digest = hashlib.sha256(content).hexdigest()
    return KeptTrace(digest, trace.experts_LTK.shape[1], part), content


def kept_file(plan_file: Path) -> Path:
    """Where the rows of the plan in that file lie."""
    return plan_file.with_name(f"{plan_file.stem}.trace.npz")


def kept_of(value: dict[str, Any]) -> KeptTrace | None:
    """What a plan file's `traffic` says; None where there is none."""
    said = value.get("traffic")
    return KeptTrace(**said) if said is not None else None


def kept_bytes(kept: KeptTrace, plan_file: Path) -> bytes | None:
    """The file beside the plan; None where it is gone. BadInput where it has other bytes than the plan's."""
    path = kept_file(plan_file)
    if not path.exists():
        return None
    content = read_bytes(path)
    if hashlib.sha256(content).hexdigest() != kept.sha256:
        raise BadInput(
            f"{path}: not the rows that {plan_file} was written with, its SHA-256 is another; "
            "move it away, or solve again"
        )
    return content


def read_kept(kept: KeptTrace, plan_file: Path, problem: Problem) -> LoadProfile | None:
    """The rows as a load of one window; layers without a row have the plan's load. None where the file is
    gone.
    """
    content, path = kept_bytes(kept, plan_file), kept_file(plan_file)
    if content is None:
        return None
    arrays, model = parse_npz(content, path), problem.model
    recorded_LTK = arrays.get("topk_ids", np.empty(0))
    layer_ids = arrays.get("layer_ids", np.empty(0)).tolist()
    if not _are_ids(recorded_LTK, (len(layer_ids), kept.tokens, model.top_k), model.experts):
        raise BadInput(f"{path}: not {kept.tokens} tokens of {model.name}; solve again")
    placed = model.placed_layer_ids
    if not set(layer_ids) <= set(placed):
        raise BadInput(f"{path}: not rows of {model.name}'s layers alone; solve again")
    experts_LTK = np.full((len(placed), *recorded_LTK.shape[1:]), -1, dtype=np.int32)
    experts_LTK[[placed.index(layer) for layer in layer_ids]] = recorded_LTK
    return load_of_rows(experts_LTK, problem.load, str(path))


def _are_ids(ids_LTK: npt.NDArray[Any], shape: tuple[int, ...], experts: int) -> bool:
    whole = ids_LTK.shape == shape and ids_LTK.size > 0 and ids_LTK.dtype.kind in "iu"
    return whole and bool(ids_LTK.min() >= 0 and ids_LTK.max() < experts)


def _npz(trace: Trace, load: LoadProfile, problem: Problem) -> bytes:
    """As a load file, of recorded layers alone; NumPy gives its members no time, so equal rows are equal
    bytes.
    """
    recorded_L, content = trace.recorded_L, io.BytesIO()
    small = np.int16 if problem.model.experts <= np.iinfo(np.int16).max else np.int32
    np.savez(
        content,
        topk_ids=trace.experts_LTK[recorded_L].astype(small),
        layer_ids=np.array(load.layer_ids)[recorded_L],
        seq_lens=np.array(trace.sequence_lengths),
        phase=np.array(load.phase),
        source=np.array(load.source),
        model=np.array(problem.model.name),
    )
    return content.getvalue()
