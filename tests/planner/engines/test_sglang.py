"""SGLang: its map, its launch, and the models that ignore a map."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from planner.base import BadInput
from planner.engines import find_engine
from planner.model import find_model
from planner.replica import Situation
from planner.replica.registry import RULES
from planner.replica.static import static_table
from tests.planner.engines.examples import TINY, machine, question, random_placement, started

ENGINE = find_engine("sglang")


def flags_of(words: list[str]) -> dict[str, str]:
    """What launch.sh gives the server, by flag; empty where a flag stands alone."""
    values = zip(words, [*words[1:], "--"], strict=True)
    return {word: "" if value.startswith("--") else value for word, value in values if word.startswith("--")}


def test_map_has_one_key_and_a_row_for_every_decoder_layer() -> None:
    """61 rows for DeepSeek-V3, dense rows trivial, no row for the draft layer: SGLang passes the keys on as
    arguments and counts rows from layer 0.
    """
    model = find_model("deepseek-v3")
    emission = ENGINE.emit(random_placement(model, 16, 32), question(model, machine(8, 8), 32), "m")
    expert_map = json.loads(emission.files["expert_location.json"])
    assert list(expert_map) == ["physical_to_logical_map"]
    assert len(expert_map["physical_to_logical_map"]) == 61
    assert expert_map["physical_to_logical_map"][2] == [*range(256), *range(32)]


def test_rows_stay_on_one_line() -> None:
    """A diff of two maps shows layers."""
    emission = ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(8), 8), "m")
    assert len(emission.files["expert_location.json"].splitlines()) == TINY.layers + 4


def test_two_nodes_start_with_their_rank_and_the_map(tmp_path: Path) -> None:
    """The words that launch.sh really gives the server on node 1."""
    emission = ENGINE.emit(random_placement(TINY, 8, 16), question(TINY, machine(4, 4), 16), "org/a model")
    words = started(emission, tmp_path, "python3", node_rank=1)
    assert words[:2] == ["-m", "sglang.launch_server"]
    assert flags_of(words) == {
        "--model-path": "org/a model", "--host": "0.0.0.0", "--tp-size": "8", "--nnodes": "2",
        "--node-rank": "1", "--dist-init-addr": "head.example:20000", "--ep-size": "8",
        "--attn-dp-size": "8", "--moe-dense-tp-size": "1", "--moe-a2a-backend": "deepep",
        "--deepep-mode": "low_latency", "--ep-num-redundant-experts": "16",
        "--init-expert-location": str(tmp_path / "expert_location.json"),
        "--ep-dispatch-algorithm": "static", "--moe-runner-backend": "deep_gemm",
        "--max-running-requests": "1024", "--cuda-graph-max-bs-decode": "128",
        "--chunked-prefill-size": "2048", "--disable-prefill-cuda-graph": "",
        "--mem-fraction-static": "0.994", "--disable-shared-experts-fusion": "",
    }  # fmt: skip


def test_an_older_release_gets_the_older_spelling_of_attention_dp(tmp_path: Path) -> None:
    """0.5.21 has no --attn-dp-size; 0.5.22 is unknown, and the spelling that both its neighbours take is
    used, with a word.
    """
    for version, notes in (("0.5.21", 0), ("0.5.22", 1)):
        emission = ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(8), 8), "m", version)
        words = started(emission, tmp_path, "python3", node_rank=None)
        assert "--attn-dp-size" not in words
        assert words[words.index("--dp-size") + 1 :][:2] == ["8", "--enable-dp-attention"]
        assert sum("the rules of 0.5.21 are assumed" in note for note in emission.notes) == notes


def test_one_node_needs_no_address(tmp_path: Path) -> None:
    """A single node starts without NODE_RANK and HEAD_ADDRESS."""
    emission = ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(8), 8), "m")
    assert "--nnodes" not in started(emission, tmp_path, "python3", node_rank=None)


@pytest.mark.parametrize(
    ("rank", "message"),
    [(None, "NODE_RANK: set it to"), (2, "NODE_RANK is '2'; this plan has the nodes 0 to 1")],
)
def test_a_missing_or_foreign_node_rank_stops_the_launch(
    rank: int | None, message: str, tmp_path: Path
) -> None:
    """No node guesses which ranks of the plan are its own."""
    emission = ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(4, 4), 8), "m")
    with pytest.raises(subprocess.CalledProcessError) as stopped:
        started(emission, tmp_path, "python3", node_rank=rank)
    assert message in stopped.value.stderr


def test_a_model_that_ignores_maps_is_launched_without_one(tmp_path: Path) -> None:
    """Mixtral: no map, the note says so loudly, and no flag pretends that the plan is used."""
    mixtral = find_model("mixtral")
    emission = ENGINE.emit(random_placement(mixtral, 8, 8), question(mixtral, machine(8), 8), "m")
    words = started(emission, tmp_path, "python3", node_rank=None)
    assert words[2:] == ["--model-path", "m", "--host", "0.0.0.0", "--tp-size", "8", "--ep-size", "8"]
    assert list(emission.files) == ["launch.sh"]
    assert emission.ignored.startswith("SGLang 0.5.23 does not read a map for mixtral")
    assert emission.notes[0].startswith(f"WARNING: {emission.ignored}")
    assert "does not read a map for mixtral" in emission.launch
    assert ENGINE.transport("decode", machine(8), mixtral) == "allgather"


def test_a_draft_layer_off_its_default_row_is_pointed_out() -> None:
    """SGLang's map has no row for a draft layer; the default row needs no word, another one does."""
    problem = question(TINY, machine(8), 8)
    moved = ENGINE.emit(random_placement(TINY, 8, 8), problem, "m")
    default = ENGINE.emit(ENGINE.default_placement(TINY, 8, 8), problem, "m")
    assert any("draft layer 6" in note for note in moved.notes)
    assert not any("draft" in note for note in default.notes)


def test_draft_layers_are_served_from_the_first_slot() -> None:
    """SGLang takes a draft layer's logical ids for slots: in its default row that is slot e for expert e on
    every rank, and shares stay whole anywhere.
    """
    node_G = machine(4, 4).node_G
    assert (static_table(ENGINE.default_placement(TINY, 8, 16), TINY, node_G)[:, -1] == np.arange(64)).all()
    placement = random_placement(TINY, 8, 16)
    *_, share_SP = RULES["nearest-static"](placement, Situation(TINY, node_G))
    assert all(np.allclose(np.bincount(placement.expert_LP[-1], weights=row), 1) for row in share_SP)


def test_normal_mode_across_small_nodes_is_replaced(tmp_path: Path) -> None:
    """DeepEP takes eight consecutive ranks for NVLink peers: two nodes of four are not, unless one NVLink
    domain spans them. Then no all-to-all is used.
    """
    placement = random_placement(TINY, 8, 8)
    apart, joined = (question(TINY, machine(4, 4, nodes_per_domain=span), 8, "prefill") for span in (1, 2))
    emission = ENGINE.emit(placement, apart, "m")
    flags = flags_of(started(emission, tmp_path, "python3"))
    assert (flags["--moe-a2a-backend"], flags["--ep-dispatch-algorithm"]) == ("none", "dynamic")
    assert "--deepep-mode" not in flags
    assert any(
        "GPUs 0 and 4 have none: the launch uses --moe-a2a-backend none" in note for note in emission.notes
    )
    assert ENGINE.transport("prefill", apart.topology) == "allgather"
    assert ENGINE.replica_rule("prefill", apart.topology) == "row-index"
    assert "--moe-a2a-backend deepep" in ENGINE.emit(placement, joined, "m").launch
    known = r"SGLang 0\.5\.21 is not known to serve a map rightly without an all-to-all"
    with pytest.raises(BadInput, match=rf"GPUs 0 and 4 have none, and {known}"):
        ENGINE.emit(placement, apart, "m", "0.5.21")
    assert ENGINE.transport("prefill", joined.topology) == "rank"
    assert ENGINE.replica_rule("prefill", joined.topology) == "nearest-static"


def test_larger_steps_raise_the_dispatch_buffer(tmp_path: Path) -> None:
    """More than 128 tokens a rank need a larger buffer than SGLang's default, so the launch asks for it."""
    problem = question(TINY, machine(8), 8, tokens_per_rank=512)
    launch = ENGINE.emit(random_placement(TINY, 8, 8), problem, "m").launch
    setting = "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK=512"
    assert f"exec env {setting} python3 -m sglang.launch_server" in launch


@pytest.mark.parametrize(
    ("phase", "gpus", "span", "transport"),
    [
        ("decode", (8, 8), 1, "slot"),
        ("prefill", (8, 8), 1, "node"),
        ("prefill", (8,), 1, "rank"),
        ("prefill", (4, 4), 2, "rank"),
    ],
)
def test_transport(phase: str, gpus: tuple[int, ...], span: int, transport: str) -> None:
    """Low latency per slot; normal per node, or per GPU where NVLink reaches all."""
    assert ENGINE.transport(phase, machine(*gpus, nodes_per_domain=span)) == transport


def test_a_file_of_another_kind_is_not_taken_for_a_map() -> None:
    """Recognised by content: a load file or a list is none."""
    assert ENGINE.read_map({"logical_count": [[1, 2]]}) is None
    assert ENGINE.read_map([[0, 1]]) is None
