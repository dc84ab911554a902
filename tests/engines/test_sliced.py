"""Which engines serve without expert parallelism, by which words, and what they refuse."""

from dataclasses import replace

import pytest

from planner.engines import sliced_of
from planner.model import find_model

DEEPSEEK = find_model("deepseek-v3")  # experts 2,048 wide, fp8 in blocks of 128


@pytest.mark.parametrize(
    ("engine", "shared", "words"),
    [
        ("vllm", 8, "--tensor-parallel-size 8"),
        ("vllm", 2, "--tensor-parallel-size 2 --data-parallel-size 4"),
        ("sglang", 8, "--tp-size 8"),
        ("sglang", 1, "--tp-size 8 --attn-dp-size 8"),
        ("trtllm", 1, "--tp_size 8, enable_attention_dp: true"),
    ],
)
def test_words(engine: str, shared: int, words: str) -> None:
    known = sliced_of(engine)
    assert known is not None
    assert known.refuses(DEEPSEEK, 8, shared) == ""
    assert known.launch(8, shared) == words


@pytest.mark.parametrize(
    ("engine", "gpus", "shared", "says"),
    [
        ("sglang", 32, 32, "a slice 64 wide is no multiple of 128"),
        ("vllm", 32, 32, ""),  # it refines blocks down to 32
        ("vllm", 128, 128, "a slice 16 wide is no multiple of 32"),
        ("vllm", 3, 3, "do not divide over 3 GPUs"),
        ("trtllm", 8, 2, "on all GPUs or on one, not on 2"),
    ],
)
def test_refusals(engine: str, gpus: int, shared: int, says: str) -> None:
    known = sliced_of(engine)
    assert known is not None
    found = known.refuses(DEEPSEEK, gpus, shared)
    assert says in found
    assert bool(says) == bool(found)


def test_blocks_are_of_fp8_alone() -> None:
    known = sliced_of("sglang")
    assert known is not None
    assert known.refuses(replace(DEEPSEEK, weight_dtype="bf16"), 32, 32) == ""


def test_of_others_it_was_not_read() -> None:
    assert sliced_of("lightllm") is None
