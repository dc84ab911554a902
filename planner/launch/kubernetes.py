"""A Kubernetes LeaderWorkerSet and the ConfigMap with the files it runs.

The scheduler, not LWS_WORKER_INDEX, decides which host a pod gets. Where the plan names hosts, the leader is
bound to the first and the workers to the others, and a pod takes its node number from the host it is on;
where it names none, the pod's index is the node number. LWS: leaderworkerset.x-k8s.io/v1.
"""

import re
from collections.abc import Sequence
from typing import Any

import yaml

from planner.base import BadInput
from planner.launch import shell
from planner.launch.job import SCRIPT, Job, Launch
from planner.launch.network import network_notes
from planner.plan import EMITTED_PLAN

NAME = "kubernetes"
TITLE = "Kubernetes LeaderWorkerSet"
ACCELERATORS = ("nvidia",)
MANIFEST = "leaderworkerset.yaml"
MOUNT = "/moeplan"
LARGEST_CONFIG_BYTES = 1_000_000  # Kubernetes keeps a ConfigMap below 1 MiB, names included
EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
# The label that NVIDIA's feature discovery gives to the nodes of one NVLink domain.
CLIQUE = "nvidia.com/gpu.clique"
SET_LABEL = "leaderworkerset.sigs.k8s.io/name"


def write(job: Job) -> Launch:
    _check(job)
    files = {**job.files, SCRIPT: shell.script_text(job)}
    size = sum(len(text.encode()) for text in files.values())
    if size > LARGEST_CONFIG_BYTES:
        raise BadInput(
            f"the files have {size:,} bytes, a ConfigMap holds {LARGEST_CONFIG_BYTES:,}; "
            "use --launcher shell and a volume that the pods share"
        )
    manifest = "---\n".join((_yaml(_config_map(job, files)), _yaml(_set(job, sorted(files)))))
    return Launch({SCRIPT: files[SCRIPT], MANIFEST: manifest}, MANIFEST, (*_notes(job), *network_notes(job)))


def _check(job: Job) -> None:
    counts = job.gpus_of_nodes
    if len(set(counts)) > 1:
        raise BadInput(
            f"the nodes hold {', '.join(map(str, counts))} GPUs; "
            "the pods of a LeaderWorkerSet ask for one number; use --launcher slurm"
        )
    if job.per_gpu:
        raise BadInput(
            f"{job.engine} starts its ranks of several nodes by MPI, which a LeaderWorkerSet does not; "
            "use --launcher slurm"
        )
    if not job.image:
        raise BadInput("--launcher kubernetes needs --image, the container image that holds the engine")


def _notes(job: Job) -> list[str]:
    apply = f"kubectl apply --server-side -f {MANIFEST}"
    copy = "a client-side apply keeps a copy in an annotation, which large maps outgrow"
    network = "add your cluster's RDMA resource or host network, and a Service for the leader's port"
    notes = [f"start it by: {apply} ({copy})", f"the pods ask for GPUs alone: {network}"]
    if job.nodes > 1 and not job.hosts:
        chosen = "the scheduler chooses which one each node of the plan is"
        notes.append(f"the plan names no hosts: {chosen}; give --hosts to bind them")
    return notes


def object_name(job: Job) -> str:
    """A name that Kubernetes takes for a Service too: the set's is one."""
    words = re.sub(r"[^a-z0-9]+", "-", f"moeplan-{job.engine}".lower()).strip("-")
    return words[:40].strip("-")


def _config_map(job: Job, files: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": object_name(job)},
        "data": {_key(name): files[name] for name in sorted(files)},
    }


def _set(job: Job, names: Sequence[str]) -> dict[str, Any]:
    one_domain = job.nodes > 1 and job.topology.domain_count == 1
    template: dict[str, Any] = {"size": job.nodes, "restartPolicy": "RecreateGroupOnPodRestart"}
    if job.hosts and job.nodes > 1:
        template["leaderTemplate"] = _pod(job, names, job.hosts[:1])
    template["workerTemplate"] = _pod(job, names, job.hosts[1:] if job.nodes > 1 else job.hosts)
    metadata: dict[str, Any] = {"name": object_name(job)}
    if one_domain:
        metadata["annotations"] = {EXCLUSIVE: CLIQUE}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": metadata,
        "spec": {"replicas": 1, "leaderWorkerTemplate": template},
    }


def _pod(job: Job, names: Sequence[str], hosts: Sequence[str]) -> dict[str, Any]:
    """A pod template; `hosts`: those it may run on, all where empty."""
    # The paths are the pod's own.
    mounts = [{"name": "plan", "mountPath": MOUNT}, {"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108
    container = {
        "name": "serve",
        "image": job.image,
        "command": ["bash", "-c", _start(job)],
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {"limits": {"nvidia.com/gpu": str(job.gpus_of_nodes[0])}},
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "volumeMounts": mounts,
    }
    items = [{"key": _key(name), "path": name} for name in names if name != EMITTED_PLAN]
    volumes = [
        {"name": "plan", "configMap": {"name": object_name(job), "items": items}},
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
    ]
    return {"spec": {"containers": [container], "volumes": volumes, "affinity": _affinity(job, hosts)}}


def _affinity(job: Job, hosts: Sequence[str]) -> dict[str, Any]:
    """One pod a host, and only on these hosts.

    A field selector takes one name, so that each host is a term of its own.
    """
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    same_set = {"matchLabels": {SET_LABEL: object_name(job)}}
    alone = {"labelSelector": same_set, "topologyKey": "kubernetes.io/hostname"}
    found: dict[str, Any] = {"podAntiAffinity": {required: [alone]}}
    fields = [{"key": "metadata.name", "operator": "In", "values": [host]} for host in hosts]
    if fields:
        terms = [{"matchFields": [field]} for field in fields]
        found["nodeAffinity"] = {required: {"nodeSelectorTerms": terms}}
    return found


def _start(job: Job) -> str:
    lines = ["set -euo pipefail", f"export PLAN_DIR={MOUNT}", 'export HEAD_ADDRESS="$LWS_LEADER_ADDRESS"']
    if job.hosts:
        arms = [f"{host}) NODE_RANK={node} ;;" for node, host in enumerate(job.hosts)]
        other = '*) echo "$NODE_NAME is not a host of this plan" >&2; exit 2 ;;'
        lines += ['case "$NODE_NAME" in', *arms, other, "esac", "export NODE_RANK"]
    else:
        lines.append('export NODE_RANK="$LWS_WORKER_INDEX"')
    return "\n".join([*lines, f"exec bash {MOUNT}/{SCRIPT}", ""])


def _key(name: str) -> str:
    """A ConfigMap's keys hold no slash."""
    return name.replace("/", "__")


def _yaml(value: dict[str, Any]) -> str:
    class Blocks(yaml.SafeDumper):
        """Texts of several lines stay readable."""

        def ignore_aliases(self, data: Any) -> bool:
            del data
            return True

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Blocks.add_representer(str, represent)
    return str(yaml.dump(value, Dumper=Blocks, sort_keys=False, width=1000))
