"""A shell script that a person starts on every node, with the node's number in the plan.

The other launchers start the same one.
"""

from collections.abc import Mapping

from planner.base import BadInput
from planner.launch.job import SCRIPT, Job, Launch
from planner.launch.network import network_lines, network_notes
from planner.launch.validating import VALIDATE, validate_text

NAME = "shell"
TITLE = "a script for each node"
ACCELERATORS = ("nvidia", "ascend", "hygon")
_SETTINGS = "set -euo pipefail\n"


def write(job: Job) -> Launch:
    return Launch({SCRIPT: script_text(job)}, SCRIPT, (*order_notes(job), *network_notes(job)))


def validate(job: Job) -> Mapping[str, str]:
    """The start of `moeplan validate` on the same nodes; the other launchers start the same one."""
    return {VALIDATE: validate_text(job)}


def script_text(job: Job, commands: Mapping[str, str] | None = None) -> str:
    """The engine's launch.sh with the network environment.

    `commands` maps command lines to those that take their place.
    """
    text = job.files[SCRIPT]
    for old, new in (commands or {}).items():
        if old not in text:
            lacks = f"{job.engine}: its launch script does not hold the command {old.split()[0]}"
            raise BadInput(f"{lacks}; this launcher cannot replace it")
        text = text.replace(old, new)
    before, settings, after = text.partition(_SETTINGS)
    assert settings, "the engine's script sets no shell options"
    hosts = job.hosts if job.nodes > 1 else ()
    order = [f"# node {node} of the plan is {host}" for node, host in enumerate(hosts)]
    return before + settings + "".join(f"{line}\n" for line in [*order, *network_lines(job)]) + after


def order_notes(job: Job) -> tuple[str, ...]:
    """How a person keeps the order of ranks."""
    if job.nodes == 1 or job.per_gpu:
        return ()
    start = f"start {SCRIPT} on every node with NODE_RANK, its number in the plan"
    if not job.hosts:
        return (start,)
    which = [f"{host} is {node}" for node, host in enumerate(job.hosts[:4])]
    more = ["..."] if job.nodes > 4 else []
    return (f"{start}: {', '.join([*which, *more])}",)
