"""Every launch and plugin of the matrix, judged by vLLM 0.33.0's parser, configuration and balancer state.

Runs where MOEPLAN_VLLM_PYTHON names an interpreter that has vLLM (the CPU is enough); `vllm_oracle.py` and
`vllm_maps_oracle.py` are what it runs.
"""

import ast
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.engines import find_engine
from planner.engines.common.vllm_plugin import FOLDER, PACKAGE
from planner.engines.vllm import BALANCED
from tests.engines.configs import CONFIGS
from tests.engines.matrix import Combination, asked, combinations, flags, spec

PYTHON = os.environ.get("MOEPLAN_VLLM_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="MOEPLAN_VLLM_PYTHON names no interpreter with vLLM 0.33.0"
)

Answer = dict[str, Any]
BACKENDS = {"slot": "deepep_low_latency", "allgather": "allgather_reducescatter"}  # by transport
BALANCED_HERE = [name for name in CONFIGS if name in BALANCED]


@pytest.fixture(scope="module")
def launches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Combination, Answer]]]:
    """By model: each combination that `emit` writes, once for each of its nodes, and vLLM's answer for that
    node.
    """
    order: list[tuple[str, Combination]] = []
    cases: list[list[str]] = []
    for name in CONFIGS:
        folder = tmp_path_factory.mktemp(name)
        for combination in combinations(name):
            emission = combination.emitted("vllm")
            for node in range(combination.problem.topology.node_count) if emission else ():
                assert emission is not None
                cases.append(flags(emission, folder, "vllm", node)[2:])
                order.append((name, combination))
    found: dict[str, list[tuple[Combination, Answer]]] = {name: [] for name in CONFIGS}
    for (name, combination), answer in zip(order, asked(PYTHON, "vllm_oracle.py", cases), strict=True):
        found[name].append((combination, answer))
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_every_launch_means_the_plan(
    name: str, launches: dict[str, list[tuple[Combination, Answer]]], tell: Callable[[str], None]
) -> None:
    """No node's flags are refused, and they mean the plan's ranks, replicas and backend; no balancer where
    vLLM has none for the model.
    """
    refused = [
        f"{combination}: {answer['error']}" for combination, answer in launches[name] if "error" in answer
    ]
    combined = len({str(combination) for combination, _ in launches[name]})
    tell(f"vLLM {name}: {combined} combinations, {len(launches[name])} launches, {len(refused)} refused")
    assert not refused
    assert combined == (36 if name in BALANCED else 12)
    for combination, answer in launches[name]:
        problem = combination.problem
        moved = find_engine("vllm").transport(problem.workload.phase, problem.topology, problem.model)
        assert answer["config"] == {
            "enable_expert_parallel": True, "enable_eplb": name in BALANCED,
            "world_size_across_dp": problem.gpus,
            "all2all_backend": BACKENDS.get(moved, "deepep_high_throughput"),
            "num_redundant_experts": problem.redundant, "use_async": name not in BALANCED,
        }, str(combination)  # fmt: skip


@pytest.fixture(scope="module")
def maps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Combination, Answer]]]:
    """By model: each combination that `emit --plugin` writes, and what vLLM's balancer state makes of its
    map.
    """
    order: list[tuple[str, Combination]] = []
    plans: list[dict[str, Any]] = []
    for name in BALANCED_HERE:
        model = spec(name)
        for number, combination in enumerate(combinations(name)):
            emission = combination.emitted("vllm", plugin=True)
            if emission is not None:
                package = tmp_path_factory.mktemp(f"{name}-{number}") / FOLDER / PACKAGE
                package.mkdir(parents=True)
                for file in ("__init__.py", "plan_map.json"):
                    (package / file).write_text(emission.files[f"{FOLDER}/{PACKAGE}/{file}"])
                layers = [len(model.moe_layer_ids), len(model.draft_layer_ids)]
                asks = {
                    "experts": model.experts,
                    "redundant": combination.problem.redundant,
                    "layers": layers,
                    "ranks": combination.problem.gpus,
                }
                plans.append({"package": str(package), **asks})
                order.append((name, combination))
    found: dict[str, list[tuple[Combination, Answer]]] = {name: [] for name in BALANCED_HERE}
    for (name, combination), answer in zip(order, asked(PYTHON, "vllm_maps_oracle.py", plans), strict=True):
        found[name].append((combination, answer))
    return found


@pytest.mark.parametrize("name", BALANCED_HERE)
def test_every_map_is_the_one_vllm_would_move_to(
    name: str, maps: dict[str, list[tuple[Combination, Answer]]], tell: Callable[[str], None]
) -> None:
    """Rows and replica counts of main and draft model are the plan's."""
    model, split = spec(name), len(spec(name).moe_layer_ids)
    assert len(maps[name]) == 36
    for combination, answer in maps[name]:
        expert_LP, replicas_LE = (
            combination.placement.expert_LP,
            combination.placement.replicas_LE(model.experts),
        )
        parts = [slice(0, split), slice(split, None)] if model.draft_layer_ids else [slice(0, split)]
        assert answer == {
            "maps": [expert_LP[part].tolist() for part in parts],
            "replicas": [replicas_LE[part].tolist() for part in parts],
        }, str(combination)
    tell(f"vLLM {name}: {len(maps[name])} maps loaded through the plugin, all as planned")


@pytest.fixture(scope="module")
def wheel() -> Path:
    where = "import importlib.util; print(importlib.util.find_spec('vllm').submodule_search_locations[0])"
    run = subprocess.run([PYTHON, "-c", where], capture_output=True, text=True, timeout=60, check=True)
    return Path(run.stdout.strip())


def test_the_models_with_a_balancer_are_vllms(wheel: Path) -> None:
    """VLLM balances a model whose class is a MixtureOfExperts and counts its MoE layers, itself or through a
    base: in its source, exactly where we say so.
    """
    bases: dict[str, set[str]] = {}
    counting: set[str] = set()
    for file in [*wheel.glob("models/**/*.py"), *wheel.glob("model_executor/models/*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(getattr(base, "id", "") for base in node.bases)
                counting |= {
                    node.name
                    for part in ast.walk(node)
                    if isinstance(part, ast.Attribute) and part.attr == "num_moe_layers"
                }

    def lineage(name: str) -> set[str]:
        return {name}.union(*(lineage(base) for base in bases.get(name, set()) - {name}))

    registry = (wheel / "model_executor" / "models" / "registry.py").read_text()
    architectures = {name: config["architectures"][0] for name, config in CONFIGS.items()} | {
        "kimi_linear": "KimiLinearForCausalLM"
    }
    classes = {
        name: re.findall(rf'"{architecture}":\s*\(\s*"[^"]+",\s*"([^"]+)"', registry)[0]
        for name, architecture in architectures.items()
    }
    found = {
        name: "MixtureOfExperts" in lineage(itself) and bool(lineage(itself) & counting)
        for name, itself in classes.items()
    }
    assert found == {name: name in BALANCED for name in architectures}
