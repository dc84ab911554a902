"""ai-dynamo: the engine's own flags behind dynamo's worker modules."""

import pytest

from planner.base import BadInput
from planner.launch import dynamo
from tests.planner.engines.examples import machine
from tests.planner.launch.jobs import job


def test_sglang_gets_the_older_words_for_attention_dp() -> None:
    """The SGLang that dynamo pins has no --attn-dp-size."""
    script = dynamo.write(job(topology=machine(8))).files["launch.sh"]
    words = script.split("exec ")[1].replace("\\\n", " ").split()
    assert words[:3] == ["python3", "-m", "dynamo.sglang"]
    assert "--attn-dp-size" not in words
    assert words[words.index("--dp-size") :][:3] == ["--dp-size", "8", "--enable-dp-attention"]


def test_every_node_is_translated() -> None:
    """No node is left with the engine's own server."""
    script = dynamo.write(job("vllm")).files["launch.sh"]
    assert script.count("python3 -m dynamo.vllm \\\n    --model org/m") == 2
    assert "vllm serve" not in script


def test_trtllm_keeps_its_mpi_launcher_and_gets_dynamos_flags() -> None:
    """Its flags have other names in dynamo."""
    words = dynamo.worker_words(job("trtllm").commands[0].words, "trtllm")
    assert words[:6] == ["trtllm-llmapi-launch", "python3", "-m", "dynamo.trtllm", "--model", "org/m"]
    assert words[6::2] == ["--tensor-parallel-size", "--expert-parallel-size", "--extra-engine-args"]


def test_an_engine_without_a_worker_is_refused() -> None:
    """Dynamo has workers for three engines."""
    with pytest.raises(BadInput, match="no worker for other"):
        dynamo.worker_words(["serve-other", "m"], "other")


def test_the_pinned_sglang_is_not_started_without_an_all_to_all() -> None:
    """Prefill on two nodes of four, whose launch does without one: an older SGLang is not known to serve a
    map rightly then.
    """
    with pytest.raises(BadInput, match=r"pins SGLang 0\.5\.21.*use --launcher shell"):
        dynamo.write(job(phase="prefill"))
