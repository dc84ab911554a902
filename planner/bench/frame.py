"""What a study of the benchmark gets and gives: peers, synthetic instances, and a table of flat rows."""

import importlib.util
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.errors import BadInput
from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Workload
from planner.topology_yaml import read_topology

PEER_MODULE = "vllm/distributed/eplb/policy/default.py"

Policy = Callable[[npt.NDArray[np.float64], int, int, int, int], npt.NDArray[np.int64]]
"""expert_LP = policy(load_LE, slots, groups, nodes, gpus)"""


@dataclass(frozen=True)
class Table:
    """Rows with the same keys each: "instance" and "method" first, then figures with their units in their names."""

    title: str
    rows: tuple[dict[str, object], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Peers:
    """Balancers of others, run beside ours in the same process; None where there is none."""

    vllm_policy: Policy | None = None

    @property
    def vllm(self) -> Callable[[Problem], Placement] | None:
        """The policy over the whole machine at once, as a method; None without a wheel."""
        policy = self.vllm_policy
        if policy is None:
            return None
        return lambda problem: Placement(policy(problem.shares_LE, problem.slots, 1, 1, problem.gpus), problem.model.placed_layer_ids, problem.gpus)


@dataclass(frozen=True)
class Instance:
    """A shape and a synthetic load: lognormal expert popularity, with sigma 1 about as skewed as published DeepSeek-R1 counts."""

    name: str
    layers: int
    experts: int
    slots_per_gpu: int
    machine: str
    sigma: float = 1.0
    top_k: int = 8


def synthetic_problem(instance: Instance, seed: int = 0, replica_rule: str = "even") -> Problem:
    """The instance as a problem; one window."""
    layer_ids = tuple(range(instance.layers))
    model = ModelSpec("synthetic", "synthetic", instance.layers, layer_ids, instance.experts, instance.top_k, 7168, 128, 7168, "fp8", "benchmark")
    tokens_LE = np.random.default_rng(seed).lognormal(0.0, instance.sigma, (instance.layers, instance.experts)) * 1e6
    load = LoadProfile(tokens_LE.astype(np.int64)[None], layer_ids, f"lognormal(0, {instance.sigma}), seed {seed}")
    return Problem(read_topology(instance.machine), model, load, Workload(), instance.slots_per_gpu, replica_rule)


def load_peers(wheel: Path | None) -> Peers:
    """The balancing policy of vLLM, taken from its wheel without installing it; needs torch. No peers where no wheel is given."""
    if wheel is None:
        return Peers()
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

    def run(load_LE: npt.NDArray[np.float64], slots: int, groups: int, nodes: int, gpus: int) -> npt.NDArray[np.int64]:
        import torch

        found: npt.NDArray[np.int64] = policy.rebalance_experts(torch.from_numpy(load_LE), slots, groups, nodes, gpus).numpy()
        return found

    return Peers(run)


def _import_package(module: Path) -> Any:
    for name, file in {"moeplan_peer": "__init__.py", "moeplan_peer.abstract": "abstract.py", "moeplan_peer.default": "default.py"}.items():
        path = module.with_name(file)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise AssertionError(f"{path} cannot be imported")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules["moeplan_peer.default"].DefaultEplbPolicy
