"""launch.sh: one command for each node, its rank order pinned to the plan's."""

import shlex
from collections.abc import Iterator, Sequence

from planner.base import flat
from planner.engines.common.command import Requirement
from planner.engines.common.layout import gpus_per_node
from planner.topology import Topology

quote = shlex.quote
VISIBLE = {
    "nvidia": "CUDA_VISIBLE_DEVICES",
    "ascend": "ASCEND_RT_VISIBLE_DEVICES",
    "hygon": "HIP_VISIBLE_DEVICES",
}
PLAN_DIR = '"$PLAN_DIR"'  # a bash word, as are all arguments here: the folder that launch.sh lies in


def head(
    title: str, notes: Sequence[str], *, in_plan_dir: bool, requires: Sequence[Requirement] = ()
) -> list[str]:
    """The lines above the first command; `in_plan_dir` where a command names a file of the plan."""
    by = "Written by moeplan; arguments given to this script are added to the command."
    lines = ["#!/usr/bin/env bash", f"# {one_line(title)}. {by}", *(f"# {one_line(note)}" for note in notes)]
    lines.append("set -euo pipefail")
    if in_plan_dir:
        lines.append('PLAN_DIR="${PLAN_DIR:-$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)}"')
    return [*lines, *map(refusal, requires)]


def refusal(requirement: Requirement) -> str:
    """A line that ends the script with exit code 2 where a requirement is not met."""
    say = f"echo {quote(one_line(requirement.missing))} >&2"
    return f"{requirement.check} > /dev/null 2>&1 || {{ {say}; exit 2; }}"


def per_node(
    title: str,
    notes: Sequence[str],
    topology: Topology,
    commands: Sequence[Sequence[str]],
    requires: Sequence[Requirement] = (),
) -> str:
    """The script for commands that each node starts once.

    On several nodes it asks for NODE_RANK and HEAD_ADDRESS, and refuses to guess them. It starts nothing
    where something is missing that `requires` names.
    """
    in_plan_dir = any(PLAN_DIR in word for command in commands for word in command)
    lines = head(title, notes, in_plan_dir=in_plan_dir, requires=requires)
    if len(commands) == 1:
        return "\n".join([*lines, f"exec {command_line(commands[0])}", ""])
    last = len(commands) - 1
    lines += [
        f': "${{NODE_RANK:?set it to the number of this node in the plan, 0 to {last}}}"',
        ': "${HEAD_ADDRESS:?set it to the host name or address of node 0, the same on every node}"',
        'case "$NODE_RANK" in',
        *_arms(topology, commands),
        f"*) echo \"NODE_RANK is '$NODE_RANK'; this plan has the nodes 0 to {last}\" >&2; exit 2 ;;",
        "esac",
        "",
    ]
    return "\n".join(lines)


def on_devices(
    topology: Topology, commands: Sequence[Sequence[str]], accelerator: str = "nvidia"
) -> list[list[str]]:
    """The commands, one a node, with the variable that names a host's GPUs where not all of them serve."""
    found = []
    for node, words in zip(topology.nodes, commands, strict=True):
        devices = f"{VISIBLE[accelerator]}={','.join(map(str, node.devices))}"
        plain = list(words[1:]) if words[0] == "env" else list(words)
        found.append(["env", devices, *plain] if node.devices else list(words))
    return found


def command_line(words: Sequence[str]) -> str:
    """Bash words as one command, a flag and its value on each line."""
    return " \\\n    ".join(" ".join(group) for group in _grouped([*words, '"$@"']))


def one_line(text: str) -> str:
    """A comment cannot be left: a line break in a name would start a command."""
    return flat(" ".join(text.split()))


def _arms(topology: Topology, commands: Sequence[Sequence[str]]) -> Iterator[str]:
    """A branch for each node."""
    first = 0
    for node, (command, count) in enumerate(zip(commands, gpus_per_node(topology), strict=True)):
        name = one_line(topology.nodes[node].name) or "node"
        yield f"{node}) # {name}: GPUs {first}-{first + count - 1} of the plan"
        yield f"    exec {command_line(command)} ;;"
        first += count


def _grouped(words: Sequence[str]) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    for word in words:
        if (word.startswith("--") and word != "--") or word == '"$@"':
            groups.append([])
        groups[-1].append(word)
    return groups
