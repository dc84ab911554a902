"""What one validation run is asked to do. No torch here.

Shapes: L rows that are run (a row is a layer with a load), P slots, G GPUs (one rank each), S source ranks (1
where all behave alike, else G), T tokens a rank, K = top_k, E experts.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import ceil
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, read_npz
from planner.cost import bytes_of_messages, inclusion_E
from planner.problem import Workload
from planner.replica import CHOICES
from probes.dispatch import sent
from probes.dispatch.drawn import draw_by_inclusion
from probes.dispatch.gemm.shapes import ExpertShape
from probes.dispatch.kernels.registry import FAMILIES
from probes.dispatch.records import HEADER_BYTES, Sums, sums_of, vector_bytes
from probes.dispatch.seen import PHASES

CPU_HIDDEN = 64  # elements of a token on the CPU, where only routing and volume are checked
NODE_CHUNKS = (
    8  # parts of a dispatch over two hops, of which one is on its first hop while another is on its second
)
FAULTS = ("exit", "hang", "slow", "raise", "wrong-slot", "corrupt")
PLAN = "plan"  # the side whose promise is judged


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
    """One of the placements under comparison, with the shares that its engine's replica rule gives.

    A rule that picks by the batch alone picks for itself; for any other a slot is drawn with the shares.
    """

    expert_LP: npt.NDArray[np.integer]
    share_LSP: npt.NDArray[np.float64]
    replica_rule: str = ""


@dataclass(frozen=True, eq=False)
class DispatchJob:
    """Rows of layers under one or more placements, by name; all arrays with an L axis have these rows.

    Tokens are drawn from `shares_LE`, or from `trace_LRK` where there is a recorded trace. `unit_G` is what
    the transport crosses with one message: the node of each GPU, or its NVLink domain. `hidden` None: 64 on
    the CPU, `dispatch_width` on GPUs.
    """

    sides: Mapping[str, Side]
    layer_ids: tuple[int, ...]
    experts: int
    top_k: int
    dispatch_width: int
    shares_LE: npt.NDArray[np.float64]
    unit_G: npt.NDArray[np.integer]
    transport: str = "slot"
    dispatch_dtype: str = "bf16"
    combine_dtype: str = "bf16"
    trace_LRK: npt.NDArray[np.integer] | None = None
    hidden: int | None = None
    tokens_per_rank: int = 128
    repeats: int = 5
    seed: int = 0
    timeout_seconds: float = 300.0
    device: str = "auto"  # auto, cpu, cuda
    expert: ExpertShape | None = None  # what is timed as compute on GPUs
    kernels: str = "auto"  # what sends on GPUs: auto, torch, deepep, nccl-ep
    cuda_graph: bool = False
    virtual: bool = False  # one process plays all ranks
    fault: Fault | None = None

    def __post_init__(self) -> None:
        most = min(self.experts, sums_of(self.combine_dtype).most_experts)
        if not 1 <= self.top_k <= most:
            runs = f"validate can run 1 to {most} experts a token for {self.experts} experts"
            raise BadInput(f"top_k is {self.top_k}; {runs} with {self.combine_dtype} results")
        for name in ("tokens_per_rank", "repeats", "dispatch_width"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.hidden is not None and self.hidden < 1:
            raise BadInput(f"hidden is {self.hidden}; it must be at least 1")
        if not 0 < self.timeout_seconds < 1e6:
            raise BadInput(f"the timeout is {self.timeout_seconds} s; give a positive number of seconds")
        if self.device not in ("auto", "cpu", "cuda"):
            raise BadInput(f"device {self.device!r} is none of auto, cpu, cuda")
        if self.kernels not in FAMILIES:
            raise BadInput(f"kernels {self.kernels!r} are none of {', '.join(FAMILIES)}")
        if self.gpus * self.tokens_per_rank >= 1 << 23:
            most_tokens = ((1 << 23) - 1) // self.gpus
            raise BadInput(
                f"{self.tokens_per_rank} tokens a rank are too many to number; take at most {most_tokens}"
            )
        sent.check_transport(self.transport)
        if self.transport in ("node", "allgather"):
            sent.same_index_GU(self.unit_G.astype(np.int64), self.transport)
        self._check_shapes()

    def _check_shapes(self) -> None:
        layers = len(self.layer_ids)
        if layers == 0 or self.shares_LE.shape != (layers, self.experts):
            expected = f"expected {(layers, self.experts)}, not empty"
            raise ValueError(f"shares_LE has shape {self.shares_LE.shape}, {expected}")
        for name, side in self.sides.items():
            slots = side.expert_LP.shape[1]
            fits = side.share_LSP.shape in ((layers, 1, slots), (layers, self.gpus, slots))
            if len(side.expert_LP) != layers or slots % self.gpus or not fits or slots >= 1 << 15:
                shapes = f"expert_LP {side.expert_LP.shape}, share_LSP {side.share_LSP.shape}"
                raise ValueError(f"{name}: {shapes} do not fit {layers} layers on {self.gpus} GPUs")

    @property
    def gpus(self) -> int:
        return len(self.unit_G)

    @property
    def width(self) -> int:
        """Elements of the vectors that are sent."""
        return CPU_HIDDEN if self.hidden is None else self.hidden

    @property
    def compute_width(self) -> int:
        """Elements of the vectors that timed experts work on: virtual ranks of a GPU send narrower ones."""
        return self.dispatch_width if self.virtual and self.device == "cuda" else self.width

    @property
    def timed_expert(self) -> ExpertShape:
        assert self.expert is not None
        return replace(self.expert, width=self.compute_width)

    @property
    def timed_phases(self) -> tuple[str, ...]:
        """Those whose seconds mean something."""
        return ("compute",) if self.virtual else PHASES

    @property
    def entries(self) -> int:
        """Assignments that a record carries: those of its token, or for `slot` one."""
        return 1 if self.transport == "slot" else self.top_k

    @property
    def sums(self) -> Sums:
        return sums_of(self.combine_dtype)

    @property
    def record_bytes(self) -> tuple[int, int]:
        """Bytes of a record there and of a result back: the messages of the cost model, at this width."""
        workload = Workload(
            transport=self.transport, dispatch_dtype=self.dispatch_dtype, combine_dtype=self.combine_dtype
        )
        there, back = map(ceil, bytes_of_messages(workload, self.width, self.top_k))
        least = HEADER_BYTES * self.entries + vector_bytes(self.dispatch_dtype, self.width)
        return max(there, least), max(back, vector_bytes(self.combine_dtype, self.width))

    @property
    def chunks(self) -> int:
        """Parts that follow each other through a transport of several hops."""
        return {"node": NODE_CHUNKS, "allgather": int(self.unit_G.max()) + 1}.get(self.transport, 1)

    def is_faulty(self, kind: str, rank: int, row: int, side_name: str) -> bool:
        """For tests: whether that rank does that wrong there, in the first row of the plan."""
        return (row, side_name) == (0, PLAN) and self.fault == Fault(rank, kind)

    def experts_TK(self, row: int, source: int) -> sent.Ids:
        """The experts that the tokens of rank `source` ask for in a row: the same for every side."""
        rng = np.random.default_rng([self.seed, row, source, 0])
        if self.trace_LRK is not None:
            return sent.draw_rows(self.trace_LRK[row], self.tokens_per_rank, rng)
        return draw_by_inclusion(self.chance_E(row), self.tokens_per_rank, self.top_k, rng)

    def chance_E(self, row: int) -> npt.NDArray[np.float64]:
        """The chance that a token of a row asks for each expert."""
        if self.trace_LRK is None:
            chance_E = inclusion_E(self.shares_LE[row], self.top_k)
            idle_E = chance_E == 0  # they share what is missing where too few experts have load
            return np.where(idle_E, (self.top_k - chance_E.sum()) / max(idle_E.sum(), 1), chance_E)
        rows_RK = self.trace_LRK[row]
        counts_E = np.bincount(rows_RK.ravel(), minlength=self.experts)
        return counts_E.astype(np.float64) / len(rows_RK)

    def slots_TK(self, side_name: str, row: int, source: int) -> sent.Ids:
        """Where the replica rule of that side sends them.

        The engine's own pick where it makes no draw, else a draw with its shares.
        """
        side = self.sides[side_name]
        experts_TK, expert_P, share_SP = (
            self.experts_TK(row, source),
            side.expert_LP[row],
            side.share_LSP[row],
        )
        if side.replica_rule in CHOICES:
            return CHOICES[side.replica_rule](experts_TK, expert_P, source, self.gpus)
        rng = np.random.default_rng([self.seed, row, source, 1])
        return sent.choose_slots(experts_TK, share_SP[source % len(share_SP)], expert_P, rng)

    def where(self, row: int, side_name: str) -> str:
        return f"layer {self.layer_ids[row]} ({side_name})"


def save(job: DispatchJob, path: Path) -> None:
    """The job as one .npz: its arrays, and the rest as JSON text. Nothing in it is pickled."""
    values = {field.name: getattr(job, field.name) for field in fields(job)}
    sides: Mapping[str, Side] = values.pop("sides")
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    rest = {name: value for name, value in values.items() if name not in arrays and name != "fault"}
    rest |= {
        "fault": asdict(job.fault) if job.fault else None,
        "expert": asdict(job.expert) if job.expert else None,
        "sides": {name: side.replica_rule for name, side in sides.items()},
    }
    for number, side in enumerate(sides.values()):
        arrays |= {f"expert_LP {number}": side.expert_LP, f"share_LSP {number}": side.share_LSP}
    text = np.frombuffer(json.dumps(rest).encode(), dtype=np.uint8)
    with path.open("wb") as out:
        np.savez(out, allow_pickle=False, json=text, **arrays)


def load(path: Path) -> DispatchJob:
    arrays = read_npz(path)
    rest = json.loads(arrays.pop("json").tobytes())
    fault = Fault(**rest.pop("fault")) if rest["fault"] else None
    rest["expert"] = ExpertShape(**rest["expert"]) if rest["expert"] else None
    sides = {
        name: Side(arrays.pop(f"expert_LP {number}"), arrays.pop(f"share_LSP {number}"), rule)
        for number, (name, rule) in enumerate(rest.pop("sides").items())
    }
    values = {**rest, **arrays, "layer_ids": tuple(rest["layer_ids"])}
    return replace(DispatchJob(sides=sides, **values), fault=fault)
