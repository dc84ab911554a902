"""ai-dynamo 1.6.1: its workers take the engine's own flags.

Read in its wheel, not run; it pins SGLang 0.5.21, vLLM 0.31.0 and TensorRT-LLM 1.3.0rc29.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from planner.base import BadInput
from planner.engines import command_line
from planner.launch import shell
from planner.launch.job import SCRIPT, Job, Launch
from planner.launch.network import network_notes

NAME = "dynamo"
TITLE = "ai-dynamo 1.6.1"
ACCELERATORS = ("nvidia",)
FRONTEND = "frontend.sh"
PROGRAMS = (  # what the engine's command begins with, and what takes its place
    (("python3", "-m", "sglang.launch_server"), ("python3", "-m", "dynamo.sglang")),
    (("vllm", "serve"), ("python3", "-m", "dynamo.vllm", "--model")),
    (("trtllm-serve",), ("python3", "-m", "dynamo.trtllm", "--model")),
)
FLAGS = {  # of TensorRT-LLM
    "--tp_size": "--tensor-parallel-size",
    "--ep_size": "--expert-parallel-size",
    "--config": "--extra-engine-args",
}
MPI = "trtllm-llmapi-launch"
FRONTEND_TEXT = """\
#!/usr/bin/env bash
# Written by moeplan: the HTTP server in front of the workers.
set -euo pipefail
exec python3 -m dynamo.frontend "$@"
"""


def write(job: Job) -> Launch:
    """The engine's script with dynamo's workers in it, and the frontend's, which runs once anywhere."""
    workers = {}
    for command in job.commands:
        worker = replace(command, words=tuple(worker_words(command.words, job.engine)))
        workers[command_line(command.with_environment)] = command_line(worker.with_environment)
    start = f"start {FRONTEND} once, and {SCRIPT} on every node"
    discovery = "both need the same discovery service (ETCD_ENDPOINTS, or DYN_DISCOVERY_BACKEND)"
    notes = (f"{start}; {discovery}", *shell.order_notes(job), *network_notes(job))
    return Launch({SCRIPT: shell.script_text(job, workers), FRONTEND: FRONTEND_TEXT}, SCRIPT, notes)


def worker_words(words: Sequence[str], engine: str) -> list[str]:
    """
    >>> worker_words(["vllm", "serve", "m", "--enable-eplb"], "vllm")
    ['python3', '-m', 'dynamo.vllm', '--model', 'm', '--enable-eplb']
    """
    mpi = [MPI] if words[0] == MPI else []
    rest = list(words[len(mpi) :])
    for old, new in PROGRAMS:
        if tuple(rest[: len(old)]) == old:
            return [*mpi, *new, *_flags(rest[len(old) :])]
    raise BadInput(f"ai-dynamo has no worker for {engine}; use --launcher shell")


def _flags(words: Sequence[str]) -> list[str]:
    """SGLang 0.5.21 has no --attn-dp-size; the older words for it are also understood by 0.5.23.

    BadInput for what it is not known to do rightly.
    """
    found = [FLAGS.get(word, word) for word in words]
    if "--init-expert-location" in found and ("--moe-a2a-backend", "none") in pairwise(found):
        raise BadInput(
            "ai-dynamo 1.6.1 pins SGLang 0.5.21, which is not known to serve a map rightly "
            "without an all-to-all, and this launch uses none; use --launcher shell"
        )
    if "--attn-dp-size" in found:
        place = found.index("--attn-dp-size")
        found[place : place + 2] = ["--dp-size", found[place + 1], "--enable-dp-attention"]
    return found
