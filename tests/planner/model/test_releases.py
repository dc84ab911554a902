"""Releases of an architecture that the catalogue has: by their training, their date, their weights."""

import pytest

from planner.base import BadInput
from planner.model import find_model, recorded_on_another
from planner.planning.lookup import model_notes

V3, QWEN, K2 = "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3-30B-A3B", "moonshotai/Kimi-K2-Instruct"


@pytest.mark.parametrize(
    ("text", "entry", "dtype"),
    [
        ("DeepSeek-V3.1", V3, "fp8"),
        ("deepseek-ai/deepseek-v3.1-terminus", V3, "fp8"),
        ("DeepSeek-V3-0324", V3, "fp8"),
        ("DeepSeek-V3.1-Base", V3, "fp8"),
        ("DeepSeek-R1-0528", "deepseek-ai/DeepSeek-R1", "fp8"),
        ("nvidia/DeepSeek-R1-0528-NVFP4", "deepseek-ai/DeepSeek-R1", "nvfp4"),
        ("Qwen3-235B-A22B-Instruct-2507", "Qwen/Qwen3-235B-A22B", "bf16"),
        ("Qwen/Qwen3-235B-A22B-Thinking-2507-FP8", "Qwen/Qwen3-235B-A22B-FP8", "fp8"),
        ("Qwen3-30B-A3B-GPTQ-Int4", QWEN, "int4"),
        ("Qwen3-30B-A3B-Instruct-2507-AWQ-4bit", QWEN, "int4"),
        ("Qwen3-Coder-30B-A3B-Instruct", QWEN, "bf16"),
        ("Kimi-K2-Instruct-0905", K2, "fp8"),
        ("Kimi-K2-Thinking", K2, "int4"),
        ("Mixtral-8x7B-Instruct-v0.1", "mistralai/Mixtral-8x7B-v0.1", "bf16"),
        ("Llama-4-Scout-17B-16E", "meta-llama/Llama-4-Scout-17B-16E-Instruct", "bf16"),
        ("GLM-4.5-Air-FP8", "zai-org/GLM-4.5-Air", "fp8"),
        ("gemma-4-26B-A4B-it", "google/gemma-4-26B-A4B", "bf16"),
    ],
)
def test_a_release_has_the_facts_of_its_entry(text: str, entry: str, dtype: str) -> None:
    """All but the name and what the name says of the weights; the notes say whose they are."""
    found, known = find_model(text), find_model(entry)
    assert (found.facts_of, found.weight_dtype) == (entry, dtype)
    assert found.moe_layer_ids == known.moe_layer_ids
    assert (found.experts, found.top_k, found.hidden) == (known.experts, known.top_k, known.hidden)
    assert any(entry in note for note in model_notes(found))
    listed = text == "Kimi-K2-Thinking"  # its dtype was read
    assert found.dtype_assumed == (known.dtype_assumed or (dtype != known.weight_dtype and not listed))


@pytest.mark.parametrize("text", ["DeepSeek-V3.1", "deepseek-v3.1", "deepseek-ai/DeepSeek-V3.1"])
def test_a_listed_release_has_its_own_name(text: str) -> None:
    """What an engine is given as its model."""
    assert find_model(text).name == "deepseek-ai/DeepSeek-V3.1"


@pytest.mark.parametrize(
    "text",
    [
        "Qwen3-Next-80B-A3B-Instruct",
        "DeepSeek-V4",
        "DeepSeek-R2",
        "DeepSeek-R1-Distill-Llama-70B",
        "MiniMax-Text-01",
    ],
)
def test_another_architecture_is_no_release(text: str) -> None:
    """A number or a word that is no training and no date may change every fact."""
    with pytest.raises(BadInput, match=r"config\.json"):
        find_model(text)


@pytest.mark.parametrize("suffix", ["GGUF", "MLX-4bit", "quantized.w8a8", "GPTQ-Int8", "FP8-NVFP4"])
def test_weights_without_figures_are_refused(suffix: str) -> None:
    """Or two dtypes at once; with what to give instead."""
    with pytest.raises(BadInput, match=r"give its config\.json"):
        find_model(f"{QWEN}-{suffix}")


def test_a_load_of_another_training_is_told() -> None:
    """The weights' dtype and the owner make no other load; nor does a name that nobody knows."""
    model = find_model("deepseek-v3")
    assert recorded_on_another("deepseek-ai/DeepSeek-R1", model)
    assert recorded_on_another("DeepSeek-V3.1", model)
    assert recorded_on_another("mixtral", model)
    for same in ("deepseek-v3", "DeepSeek-V3-AWQ", "someone/DeepSeek-V3", "my-checkpoint"):
        assert not recorded_on_another(same, model)
