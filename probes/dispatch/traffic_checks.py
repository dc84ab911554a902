"""What the traffic of a run must look like whatever the ranks agree on: references may be wrong as well.

Tokens differ from each other, experts are matrices of their own, replicas are picked as the rule says, and
experts are asked for as the load says. The last two are draws; what chance makes of them is bounded by
Chernoff: k of n, each with chance p, are called wrong where n · KL(k / n, p) > log(2 / alpha). In all layers
and sides of a run together, alpha is 1e-6 a check: so rarely does a right run fail.

Shapes: S source ranks, G GPUs, E experts, P slots, T tokens of a rank.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from probes.dispatch.sent import Counts

Floats = npt.NDArray[np.float64]
FALSE_ALARM = 1e-6
VECTOR_VALUES = 5  # an element of a token is one of so many
ZEROS = 1 / 3  # of an expert's matrix of -1, 0 and 1


@dataclass(frozen=True, eq=False)
class TrafficLaw:
    """What one row under one side is drawn from. `cells`: how many such there are in the run."""

    tokens: int  # of a rank
    width: int
    chance_E: Floats  # that a token asks for an expert
    share_SGE: Floats  # of a source's assignments for an expert, what goes to each GPU
    cells: int

    def alpha(self, tests: int) -> float:
        return FALSE_ALARM / (self.cells * max(tests, 1))


@dataclass(frozen=True)
class Matrix:
    """An expert as a GPU holds it: its zeros, and a checksum that its elements' places change."""

    expert: int
    zeros: int
    checksum: int


def share_SGE(share_SP: Floats, expert_P: npt.NDArray[np.integer], gpus: int, experts: int) -> Floats:
    """Of what each source asks of an expert, the share that each GPU gets by the replica rule."""
    slots_per_gpu = len(expert_P) // gpus
    found_SGE = np.zeros((gpus, gpus, experts))
    for slot, expert in enumerate(expert_P.tolist()):
        found_SGE[:, slot // slots_per_gpu, expert] += np.broadcast_to(share_SP[:, slot], gpus)
    return found_SGE


def wrong_tokens(law: TrafficLaw, rank: int, distinct: int) -> Iterator[str]:
    """Vectors that are alike hide what is sent in another's place. Narrow ones may be alike by chance."""
    pairs = law.tokens * (law.tokens - 1) / 2
    if distinct < law.tokens and pairs * float(VECTOR_VALUES) ** -law.width < law.alpha(1):
        yield f"{law.tokens - distinct + 1} of {law.tokens} tokens of rank {rank} are the same vector"


def wrong_matrices(law: TrafficLaw, rank: int, held: list[Matrix]) -> Iterator[str]:
    """Each expert's own, and neither empty nor full."""
    elements = law.width**2
    for one in held:
        if deviates(one.zeros, elements, ZEROS, law.alpha(len(held))):
            yield (
                f"the matrix of expert {one.expert} on rank {rank} has {one.zeros} zeros "
                f"of {elements} elements, not a third"
            )
    first: dict[int, int] = {}
    for one in held if elements >= 64 else ():  # smaller ones may be alike by chance
        other = first.setdefault(one.checksum, one.expert)
        if other != one.expert:
            yield f"experts {other} and {one.expert} of rank {rank} are the same matrix"


def wrong_results(law: TrafficLaw, rank: int, distinct: int) -> Iterator[str]:
    """What came back of different tokens differs, but for very narrow ones."""
    if law.width >= 16 and law.tokens > 1 and distinct < max(2, law.tokens // 2):
        yield f"of {law.tokens} tokens of rank {rank} only {distinct} came back different"


def wrong_replicas(law: TrafficLaw, received_SGE: Counts) -> Iterator[str]:
    """Each GPU's share of what a source asks of an expert, where several hold it."""
    asked_SE = received_SGE.sum(axis=1)
    shared_E = (law.share_SGE > 0).sum(axis=1).max(axis=0) > 1
    tested_SGE = np.broadcast_to(shared_E & (asked_SE[:, None, :] > 0), received_SGE.shape)
    asked_SGE = np.broadcast_to(asked_SE[:, None, :], received_SGE.shape)
    off_SGE = tested_SGE & _deviates(received_SGE, asked_SGE, law.share_SGE, law.alpha(int(tested_SGE.sum())))
    for source, gpu, expert in np.argwhere(off_SGE).tolist():
        got, asked = received_SGE[source, gpu, expert], asked_SE[source, expert]
        share = law.share_SGE[source, gpu, expert]
        yield (
            f"rank {source} sent {got} of its {asked} assignments for expert {expert} to GPU {gpu}; "
            f"the replica rule gives that {share:.0%}".replace("%", " %")
        )


def wrong_load(law: TrafficLaw, received_SGE: Counts) -> Iterator[str]:
    """How often each expert was asked for, by all ranks together: tokens each ask for it once or not."""
    asked_E = received_SGE.sum(axis=(0, 1))
    tokens = law.tokens * len(received_SGE)
    tokens_E = np.full(len(asked_E), tokens)
    off_E = _deviates(asked_E, tokens_E, law.chance_E, law.alpha(len(asked_E)))
    for expert in np.flatnonzero(off_E).tolist():
        yield (
            f"{asked_E[expert]} of {tokens} tokens asked for expert {expert}; "
            f"by the load {law.chance_E[expert] * tokens:.1f} were to be expected"
        )


def deviates(count: int, trials: int, chance: float, alpha: float) -> bool:
    return bool(_deviates(np.array([count]), np.array([trials]), np.array([chance]), alpha)[0])


def _deviates(
    count_X: npt.NDArray[np.integer], trials_X: npt.NDArray[np.integer], chance_X: Floats, alpha: float
) -> npt.NDArray[np.bool_]:
    """Whether a count is further from its expectation than chance explains; of no trials, never."""
    chance_X = np.where(chance_X < 1e-9, 0.0, np.where(chance_X > 1 - 1e-9, 1.0, chance_X))  # rounding
    some_X = np.maximum(trials_X, 1)
    part_X = np.minimum(count_X / some_X, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        hits_X = np.where(part_X > 0, part_X * np.log(part_X / chance_X), 0.0)
        misses_X = np.where(part_X < 1, (1 - part_X) * np.log((1 - part_X) / (1 - chance_X)), 0.0)
    off_X: npt.NDArray[np.bool_] = (trials_X > 0) & (some_X * (hits_X + misses_X) > np.log(2 / alpha))
    return off_X | (count_X > trials_X)
