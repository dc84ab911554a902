"""A shell script that a person starts on every node, with the node's number in the plan. The other launchers start the same one."""

from collections.abc import Mapping

from planner.base import BadInput
from planner.engines import command_line
from planner.launch.job import SCRIPT, Job, Launch
from planner.launch.network import network_lines, network_notes

NAME = "shell"
TITLE = "a script for each node"
ACCELERATORS = ("nvidia", "ascend")
_SETTINGS = "set -euo pipefail\n"


def write(job: Job) -> Launch:
    return Launch({SCRIPT: script_text(job)}, SCRIPT, (*order_notes(job), *network_notes(job)))


def script_text(job: Job, commands: Mapping[str, str] | None = None) -> str:
    """The engine's launch.sh with the network environment; `commands` maps command lines to those that take their place."""
    text = job.files[SCRIPT]
    for old, new in (commands or {}).items():
        if old not in text:
            raise BadInput(
                f"{job.engine}: its launch script does not hold the command {old.split()[0]}; this launcher cannot replace it"
            )
        text = text.replace(old, new)
    before, settings, after = text.partition(_SETTINGS)
    assert settings, "the engine's script sets no shell options"
    lines = network_lines(job)
    order = (
        [f"# node {node} of the plan is {host}" for node, host in enumerate(job.hosts)]
        if job.nodes > 1
        else []
    )
    return before + settings + "".join(f"{line}\n" for line in [*order, *lines]) + after


def order_notes(job: Job) -> tuple[str, ...]:
    """How a person keeps the order of ranks."""
    if job.nodes == 1 or job.per_gpu:
        return ()
    which = ", ".join(f"{host} is {node}" for node, host in enumerate(job.hosts[:4])) + (
        ", ..." if job.nodes > 4 else ""
    )
    return (
        f"start {SCRIPT} on every node with NODE_RANK, its number in the plan"
        + (f": {which}" if job.hosts else ""),
    )


def original_line(job: Job, node: int) -> str:
    """A node's command as its script holds it."""
    command = job.commands[node]
    setting = (
        ["env", *(f"{name}={value}" for name, value in command.environment)] if command.environment else []
    )
    return command_line([*setting, *command.words])
