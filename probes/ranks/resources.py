"""What ranks need of this machine: torch, memory, and a GPU for each. torch is imported late."""

import contextlib
import importlib.util
import os
from pathlib import Path

from planner.base import BadInput
from probes.ranks.launch import is_launched

RANK_BYTES = 250e6  # resident memory of one CPU rank: Python, torch and gloo (measured with torch 2.13)


def check_torch(verb: str) -> None:
    """BadInput that says what to install where torch is absent.

    Before torch is imported under a launcher, its C++ frames are silenced: a lost peer is told in one line.
    """
    if importlib.util.find_spec("torch") is None:
        raise BadInput(f"{verb} needs torch: pip install torch")
    if is_launched():
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")


def check_memory(ranks: int, free_bytes: float, verb: str = "validate") -> None:
    """BadInput where so many CPU ranks would not fit into this machine's memory."""
    needed_bytes = ranks * RANK_BYTES
    if needed_bytes > free_bytes:
        raise BadInput(
            f"{ranks} ranks need about {needed_bytes / 1e9:.1f} GB of this machine's memory, "
            f"{free_bytes / 1e9:.1f} GB are free: take at most {int(free_bytes // RANK_BYTES)} GPUs, "
            f"or start {verb} on the cluster with torchrun, one process a GPU"
        )


def available_bytes() -> float:
    """Memory that can still be used, as Linux tells it; without limit where the system does not tell."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(line.split()[1]) * 1024.0
    return float("inf")


def visible_gpus() -> int:
    """How many GPUs torch sees; none where it is absent."""
    if importlib.util.find_spec("torch") is None:
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def choose_device(asked: str, ranks_here: int, cpu_use: str) -> str:
    """GPUs where there is one for each rank of this machine, else the CPU.

    BadInput where GPUs were asked for and are not there; `cpu_use` is what --device cpu is still good for.
    Where each process was started elsewhere and sees its own GPU alone (srun --gpus-per-task), only "cuda"
    says that GPUs are meant.
    """
    if asked == "cpu":
        return "cpu"
    if is_launched():
        ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", ranks_here))
    needed = 1 if is_launched() and asked == "cuda" else ranks_here
    visible = visible_gpus()
    if visible >= needed:
        return "cuda"
    if asked == "cuda":
        raise BadInput(
            f"{ranks_here} ranks on this machine need as many GPUs, torch sees {visible}; "
            f"use --device cpu to {cpu_use}"
        )
    return "cpu"
