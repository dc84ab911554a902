"""The pod that every manifest of this room starts a node in: its script, its files, what it asks for.

Kubernetes puts values in the place of $(NAME) and makes one of two dollar signs, in commands and arguments:
the script has neither.
"""

from collections.abc import Sequence
from typing import Any

from planner.base import BadInput
from planner.launch.job import SCRIPT, Job
from planner.launch.manifest import file_key, object_name
from planner.plan import EMITTED_PLAN

MOUNT = "/moeplan"
BUILD = '"${TMPDIR:-/tmp}/plan-build"'  # a ConfigMap is mounted read-only, and pip builds beside the sources
DNS_SECONDS = 300
SHARED_MEMORY = {"name": "shm", "emptyDir": {"medium": "Memory"}}
# The leader's name comes into DNS some time after its pod; a worker that ends before has its group recreated.
_WAIT = f"""\
until getent hosts "$HEAD_ADDRESS" > /dev/null 2>&1; do
    if [ "$SECONDS" -ge "${{DNS_WAIT_SECONDS:-{DNS_SECONDS}}}" ]; then
        echo "moeplan: node 0, $HEAD_ADDRESS, is not in DNS after $SECONDS s: is its pod there?" >&2
        exit 2
    fi
    sleep 1
done"""


def check_job(job: Job, launcher: str) -> None:
    """BadInput where pods of one image and size, a command each, cannot start this job."""
    counts = job.gpus_of_nodes
    if len(set(counts)) > 1:
        raise BadInput(
            f"the nodes hold {', '.join(map(str, counts))} GPUs; "
            "the pods of one set ask for one number; use --launcher slurm"
        )
    if any(node.devices for node in job.topology.nodes):
        raise BadInput(
            f"--launcher {launcher}: pods ask for a number of GPUs and cannot leave one of a host out; "
            "take it out of service there, or use --launcher shell or slurm"
        )
    if job.per_gpu:
        raise BadInput(
            f"{job.engine} starts its ranks of several nodes by MPI, which pods do not; use --launcher slurm"
        )
    if not job.image:
        raise BadInput(f"--launcher {launcher} needs --image, the container image that holds the engine")


def start_text(job: Job, where: Sequence[str], script: str = SCRIPT, *, install: bool = True) -> str:
    """The pod's script: which node it is (`where`: bash lines), what it waits for and installs, its start.

    The container's arguments are added to the engine's.
    """
    lines = ["set -euo pipefail", f"export PLAN_DIR={MOUNT}", *where]
    if job.nodes > 1:
        lines += ["export HEAD_ADDRESS NODE_RANK", _WAIT]
    needs = job.commands[0].requires if install else ()
    lines += [line for need in needs for line in _install(need.check, need.package)]
    return "\n".join([*lines, f'exec bash {MOUNT}/{script} "$@"', ""])


def node_number(job: Job, index: str) -> list[str]:
    """Bash lines that set NODE_RANK: from the pod's host where the plan names hosts, else from its index."""
    if not job.hosts or job.nodes == 1:
        return [f"NODE_RANK={index}"] if job.nodes > 1 else []
    arms = [f"{host}) NODE_RANK={node} ;;" for node, host in enumerate(job.hosts)]
    other = '*) echo "$NODE_NAME is not a host of this plan" >&2; exit 2 ;;'
    return ['case "$NODE_NAME" in', *arms, other, "esac"]


def container(job: Job, name: str, script: str) -> dict[str, Any]:
    # Both paths are the pod's own; NCCL shares memory in the second, which containers have 64 MB of.
    mounts = [{"name": "plan", "mountPath": MOUNT}, {"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108
    return {
        "name": name,
        "image": job.image,
        "command": ["bash", "-c", script, "moeplan"],
        "args": [],  # for a person: they reach the engine
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {"limits": {"nvidia.com/gpu": str(job.gpus_of_nodes[0])}},
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "volumeMounts": mounts,
    }


def answering(job: Job, port: int) -> dict[str, Any]:
    """What makes a container answer over HTTP: arguments, the port by name, and when it is ready."""
    command = job.commands[0]
    probe = {"httpGet": {"path": command.endpoint.health, "port": "http"}, "periodSeconds": 10}
    return {
        "args": list(command.listening(port)),
        "ports": [{"name": "http", "containerPort": port}],
        "readinessProbe": probe,
    }


def volumes(job: Job, files: Sequence[str]) -> list[dict[str, Any]]:
    items = [{"key": file_key(name), "path": name} for name in sorted(files) if name != EMITTED_PLAN]
    return [{"name": "plan", "configMap": {"name": object_name(job), "items": items}}, SHARED_MEMORY]


def _install(check: str, package: str) -> list[str]:
    """Bash lines that install a package of the plan's folder where it is missing.

    Without build isolation first: that needs no network where the image has the build tools.
    """
    if not package:
        return []
    pip, sources = "python3 -m pip install --quiet --no-deps", f"{BUILD}/{package}"
    settings = "PIP_BREAK_SYSTEM_PACKAGES=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore"
    return [
        f"if ! {check} > /dev/null 2>&1; then",
        f"    mkdir -p {BUILD} && cp -rL {MOUNT}/{package} {BUILD}/",
        f"    export {settings}",
        f"    {pip} --no-build-isolation {sources} > /dev/null 2>&1 || {pip} {sources} >&2 ||",
        f'        {{ echo "moeplan: pip could not install {package}: put it into the image" >&2; exit 2; }}',
        "fi",
    ]
