"""The manifest: pods by published schemas, LeaderWorkerSet fields, and ranks by the host a pod is on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.base import BadInput
from planner.launch import kubernetes
from tests.planner.engines.examples import machine
from tests.planner.launch.jobs import job, nameless
from tests.planner.launch.pods import Shell, objects, templates, validate


def manifest(**how: Any) -> dict[str, dict[str, Any]]:
    """The ConfigMap, the LeaderWorkerSet and the Service."""
    return objects(kubernetes.write(job(image="example/engine:1", **how)))


def node_rank(pod: dict[str, Any], folder: Path, **environment: str) -> str:
    """The node number that a pod's command really starts launch.sh with."""
    found = Shell(folder / environment["NODE_NAME"], {"launch.sh": 'echo "$NODE_RANK $HEAD_ADDRESS" >&2\n'})
    return found.run(pod, LWS_LEADER_ADDRESS="leader", **environment)[1]


@pytest.mark.parametrize("hosts", [(), ("node66", "node7")])
@pytest.mark.parametrize("topology", [machine(4, 4), machine(8), machine(4, 4, nodes_per_domain=2)])
def test_the_manifest_is_valid(hosts: tuple[str, ...], topology: Any) -> None:
    """By the schemas of Kubernetes itself, and the set's by its reference."""
    validate(manifest(topology=topology, hosts=hosts[: topology.node_count]))


def test_a_misspelt_field_is_not_valid() -> None:
    """Neither in a pod nor in a set: the check above can fail."""
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="not installed")
    jsonschema = pytest.importorskip("jsonschema", reason="not installed")
    found = manifest()
    found["LeaderWorkerSet"]["spec"]["startPolicy"] = "LeaderCreated"
    with pytest.raises(jsonschema.ValidationError):
        validate(found)
    found = manifest()
    templates(found)[0]["spec"]["containers"][0]["imagePolicy"] = "Always"
    with pytest.raises(kubernetes_validate.ValidationError):
        validate(found)


def test_a_pod_takes_its_node_number_from_the_host_it_is_on(tmp_path: Path) -> None:
    """Whatever index the scheduler's choice gave it; a foreign host stops it."""
    leader, worker = templates(manifest(hosts=("node66", "node7")))
    assert node_rank(leader, tmp_path, NODE_NAME="node66", LWS_WORKER_INDEX="0") == "0 leader"
    assert node_rank(worker, tmp_path, NODE_NAME="node7", LWS_WORKER_INDEX="2") == "1 leader"
    foreign = node_rank(worker, tmp_path, NODE_NAME="node8", LWS_WORKER_INDEX="1")
    assert foreign == "node8 is not a host of this plan"


def test_the_leader_is_bound_to_the_first_host_and_workers_to_the_others() -> None:
    """The leader's address is node 0's; a field selector takes one name, so each host is a term."""
    leader, worker = templates(manifest(topology=machine(2, 2, 2), hosts=("c", "a", "b")))

    def hosts(pod: dict[str, Any]) -> list[str]:
        required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        fields = [term["matchFields"][0] for term in required["nodeSelectorTerms"]]
        assert all(len(field["values"]) == 1 for field in fields)
        return [field["values"][0] for field in fields]

    assert (hosts(leader), hosts(worker)) == (["c"], ["a", "b"])


def test_without_hosts_the_index_is_the_node_number_and_it_is_said(tmp_path: Path) -> None:
    """The scheduler chooses; the note says so."""
    how: dict[str, Any] = {"topology": nameless(machine(4, 4))}
    _, worker = templates(manifest(**how))
    assert node_rank(worker, tmp_path, NODE_NAME="any", LWS_WORKER_INDEX="1") == "1 leader"
    assert any("scheduler chooses" in note for note in kubernetes.write(job(image="i", **how)).notes)


def test_one_nvlink_domain_asks_for_one_clique() -> None:
    """Nodes that share an NVLink domain must land in one; separate nodes need not."""
    joined, apart = (
        manifest(topology=machine(4, 4, nodes_per_domain=span))["LeaderWorkerSet"]["metadata"]
        for span in (2, 1)
    )
    assert joined["annotations"] == {
        "leaderworkerset.sigs.k8s.io/exclusive-topology": "nvidia.com/gpu.clique"
    }
    assert "annotations" not in apart


def test_the_config_map_holds_the_files_as_they_are() -> None:
    """Every file, byte for byte, under the path the script expects."""
    found = manifest()
    config_map = found["ConfigMap"]
    assert config_map["data"]["expert_location.json"] == job().files["expert_location.json"]
    items = templates(found)[0]["spec"]["volumes"][0]["configMap"]["items"]
    assert {item["key"] for item in items} == set(config_map["data"])


@pytest.mark.parametrize("topology", [machine(4, 4), machine(8)])
def test_the_service_finds_node_0_alone_where_it_answers(topology: Any) -> None:
    """Other nodes answer nothing of worth; the port is the one that the leader listens and is probed at."""
    found = manifest(topology=topology)
    spec, (leader, *workers) = found["Service"]["spec"], templates(found)
    assert spec["selector"] == {
        "leaderworkerset.sigs.k8s.io/name": found["LeaderWorkerSet"]["metadata"]["name"],
        "leaderworkerset.sigs.k8s.io/worker-index": "0",
    }
    serve = leader["spec"]["containers"][0]
    (port,) = serve["ports"]
    assert serve["readinessProbe"]["httpGet"] == {"path": "/health", "port": port["name"]}
    assert spec["ports"][0] == {"name": "http", "port": port["containerPort"], "targetPort": port["name"]}
    assert all("readinessProbe" not in worker["spec"]["containers"][0] for worker in workers)


def test_workers_start_with_the_leader() -> None:
    """A leader that is ready only once they have joined it would wait for ever."""
    assert manifest()["LeaderWorkerSet"]["spec"]["startupPolicy"] == "LeaderCreated"


def test_a_server_listens_to_other_hosts_at_the_services_port() -> None:
    """What the command does not say is added, what it says stays: a loopback address is no Service's."""
    started = job("vllm", machine(8), image="i")
    bare = replace(started.commands[0], words=("serve", "m"))
    said = replace(bare, words=("serve", "m", "--host=::", "--port", "30000"))

    def serve(command: Any) -> dict[str, Any]:
        found = objects(kubernetes.write(replace(started, commands=(command,))))
        assert found["Service"]["spec"]["ports"][0]["port"] == command.port
        container: dict[str, Any] = templates(found)[0]["spec"]["containers"][0]
        return container

    assert serve(bare)["args"] == ["--host", "0.0.0.0", "--port", "8000"]
    assert serve(said)["args"] == []
    assert serve(said)["ports"][0]["containerPort"] == 30000


def test_halves_of_a_pair_have_names_of_their_own() -> None:
    """Both are applied in one namespace; the router is told the name of node 0."""
    names = set()
    for role in ("prefill", "decode"):
        launch = kubernetes.write(replace(job(image="i"), role=role))
        found, name = objects(launch), f"moeplan-sglang-{role}"
        assert any(f"{role.upper()}_HEAD={name}-0.{name}" in note for note in launch.notes)
        names |= {value["metadata"]["name"] for value in found.values()}
        assert found["Service"]["spec"]["selector"]["leaderworkerset.sigs.k8s.io/name"].endswith(role)
    assert names == {f"moeplan-sglang-{role}{end}" for role in ("prefill", "decode") for end in ("", "-http")}


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({}, "needs --image"),
        ({"image": "i", "engine": "trtllm"}, "by MPI"),
        ({"image": "i", "engine": "vllm", "topology": machine(8, 4, 4)}, "hold 8, 4, 4 GPUs"),
    ],
)
def test_what_a_set_cannot_start_is_refused(how: dict[str, Any], message: str) -> None:
    """One image, one number of GPUs, one command a pod."""
    with pytest.raises(BadInput, match=message):
        kubernetes.write(job(**how))
