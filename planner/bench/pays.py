"""Does it pay? Public end-to-end figures of balancing, beside what is predicted of the same change.

A thread records little: what it does not is assumed, and the row says so. Loads are made up: lognormal
popularity that drifts, as uneven as recorded where that is, else with sigma 1, which is about as uneven as
published DeepSeek-R1 counts. So the sign is judged; the size cannot be.

Shapes: W windows, L layers, E experts, P slots.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from planner.bench.frame import Peers, Table, each
from planner.bench.mi355 import eight_mi355
from planner.cost import cost, whole_step
from planner.load import LoadProfile
from planner.model import ModelSpec, find_model
from planner.placement import Placement
from planner.planning import Pays, PlanRequest, Rebalancing, pays
from planner.problem import Problem
from planner.solvers import Progress
from planner.topology import Topology, read_topology

TITLE = "Balancing end to end: what public threads recorded, and what is predicted of the same change"
WINDOWS, RHO, WINDOW_STEPS = 6, 0.99, 3000
SIGMA = 1.0  # where no balance was recorded
SAME = 0.005  # a change below it is none, as in the curve over R

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    """Two ways to serve, and how many times the first one's throughput the second had."""

    change: str
    recorded: float
    predicted: float
    rests_on: str

    @property
    def agrees(self) -> bool:
        """Whether both are gains, or both losses, or both neither."""
        return _sign(self.recorded) == _sign(self.predicted)


def run(peers: Peers, repeats: int, progress: Progress | None) -> Table:
    """Every thread once; peers have no part in it."""
    del peers, repeats
    rows = []
    for case in each(CASES, progress, lambda case: case.__name__.strip("_").replace("_", " ")):
        rows += [
            {
                "instance": name,
                "method": pair.change,
                "recorded_share": pair.recorded - 1,
                "predicted_share": pair.predicted - 1,
                "same_sign": pair.agrees,
                "assumed": pair.rests_on,
            }
            for name, pair in case()
        ]
    notes = (
        "throughput is of the whole step; what its seconds rest on is in docs/cost-model.md",
        f"loads are made up: lognormal popularity, {WINDOWS} windows, log-loads AR(1) with rho {RHO}",
        "shares are of throughput, or of the traffic where the change says so",
        f"a change below {SAME:.1%} has no sign",
    )
    return Table(TITLE, tuple(rows), notes)


def vllm_41141() -> list[tuple[str, Pair]]:
    """8 B200, Qwen3.5-397B-A17B NVFP4, DP8 EP8: 6745 tok/s, online EPLB 6873, a map made offline 6981.

    Tokens of prompts and outputs are counted together; how many a step has is not said, so both are tried.
    Its server then stopped for a rearrangement: asynchronous ones became the default later (PR 43219).
    """
    name = "vLLM PR 41141: Qwen3.5-397B NVFP4, 8 B200"
    model = replace(find_model("qwen3.5-397b"), weight_dtype="nvfp4", draft_layer_ids=())
    topology, load = read_topology("hgx-b200"), made_up(model, SIGMA)
    request = PlanRequest(model, topology, load, redundant=0, engine="vllm", transport="allgather")
    pairs = []
    for phase, tokens in (("prefill", 2048), ("decode", 256)):
        found = pays(
            replace(request, phase=phase, tokens_per_rank=tokens, method="refine"),
            Rebalancing(stops=True, window_steps=WINDOW_STEPS),
        )
        online, offline, none = (found.rows[one] for one in ("EPLB, stops", "EPLB once", "default"))
        rests_on = f"balance; R = 0; vLLM's interval; {phase}, {tokens} tokens a rank"
        pairs += [
            Pair("none -> online EPLB", 6873 / 6745, 1 + found.gain(online, none), rests_on),
            Pair("none -> map made offline", 6981 / 6745, 1 + found.gain(offline, none), rests_on),
            Pair("online -> map made offline", 6981 / 6873, 1 + found.gain(offline, online), rests_on),
        ]
    return [(name, pair) for pair in pairs]


def vllm_50647() -> list[tuple[str, Pair]]:
    """16 ranks, Kimi K3: max/mean 1.069 -> 1.008; with 24 rearrangements 463 s of serving took 1466.5 s.

    The recorded balance is of 16 sums: over all layers, or the hottest rank of each; both are tried. On 16
    GPUs it fits with its attention over all of them alone.
    """
    every_seconds = 463.11 / 24
    found = []
    for reading, sigma_of in (("by layer", _sigma_by_layer), ("over layers", _sigma_over_layers)):
        model = replace(find_model("kimi-k3"), draft_layer_ids=())
        topology = read_topology("gb200-nvl72:4")
        sigma = sigma_of(model, topology, 1.069)
        request = PlanRequest(model, topology, made_up(model, sigma), redundant=0, engine="vllm")
        judged = pays(
            replace(request, tokens_per_rank=8, attention_tp=16, method="refine"),
            Rebalancing(stops=True, window_steps=WINDOW_STEPS),
        )
        none, online = judged.rows["default"], judged.rows["EPLB, stops"]
        assert online.rearrangement is not None
        stopped = 1 + online.rearrangement.stall_seconds / every_seconds
        predicted = none.step_seconds / online.step_seconds / stopped
        assumed = f"GB200; TP16, 8 tokens a rank; R = 0; 1.069 read {reading}: sigma {sigma:.2f}"
        pair = Pair("none -> online EPLB that stops", 0.8994 / 2.8481, predicted, assumed)
        found.append(("vLLM PR 50647: Kimi K3, 16 ranks", pair))
    return found


def atom_1210() -> list[tuple[str, Pair]]:
    """8 MI355, DeepSeek-V4-Pro, EP8, prefill of 8192 tokens: 6.48 -> 7.56 (R = 0) -> 8.06 (64) -> 8.68 req/s.

    The last has the hottest experts on every GPU; a GPU uses its own replica.
    """
    model = replace(find_model("deepseek-v4-pro"), draft_layer_ids=())
    request = PlanRequest(
        model,
        eight_mi355(),
        made_up(model, SIGMA),
        phase="prefill",
        tokens_per_rank=8192,
        transport="rank",
        replica_rule="nearest",
        method="refine",
    )
    moved, copied = (
        pays(replace(request, redundant=redundant), Rebalancing(window_steps=WINDOW_STEPS))
        for redundant in (0, 64)
    )
    step = {
        "none": moved.rows["default"].step_seconds,
        "R = 0": moved.rows["EPLB once"].step_seconds,
        "R = 64": copied.rows["EPLB once"].step_seconds,
        "R = 64, hot on all": _judged_seconds(copied),
    }
    recorded = dict(zip(step, (6.48, 7.56, 8.06, 8.68), strict=True))
    name, names = "ATOM PR 1210: DeepSeek-V4-Pro, 8 MI355", list(step)
    return [
        (
            name,
            Pair(
                f"{before} -> {after}",
                recorded[after] / recorded[before],
                step[before] / step[after],
                "balance; MI355 by its data sheet; constants are other GPUs'",
            ),
        )
        for before, after in pairwise(names)
    ]


def sglang_19772() -> list[tuple[str, Pair]]:
    """2 nodes of 8 H20, DeepSeek-R1, 256 + 64: EPLB has a cross-node share of 0.5038, and a placement
    that knows nodes 25.2 % less, at a "comparable" decode.
    """
    model = replace(find_model("deepseek-r1"), draft_layer_ids=())
    topology, load = read_topology("hgx-h20:2"), made_up(model, SIGMA)
    request = PlanRequest(model, topology, load, redundant=64, method="refine", engine="sglang")
    found = pays(replace(request, replica_rule="nearest"), Rebalancing(window_steps=WINDOW_STEPS))
    before, after = (found.rows[one].cross_node_share for one in ("EPLB once", "static plan"))
    name, assumed = "SGLang PR 19772: DeepSeek-R1, 2 x 8 H20", "balance; 128 tokens a rank"
    change = f"EPLB ({before:.3f}, recorded 0.504) -> static plan: cross-node share"
    return [(name, Pair(change, 1 - 0.252, after / before, assumed))]


CASES: tuple[Callable[[], list[tuple[str, Pair]]], ...] = (vllm_41141, vllm_50647, atom_1210, sglang_19772)


def made_up(model: ModelSpec, sigma: float, seed: int = 0) -> LoadProfile:
    """Windows of lognormal popularity whose logs drift; about a million assignments a layer each."""
    shape = len(model.placed_layer_ids), model.experts
    random = np.random.default_rng(seed)
    log_LE, windows = random.normal(0, 1, shape), []
    for _ in range(WINDOWS):
        share_LE = np.exp(sigma * log_LE)
        windows.append(np.rint(share_LE / share_LE.sum(axis=1, keepdims=True) * 1e6))
        log_LE = RHO * log_LE + np.sqrt(1 - RHO**2) * random.normal(0, 1, shape)
    tokens_WLE = np.array(windows, dtype=np.int64)
    return LoadProfile(tokens_WLE, model.placed_layer_ids, f"made up: lognormal, sigma {sigma:.2f}")


def hottest_on_all(problem: Problem, share_LE: Floats) -> Placement:
    """As many of the hottest experts on every GPU as the replicas are enough for, all others where least is.

    A replica that is left over is of the next one.
    """
    gpus, slots, experts = problem.gpus, problem.slots_per_gpu, problem.model.experts
    hot = problem.redundant // (gpus - 1)
    rows = []
    for share_E in share_LE:
        order = np.argsort(-share_E, kind="stable")
        spare = problem.redundant - hot * (gpus - 1)
        others = np.concatenate([order[hot:], order[hot : hot + spare]])
        held: list[list[int]] = [order[:hot].tolist() for _ in range(gpus)]
        load_G = np.zeros(gpus)
        for expert in others[np.argsort(-share_E[others], kind="stable")].tolist():
            open_G = np.array([len(one) < slots and expert not in one for one in held])
            gpu = int(np.where(open_G, load_G, np.inf).argmin())
            held[gpu].append(expert)
            load_G[gpu] += share_E[expert]
        rows.append(np.concatenate(held))
    assert all(len(np.unique(row)) == experts for row in rows)
    return Placement(np.array(rows), problem.model.placed_layer_ids, gpus)


def _judged_seconds(found: Pays) -> float:
    """Of the hottest experts of the last fitted window on all GPUs; a balancer sees no earlier one."""
    placement = hottest_on_all(found.problem, found.series.fitted[-1].shares_LE)
    costs = [cost(found.problem, placement, load) for load in found.series.judged]
    seconds = [whole_step(found.problem, one, found.engine).total_seconds for one in costs]
    return float(np.average(seconds, weights=found.series.steps_J))


def _sigma_by_layer(model: ModelSpec, topology: Topology, recorded: float) -> float:
    """Sigma with which the default has the recorded max/mean, the hottest rank of each layer summed."""
    return _sigma(
        model, topology, recorded, lambda load_LG: load_LG.max(axis=1).sum() / load_LG.mean(axis=1).sum()
    )


def _sigma_over_layers(model: ModelSpec, topology: Topology, recorded: float) -> float:
    """The same, of the ranks' sums over layers."""
    return _sigma(
        model, topology, recorded, lambda load_LG: load_LG.sum(axis=0).max() / load_LG.sum(axis=0).mean()
    )


def _sigma(
    model: ModelSpec, topology: Topology, recorded: float, balance: Callable[[Floats], float]
) -> float:
    low, high = 0.0, 3.0
    for _ in range(20):
        sigma = (low + high) / 2
        share_LE = made_up(model, sigma).shares_LE
        load_LG = share_LE.reshape(len(share_LE), topology.gpu_count, -1).sum(axis=2)  # expert p in slot p
        low, high = (sigma, high) if balance(load_LG) < recorded else (low, sigma)
    return (low + high) / 2


def _sign(ratio: float) -> int:
    return 0 if abs(ratio - 1) < SAME else (1 if ratio > 1 else -1)
