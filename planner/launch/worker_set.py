"""A LeaderWorkerSet (leaderworkerset.x-k8s.io/v1) whose pods are the plan's nodes, its leader node 0.

The scheduler, not LWS_WORKER_INDEX, decides which host a pod gets. Where the plan names hosts, the leader is
bound to the first and the workers to the others, and a pod takes its node number from the host it is on;
where it names none, the pod's index is the node number.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from planner.launch import pod
from planner.launch.job import Job
from planner.launch.manifest import object_name

EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
# The label that NVIDIA's feature discovery gives to the nodes of one NVLink domain.
CLIQUE = "nvidia.com/gpu.clique"
SET_LABEL = "leaderworkerset.sigs.k8s.io/name"
INDEX_LABEL = "leaderworkerset.sigs.k8s.io/worker-index"


def worker_set(
    job: Job,
    files: Sequence[str],
    port: int,
    *,
    labels: Mapping[str, str] | None = None,
    before: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """The set. Its leader alone answers over HTTP, and alone has a port, labels and init containers.

    Workers are started with the leader, not after it is ready: it is not before they have joined it.
    """
    leader = _template(job, files, job.hosts[:1], port)
    if labels:
        leader["metadata"] = {"labels": dict(labels)}
    if before:
        leader["spec"]["initContainers"] = [dict(container) for container in before]
    template: dict[str, Any] = {"size": job.nodes, "restartPolicy": "RecreateGroupOnPodRestart"}
    if job.nodes > 1:
        template["leaderTemplate"] = leader
        leader = _template(job, files, job.hosts[1:])
    template["workerTemplate"] = leader
    metadata: dict[str, Any] = {"name": object_name(job)}
    if job.nodes > 1 and job.topology.domain_count == 1:
        metadata["annotations"] = {EXCLUSIVE: CLIQUE}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": metadata,
        "spec": {"replicas": 1, "startupPolicy": "LeaderCreated", "leaderWorkerTemplate": template},
    }


def service(job: Job) -> dict[str, Any]:
    """A Service before node 0 alone: the others answer nothing, or what means nothing.

    The set's own Service, which only gives its pods their names, has the set's name.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"{object_name(job)}-http"},
        "spec": {
            "selector": {SET_LABEL: object_name(job), INDEX_LABEL: "0"},
            "ports": [{"name": "http", "port": job.commands[0].port, "targetPort": "http"}],
        },
    }


def notes(job: Job) -> list[str]:
    if job.nodes == 1 or job.hosts:
        return []
    chosen = "the scheduler chooses which one each node of the plan is"
    return [f"the plan names no hosts: {chosen}; give --hosts to bind them"]


def _template(
    job: Job, files: Sequence[str], hosts: Sequence[str], port: int | None = None
) -> dict[str, Any]:
    """A pod template; `hosts`: those it may run on, all where empty; `port`: where it answers over HTTP."""
    where = ['HEAD_ADDRESS="$LWS_LEADER_ADDRESS"', *pod.node_number(job, '"$LWS_WORKER_INDEX"')]
    serve = pod.container(job, "serve", pod.start_text(job, where if job.nodes > 1 else ()))
    if port is not None:
        serve |= pod.answering(job, port)
    together = affinity({SET_LABEL: object_name(job)}, hosts)
    return {"spec": {"containers": [serve], "volumes": pod.volumes(job, files), "affinity": together}}


def affinity(labels: Mapping[str, str], hosts: Sequence[str]) -> dict[str, Any]:
    """One pod with these labels a host, and only on these hosts; all where there are none.

    A field selector takes one name, so that each host is a term of its own.
    """
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    alone = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": "kubernetes.io/hostname"}
    found: dict[str, Any] = {"podAntiAffinity": {required: [alone]}}
    fields = [{"key": "metadata.name", "operator": "In", "values": [host]} for host in hosts]
    if fields:
        terms = [{"matchFields": [field]} for field in fields]
        found["nodeAffinity"] = {required: {"nodeSelectorTerms": terms}}
    return found
