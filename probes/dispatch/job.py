"""What one validation run is asked to do. No torch here.

Shapes: L layers that are run, P slots, G GPUs (one rank each), S source ranks (1 where all behave alike, else
G), T tokens a rank, K = top_k, E experts.
"""

import json
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, read_npz
from planner.replica import CHOICES
from probes.dispatch import sent

CPU_HIDDEN = 64  # elements of a token on the CPU, where only routing and volume are checked
# 28 experts x result 3 x gate weight 3 = 252: sums stay exact in bf16, which has integers up to 256
LARGEST_TOP_K = 28
VECTOR_BYTES_PER_ELEMENT = 2  # bf16, both ways
# header of a record, int32: its source and token, then slot, expert and gate weight of each assignment
RECORD_INTS, ENTRY_INTS = 2, 3
FAULTS = ("exit", "hang", "slow", "raise", "wrong-slot", "corrupt")


@dataclass(frozen=True)
class Fault:
    """For tests: what one rank does wrong in the plan's first layer, to prove that it is caught."""

    rank: int
    kind: str

    def __post_init__(self) -> None:
        if self.kind not in FAULTS:
            raise ValueError(f"fault {self.kind!r} is none of {', '.join(FAULTS)}")


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two placements under comparison, with its engine's replica shares share_LSP."""

    expert_LP: npt.NDArray[np.integer]
    share_LSP: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DispatchJob:
    """The plan's layers `layer_ids`, rows of every array with an L axis.

    Beside it stands the engine's default placement, where one is given. Tokens are drawn from `shares_LE`, or
    from `trace_LRK` where there is a recorded trace. `hidden` None: 64 on the CPU, `dispatch_width` on GPUs.
    """

    expert_LP: npt.NDArray[np.integer]
    share_LSP: npt.NDArray[np.float64]
    layer_ids: tuple[int, ...]
    experts: int
    top_k: int
    dispatch_width: int
    shares_LE: npt.NDArray[np.float64]
    node_G: npt.NDArray[np.integer]
    transport: str = "slot"
    # one that picks by the batch alone picks for itself; for any other a slot is drawn with the shares
    replica_rule: str = ""
    baseline_expert_LP: npt.NDArray[np.integer] | None = None
    baseline_share_LSP: npt.NDArray[np.float64] | None = None
    trace_LRK: npt.NDArray[np.integer] | None = None
    hidden: int | None = None
    tokens_per_rank: int = 128
    repeats: int = 5
    seed: int = 0
    timeout_seconds: float = 300.0
    device: str = "auto"  # auto, cpu, cuda
    fault: Fault | None = None

    def __post_init__(self) -> None:
        most = min(self.experts, LARGEST_TOP_K)
        if not 1 <= self.top_k <= most:
            runs = f"validate can run 1 to {most} experts a token for {self.experts} experts"
            raise BadInput(f"top_k is {self.top_k}; {runs}")
        for name in ("tokens_per_rank", "repeats", "dispatch_width"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.hidden is not None and self.hidden < 1:
            raise BadInput(f"hidden is {self.hidden}; it must be at least 1")
        if not 0 < self.timeout_seconds < 1e6:
            raise BadInput(f"the timeout is {self.timeout_seconds} s; give a positive number of seconds")
        if self.device not in ("auto", "cpu", "cuda"):
            raise BadInput(f"device {self.device!r} is none of auto, cpu, cuda")
        sent.check_transport(self.transport)
        if self.transport == "node":
            sent.same_index_GN(self.node_G.astype(np.int64))
        self._check_shapes()

    def _check_shapes(self) -> None:
        layers = len(self.layer_ids)
        if layers == 0 or self.shares_LE.shape != (layers, self.experts):
            expected = f"expected {(layers, self.experts)}, not empty"
            raise ValueError(f"shares_LE has shape {self.shares_LE.shape}, {expected}")
        for name, side in self.sides.items():
            slots = side.expert_LP.shape[1]
            fits = side.share_LSP.shape in ((layers, 1, slots), (layers, self.gpus, slots))
            if len(side.expert_LP) != layers or slots % self.gpus or not fits:
                shapes = f"expert_LP {side.expert_LP.shape}, share_LSP {side.share_LSP.shape}"
                raise ValueError(f"{name}: {shapes} do not fit {layers} layers on {self.gpus} GPUs")

    @property
    def gpus(self) -> int:
        return len(self.node_G)

    @property
    def width(self) -> int:
        """Elements of the vectors that are sent."""
        return CPU_HIDDEN if self.hidden is None else self.hidden

    @cached_property
    def sides(self) -> dict[str, Side]:
        sides = {"plan": Side(self.expert_LP, self.share_LSP)}
        if self.baseline_expert_LP is not None and self.baseline_share_LSP is not None:
            sides["baseline"] = Side(self.baseline_expert_LP, self.baseline_share_LSP)
        return sides

    def is_faulty(self, kind: str, rank: int, row: int, side_name: str) -> bool:
        """For tests: whether that rank does that wrong there, in the first layer of the plan."""
        return (row, side_name) == (0, "plan") and self.fault == Fault(rank, kind)

    def experts_TK(self, row: int, source: int) -> sent.Ids:
        """The experts that the tokens of rank `source` ask for in layer row `row`.

        They are the same for plan and baseline, whoever draws them.
        """
        rng = np.random.default_rng([self.seed, self.layer_ids[row], source, 0])
        if self.trace_LRK is not None:
            return sent.draw_rows(self.trace_LRK[row], self.tokens_per_rank, rng)
        return sent.draw_tokens(self.shares_LE[row], self.tokens_per_rank, self.top_k, rng)

    def slots_TK(self, side_name: str, row: int, source: int) -> sent.Ids:
        """Where the replica rule of that side sends them.

        The engine's own pick where it makes no draw, else a draw with its shares.
        """
        experts_TK, expert_P = self.experts_TK(row, source), self.sides[side_name].expert_LP[row]
        if self.replica_rule in CHOICES:
            return CHOICES[self.replica_rule](experts_TK, expert_P, source, self.gpus)
        rng = np.random.default_rng([self.seed, self.layer_ids[row], source, 1])
        share_SP = self.sides[side_name].share_LSP[row]
        return sent.choose_slots(experts_TK, share_SP[source % len(share_SP)], expert_P, rng)


def save(job: DispatchJob, path: Path) -> None:
    """The job as one .npz: its arrays, and the rest as JSON text. Nothing in it is pickled."""
    values = {field.name: getattr(job, field.name) for field in fields(job)}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    rest = {name: value for name, value in values.items() if name not in arrays and name != "fault"}
    rest["fault"] = asdict(job.fault) if job.fault else None
    text = np.frombuffer(json.dumps(rest).encode(), dtype=np.uint8)
    with path.open("wb") as out:
        np.savez(out, allow_pickle=False, json=text, **arrays)


def load(path: Path) -> DispatchJob:
    arrays = read_npz(path)
    rest = json.loads(arrays.pop("json").tobytes())
    fault = Fault(**rest.pop("fault")) if rest["fault"] else None
    values = {**rest, **arrays, "layer_ids": tuple(rest["layer_ids"])}
    return replace(DispatchJob(**values), fault=fault)
