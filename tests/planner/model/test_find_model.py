"""What is no name of the catalogue: a path is read, anything else gives one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from planner.base import BadInput
from planner.model import find_model

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
