"""Published skew: ratios of all-to-alls that others have timed under skew, beside those of the cost model.

DeepSpeed PR #8213: routing captured from fine-tuning, replayed on 16 H100 of two nodes, with NCCL and with
DeepEP on 12 SMs. DeepEP issue #343: its own benchmark on 32 GPUs of four nodes, with experts drawn so that
nodes get alike and the GPUs of a node do not. What the threads do not say is assumed here and named.

Shapes: E experts.
"""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import numpy.typing as npt

from planner.bench.frame import Peers, Table, synthetic_model
from planner.cost import cost
from planner.load import LoadProfile, hot_shares
from planner.problem import Problem, Workload
from planner.solvers import Progress, find_method
from planner.topology import Topology, topology_from_dict

TITLE = "Published all-to-alls under skew: ratios, predicted and published"
Floats = npt.NDArray[np.float64]

# DeepSpeed PR #8213, its table: max/mean receive, and milliseconds
NCCL_MS = {2.56: 100.52, 3.01: 99.72, 5.09: 115.75}
DEEPEP_MS = {2.56: 47.91, 3.01: 48.02, 5.09: 46.40}
DEDUPLICATION, KERNELS = 1.29, 1.61  # of the same thread
SHAPE = (128, 8, 2048, 16384)  # experts, top-k, width, tokens a rank: assumed; ratios hardly depend on them

# GB/s that others reached with large messages on H100 with 400 Gb/s NICs
NCCL_NIC = 42.7  # nccl-tests issue #355: all-to-all on 2 x 8, 4 GiB
DEEPEP_NIC = 47.5  # normal mode on four nodes, 20 SMs (aiconfigurator-core 0.12.0)
SM_DISPATCH, SM_COMBINE = 11.2, 8.9  # an SM, over NVLink: that source's two nodes, median over 4 to 20 SMs
SMS = 12  # that the thread gives DeepEP
SM_SLOW = 8.1  # of the row with 12 SMs itself, dispatch: below the line of the others, which combine is on
NVLINK = 255.0  # what NVLink gave DeepEP in that table with 24 SMs, those of issue #343's benchmark
H800_NVLINK = 153.0  # DeepEP's README, normal mode on one node


def run(_peers: Peers, _repeats: int, _progress: Progress | None) -> Table:
    """Every ratio of the two threads; nothing here is timed."""
    seconds, slow = _replay_seconds(SM_DISPATCH), _replay_seconds(SM_SLOW)
    share = _share_of_skewed(seconds["NCCL"])
    rows = [
        *_deepspeed_rows(seconds, 1.0, "all exchanges"),
        *_deepspeed_rows(seconds, share, f"{share:.0%} of them"),
    ]
    rows += _inner_rows()
    slower = _mixed(seconds["NCCL"], share, 3.01) / _mixed(slow["DeepEP"], share, 3.01)
    return Table(TITLE, tuple(rows), _notes(share, slower))


Seconds = Mapping[str, Callable[[float], float]]
"""Seconds of dispatch and combine by how it is sent, at a max/mean."""


def _replay_seconds(sm_dispatch: float) -> Seconds:
    """Each way to send, as a function of the skew; one GPU is hot, the others are alike."""
    nccl = machine(2, NVLINK, NCCL_NIC)
    there, back = (machine(2, SMS * rate, DEEPEP_NIC) for rate in (sm_dispatch, SM_COMBINE))

    def seconds(machines: tuple[Topology, Topology], transport: str) -> Callable[[float], float]:
        hot = range(SHAPE[0] // 16)
        return cache(lambda skew: exchange_seconds(machines, hot_shares(SHAPE[0], hot, skew), transport))

    return {
        "NCCL": seconds((nccl, nccl), "slot"),
        "NCCL, deduplicated": seconds((nccl, nccl), "rank"),
        "DeepEP": seconds((there, back), "node"),
    }


def exchange_seconds(
    machines: tuple[Topology, Topology],
    share_E: Floats,
    transport: str,
    shape: tuple[int, int, int, int] = SHAPE,
) -> float:
    """Dispatch on the first machine and combine on the second, in bf16, of experts in their usual order."""
    experts, top_k, width, tokens = shape
    model = synthetic_model("replayed", 1, experts, top_k, hidden=width, expert_intermediate=64, dtype="bf16")
    counts_WLE = np.rint(share_E * 1e12).astype(np.int64)[None, None]
    load = LoadProfile(counts_WLE, model.moe_layer_ids, "made to have the published max/mean")
    workload = Workload(tokens, "prefill", "bf16", "bf16", transport)
    problems = [Problem(one, model, load, workload, experts // one.gpu_count) for one in machines]
    placement = find_method("linear")(problems[0])
    there, back = (cost(problem, placement) for problem in problems)
    return float(there.dispatch_seconds_L[0] + back.combine_seconds_L[0])


def machine(nodes: int, nvlink: float, nic: float) -> Topology:
    """Nodes of 8 H100 whose links reach so many GB/s, as measured."""

    def rate(value: float) -> dict[str, str]:
        return {"value": f"{value} GB/s", "evidence": "measured", "source": "published"}

    gpu = {
        "memory": "80 GB",
        "memory_rate": "3350 GB/s",
        "flops": {"bf16": "989 TFLOP/s"},
        "evidence": "preset",
        "source": "data sheet",
    }
    node = {
        "count": nodes,
        "gpus": {"model": "H100-SXM-80GB", "count": 8},
        "nvlink": {"kind": "switch", "islands": [{"gpus": list(range(8)), "rate": rate(nvlink)}]},
        "nics": [{"gpus": [[gpu] for gpu in range(8)], "rate": rate(nic)}],
    }
    fabric = {"kind": "none", "evidence": "assumed", "source": "not said"}
    return topology_from_dict(
        {
            "name": f"{nodes} x 8 H100",
            "source": "published",
            "gpu_models": {"H100-SXM-80GB": gpu},
            "nodes": [node],
            "fabric": fabric,
        }
    )


def _share_of_skewed(nccl: Callable[[float], float]) -> float:
    """Share of exchanges at the stated skew, the others even, for which NCCL grows from 3.01 to 5.09 as
    published.
    """
    grown, even = NCCL_MS[5.09] / NCCL_MS[3.01], nccl(1.0)
    return even * (grown - 1) / (nccl(5.09) - even - grown * (nccl(3.01) - even))


def _mixed(seconds: Callable[[float], float], share: float, skew: float) -> float:
    """Seconds where that share of the exchanges is skewed, and the others are even."""
    return (1 - share) * seconds(1.0) + share * seconds(skew)


def _deepspeed_rows(seconds: Seconds, share: float, at_skew: str) -> list[dict[str, object]]:
    def mixed(how: str, skew: float) -> float:
        return _mixed(seconds[how], share, skew)

    def row(what: str, predicted: float, published: float) -> dict[str, object]:
        return _row("DeepSpeed #8213", f"stated skew in {at_skew}", what, predicted, published)

    rows = [
        row(f"{how}, {skew:g} over 3.01", mixed(how, skew) / mixed(how, 3.01), ms[skew] / ms[3.01])
        for how, ms in (("NCCL", NCCL_MS), ("DeepEP", DEEPEP_MS))
        for skew in (2.56, 5.09)
    ]
    rows += [
        row(
            f"NCCL over DeepEP at {skew:g}",
            mixed("NCCL", skew) / mixed("DeepEP", skew),
            NCCL_MS[skew] / DEEPEP_MS[skew],
        )
        for skew in NCCL_MS
    ]
    once = mixed("NCCL, deduplicated", 3.01)
    return [
        *rows,
        row("deduplication alone, at 3.01", mixed("NCCL", 3.01) / once, DEDUPLICATION),
        row("kernels alone, at 3.01", once / mixed("DeepEP", 3.01), KERNELS),
    ]


def _inner_rows() -> list[dict[str, object]]:
    """DeepEP #343: how much longer than an even load, the first GPU of each node having so many times the
    mean.
    """
    experts, shape = 256, (256, 8, 7168, 4096)
    rows = []
    for chip, nvlink in (("H100", NVLINK), ("H800", H800_NVLINK)):
        both = (machine(4, nvlink, DEEPEP_NIC),) * 2
        even = exchange_seconds(both, np.full(experts, 1 / experts), "node", shape)
        for skew in (2, 3, 4, 5, 8):
            hot = [64 * node + expert for node in range(4) for expert in range(8)]
            uneven = exchange_seconds(
                both, hot_shares(experts, hot, skew) if skew < 8 else _all(hot), "node", shape
            )
            rows.append(
                _row(
                    "DeepEP #343",
                    f"{chip}, {skew} times the mean",
                    "DeepEP, uneven over even",
                    uneven / even,
                    2.0,
                )
            )
    return rows


def _all(hot: list[int]) -> Floats:
    """share_E: everything goes to the hot experts."""
    return np.bincount(hot, minlength=256) / len(hot)


def _row(instance: str, method: str, what: str, predicted: float, published: float) -> dict[str, object]:
    return {
        "instance": instance,
        "method": method,
        "ratio": what,
        "predicted": predicted,
        "published": published,
        "error_share": predicted / published - 1,
    }


def _notes(share: float, slower: float) -> tuple[str, ...]:
    return (
        "#8213: model and tokens are not said; 128 experts, top-8, bf16 and one hot GPU are assumed",
        (
            "#8213: that all exchanges have the stated skew contradicts NCCL's own times (2.56 takes longer "
            "than 3.01) and the 1.29 of deduplication"
        ),
        (
            f"#8213: with it in {share:.1%} of them and the others even, a share set by NCCL at 5.09, the "
            "other ratios follow"
        ),
        (
            f"#8213: by the table's row with {SMS} SMs itself, dispatch of DeepEP is slower, and NCCL over "
            f"DeepEP at 3.01 is {slower:.2f}"
        ),
        "#343: GPU and unevenness are pictures in the thread: the rows say which it takes",
    )
