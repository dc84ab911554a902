"""TokenSpeed 0.1.1. It reads SGLang's map file, for one model; every rank computes every token's routes.

Map and replica choice were run with its wheel's own code on a CPU, its flags were read; it was never served.
"""

import math
from collections.abc import Iterator
from typing import Any

from planner.engines.common import script, small, usual
from planner.engines.common.command import Endpoint
from planner.engines.common.interface import Emission, MapFile
from planner.engines.common.layout import (
    cyclic_placement,
    draft_rows_lost,
    gpus_per_node,
    refuse_broken,
    rows_by_layer,
    uneven_nodes,
)
from planner.engines.common.releases import Release
from planner.engines.common.sizes import GATHER, sizes_of
from planner.engines.common.verdict import MIXED, Finding, Verdict
from planner.engines.sglang.expert_location import EPLB_KEYS, KEY, held_layers, map_text
from planner.model import ModelSpec
from planner.placement import Placement
from planner.problem import Problem, Violation
from planner.topology import Topology

__all__ = ["held_layers", "map_text"]  # SGLang's: the same file

NAME = "tokenspeed"
TITLE = "TokenSpeed"
VERSION = "0.1.1"
# Replica (row + place among the token's top k) % n, alike on every rank: over a batch, as by the row alone.
REPLICA_RULE = "row-index"
ACCELERATOR = "nvidia"
DRAFT_IS_OPTIONAL = True
ROLES = small.ROLES
MAP_NAME = "expert_location.json"
LOAD_KEY = "logical_count"  # a load, which goes before a map in the same file
READS_MAP = frozenset({"longcat_flash"})  # model_type of the classes with supports_expert_placement
RELEASES = (Release(VERSION, "its wheel, read; map and dispatch run on a CPU", READS_MAP),)
ENDPOINT = Endpoint()
_ARGS = "runtime/utils/server_args.py"
replica_rule = usual.one_rule(REPLICA_RULE)
default_placement = cyclic_placement


def transport(phase: str, topology: Topology, model: ModelSpec | None = None) -> str:
    """No all-to-all: LongCat's layers gather their input, and refuse DeepEP."""
    del phase, topology, model
    return "allgather"


def dispatch_dtype(model: ModelSpec) -> str:
    del model
    return "bf16"  # what it gathers


def reads_map(model: ModelSpec) -> bool:
    return model.architecture in READS_MAP


def map_limits(model: ModelSpec, slots: int, gpus: int) -> list[Violation]:
    if slots > model.experts and gpus < 2:
        return [Violation("gpus", "TokenSpeed has redundant experts for an EP size of more than 1")]
    if gpus > model.experts:
        text = f"TokenSpeed takes an EP size of up to the {model.experts} experts, not {gpus}"
        return [Violation("gpus", text)]
    return []


def judge(problem: Problem, version: str | None = None, role: str = MIXED) -> Verdict:
    release, _ = small.asked(TITLE, RELEASES, problem, version, role)
    return small.verdict(TITLE, version or release.version, problem, _findings(problem))


def emit(
    placement: Placement, problem: Problem, model_path: str, version: str | None = None, role: str = MIXED
) -> Emission:
    """Map and launch script.

    Where TokenSpeed would refuse the map, a launch without map and redundant experts.
    """
    release, notes = small.asked(TITLE, RELEASES, problem, version, role)
    verdict, files = judge(problem, version, role), {}
    refuse_broken(placement, problem, verdict.violations)
    ignored = _ignored(problem.model)
    if ignored:
        notes += (f"WARNING: {ignored}; the launch holds neither map nor redundant experts",)
    else:
        notes += (*draft_rows_lost(TITLE, placement, problem), *small.said(verdict, ("role",)))
        files[MAP_NAME] = map_text(rows_by_layer(placement), problem.model, problem.gpus)
    commands = [_command(problem, model_path, node) for node in range(problem.topology.node_count)]
    title = f"{TITLE} {version or release.version}"
    return small.emission(title, problem, commands, files, notes, ignored, endpoint=ENDPOINT)


def read_map(value: Any) -> MapFile | None:
    """SGLang's file; here other keys beside the map are skipped, but a load is used in its place."""
    if not isinstance(value, dict) or KEY not in value or EPLB_KEYS & set(value):
        return None
    problems = []
    if LOAD_KEY in value:
        problems.append(f"the key {LOAD_KEY!r}: TokenSpeed balances that load by itself and skips the map")
    rows = value[KEY]
    if not isinstance(rows, list) or not rows:
        problems.append(f"{KEY} must be a list of rows, one for each layer")
        rows = []
    return MapFile("TokenSpeed expert location", tuple(enumerate(rows)), "decoder", problems=tuple(problems))


def _ignored(model: ModelSpec) -> str:
    if reads_map(model):
        return ""
    only = f"takes a map for {', '.join(sorted(READS_MAP))} only"
    return f"TokenSpeed {VERSION} {only} and stops at start with one for {model.architecture}"


def _findings(problem: Problem) -> Iterator[Finding]:
    uneven = uneven_nodes(problem.topology, "TokenSpeed starts as many ranks on each node")
    yield from small.refused(uneven, f"{_ARGS}: --world-size and --nprocs-per-node, read")
    limits_of_map = map_limits(problem.model, problem.slots, problem.gpus)
    yield from small.refused(limits_of_map, "runtime/moe/expert_location.py, read")
    text = "TokenSpeed's gateway listens on all interfaces by default, on node 0; the launch says so"
    yield Finding("host", text, "cli/serve_smg.py:65, read", ENDPOINT.listen)
    ignored = _ignored(problem.model)
    if ignored:
        yield Finding("map", ignored, "supports_expert_placement of its classes, read", ("--flags-only",))
        return
    text = "the map is read at start, and no weights move while it serves"
    yield Finding(
        "map", text, "runtime/moe/expert_location.py, run", ("--init-expert-location", "PLAN/" + MAP_NAME)
    )
    text = "every rank gathers all tokens: LongCat's layers refuse DeepEP"
    yield Finding("all-to-all", text, "its class, read", ("--all2all-backend", "none"))
    text = "requests are told as a total over the ranks, graphs and chunks as sizes of one"
    source = "runtime/engine/event_loop.py:227,259, read"
    yield Finding("sizes", text, source, tuple(_size_words(problem)))
    yield small.other_phase(problem, "gathered by every rank")


def _size_words(problem: Problem) -> list[str]:
    workload, gpus = problem.workload, problem.gpus
    sizes = sizes_of(workload.phase, workload.tokens_per_rank, MIXED, GATHER, gpus=gpus, page=1)
    words = ["--max-num-seqs", str(sizes.running * gpus), "--max-cudagraph-capture-size", str(sizes.running)]
    return [*words, "--chunked-prefill-size", str(sizes.chunk)]


def _command(problem: Problem, model_path: str, node: int) -> list[str]:
    """One node's command, as bash words."""
    gpus, counts = str(problem.gpus), gpus_per_node(problem.topology)
    words = ["tokenspeed", "serve", "--model", script.quote(model_path), *(() if node else ENDPOINT.listen)]
    words += ["--world-size", gpus, "--nprocs-per-node", str(counts[0])]
    if len(counts) > 1:
        words += ["--nnodes", str(len(counts)), "--node-rank", str(node)]
        words += ["--dist-init-addr", '"$HEAD_ADDRESS:25000"']
    words += ["--attn-tp-size", "1", "--data-parallel-size", gpus, "--all2all-backend", "none"]
    if not reads_map(problem.model):
        return [*words, "--ep-size", str(math.gcd(problem.model.experts, problem.gpus))]
    words += [*_size_words(problem), "--ep-size", gpus, "--ep-num-redundant-experts", str(problem.redundant)]
    # zero experts are left out of the map's ids; without any, this is `static`
    words += ["--ep-dispatch-algorithm", "static_with_zero_expert"]
    return [*words, "--init-expert-location", f"{script.PLAN_DIR}/{MAP_NAME}"]
