"""Names and paths find their model; a wrong name finds its neighbours."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from planner.base import BadInput, data_file, nearest, read_yaml, topologies_folder, topology_names
from planner.model import find_model, model_aliases, model_names
from planner.model.catalog import parse_ids
from tests.places import SHARED

TABLE = SHARED / "data/models.tsv"
CONFIG: dict[str, Any] = {
    "model_type": "mixtral",
    "num_hidden_layers": 2,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "torch_dtype": "bfloat16",
}


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as caught:
        find_model(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


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
    """Layers x experts x matrices x widths is 86-98 % of the parameters in the model's own name: an independent check of all five."""
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


def test_unknown_name_gives_the_nearest_and_how_to_list_all() -> None:
    """One line with three neighbours."""
    message = refusal("mixtrall")
    assert "unknown model 'mixtrall'" in message
    assert "'mixtral'" in message
    assert message.count("'") >= 8
    assert "moeplan model list" in message


@pytest.mark.parametrize("text", ["", " ", "x" * 5000, "a\0b", "~nobody-at-all/x", "two\nlines"])
def test_strange_text_is_a_wrong_name(text: str) -> None:
    """What the file system cannot even look up is still the reader's typo, not our bug."""
    assert len(refusal(text)) < 400


def test_a_path_that_does_not_exist_is_called_a_path() -> None:
    """Not a name with neighbours."""
    assert "no such file" in refusal("./nowhere/config.json")


def test_a_folder_or_its_config_is_read(tmp_path: Path) -> None:
    """Both give the same model, named after the folder."""
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    assert find_model(str(folder)) == find_model(str(folder / "config.json"))
    assert find_model(str(folder)).name == "my-model"
    assert find_model(str(folder)).source.endswith("config.json")


def test_quantization_beside_the_config_is_read(tmp_path: Path) -> None:
    """NVIDIA releases state it in hf_quant_config.json, while config.json still says bfloat16."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "NVFP4"}}))
    assert find_model(str(tmp_path)).weight_dtype == "nvfp4"
    (tmp_path / "hf_quant_config.json").write_text("[]")
    assert "'quantization' is missing" in refusal(str(tmp_path))


@pytest.mark.parametrize(
    "content",
    ["", "[1]", "null", "{", '{"model_type": "mixtral"', "\x00", '{"model_type": ' + "9" * 5000 + "}"],
)
def test_a_broken_config_gives_one_line_with_its_path(tmp_path: Path, content: str) -> None:
    """Cut short, not a mapping, absurd numbers."""
    path = tmp_path / "config.json"
    path.write_text(content)
    assert str(path) in refusal(str(path))


def test_a_folder_without_config_says_which_file_is_missing(tmp_path: Path) -> None:
    """The folder exists, its config.json does not."""
    assert "config.json" in refusal(str(tmp_path))


def test_nearest_joins_at_most_three_names_and_ties_break_the_same_way() -> None:
    """The order of the names given does not matter."""
    names = ["h100-dgx", "h200-dgx", "b200-dgx", "laptop"]
    assert nearest("h100", names).startswith("'h100-dgx', ")
    assert nearest("H300-dgx", names) == nearest("H300-dgx", names[::-1])
    assert nearest("x", []) == ""


def test_layer_ids_in_short_form() -> None:
    """Ranges include their end; a step follows a slash."""
    assert parse_ids("3-5") == (3, 4, 5)
    assert parse_ids("1-7/2, 9") == (1, 3, 5, 7, 9)
    assert parse_ids(61) == (61,)
    assert parse_ids("") == ()


def test_data_file_is_found_or_is_our_bug() -> None:
    """A missing shipped file keeps its traceback."""
    assert read_yaml(data_file("models.yaml"))
    with pytest.raises(FileNotFoundError):
        data_file("nothing.yaml")


def test_topology_names_are_the_files_of_the_folder() -> None:
    """Stems of the presets, sorted."""
    assert topology_names() == sorted(
        path.stem for path in topologies_folder().iterdir() if path.suffix == ".yaml"
    )
