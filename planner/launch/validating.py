"""validate.sh: `moeplan validate` of the emitted plan on the hosts of a launch, in its rank order.

Each node starts its ranks by torchrun, told its number in the plan as launch.sh is; torchrun then numbers
ranks node by node. Run on one machine without GPUs; not run on a GPU when this was written.
"""

from collections.abc import Iterator

from planner.engines import command_line
from planner.launch.job import Job
from planner.launch.network import network_lines
from planner.plan import EMITTED_PLAN

VALIDATE = "validate.sh"
PORT = 29500  # torchrun's own default
_NEEDED = ("moeplan", "torchrun")


def validates(job: Job) -> bool:
    """Whether `validate` can use this job's accelerators: through CUDA alone."""
    return job.accelerator == "nvidia"


def validate_text(job: Job) -> str:
    """The script; arguments given to it are added to `moeplan validate`."""
    title = f"moeplan validate of {job.title}"
    lines = [
        "#!/usr/bin/env bash",
        f"# {title}. Written by moeplan; arguments given to this script are added to the command.",
        "set -euo pipefail",
        'PLAN_DIR="${PLAN_DIR:-$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)}"',
        *(_refusal(program) for program in _NEEDED),
        'export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"',
        *network_lines(job),
        *(_several(job) if job.nodes > 1 else [f"exec {command_line(_validate(job, 0))}"]),
    ]
    return "\n".join([*lines, ""])


def _refusal(program: str) -> str:
    say = (
        f"echo \"{program} is not on this host: install moeplan with its extra 'hardware' on every node\" >&2"
    )
    return f"command -v {program} > /dev/null || {{ {say}; exit 2; }}"


def _several(job: Job) -> Iterator[str]:
    """As launch.sh: the caller says which node this is, and where node 0 is."""
    last = job.nodes - 1
    yield f': "${{NODE_RANK:?set it to the number of this node in the plan, 0 to {last}}}"'
    yield ': "${HEAD_ADDRESS:?set it to the host name or address of node 0, the same on every node}"'
    yield 'case "$NODE_RANK" in'
    first = 0
    for node, count in enumerate(job.gpus_of_nodes):
        yield f"{node}) # GPUs {first}-{first + count - 1} of the plan"
        yield f"    exec {command_line([*_torchrun(job, node), *_validate(job, node)])} ;;"
        first += count
    yield f"*) echo \"NODE_RANK is '$NODE_RANK'; this plan has the nodes 0 to {last}\" >&2; exit 2 ;;"
    yield "esac"


def _torchrun(job: Job, node: int) -> list[str]:
    return [
        *_visible(job, node),
        "torchrun",
        f"--nnodes={job.nodes}",
        f"--nproc-per-node={job.gpus_of_nodes[node]}",
        f"--node-rank={node}",
        '--master-addr="$HEAD_ADDRESS"',
        f'--master-port="${{VALIDATE_PORT:-{PORT}}}"',
        "--max-restarts=0",
        "--no-python",
    ]


def _validate(job: Job, node: int) -> list[str]:
    """With the hosts where they are known: a wrong rank order then ends the run before it is timed."""
    before = _visible(job, node) if job.nodes == 1 else []
    hosts = ["--hosts", ",".join(job.hosts)] if job.hosts and job.nodes > 1 else []
    return [*before, "moeplan", "validate", f'"$PLAN_DIR/{EMITTED_PLAN}"', "--device", "cuda", *hosts]


def _visible(job: Job, node: int) -> list[str]:
    """Where GPUs of the host are left out, those that serve."""
    devices = job.topology.nodes[node].devices
    return ["env", f"CUDA_VISIBLE_DEVICES={','.join(map(str, devices))}"] if devices else []
