"""Stand-ins for DeepEP and NCCL EP: what their documents say of shapes and contents, over virtual ranks.

Their `group` is a virtual rank's wire. They check what they are given as the libraries do.

Shapes: T tokens of a rank, K = top_k, H hidden, Z slots of a GPU, M rows received.
"""

from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from probes.ranks.virtual import VirtualWire


def everyone(wire: VirtualWire, mine: Any) -> list[Any]:
    """What every rank brought."""
    return wire._swap(mine, list)


def by_slot(
    wire: VirtualWire, slots: int, brought: list[tuple[Tensor, Tensor]]
) -> list[list[tuple[int, int, int]]]:
    """Of each slot of this rank: the source, token and entry of each row, in the order of arrival."""
    per_gpu = slots // wire.gpus
    found: list[list[tuple[int, int, int]]] = [[] for _ in range(per_gpu)]
    for source, (_, ids_TK) in enumerate(brought):
        for token, entry in (ids_TK // per_gpu == wire.rank).nonzero().tolist():
            found[int(ids_TK[token, entry]) % per_gpu].append((source, token, entry))
    return found


def received_ZMH(
    wire: VirtualWire, slots: int, most: int, x: Tensor, ids: Tensor
) -> tuple[Tensor, Tensor, Any]:
    brought = everyone(wire, (x, ids))
    places = by_slot(wire, slots, brought)
    rows_ZMH = torch.full(
        (len(places), most * wire.gpus, x.shape[1]), 99.0, dtype=x.dtype
    )  # rubbish past counts
    for slot, rows in enumerate(places):
        for row, (source, token, _) in enumerate(rows):
            rows_ZMH[slot, row] = brought[source][0][token]
    return rows_ZMH, torch.tensor([len(rows) for rows in places], dtype=torch.int32), places


def weighted_home(wire: VirtualWire, places: Any, results_ZMH: Tensor, gate_TK: Tensor) -> Tensor:
    """The sums of this rank's tokens, weighted where they come home."""
    sums_TH = torch.zeros((len(gate_TK), results_ZMH.shape[2]))
    for their_places, theirs_ZMH in everyone(wire, (places, results_ZMH)):
        for slot, rows in enumerate(their_places):
            for row, (source, token, entry) in enumerate(rows):
                if source == wire.rank:
                    sums_TH[token] += gate_TK[token, entry] * theirs_ZMH[slot, row].float()
    return sums_TH.to(results_ZMH.dtype)


class Config:
    def __init__(self, factor: int) -> None:
        self.factor = factor

    def get_nvl_buffer_size_hint(self, row_bytes: int, gpus: int) -> int:
        return self.factor * row_bytes * gpus

    def get_rdma_buffer_size_hint(self, row_bytes: int, gpus: int) -> int:
        return (4 - self.factor) * row_bytes if gpus > 8 else 0


@dataclass
class Buffer:
    """deep_ep.Buffer, both modes."""

    group: Any
    num_nvl_bytes: int = 0
    num_rdma_bytes: int = 0
    low_latency_mode: bool = False
    num_qps_per_rank: int = 24
    explicitly_destroy: bool = False
    layout: Any = field(default=None, init=False)

    @staticmethod
    def get_low_latency_rdma_size_hint(most_tokens: int, hidden: int, gpus: int, slots: int) -> int:
        return most_tokens * hidden * gpus * slots

    @staticmethod
    def get_dispatch_config(gpus: int) -> Config:
        return Config(1)

    @staticmethod
    def get_combine_config(gpus: int) -> Config:
        return Config(3)

    def destroy(self) -> None:
        assert self.explicitly_destroy

    def low_latency_dispatch(
        self, x: Tensor, topk_idx: Tensor, most: int, slots: int, *, use_fp8: bool, **_: Any
    ) -> tuple[Any, ...]:
        assert self.low_latency_mode
        assert self.num_qps_per_rank == slots // self.group.gpus
        assert self.num_rdma_bytes >= self.get_low_latency_rdma_size_hint(
            most, x.shape[1], self.group.gpus, slots
        )
        assert (x.dtype, topk_idx.dtype) == (torch.bfloat16, torch.int64)
        assert len(x) <= most
        rows_ZMH, count_Z, places = received_ZMH(self.group, slots, most, x, topk_idx)
        return (scaled_rows(rows_ZMH) if use_fp8 else rows_ZMH), count_Z, places, None, None

    def low_latency_combine(
        self, x: Tensor, topk_idx: Tensor, topk_weights: Tensor, handle: Any, **_: Any
    ) -> tuple[Any, ...]:
        assert (x.dtype, topk_weights.dtype) == (torch.bfloat16, torch.float32)
        return weighted_home(self.group, handle, x, topk_weights), None, None

    def get_dispatch_layout(self, topk_idx: Tensor, slots: int) -> tuple[Any, ...]:
        gpu_TK = topk_idx // (slots // self.group.gpus)
        reach_TG = torch.zeros((len(topk_idx), self.group.gpus), dtype=torch.bool).scatter_(
            1, gpu_TK, value=True
        )
        to_slot_P = torch.bincount(topk_idx.flatten(), minlength=slots).int()
        self.layout = (reach_TG.sum(0).int(), None, to_slot_P, reach_TG)
        return *self.layout, None

    def dispatch(self, x: Any, **given: Any) -> tuple[Any, ...]:
        layout = [given[name] for name in ("num_tokens_per_rank", "num_tokens_per_rdma_rank")]
        layout += [given["num_tokens_per_expert"], given["is_token_in_rank"]]
        assert all(told is known for told, known in zip(layout, self.layout, strict=True))
        ids_TK, gate_TK = given["topk_idx"], given["topk_weights"]
        assert (ids_TK.dtype, gate_TK.dtype) == (torch.int64, torch.float32)
        rank, per_gpu = self.group.rank, len(layout[2]) // self.group.gpus
        parts: list[Tensor] = list(x) if isinstance(x, tuple) else [x]
        came: list[list[Tensor]] = [[] for _ in parts]
        ids, gates, places = [], [], []
        for source, (their_parts, their_ids, their_gates) in enumerate(
            everyone(self.group, (parts, ids_TK, gate_TK))
        ):
            mine_TK = their_ids // per_gpu == rank
            for token in mine_TK.any(dim=1).nonzero().flatten().tolist():
                for collected, part in zip(came, their_parts, strict=True):
                    collected.append(part[token])
                ids.append(torch.where(mine_TK[token], their_ids[token] % per_gpu, -1))
                gates.append(torch.where(mine_TK[token], their_gates[token], 0.0))
                places.append((source, token))
        rows = tuple(torch.stack(collected) for collected in came)
        slot_MK = torch.stack(ids)
        count_Z = [int((slot_MK == slot).sum()) for slot in range(per_gpu)]
        return (
            (rows if len(rows) > 1 else rows[0]),
            slot_MK,
            torch.stack(gates),
            count_Z,
            (places, len(ids_TK)),
            None,
        )

    def combine(self, x: Tensor, handle: Any) -> tuple[Any, ...]:
        """Added up without weights."""
        places, tokens = handle
        assert (x.dtype, len(x)) == (torch.bfloat16, len(places))
        sums_TH = torch.zeros((tokens, x.shape[1]))
        for their_places, theirs_MH in everyone(self.group, (places, x)):
            for row, (source, token) in enumerate(their_places):
                if source == self.group.rank:
                    sums_TH[token] += theirs_MH[row].float()
        return sums_TH.to(x.dtype), None, None


def scaled_rows(rows_ZMH: Tensor) -> tuple[Tensor, Tensor]:
    """As the low-latency kernels cast: a scale for each 128 elements, from their largest."""
    blocks = rows_ZMH.float().unflatten(2, (-1, 128))
    scales = blocks.abs().amax(dim=3).clamp(min=1e-4) / 448
    return (blocks / scales.unsqueeze(3)).flatten(2).to(torch.float8_e4m3fn), scales


def deep_ep() -> ModuleType:
    module = ModuleType("deep_ep")
    module.Buffer = Buffer  # type: ignore[attr-defined]
    return module


class Handle:
    """nccl.ep.Handle; writes into the tensors that it is given."""

    def __init__(self, wire: VirtualWire, config: Any, topk_idx: Any) -> None:
        self.wire, self.config, self.ids = wire, config, topk_idx.buffer
        self.places: Any = None

    def dispatch(self, inputs: Any, outputs: Any, *, layout_info: Any, stream: int) -> None:
        config, x = self.config, inputs.tokens.buffer
        most = config.max_dispatch_tokens_per_rank
        assert config.max_token_bytes == x.shape[1] * x.element_size()
        assert config.max_recv_tokens_per_rank == most * self.wire.gpus
        rows_ZMH, count_Z, self.places = received_ZMH(self.wire, config.num_experts, most, x, self.ids)
        outputs.tokens.buffer.copy_(rows_ZMH)
        layout_info.expert_counters.buffer.copy_(count_Z)

    def complete(self, *, stream: int) -> None:
        pass

    def combine(self, inputs: Any, outputs: Any, *, stream: int) -> None:
        sums_TH = weighted_home(self.wire, self.places, inputs.tokens.buffer, outputs.topk_weights.buffer)
        outputs.tokens.buffer.copy_(sums_TH)


@dataclass
class Group:
    wire: VirtualWire
    config: Any

    @classmethod
    def create(cls, communicator: Any, config: Any) -> "Group":
        return cls(communicator.wire, config)

    def create_handle(self, layout: str, topk_idx: Any, *, config: Any, stream: int) -> Handle:
        assert layout == "expert major"
        assert topk_idx.buffer.dtype == torch.int64
        return Handle(self.wire, self.config, topk_idx)

    def destroy(self) -> None:
        pass


def nccl_ep() -> dict[str, ModuleType]:
    """nccl.ep and what is imported with it, by name."""
    modules = {
        name: ModuleType(name) for name in ("nccl", "nccl.ep", "nccl.ep.interop", "nccl.ep.interop.torch")
    }
    names: dict[str, Any] = dict.fromkeys(
        ("GroupConfig", "HandleConfig", "DispatchInputs", "DispatchOutputs", "LayoutInfo"), SimpleNamespace
    )
    names |= {"CombineInputs": SimpleNamespace, "CombineOutputs": SimpleNamespace, "Group": Group}
    names |= {"Algorithm": SimpleNamespace(LOW_LATENCY="low latency")}
    names |= {"Layout": SimpleNamespace(EXPERT_MAJOR="expert major")}
    names |= {"Tensor": lambda buffer: SimpleNamespace(buffer=buffer)}
    for name, value in names.items():
        setattr(modules["nccl.ep"], name, value)
    joined = modules["nccl.ep.interop.torch"]
    joined.get_nccl_comm_from_group = lambda wire: SimpleNamespace(  # type: ignore[attr-defined]
        wire=wire, destroy=lambda: None
    )
    return modules
