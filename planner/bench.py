"""Benchmark: our methods on fixed synthetic instances, and vLLM's own policy beside them in the same process.

Ratios carry over to other machines; seconds do not.
"""

import importlib.util
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from planner.bound import load_bound
from planner.errors import BadInput
from planner.files import write_json
from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Workload
from planner.rules import violations
from planner.solve import Progress, find_method
from planner.topology_yaml import read_topology

PEER_MODULE = "vllm/distributed/eplb/policy/default.py"
COLD_TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class Instance:
    """A shape and a synthetic load: lognormal expert popularity with sigma 1, about as skewed as published DeepSeek-R1 counts."""

    name: str
    layers: int
    experts: int
    slots_per_gpu: int
    machine: str


INSTANCES = (
    Instance("58x256 -> 288 / 32 GPUs", 58, 256, 9, "hgx-h100:4"),
    Instance("26x64 -> 288 / 32 GPUs", 26, 64, 9, "hgx-h100:4"),
    Instance("60x384 -> 448 / 64 GPUs", 60, 384, 7, "hgx-h100:8"),
)
LARGE = Instance("61x256 -> 2048 / 1024 GPUs", 61, 256, 2, "hgx-h100:128")


class Row(NamedTuple):
    """One method on one instance. `gap`: summed busiest-GPU load over the bound, less 1; `ratio`: seconds over the peer's, where a peer ran."""

    instance: str
    method: str
    seconds: float
    ratio: float | None
    valid: bool
    gap: float | None
    peak_bytes: int | None = None


def run_bench(methods: Sequence[str], peer_wheel: Path | None, repeats: int, progress: Progress | None = None) -> list[Row]:
    """Every method on every instance, then whole cold processes. BadInput where the wheel is not vLLM's or a method is unknown."""
    runs: list[tuple[str, Callable[[Problem], Placement]]] = [(name, _ours(name)) for name in methods]
    if peer_wheel:
        runs.insert(0, ("vLLM default", load_peer(peer_wheel)))
    rows: list[Row] = []
    for number, instance in enumerate(INSTANCES):
        if progress:
            progress(number / (len(INSTANCES) + 2), instance.name)
        rows += _measure(instance, runs, repeats)
    for number, (instance, method) in enumerate(((INSTANCES[0], "greedy"), (LARGE, "auto")), start=len(INSTANCES)):
        if progress:
            progress(number / (len(INSTANCES) + 2), f"{instance.name}, cold process")
        rows.append(_measure_cold(instance, method))
    return rows


def synthetic_problem(instance: Instance, seed: int = 0) -> Problem:
    """The instance as a problem under even split."""
    layer_ids = tuple(range(instance.layers))
    model = ModelSpec("synthetic", "synthetic", instance.layers, layer_ids, instance.experts, 8, 7168, 128, 7168, "fp8", "benchmark")
    tokens_LE = np.random.default_rng(seed).lognormal(0.0, 1.0, (instance.layers, instance.experts)) * 1e6
    load = LoadProfile(tokens_LE.astype(np.int64)[None], layer_ids, f"lognormal(0, 1), seed {seed}")
    return Problem(read_topology(instance.machine), model, load, Workload(), instance.slots_per_gpu)


def load_peer(wheel: Path) -> Callable[[Problem], Placement]:
    """VLLM's balancing policy, taken from its wheel without installing it; needs torch."""
    if importlib.util.find_spec("torch") is None:
        raise BadInput("the peer needs torch: pip install 'moeplan[hardware]'")
    try:
        with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
            for name in (PEER_MODULE, PEER_MODULE.replace("default", "abstract")):
                archive.extract(name, folder)
            (Path(folder) / PEER_MODULE).with_name("__init__.py").write_text("", encoding="utf-8")
            policy = _import_package(Path(folder) / PEER_MODULE)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise BadInput(f"{wheel}: not a vLLM wheel with {PEER_MODULE} ({error})") from error

    def solve(problem: Problem) -> Placement:
        import torch

        found = policy.rebalance_experts(torch.from_numpy(problem.shares_LE), problem.slots, 1, 1, problem.gpus)
        return Placement(found.numpy(), problem.model.placed_layer_ids, problem.gpus)

    return solve


def _import_package(module: Path) -> Any:
    for name, file in {"moeplan_peer": "__init__.py", "moeplan_peer.abstract": "abstract.py", "moeplan_peer.default": "default.py"}.items():
        path = module.with_name(file)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise AssertionError(f"{path} cannot be imported")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules["moeplan_peer.default"].DefaultEplbPolicy


def _ours(name: str) -> Callable[[Problem], Placement]:
    solve = find_method(name)
    return lambda problem: solve(problem, seed=0)


def _measure(instance: Instance, runs: list[tuple[str, Callable[[Problem], Placement]]], repeats: int) -> Iterator[Row]:
    problem = synthetic_problem(instance)
    bound_L = load_bound(problem.shares_LE, problem.gpus, problem.slots_per_gpu, even=True).load_L
    seconds: dict[str, list[float]] = {name: [] for name, _ in runs}
    found: dict[str, Placement] = {}
    for _ in range(repeats):  # interleaved, so that a slow moment of the machine strikes all
        for name, run in runs:
            began = time.perf_counter()
            found[name] = run(problem)
            seconds[name].append(time.perf_counter() - began)
    peer_seconds = float(np.median(seconds["vLLM default"])) if "vLLM default" in seconds else None
    for name, _ in runs:
        median = float(np.median(seconds[name]))
        gap = float(_busiest_L(problem, found[name]).sum() / bound_L.sum() - 1)
        yield Row(instance.name, name, median, median / peer_seconds if peer_seconds else None, not violations(problem, found[name]), gap)


def _busiest_L(problem: Problem, placement: Placement) -> npt.NDArray[np.float64]:
    """Load of the busiest GPU of each layer under even split, recomputed from the placement alone."""
    each_LE = problem.shares_LE / placement.replicas_LE(problem.model.experts)
    load_LG = np.take_along_axis(each_LE, placement.expert_LP, axis=1).reshape(len(each_LE), problem.gpus, -1).sum(axis=2)
    return np.asarray(load_LG.max(axis=1))


def _measure_cold(instance: Instance, method: str) -> Row:
    """A whole `moeplan solve` as a user starts it, with its peak memory."""
    problem = synthetic_problem(instance)
    with tempfile.TemporaryDirectory() as folder:
        config = {
            "model_type": "qwen3_moe", "num_hidden_layers": instance.layers, "num_experts": instance.experts, "num_experts_per_tok": 8,
            "hidden_size": 7168, "moe_intermediate_size": 128, "decoder_sparse_step": 1, "mlp_only_layers": [], "torch_dtype": "bfloat16",
        }  # fmt: skip
        write_json(Path(folder) / "config.json", config)
        np.savez(Path(folder) / "load.npz", counts=problem.load.total_LE)
        command = [sys.executable, "-m", "planner", "solve", "--model", f"{folder}/config.json", "--topology", instance.machine, "--json"]
        command += ["--load", f"{folder}/load.npz", "--redundant", str(problem.redundant), "--method", method, "-o", f"{folder}/plan.json"]
        began = time.perf_counter()
        subprocess.run(command, check=True, timeout=COLD_TIMEOUT_SECONDS, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return Row(instance.name, f"{method}, cold process", seconds, None, valid=True, gap=None, peak_bytes=peak)
