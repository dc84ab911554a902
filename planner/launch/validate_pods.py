"""An Indexed Job of Kubernetes (batch/v1) whose pods are the plan's nodes and run `moeplan validate` once.

Where the plan names hosts, pods use their host's network and each takes its node number from the host it is
on; else the pod's index is the node number. Checked against Kubernetes' own schemas, never applied to a
cluster.
"""

from typing import Any

from planner.launch import pod, worker_set
from planner.launch.job import Job
from planner.launch.manifest import documents, object_name
from planner.launch.validating import VALIDATE, validate_text
from planner.plan import EMITTED_PLAN

MANIFEST = "validate.yaml"


def validate_name(job: Job) -> str:
    return f"{object_name(job)}-validate"


def validate_note(job: Job) -> str:
    """How the pods get the script and the plan: a ConfigMap made of the very files."""
    name = validate_name(job)
    files = f"--from-file={VALIDATE} --from-file={EMITTED_PLAN}"
    return (
        f"to validate first: kubectl create configmap {name} {files}, kubectl apply -f {MANIFEST}, "
        f"kubectl logs -f job/{name} (the image must also hold moeplan and torch)"
    )


def validate_files(job: Job) -> dict[str, str]:
    manifest = documents(_pods(job), _service(job)) if job.nodes > 1 else documents(_pods(job))
    return {VALIDATE: validate_text(job), MANIFEST: manifest}


def _pods(job: Job) -> dict[str, Any]:
    name, index = validate_name(job), '"$JOB_COMPLETION_INDEX"'
    head = job.hosts[0] if job.hosts else f"{name}-0.{name}"
    where = [f"HEAD_ADDRESS={head}", *pod.node_number(job, index)] if job.nodes > 1 else []
    container = pod.container(job, "validate", pod.start_text(job, where, script=VALIDATE, install=False))
    spec: dict[str, Any] = {
        "containers": [container],
        "volumes": [{"name": "plan", "configMap": {"name": name}}, pod.SHARED_MEMORY],
        "affinity": worker_set.affinity({"job-name": name}, job.hosts),
        "restartPolicy": "Never",
        "subdomain": name,
    }
    if job.hosts:
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completions": job.nodes,
            "parallelism": job.nodes,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "template": {"spec": spec},
        },
    }


def _service(job: Job) -> dict[str, Any]:
    """Headless: it gives the pods their names, before they are ready."""
    name = validate_name(job)
    spec = {"clusterIP": "None", "selector": {"job-name": name}, "publishNotReadyAddresses": True}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
