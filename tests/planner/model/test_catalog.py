"""Names and paths find their model; a wrong name finds its neighbours."""

import csv
import re

import pytest

from planner.model import find_model, model_aliases, model_names
from planner.model.catalog import parse_ids
from tests.places import SHARED

TABLE = SHARED / "data/models.tsv"


def test_mixtral() -> None:
    """32 layers of 8 experts, and the bytes of one expert by hand."""
    spec = find_model("mixtral")
    assert (spec.name, spec.layers, spec.experts, spec.top_k) == ("mistralai/Mixtral-8x7B-v0.1", 32, 8, 2)
    assert spec.expert_bytes == 3 * 4096 * 14336 * 2


def test_deepseek_v3() -> None:
    """MoE layers 3..60, one draft layer, 44.04 MB an expert."""
    spec = find_model("deepseek-v3")
    assert spec.moe_layer_ids == tuple(range(3, 61))
    assert spec.draft_layer_ids == (61,)
    assert spec.expert_bytes == pytest.approx(44.04e6, rel=1e-3)


def test_latent_models_dispatch_a_narrower_vector() -> None:
    """Kimi-K3 and Nemotron-3-Super; the second has experts of two matrices."""
    assert (find_model("kimi-k3").dispatch_width, find_model("kimi-k3").hidden) == (3584, 7168)
    assert (
        find_model("nemotron-3-super").dispatch_width,
        find_model("nemotron-3-super").expert_matrices,
    ) == (1024, 2)


@pytest.mark.parametrize("name", model_names())
def test_every_entry_constructs(name: str) -> None:
    """And says where its facts are from."""
    spec = find_model(name)
    assert spec.name == name
    assert spec.source
    assert spec.expert_bytes > 0


SIZED = {
    name: int(size[1]) * 1e9
    for name in model_names()
    if (size := re.search(r"-(\d+)B(-A\d+B|$)", name, re.IGNORECASE))
}


@pytest.mark.parametrize("name", SIZED)
def test_routed_experts_make_up_most_of_the_advertised_size(name: str) -> None:
    """Layers x experts x matrices x widths is 86-98 % of the parameters in the model's own name.

    An independent check of all five.
    """
    spec = find_model(name)
    weights = (
        len(spec.moe_layer_ids)
        * spec.experts
        * spec.expert_matrices
        * spec.dispatch_width
        * spec.expert_intermediate
    )
    assert 0.86 < weights / SIZED[name] < 0.98


def test_names_are_sorted_and_unverified_models_are_left_out() -> None:
    """A model known by class defaults alone is no fact."""
    names = model_names()
    assert names == sorted(names)
    assert len(names) >= 60
    assert not {"tencent/Hy3-preview", "Qwen/Qwen4-Exp", "meituan-longcat/LongCat-Flash-Chat"} & set(names)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mixtral", "mistralai/Mixtral-8x7B-v0.1"),
        ("mixtral-8x22b", "mistralai/Mixtral-8x22B-v0.1"),
        ("deepseek-v3", "deepseek-ai/DeepSeek-V3"),
        ("deepseek-r1", "deepseek-ai/DeepSeek-R1"),
        ("deepseek-v2", "deepseek-ai/DeepSeek-V2"),
        ("deepseek-v2-lite", "deepseek-ai/DeepSeek-V2-Lite"),
        ("qwen3-30b", "Qwen/Qwen3-30B-A3B"),
        ("qwen3-235b", "Qwen/Qwen3-235B-A22B"),
        ("gpt-oss-120b", "openai/gpt-oss-120b"),
        ("gpt-oss-20b", "openai/gpt-oss-20b"),
        ("kimi-k2", "moonshotai/Kimi-K2-Instruct"),
        ("glm-4.5", "zai-org/GLM-4.5"),
        ("olmoe", "allenai/OLMoE-1B-7B-0924"),
        (" DEEPSEEK-AI/deepseek-v3 ", "deepseek-ai/DeepSeek-V3"),
    ],
)
def test_short_names_resolve_in_either_case(text: str, name: str) -> None:
    """An alias, an id without its owner, a full id."""
    assert find_model(text).name == name


def test_every_alias_resolves_to_its_own_entry() -> None:
    """No alias is taken twice."""
    for name in model_names():
        for alias in model_aliases(name):
            assert find_model(alias).name == name


def test_an_assumed_dtype_is_marked() -> None:
    """OLMoE's release dtype could not be verified, DeepSeek's was."""
    assert find_model("olmoe").dtype_assumed
    assert not find_model("deepseek-v3").dtype_assumed


def test_the_catalogue_agrees_with_the_collected_table() -> None:
    """Every number of every entry, where the table is at hand."""
    if not TABLE.exists():
        pytest.skip(f"{TABLE.name} is not beside the checkout")
    with TABLE.open(encoding="utf-8") as lines:
        rows = {row["hf_id"].split(" (")[0]: row for row in csv.DictReader(lines, delimiter="\t")}
    rows["hpcai-tech/grok-1"] = rows["xai-org/grok-1"]
    for name in model_names():
        spec, row = find_model(name), rows[name]
        found = (
            spec.layers,
            len(spec.moe_layer_ids),
            spec.experts,
            spec.shared_experts,
            spec.top_k,
            spec.hidden,
        )
        assert found == tuple(
            int(row[key])
            for key in ("layers", "moe_layers", "routed_experts", "shared_experts", "top_k", "hidden")
        ), name
        assert (spec.expert_intermediate, spec.dispatch_width) == (
            int(row["moe_inter"]),
            int(row["dispatch_width"]),
        ), name
        assert spec.expert_groups == (int(row["n_group"]) if row["n_group"].isdecimal() else 1), name


def test_layer_ids_in_short_form() -> None:
    """Ranges include their end; a step follows a slash."""
    assert parse_ids("3-5") == (3, 4, 5)
    assert parse_ids("1-7/2, 9") == (1, 3, 5, 7, 9)
    assert parse_ids(61) == (61,)
    assert parse_ids("") == ()
