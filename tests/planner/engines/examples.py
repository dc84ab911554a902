"""Small machines, questions and valid placements for the engine tests.

Rates are round numbers made for them.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np

from planner.base import Evidence, GpuModel, Rate
from planner.engines import Emission
from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Workload, check_slots
from planner.topology import Fabric, Island, Nic, Node, NvLink, Topology

_BY_HAND = Evidence("assumed", "made for tests")
_RATE = Rate(100e9, _BY_HAND)
_GPU = GpuModel("test-gpu", 2000e9, 3e12, {"bf16": 1e15, "fp8": 2e15}, _BY_HAND)

TINY = ModelSpec(  # the shape of a small DeepSeek-V3: six layers, three of them dense, and one draft layer
    name="tiny", architecture="deepseek_v3", layers=6, moe_layer_ids=(3, 4, 5), experts=64, top_k=8,
    hidden=2048, expert_intermediate=256, dispatch_width=2048, weight_dtype="bf16", source="made for tests",
    draft_layer_ids=(6,), expert_groups=8, groups_per_token=4,
)  # fmt: skip


def machine(*gpus_of_nodes: int, nodes_per_domain: int = 1) -> Topology:
    """Nodes with that many GPUs behind an NVLink switch, a NIC a GPU, one fabric."""
    nodes = tuple(
        Node(
            gpus=(_GPU,) * count,
            nvlink=NvLink("switch", (Island(tuple(range(count)), (_RATE,) * count),))
            if count > 1
            else NvLink(),
            nics=tuple(Nic(_RATE, (gpu,)) for gpu in range(count)),
            name=f"host{node}",
        )
        for node, count in enumerate(gpus_of_nodes)
    )
    return Topology(
        "test machine",
        nodes,
        Fabric("leaf-spine", _BY_HAND, nvlink_domain_nodes=nodes_per_domain),
        "made for tests",
    )


def question(
    model: ModelSpec, topology: Topology, redundant: int, phase: str = "decode", tokens_per_rank: int = 128
) -> Problem:
    """A question about an even load."""
    counts = np.ones((1, len(model.placed_layer_ids), model.experts), dtype=np.int64)
    load = LoadProfile(counts, model.placed_layer_ids, "made for tests")
    return Problem(
        topology,
        model,
        load,
        Workload(tokens_per_rank, phase),
        check_slots(model, topology.gpu_count, redundant),
    )


def random_placement(
    model: ModelSpec, gpus: int, redundant: int, seed: int = 0, hot: int | None = None
) -> Placement:
    """A valid placement without any order: experts dealt out to the emptiest GPUs, most replicated first.

    `hot`: how many experts share the replicas.
    """
    draw = np.random.default_rng(seed)
    slots_per_gpu = check_slots(model, gpus, redundant)
    rows = []
    for _ in model.placed_layer_ids:
        extra = draw.permutation(np.tile(draw.permutation(model.experts)[:hot], gpus - 1))[:redundant]
        replicas_E = 1 + np.bincount(extra, minlength=model.experts)
        held: list[list[int]] = [[] for _ in range(gpus)]
        for expert in sorted(
            draw.permutation(model.experts).tolist(), key=lambda expert: -replicas_E[expert]
        ):
            emptiest = sorted(draw.permutation(gpus).tolist(), key=lambda gpu: len(held[gpu]))
            for gpu in emptiest[: replicas_E[expert]]:
                held[gpu].append(expert)
        assert {len(slots) for slots in held} == {slots_per_gpu}
        rows.append(np.concatenate([draw.permutation(slots) for slots in held]))
    return Placement(np.array(rows), model.placed_layer_ids, gpus)


def pip_install(package: Path, site: Path) -> Path:
    """The folder `site`, into which pip put the package; no network is needed."""
    flags = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *flags, "--target", str(site), str(package)],
        check=True,
        timeout=120,
    )
    return site


def started(
    emission: Emission, folder: Path, program: str, node_rank: int | None = 0, **environment: str
) -> list[str]:
    """The arguments that launch.sh really gives `program`, which is replaced by one that writes them down.

    The files lie in `folder`.
    """
    for name, text in emission.files.items():
        (folder / name).write_text(text)
    stand_in = folder / "bin" / program
    stand_in.parent.mkdir(exist_ok=True)
    stand_in.write_text('#!/bin/bash\nprintf "%s\\0" "$@" > "$WORDS"\n')
    stand_in.chmod(0o755)
    places = {
        "PATH": f"{stand_in.parent}:/usr/bin:/bin",
        "WORDS": str(folder / "words"),
        "HEAD_ADDRESS": "head.example",
    }
    rank = {} if node_rank is None else {"NODE_RANK": str(node_rank)}
    subprocess.run(
        ["bash", str(folder / "launch.sh")],
        env={**places, **rank, **environment},
        check=True,
        timeout=20,
        capture_output=True,
        text=True,
    )
    return (folder / "words").read_text().split("\0")[:-1]
