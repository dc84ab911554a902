"""ai-dynamo 1.6.1: its workers take the engine's own flags.

Read in its wheel and its operator's sources (2026), not run. What an engine's command is as a worker, the
engine says. With an image also a DynamoGraphDeployment (nvidia.com/v1beta1), whose operator leaves a command
alone that names no Python program: the pods find their numbers by what LWS or Grove tell them.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.base import BadInput
from planner.engines import command_line
from planner.launch import pod, shell
from planner.launch.job import MIXED, PREFILL, SCRIPT, Job, Launch
from planner.launch.manifest import config_map, documents, object_name
from planner.launch.network import network_notes

NAME = "dynamo"
TITLE = "ai-dynamo 1.6.1"
ACCELERATORS = ("nvidia",)
FRONTEND = "frontend.sh"
MANIFEST = "dynamographdeployment.yaml"
FRONTEND_TEXT = """\
#!/usr/bin/env bash
# Written by moeplan: the HTTP server in front of the workers.
set -euo pipefail
exec python3 -m dynamo.frontend "$@"
"""
# Grove's cliques are named ...-ldr and ...-wkr, and a pod by its clique and its index in it.
_WHERE = """\
if [ -n "${LWS_LEADER_ADDRESS:-}" ]; then
    HEAD_ADDRESS="$LWS_LEADER_ADDRESS" NODE_RANK="$LWS_WORKER_INDEX"
else
    clique="${GROVE_PCLQ_NAME:?neither LWS nor Grove told this pod its place}"
    HEAD_ADDRESS="${clique%-*}-ldr-0.$GROVE_HEADLESS_SERVICE" NODE_RANK="$GROVE_PCLQ_POD_INDEX"
    case "$clique" in *-wkr) ((NODE_RANK += 1)) ;; esac
fi"""


def write(job: Job) -> Launch:
    """The engine's script with dynamo's workers in it, and the frontend's, which runs once anywhere."""
    files = {SCRIPT: shell.script_text(job, _workers(job)), FRONTEND: FRONTEND_TEXT}
    if job.image:
        files[MANIFEST] = _manifest(job, {**job.files, SCRIPT: files[SCRIPT]})
        return Launch(files, MANIFEST, (*_deployment_notes(), *network_notes(job)))
    start = f"start {FRONTEND} once, and {SCRIPT} on every node"
    discovery = "both need the same discovery service (ETCD_ENDPOINTS, or DYN_DISCOVERY_BACKEND)"
    notes = (f"{start}; {discovery}", *shell.order_notes(job), *network_notes(job))
    return Launch(files, SCRIPT, notes)


def _workers(job: Job) -> Mapping[str, str]:
    """The engine's command lines, and those that take their place."""
    if job.worker_words is None:
        raise BadInput(f"ai-dynamo has no worker for {job.engine}; use --launcher shell")
    found = {}
    for command in job.commands:
        worker = replace(command, words=tuple(job.worker_words(command.words)))
        found[command_line(command.with_environment)] = command_line(worker.with_environment)
    return found


def _manifest(job: Job, files: Mapping[str, str]) -> str:
    pod.check_job(job, NAME)
    if job.hosts and job.nodes > 1:
        raise BadInput(
            f"--launcher {NAME} --image: a DynamoGraphDeployment does not bind nodes to the plan's hosts; "
            f"leave --image out and start {SCRIPT} on each host, or use --launcher kubernetes"
        )
    # Of a pair, the decode half brings the frontend, which finds both in the namespace that they share.
    frontend = [] if job.role == PREFILL else [_frontend(job)]
    deployment = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": object_name(job)},
        "spec": {"backendFramework": job.engine, "components": [*frontend, _worker(job, files)]},
    }
    return documents(config_map(job, files), deployment)


def _frontend(job: Job) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": job.image}]}
    return _component(job, "Frontend", "frontend", spec)


def _worker(job: Job, files: Mapping[str, str]) -> dict[str, Any]:
    """The operator gives the container named main its ports and probes, and would give it /dev/shm."""
    main = pod.container(job, "main", pod.start_text(job, [_WHERE] if job.nodes > 1 else ()))
    kind = "worker" if job.role == MIXED else job.role
    spec = {"containers": [main], "volumes": pod.volumes(job, list(files))}
    found = _component(job, kind, kind, spec) | {"sharedMemorySize": "0"}
    return found | ({"multinode": {"nodeCount": job.nodes}} if job.nodes > 1 else {})


def _component(job: Job, name: str, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    found = {"name": name, "type": kind, "replicas": 1, "podTemplate": {"spec": spec}}
    return found if job.role == MIXED else found | {"globalDynamoNamespace": True}


def _deployment_notes() -> tuple[str, ...]:
    return (
        f"start it by: kubectl apply --server-side -f {MANIFEST}; the frontend is part of it",
        "an image whose tag is no release of dynamo wants runtimeVersionOverride in both components",
        "the pods ask for GPUs alone: add your cluster's RDMA resource or host network",
    )
