"""A Kubernetes LeaderWorkerSet, the ConfigMap with the files it runs, and a Service before node 0."""

from collections.abc import Mapping

from planner.launch import pod, shell, validate_pods, worker_set
from planner.launch.job import SCRIPT, Job, Launch
from planner.launch.manifest import config_map, documents, object_name
from planner.launch.network import network_notes

NAME = "kubernetes"
TITLE = "Kubernetes LeaderWorkerSet"
ACCELERATORS = ("nvidia",)
MANIFEST = "leaderworkerset.yaml"


def write(job: Job) -> Launch:
    pod.check_job(job, NAME)
    files = {**job.files, SCRIPT: shell.script_text(job)}
    started = worker_set.worker_set(job, list(files), job.commands[0].port)
    manifest = documents(config_map(job, files), started, worker_set.service(job))
    notes = (*_notes(job), *worker_set.notes(job), *network_notes(job))
    return Launch({SCRIPT: files[SCRIPT], MANIFEST: manifest}, MANIFEST, notes)


def validate(job: Job) -> Mapping[str, str]:
    """`moeplan validate` on the same nodes, as a Job that runs once."""
    return validate_pods.validate_files(job)


def _notes(job: Job) -> list[str]:
    apply = f"kubectl apply --server-side -f {MANIFEST}"
    copy = "a client-side apply keeps a copy in an annotation, which large maps outgrow"
    reach = f"node 0 answers at {object_name(job)}-http:{job.commands[0].port}"
    more = "more arguments for the engine go into the containers' args"
    network = "add your cluster's RDMA resource or host network"
    name = object_name(job)  # by its own Service the set's pods are reached at every port
    head = [f"the pair's router is given {job.role.upper()}_HEAD={name}-0.{name}"] if job.label else []
    return [
        f"start it by: {apply} ({copy})",
        f"{reach}; {more}",
        *head,
        f"the pods ask for GPUs alone: {network}",
        validate_pods.validate_note(job),
    ]
