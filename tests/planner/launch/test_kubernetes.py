"""The manifest: pods by published schemas, LeaderWorkerSet fields, and ranks by the host a pod is on.

Pods are held against Kubernetes' schemas, LeaderWorkerSet against a schema written from its API reference.
"""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.base import BadInput
from planner.launch import kubernetes
from tests.planner.engines.examples import machine
from tests.planner.launch.jobs import job, nameless

POSITIVE = {"type": "integer", "minimum": 1}
LWS = {  # leaderworkerset.x-k8s.io/v1 as its API reference has it; pod templates are judged apart
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "leaderworkerset.x-k8s.io/v1"},
        "kind": {"const": "LeaderWorkerSet"},
        "metadata": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"pattern": "^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"}},
        },
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "required": ["leaderWorkerTemplate"],
            "properties": {
                "replicas": {"type": "integer", "minimum": 0},
                "startupPolicy": {"enum": ["LeaderCreated", "LeaderReady"]},
                "rolloutStrategy": {"type": "object"},
                "networkConfig": {"type": "object"},
                "leaderWorkerTemplate": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["workerTemplate"],
                    "properties": {
                        "size": POSITIVE,
                        "restartPolicy": {
                            "enum": [
                                "RecreateGroupOnPodRestart",
                                "RecreateGroupAfterStart",
                                "Default",
                                "None",
                            ]
                        },
                        "leaderTemplate": {"type": "object"},
                        "workerTemplate": {"type": "object"},
                        "subGroupPolicy": {
                            "type": "object",
                            "required": ["subGroupSize"],
                            "properties": {
                                "subGroupSize": POSITIVE,
                                "subGroupPolicyType": {"enum": ["LeaderWorker", "LeaderExcluded"]},
                            },
                        },
                    },
                },
            },
        },
    },
}


def manifest(**how: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The ConfigMap and the LeaderWorkerSet, parsed."""
    text = kubernetes.write(job(image="example/engine:1", **how)).files[kubernetes.MANIFEST]
    config_map, found = yaml.safe_load_all(text)
    return config_map, found


def pods(found: dict[str, Any]) -> list[dict[str, Any]]:
    template = found["spec"]["leaderWorkerTemplate"]
    return [template[name] for name in ("leaderTemplate", "workerTemplate") if name in template]


def node_rank(pod: dict[str, Any], folder: Path, **environment: str) -> str:
    """The node number that a pod's command really starts launch.sh with."""
    (folder / "launch.sh").write_text('echo "$NODE_RANK $HEAD_ADDRESS"\n')
    command = pod["spec"]["containers"][0]["command"]
    words = [word.replace(f"bash {kubernetes.MOUNT}", f"bash {folder}") for word in command]
    places = {"PATH": "/usr/bin:/bin", "LWS_LEADER_ADDRESS": "leader"}
    done = subprocess.run(
        words, env={**places, **environment}, capture_output=True, text=True, timeout=20, check=False
    )
    return done.stdout.strip() or done.stderr.strip()


@pytest.mark.parametrize("hosts", [(), ("node66", "node7")])
@pytest.mark.parametrize("topology", [machine(4, 4), machine(8), machine(4, 4, nodes_per_domain=2)])
def test_the_manifest_is_valid(hosts: tuple[str, ...], topology: Any) -> None:
    """ConfigMap and pod templates by the schemas of Kubernetes itself, the set by its reference; a misspelt
    field fails.
    """
    kubernetes_validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed"
    )
    jsonschema = pytest.importorskip("jsonschema")
    config_map, found = manifest(topology=topology, hosts=hosts[: topology.node_count])
    version = kubernetes_validate.latest_version()
    kubernetes_validate.validate(config_map, version, strict=True)
    jsonschema.validate(found, LWS)
    for pod in pods(found):
        kubernetes_validate.validate(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **pod}, version, strict=True
        )
    pods(found)[0]["spec"]["containers"][0]["imagePolicy"] = "Always"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **pods(found)[0]},
            version,
            strict=True,
        )


def test_a_pod_takes_its_node_number_from_the_host_it_is_on(tmp_path: Path) -> None:
    """Whatever index the scheduler's choice gave it; a foreign host stops it."""
    leader, worker = pods(manifest(hosts=("node66", "node7"))[1])
    assert node_rank(leader, tmp_path, NODE_NAME="node66", LWS_WORKER_INDEX="0") == "0 leader"
    assert node_rank(worker, tmp_path, NODE_NAME="node7", LWS_WORKER_INDEX="1") == "1 leader"
    assert (
        node_rank(worker, tmp_path, NODE_NAME="node8", LWS_WORKER_INDEX="1")
        == "node8 is not a host of this plan"
    )


def test_the_leader_is_bound_to_the_first_host_and_workers_to_the_others() -> None:
    """The leader's address is node 0's; a field selector takes one name, so each host is a term."""
    leader, worker = pods(manifest(topology=machine(2, 2, 2), hosts=("c", "a", "b"))[1])

    def hosts(pod: dict[str, Any]) -> list[str]:
        terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        assert all(len(term["matchFields"][0]["values"]) == 1 for term in terms)
        return [term["matchFields"][0]["values"][0] for term in terms]

    assert (hosts(leader), hosts(worker)) == (["c"], ["a", "b"])


def test_without_hosts_the_index_is_the_node_number_and_it_is_said(tmp_path: Path) -> None:
    """The scheduler chooses; the note says so."""
    how: dict[str, Any] = {"topology": nameless(machine(4, 4))}
    (pod,) = pods(manifest(**how)[1])
    assert node_rank(pod, tmp_path, NODE_NAME="any", LWS_WORKER_INDEX="1") == "1 leader"
    assert any("scheduler chooses" in note for note in kubernetes.write(job(image="i", **how)).notes)


def test_one_nvlink_domain_asks_for_one_clique() -> None:
    """Nodes that share an NVLink domain must land in one; separate nodes need not."""
    joined, apart = (
        manifest(topology=machine(4, 4, nodes_per_domain=span))[1]["metadata"] for span in (2, 1)
    )
    assert joined["annotations"] == {
        "leaderworkerset.sigs.k8s.io/exclusive-topology": "nvidia.com/gpu.clique"
    }
    assert "annotations" not in apart


def test_the_config_map_holds_the_files_as_they_are() -> None:
    """Every file, byte for byte, under the path the script expects."""
    config_map, found = manifest()
    assert config_map["data"]["expert_location.json"] == job().files["expert_location.json"]
    items = pods(found)[0]["spec"]["volumes"][0]["configMap"]["items"]
    assert {item["key"] for item in items} == set(config_map["data"])


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
