"""A whole `moeplan solve` as a user starts it: a process of its own, timed, with its peak memory.

It reads generated files.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.base import write_json
from planner.bench.frame import Instance, synthetic_problem

TIMEOUT_SECONDS = 600


class Run(NamedTuple):
    """Seconds and the largest resident memory of the process and its children together, and the plan file."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    plan: dict[str, object]


def solve_cold(
    instance: Instance,
    *flags: str,
    traced_LTK: npt.NDArray[np.int32] | None = None,
    sequence_tokens: int = 64,
) -> Run:
    """`moeplan solve` on the instance with these further flags; CalledProcessError where it fails.

    On a trace in place of the instance's counts where one is given.
    """
    problem = synthetic_problem(instance)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_json(folder / "config.json", _config(instance))
        if traced_LTK is None:
            np.savez(folder / "load.npz", counts=problem.load.total_LE)
        else:
            seq_lens = np.full(traced_LTK.shape[1] // sequence_tokens, sequence_tokens)
            np.savez(folder / "load.npz", topk_ids=traced_LTK, seq_lens=seq_lens)
        command = [*_command(folder, instance.machine, problem.redundant), *flags]
        began, spent = time.perf_counter(), _children_cpu_seconds()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            watch = _Watch(process.pid)
            code = process.wait(TIMEOUT_SECONDS)
            seconds = time.perf_counter() - began
        if code:
            raise subprocess.CalledProcessError(code, command)
        plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    return Run(seconds, _children_cpu_seconds() - spent, watch.stop(), plan)


def _config(instance: Instance) -> dict[str, object]:
    """As Hugging Face writes it."""
    return {
        "model_type": "qwen3_moe",
        "num_hidden_layers": instance.layers,
        "num_experts": instance.experts,
        "num_experts_per_tok": instance.top_k,
        "hidden_size": 7168,
        "moe_intermediate_size": 128,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "torch_dtype": "bfloat16",
    }


def _command(folder: Path, machine: str, redundant: int) -> list[str]:
    solve = [sys.executable, "-m", "planner", "solve", "--model", f"{folder}/config.json"]
    question = ["--topology", machine, "--json", "--load", f"{folder}/load.npz"]
    return [*solve, *question, "--redundant", str(redundant), "-o", f"{folder}/plan.json"]


def _children_cpu_seconds() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


class _Watch:
    """Samples the memory of a process and its children until it is stopped."""

    def __init__(self, pid: int) -> None:
        self._pid, self._peak, self._done = pid, 0, threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._done.wait(0.05):
            self._peak = max(self._peak, sum(_resident_bytes(pid) for pid in _family(self._pid)))

    def stop(self) -> int:
        self._done.set()
        self._thread.join()
        return self._peak


def _family(pid: int) -> list[int]:
    """The process and all below it, as /proc has them."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in _family(int(child)))]


def _resident_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), 0)
