"""What travels: records of tokens there and results back, as bytes in the dtype of the workload.

A record is a header of two int32 an assignment, then the vector in its dtype, then what else a message of the
transport holds (scales, padding), so that its bytes are those the cost model counts. Vectors are small whole
numbers, which every dtype holds exactly. torch is imported when it is used.

Shapes: R records, n assignments of a record, H elements of a vector, B bytes of a record.
"""

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from planner.problem import BYTES_PER_ELEMENT

if TYPE_CHECKING:
    from torch import Tensor

HEADER_BYTES = 8  # of an assignment: slot and expert, then gate weight and (in the first) where it comes from
GATES, ORIGIN_SHIFT, SLOT_SHIFT = 0xFF, 8, 16


@dataclass(frozen=True)
class Sums:
    """How large an expert's results (0 to below `results`) and gate weights (1 to `gates`) may be.

    So that every sum of `most_experts` of them is a whole number that the dtype holds exactly.
    """

    results: int
    gates: int
    most_experts: int


def sums_of(dtype: str) -> Sums:
    """bf16 has all integers up to 256; fp8 (e4m3) up to 16."""
    return Sums(4, 3, 28) if dtype == "bf16" else Sums(2, 1, 16)


def vector_bytes(dtype: str, width: int) -> int:
    """Of one vector with its scales, as `BYTES_PER_ELEMENT` counts them."""
    return ceil(width * BYTES_PER_ELEMENT[dtype])


def pack_vectors(vectors_RH: "Tensor", dtype: str, size: int) -> "Tensor":
    """bytes_RB, `size` each: the elements, then zeros for scales and what else a message holds."""
    import torch

    elements = torch.bfloat16 if dtype == "bf16" else torch.float8_e4m3fn
    packed_RB = torch.zeros((len(vectors_RH), size), dtype=torch.uint8, device=vectors_RH.device)
    content_RB = vectors_RH.to(elements).view(torch.uint8)
    packed_RB[:, : content_RB.shape[1]] = content_RB
    return packed_RB


def unpack_vectors(bytes_RB: "Tensor", dtype: str, width: int) -> "Tensor":
    """vectors_RH as float32, in which whole numbers are exact, and their sums; CPUs have no fast bf16."""
    import torch

    elements, each = (torch.bfloat16, 2) if dtype == "bf16" else (torch.float8_e4m3fn, 1)
    return _copied(bytes_RB[:, : each * width]).view(elements).to(torch.float32)


def pack_records(
    entry_Rn3: "Tensor", origin_R: "Tensor", vectors_RH: "Tensor", dtype: str, size: int
) -> "Tensor":
    """records_RB: `entry_Rn3` holds slot, expert and gate weight of each assignment."""
    import torch

    first_Rn = (entry_Rn3[:, :, 0] << SLOT_SHIFT) | entry_Rn3[:, :, 1]
    second_Rn = entry_Rn3[:, :, 2].clone()
    second_Rn[:, 0] |= origin_R << ORIGIN_SHIFT
    header_Ri = torch.stack([first_Rn, second_Rn], dim=2).to(torch.int32).flatten(1)
    header_RB = header_Ri.view(torch.uint8)
    body_RB = pack_vectors(vectors_RH, dtype, size - header_RB.shape[1])
    return torch.cat([header_RB, body_RB], dim=1)


def unpack_headers(records_RB: "Tensor", entries: int) -> tuple["Tensor", "Tensor"]:
    """origin_R and entry_Rn3 of packed records."""
    import torch

    header_Rn2 = _copied(records_RB[:, : HEADER_BYTES * entries]).view(torch.int32).reshape(-1, entries, 2)
    slot_Rn, expert_Rn = header_Rn2[:, :, 0] >> SLOT_SHIFT, header_Rn2[:, :, 0] & 0xFFFF
    gate_Rn = header_Rn2[:, :, 1] & GATES
    return header_Rn2[:, 0, 1] >> ORIGIN_SHIFT, torch.stack([slot_Rn, expert_Rn, gate_Rn], dim=2)


def _copied(bytes_RB: "Tensor") -> "Tensor":
    """Rows of their own, which any type can be read from: a record may begin and end at odd bytes."""
    import torch

    return bytes_RB.clone(memory_format=torch.contiguous_format)
