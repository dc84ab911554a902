"""llm-d: a LeaderWorkerSet whose leader an InferencePool finds by llm-d's labels.

Read in its wide-EP guide and its router's sources (2026), not run. There every node of a server answers for
its own ranks; here node 0 answers for all of them, as in the plan's launch, and it alone carries the labels.
"""

from typing import Any

from planner.base import BadInput
from planner.launch import pod, shell, worker_set
from planner.launch.job import DECODE, MIXED, PREFILL, SCRIPT, Job, Launch
from planner.launch.manifest import config_map, documents, label_value
from planner.launch.network import network_notes

NAME = "llm-d"
TITLE = "llm-d LeaderWorkerSet"
ACCELERATORS = ("nvidia",)
MANIFEST = "llm-d.yaml"
POOL_PORT = 8000  # of every pod that a pool finds: the engine's, or the proxy's before it
BEHIND_PROXY = 8200
PROXY_IMAGE = "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.9.0"
ROLES = {MIXED: "prefill-decode", PREFILL: "prefill", DECODE: "decode"}  # as its router's filters know them


def write(job: Job) -> Launch:
    pod.check_job(job, NAME)
    files = {**job.files, SCRIPT: shell.script_text(job)}
    proxies = [_proxy(job)] if job.role == DECODE else []
    port = BEHIND_PROXY if proxies else POOL_PORT
    started = worker_set.worker_set(job, list(files), port, labels=_labels(job), before=proxies)
    manifest = documents(config_map(job, files), started)
    notes = (*_notes(job), *worker_set.notes(job), *network_notes(job))
    return Launch({SCRIPT: files[SCRIPT], MANIFEST: manifest}, MANIFEST, notes)


def _labels(job: Job) -> dict[str, str]:
    return {
        "llm-d.ai/inference-serving": "true",
        "llm-d.ai/accelerator-vendor": job.accelerator,
        "llm-d.ai/engine-type": job.engine,
        "llm-d.ai/model": label_value(job.model),
        "llm-d.ai/role": ROLES[job.role],
    }


def _proxy(job: Job) -> dict[str, Any]:
    """llm-d's proxy before a decode server: it has a prompt computed by a prefill server first."""
    if not job.kv_connector:
        raise BadInput(
            f"llm-d's proxy is not known to hand {job.engine} what a prefill server computed; "
            "use --launcher kubernetes and a router of the engine's own"
        )
    arguments = {"port": POOL_PORT, "vllm-port": BEHIND_PROXY, "kv-connector": job.kv_connector}
    return {
        "name": "routing-proxy",
        "image": PROXY_IMAGE,
        "args": [*(f"--{name}={value}" for name, value in arguments.items()), "--secure-proxy=false"],
        "ports": [{"name": "pool", "containerPort": POOL_PORT}],
        "restartPolicy": "Always",  # beside the engine, as a sidecar
        "securityContext": {"allowPrivilegeEscalation": False, "runAsNonRoot": True},
    }


def _notes(job: Job) -> list[str]:
    labels = f"llm-d.ai/inference-serving=true and llm-d.ai/model={label_value(job.model)}"
    return [
        f"start it by: kubectl apply --server-side -f {MANIFEST}",
        f"it needs an InferencePool that selects {labels}, which node 0 alone has, target port {POOL_PORT}",
        "the pods ask for GPUs alone: add your cluster's RDMA resource or host network",
    ]
