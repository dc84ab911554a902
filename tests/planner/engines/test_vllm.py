"""vLLM's launches: flags only, a word that the placement is not used, and both halves of a pair."""

import json
import os
import shlex
import stat
import subprocess
from pathlib import Path

import pytest

from planner.engines import find_engine, paired_engines
from planner.model import find_model
from tests.planner.engines.examples import TINY, machine, question, random_placement, started

ENGINE = find_engine("vllm")


def test_only_flags_are_emitted_and_the_note_says_so() -> None:
    """No file pretends that vLLM 0.33.0 has a field for a map."""
    emission = ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(8), 8), "m")
    assert set(emission.files) == {"launch.sh"}
    assert emission.ignored
    said = "WARNING: vLLM 0.33.0 does not read a map: the plan's placement is not used"
    assert emission.notes[0].startswith(said)
    assert ENGINE.read_map({"physical_to_logical_map": [[0]]}) is None


@pytest.mark.parametrize(
    ("node", "extra"),
    [
        (0, ["--host", "0.0.0.0"]),
        (1, ["--data-parallel-start-rank", "8", "--headless"]),
        (2, ["--data-parallel-start-rank", "12", "--headless"]),
    ],
)
def test_nodes_of_different_size_start_their_own_ranks(node: int, extra: list[str], tmp_path: Path) -> None:
    """Each node starts at the plan's own first rank there, whatever the sizes before it; node 0 alone serves,
    to every host; each rank has the plan's tokens.
    """
    emission = ENGINE.emit(random_placement(TINY, 16, 16), question(TINY, machine(8, 4, 4), 16), "m")
    words = started(emission, tmp_path, "vllm", node_rank=node)
    local = ["8", "4", "4"][node]
    assert words[:-9] == [
        "serve", "m", "--tensor-parallel-size", "1", "--data-parallel-size", "16",
        "--data-parallel-size-local", local, "--data-parallel-address", "head.example",
        "--data-parallel-rpc-port", "13345", *extra, "--enable-expert-parallel",
    ]  # fmt: skip
    assert words[-9:-1] == [
        "--all2all-backend", "deepep_low_latency", "--max-num-batched-tokens", "128", "--max-num-seqs", "128",
        "--enable-eplb", "--eplb-config",
    ]  # fmt: skip
    assert json.loads(words[-1]) == {"num_redundant_experts": 16, "step_interval": 3000, "use_async": False}


def test_a_model_without_a_balancer_gets_no_balancer_flags(tmp_path: Path) -> None:
    """They would be refused or ignored; without replicas the plain launch is right."""
    model = find_model("gpt-oss-20b")
    emission = ENGINE.emit(random_placement(model, 8, 0), question(model, machine(8), 0), "m")
    assert "--enable-eplb" not in started(emission, tmp_path, "vllm", node_rank=None)
    assert "no expert balancer for gpt_oss" in emission.notes[0]


def test_arguments_of_the_script_reach_the_server(tmp_path: Path) -> None:
    """A user's own flags are added to the command."""
    launch = ENGINE.emit(random_placement(TINY, 8, 8), question(TINY, machine(8), 8), "m").launch
    assert launch.rstrip().endswith('"$@"')


def test_a_pair_hands_the_kv_cache_over() -> None:
    """The prefill half makes it, the decode half takes it, each from the address of the host it runs on."""
    roles = {"prefill": "kv_producer", "decode": "kv_consumer"}
    for phase, kv_role in roles.items():
        problem = question(TINY, machine(8, 8), 16, phase)
        emission = ENGINE.emit(random_placement(TINY, 16, 16), problem, "m", role=phase)
        for command in emission.commands:
            transfer = json.loads(shlex.split(command.value("--kv-transfer-config") or "")[0])
            assert (transfer["kv_connector"], transfer["kv_role"]) == ("NixlConnector", kv_role)
            own = dict(command.environment)["VLLM_NIXL_SIDE_CHANNEL_HOST"]
            assert "hostname -I" in own
        assert "pip install nixl" in emission.notes[-1]


def test_the_router_knows_both_halves(tmp_path: Path) -> None:
    """It refuses to guess where they are, and finds them at the port that they serve at."""
    problem = question(TINY, machine(8), 8)
    (tmp_path / "router.sh").write_text(paired_engines()["vllm"].router_text(problem, problem))
    (tmp_path / "vllm-router").write_text('#!/bin/bash\necho "$@"\n')
    (tmp_path / "vllm-router").chmod(stat.S_IRWXU)
    heads = {"PREFILL_HEAD": "p.example", "DECODE_HEAD": "d.example"}
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    told, silent = (
        subprocess.run(
            ["bash", tmp_path / "router.sh"], env=env, capture_output=True, text=True, timeout=20, check=False
        )
        for env in ({**path, **heads}, path)
    )
    assert "--prefill http://p.example:8000 --decode http://d.example:8000" in told.stdout
    assert "PREFILL_HEAD: set it to" in silent.stderr
