"""llm-d: a LeaderWorkerSet that its router finds, and its proxy before a decode server."""

from dataclasses import replace
from typing import Any

import pytest

from planner.base import BadInput
from planner.engines import find_engine
from planner.launch import job_for, launched, llm_d
from planner.launch.job import Job
from tests.planner.engines.examples import TINY, machine, question, random_placement
from tests.planner.launch.jobs import job
from tests.planner.launch.pods import objects, templates, validate


def half(role: str = "mixed", **how: Any) -> Job:
    return replace(job(image="i", **how), role=role, kv_connector="sglang")


def served_port(container: dict[str, Any]) -> str:
    words: list[str] = container["args"]
    return words[words.index("--port") + 1]


@pytest.mark.parametrize("role", ["mixed", "prefill", "decode"])
@pytest.mark.parametrize("topology", [machine(4, 4), machine(8)])
def test_the_manifest_is_valid(role: str, topology: Any) -> None:
    """By the schemas of Kubernetes itself, and the set's by its reference."""
    validate(objects(llm_d.write(half(role, topology=topology))))


@pytest.mark.parametrize(
    ("role", "label"), [("mixed", "prefill-decode"), ("prefill", "prefill"), ("decode", "decode")]
)
def test_a_pool_finds_node_0_alone(role: str, label: str) -> None:
    """The others of the server would be asked for what they do not answer."""
    leader, worker = templates(objects(llm_d.write(half(role))))
    assert leader["metadata"]["labels"]["llm-d.ai/role"] == label
    assert leader["metadata"]["labels"]["llm-d.ai/inference-serving"] == "true"
    assert "metadata" not in worker


def test_a_decode_server_answers_behind_the_proxy() -> None:
    """The proxy has the pool's port, and knows the engine's; the other half has the pool's itself."""
    decode, prefill = (
        templates(objects(llm_d.write(half(role))))[0]["spec"] for role in ("decode", "prefill")
    )
    (proxy,) = decode["initContainers"]
    assert proxy["restartPolicy"] == "Always"
    assert proxy["args"][:3] == ["--port=8000", "--vllm-port=8200", "--kv-connector=sglang"]
    assert served_port(decode["containers"][0]) == "8200"
    assert served_port(prefill["containers"][0]) == "8000"
    assert "initContainers" not in prefill


def test_an_engine_that_the_proxy_does_not_know_has_no_decode_server() -> None:
    """A server of all traffic needs no proxy."""
    with pytest.raises(BadInput, match="not known to hand sglang what a prefill server computed"):
        llm_d.write(replace(half("decode"), kv_connector=""))
    assert llm_d.write(replace(half(), kv_connector="")).first == "llm-d.yaml"


def test_it_needs_an_image() -> None:
    with pytest.raises(BadInput, match="--launcher llm-d needs --image"):
        llm_d.write(job())


@pytest.mark.parametrize(("engine", "connector"), [("sglang", "sglang"), ("vllm", "nixlv2")])
def test_an_engine_says_how_its_halves_hand_the_cache_over(engine: str, connector: str) -> None:
    """By llm-d's own name for it, which its proxy is started with."""
    problem = question(TINY, machine(8), 0)
    emission = find_engine(engine).emit(random_placement(TINY, 8, 0), problem, "m", None, "decode")
    asked = job_for(emission, problem, engine, image="i", role="decode")
    assert f"--kv-connector={connector}" in launched(emission, asked, "llm-d").files["llm-d.yaml"]
