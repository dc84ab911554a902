"""ai-dynamo: the engine's own flags behind dynamo's worker modules, by hand or as a graph of its operator."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.base import BadInput
from planner.launch import dynamo
from planner.launch.job import Job
from tests.planner.engines.examples import machine
from tests.planner.launch.jobs import job, nameless
from tests.planner.launch.pods import Shell, objects, templates, validate

PINNED = "0.5.21"  # of SGLang


def words_of(started: Job) -> list[str]:
    """The words that launch.sh starts node 0 with."""
    script = dynamo.write(started).files["launch.sh"]
    words = script.split("\nexec ")[1] if started.nodes == 1 or started.per_gpu else script.split("exec ")[1]
    return words.split(" ;;")[0].replace("\\\n", " ").split()


def graph(role: str = "mixed", topology: Any = None) -> dict[str, dict[str, Any]]:
    found = job(topology=topology or nameless(machine(4, 4)), image="i", version=PINNED)
    return objects(dynamo.write(replace(found, role=role)))


def test_sglang_is_started_as_the_release_that_dynamo_pins() -> None:
    """Emitted for that release, which has no --attn-dp-size."""
    words = words_of(job(topology=machine(8), version=PINNED))
    assert words[words.index("python3") :][:3] == ["python3", "-m", "dynamo.sglang"]
    assert "--enable-dp-attention" in words
    assert "--host" not in words


def test_words_of_a_later_sglang_are_refused_with_the_release_to_emit_for() -> None:
    """Its flags are not those of the pinned one."""
    with pytest.raises(BadInput, match=r"pins SGLang 0\.5\.21.*emit with --engine-version 0\.5\.21"):
        dynamo.write(job(topology=machine(8)))


def test_every_node_is_translated() -> None:
    """No node is left with the engine's own server."""
    script = dynamo.write(job("vllm")).files["launch.sh"]
    assert script.count("python3 -m dynamo.vllm \\\n    --model org/m") == 2
    assert "vllm serve" not in script


def test_trtllm_keeps_its_mpi_launcher_and_gets_dynamos_flags() -> None:
    """Its flags have other names in dynamo."""
    words = words_of(job("trtllm"))
    assert words[words.index("trtllm-llmapi-launch") :][:4] == [
        "trtllm-llmapi-launch",
        "python3",
        "-m",
        "dynamo.trtllm",
    ]
    assert words[words.index("--model") + 1] == "org/m"
    assert {"--tensor-parallel-size", "--expert-parallel-size", "--extra-engine-args"} <= set(words)


def test_an_engine_without_a_worker_is_refused() -> None:
    """The engine says what its worker is; one that says nothing has none."""
    with pytest.raises(BadInput, match="no worker for vllm"):
        dynamo.write(replace(job("vllm"), worker_words=None))


@pytest.mark.parametrize("role", ["mixed", "prefill", "decode"])
@pytest.mark.parametrize("topology", [nameless(machine(4, 4)), machine(8)])
def test_the_graph_is_valid(role: str, topology: Any) -> None:
    """Pods by Kubernetes' schemas, the graph by its reference."""
    validate(graph(role, topology))


def test_halves_of_a_pair_share_a_namespace_and_one_frontend() -> None:
    """A graph's namespace is its own otherwise, and the frontend of one would not see the other's worker."""
    parts = {
        role: graph(role)["DynamoGraphDeployment"]["spec"]["components"] for role in ("prefill", "decode")
    }
    assert [part["type"] for part in parts["prefill"]] == ["prefill"]
    assert [part["type"] for part in parts["decode"]] == ["frontend", "decode"]
    assert all(part["globalDynamoNamespace"] for found in parts.values() for part in found)
    assert all(
        "globalDynamoNamespace" not in part for part in graph()["DynamoGraphDeployment"]["spec"]["components"]
    )


LWS = {"LWS_LEADER_ADDRESS": "leader"}
GROVE = {"GROVE_HEADLESS_SERVICE": "graph-0.space.svc", "GROVE_PCLQ_POD_INDEX": "0"}


@pytest.mark.parametrize(
    ("environment", "rank", "head"),
    [
        ({**LWS, "LWS_WORKER_INDEX": "0"}, "0", "leader"),
        ({**LWS, "LWS_WORKER_INDEX": "1"}, "1", "leader"),
        ({**GROVE, "GROVE_PCLQ_NAME": "graph-0-worker-ldr"}, "0", "graph-0-worker-ldr-0.graph-0.space.svc"),
        ({**GROVE, "GROVE_PCLQ_NAME": "graph-0-worker-wkr"}, "1", "graph-0-worker-ldr-0.graph-0.space.svc"),
    ],
)
def test_a_pod_finds_its_number_and_node_0(
    environment: dict[str, str], rank: str, head: str, tmp_path: Path
) -> None:
    """Whether LeaderWorkerSet or Grove starts it; the worker is started with both."""
    found = graph()
    pod = Shell(tmp_path, found["ConfigMap"]["data"])
    pod.engine("python3")
    assert pod.run(templates(found)[1], ["--extra"], **environment) == (0, "")
    assert pod.words is not None
    assert pod.words[:2] == ["-m", "dynamo.sglang"]
    assert pod.words[pod.words.index("--node-rank") + 1] == rank
    assert pod.words[pod.words.index("--dist-init-addr") + 1].startswith(f"{head}:")
    assert pod.words[-1] == "--extra"


def test_a_graph_that_would_not_keep_the_plans_hosts_is_refused() -> None:
    """Its pods of one server go where the scheduler likes."""
    with pytest.raises(BadInput, match="does not bind nodes to the plan's hosts; leave --image out"):
        dynamo.write(job("vllm", hosts=("a", "b"), image="i"))
