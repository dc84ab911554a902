"""Survival: which losses of GPUs, or of a node, leave every expert a slot.

Laws of one array; nothing here knows a problem or a solver.

Shapes: L layers, E experts, P slots, G GPUs, X places that fail as a whole (GPUs or nodes).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from planner.base import BadInput, Infeasible, is_whole

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Survival:
    """What may be lost at once: any `gpus` GPUs, or any one node.

    >>> str(Survival(gpus=1)), str(Survival(node=True)), Survival(gpus=2).least_replicas
    ('any 1 GPU', 'any one node', 3)
    """

    gpus: int = 0
    node: bool = False

    def __post_init__(self) -> None:
        if self.node == bool(self.gpus) or self.gpus < 0:
            asked = f"{self.gpus} GPUs{' and a node' if self.node else ''}"
            raise BadInput(f"losses to survive are {asked}; give 1 or more GPUs, or node")

    @property
    def least_replicas(self) -> int:
        """Slots that every expert needs, each at another place."""
        return 2 if self.node else self.gpus + 1

    @property
    def losses(self) -> int:
        """Places lost at once."""
        return self.least_replicas - 1

    def place_G(self, node_G: Ints) -> Ints:
        """The place of each GPU: what fails with it has the same number."""
        return node_G if self.node else np.arange(len(node_G))

    def word(self) -> str:
        """As it is written on the command line and in plan files."""
        return "node" if self.node else str(self.gpus)

    def __str__(self) -> str:
        return "any one node" if self.node else f"any {self.gpus} GPU{'s' if self.gpus > 1 else ''}"


def parse_survival(text: str, where: str = "--survive") -> Survival:
    """
    >>> parse_survival("2"), parse_survival("node")
    (Survival(gpus=2, node=False), Survival(gpus=0, node=True))
    """
    if text == "node":
        return Survival(node=True)
    if not is_whole(text) or not 1 <= int(text) <= 1_000_000:
        expected = "give the number of GPUs that may be lost at once, 1 or more, or node"
        raise BadInput(f"{where} {text!r}: {expected}")
    return Survival(gpus=int(text))


def held_places_LE(expert_LP: npt.NDArray[np.integer], place_G: Ints, experts: int) -> Ints:
    """At how many places each expert has a slot.

    >>> held_places_LE(np.array([[0, 1, 0, 2]]), np.array([0, 1]), experts=3).tolist()
    [[2, 1, 1]]
    """
    layers, slots = expert_LP.shape
    place_P = np.repeat(place_G, slots // len(place_G))
    places = int(place_G.max()) + 1
    cell_LP = (np.arange(layers)[:, None] * experts + expert_LP) * places + place_P
    taken = np.unique(cell_LP.ravel())
    return np.bincount(taken // places, minlength=layers * experts).reshape(layers, experts)


def lost_experts(expert_P: npt.NDArray[np.integer], lost_G: npt.NDArray[np.bool_], experts: int) -> Ints:
    """Experts of one layer without a slot once these GPUs are gone."""
    alive_P = expert_P[~np.repeat(lost_G, len(expert_P) // len(lost_G))]
    return np.flatnonzero(np.bincount(alive_P, minlength=experts) == 0)


def loss_sets(survive: Survival, node_G: Ints) -> Iterator[tuple[int, ...]]:
    """The GPUs of every loss, in ascending order."""
    place_G = survive.place_G(node_G)
    for lost in combinations(range(int(place_G.max()) + 1), survive.losses):
        yield tuple(np.flatnonzero(np.isin(place_G, lost)).tolist())


def least_slots_per_gpu(survive: Survival, experts: int, node_G: Ints) -> int:
    """The fewest slots a GPU with which some placement survives; Infeasible where none does.

    A place takes an expert once, so it is worth the lesser of its slots and the experts; the places' worth
    must come to `least_replicas` an expert. Demands are equal, so that much also suffices: deal the experts
    in turn to the places with most room (Gale and Ryser).

    >>> least_slots_per_gpu(Survival(gpus=1), 8, np.array([0, 0, 1, 1]))
    4
    >>> least_slots_per_gpu(Survival(node=True), 8, np.array([0, 0, 0, 1]))
    8
    """
    size_X = np.bincount(survive.place_G(node_G))
    if len(size_X) < survive.least_replicas:
        raise _too_few_places(survive, len(size_X))
    slots = -(-experts * survive.least_replicas // len(node_G))
    while np.minimum(size_X * slots, experts).sum() < experts * survive.least_replicas:
        slots += 1
    return slots


def least_slots_replaced(survive: Survival, experts: int, node_G: Ints) -> int:
    """The same for an engine that goes on after a loss and places experts anew on the GPUs that are left.

    Those without a copy come from disk. So the largest loss must leave a slot for every expert.

    >>> least_slots_replaced(Survival(gpus=1), 8, np.array([0, 0, 1, 1]))
    3
    >>> least_slots_replaced(Survival(node=True), 8, np.array([0, 0, 0, 1]))
    8
    """
    size_X = np.sort(np.bincount(survive.place_G(node_G)))
    left = int(size_X[: -survive.losses].sum())
    if not left:
        raise _too_few_places(survive, len(size_X))
    return -(-experts // left)


def _too_few_places(survive: Survival, places: int) -> Infeasible:
    noun, nouns = ("node", "nodes") if survive.node else ("GPU", "GPUs")
    have = f"{places} {nouns if places > 1 else noun}"
    most = "" if survive.node or places == 1 else f"; at most --survive {places - 1}"
    needed = f"surviving {survive} needs at least {survive.least_replicas} {nouns}"
    return Infeasible(f"{needed}, the topology has {have}{most}")
