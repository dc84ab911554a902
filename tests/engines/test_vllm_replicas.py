"""Our choice of replicas under `hashed`, against vLLM 0.33.0's own kernel.

Runs where MOEPLAN_VLLM_PYTHON names an interpreter that has vLLM. The kernel is Triton code for a GPU; here
its own source is run as Python, with the dozen words of the Triton language that it uses done by NumPy: loads
and stores are array reads and writes. vLLM itself is not imported.
"""

import ast
import os
import subprocess
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from planner.replica import CHOICES
from tests.planner.engines.examples import TINY, random_placement

PYTHON = os.environ.get("MOEPLAN_VLLM_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="MOEPLAN_VLLM_PYTHON names no interpreter with vLLM 0.33.0"
)

KERNEL = "_eplb_map_and_record_i32_kernel"
BLOCK = 256  # as vLLM launches it

Ints = npt.NDArray[np.int64]


class Pointer:
    """A flat array and where in it."""

    def __init__(self, array: Ints, at: Any = 0) -> None:
        self.array, self.at = array, at

    def __add__(self, offset: Any) -> "Pointer":
        return Pointer(self.array, self.at + offset)


class Lanes(np.ndarray[Any, Any]):
    """An array with Triton's word for a cast."""

    def to(self, dtype: Any) -> "Lanes":
        return self.astype(dtype).view(Lanes)


def load(pointer: Pointer, mask: Any = True, other: int = 0) -> Any:
    values: Ints = np.where(mask, pointer.array[np.where(mask, pointer.at, 0)], other)
    return values.view(Lanes)


def store(pointer: Pointer, value: Any, mask: Any) -> None:
    pointer.array[np.asarray(pointer.at)[mask]] = np.asarray(value)[mask]


def atomic_add(pointer: Pointer, value: int, mask: Any) -> None:
    np.add.at(pointer.array, np.asarray(pointer.at)[mask], value)


@pytest.fixture(scope="module")
def kernel() -> Callable[..., None]:
    """VLLM's kernel as a function of the program id and its own arguments."""
    where = "import importlib.util; print(importlib.util.find_spec('vllm').submodule_search_locations[0])"
    run = subprocess.run([PYTHON, "-c", where], capture_output=True, text=True, timeout=60, check=True)
    source = (
        Path(run.stdout.strip()) / "model_executor" / "layers" / "fused_moe" / "router" / "base_router.py"
    )
    found = next(
        node
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name == KERNEL
    )
    found.decorator_list = []
    program = [0]
    language = types.SimpleNamespace(
        program_id=lambda _: program[0], arange=lambda low, high: np.arange(low, high).view(Lanes), load=load,
        store=store, atomic_add=atomic_add, where=lambda mask, one,
        other: np.asarray(np.where(mask, one, other)).view(Lanes), maximum=lambda one,
        other: np.maximum(one, other).view(Lanes), int64=np.int64, constexpr=int,
    )  # fmt: skip
    scope: dict[str, Any] = {"tl": language}
    exec(compile(ast.fix_missing_locations(ast.Module([found], [])), str(source), "exec"), scope)

    def launch(program_id: int, **arguments: Any) -> None:
        program[0] = program_id
        scope[KERNEL](**arguments)

    return launch


def chosen_by_vllm(kernel: Callable[..., None], experts_TK: Ints, expert_P: Ints) -> Ints:
    """slots_TK as the kernel writes them, replicas in ascending slot order as vLLM's `compute_logical_maps`
    lists them.
    """
    replicas_E = np.bincount(expert_P, minlength=TINY.experts)
    slot_EX = np.full((TINY.experts, int(replicas_E.max())), -1)
    for expert in range(TINY.experts):
        slot_EX[expert, : replicas_E[expert]] = np.flatnonzero(expert_P == expert)
    out = np.full(experts_TK.size, -9)
    for program_id in range(-(-experts_TK.size // BLOCK)):
        kernel(
            program_id, topk_ids_ptr=Pointer(experts_TK.ravel()),
            logical_replica_count_ptr=Pointer(replicas_E), logical_to_physical_ptr=Pointer(slot_EX.ravel()),
            out_ids_ptr=Pointer(out), out_ptr=Pointer(np.zeros(len(expert_P), dtype=np.int64)),
            record_enabled_ptr=Pointer(np.array([0])), num_unpadded_tokens_ptr=None,
            num_logical_experts=TINY.experts, map_slots=slot_EX.shape[1], out_size=len(expert_P),
            numel=experts_TK.size, num_active_experts=experts_TK.shape[1], HAS_NUM_UNPADDED=False,
            BLOCK_SIZE=BLOCK,
        )  # fmt: skip
    return out.reshape(experts_TK.shape)


@pytest.mark.parametrize("tokens", [1, 2, 3, 33, 2000])
@pytest.mark.parametrize("hot", [4, 5, None])
def test_hashed_slots_are_the_kernels(kernel: Callable[..., None], tokens: int, hot: int | None) -> None:
    """Every token and expert, for up to eight replicas an expert and batches from one token to 2000."""
    expert_P = random_placement(TINY, 8, 24, seed=tokens, hot=hot).expert_LP[0]
    experts_TK = np.array(
        [np.random.default_rng(token).permutation(TINY.experts)[: TINY.top_k] for token in range(tokens)]
    )
    found_TK = chosen_by_vllm(kernel, experts_TK, expert_P)
    assert (found_TK == CHOICES["hashed"](experts_TK, expert_P, 0, 8)).all()


def test_the_comparison_can_fail(kernel: Callable[..., None]) -> None:
    """The row alone, without the hash, gives other slots where an expert has three replicas or more."""
    expert_P = random_placement(TINY, 8, 24, hot=5).expert_LP[0]
    experts_TK = np.array(
        [np.random.default_rng(token).permutation(TINY.experts)[: TINY.top_k] for token in range(100)]
    )
    assert (
        chosen_by_vllm(kernel, experts_TK, expert_P) != CHOICES["row-index"](experts_TK, expert_P, 0, 8)
    ).any()
