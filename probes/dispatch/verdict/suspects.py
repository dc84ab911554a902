"""What may be the matter with a machine that is not as fast as predicted, each with its own prediction.

A suspect has one free figure x at most: the share of its rate that a link, a tier or a rank reaches, or the
seconds that come on top. It predicts start + max(rest, own / x), or start + rest + x.

Shapes: C cells, G GPUs (one rank each), D links.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from planner.topology import Topology
from probes.dispatch.timed import Floats
from probes.dispatch.verdict.finish import uses_of
from probes.dispatch.verdict.scene import Scene, finishes

MOST_ORDERS = 150  # wrong rank orders that are tried: each costs a walk over all messages
WORST_RANKS = 8  # of a large group, those whose times fit worst may have been swapped


@dataclass(frozen=True, eq=False)
class Suspect:
    """`kind`: none, link, tier, rank, side, phase, order, uplinks or start-up.

    `peers`: how many of the kind are tried.
    """

    kind: str
    what: str
    rest_CG: Floats
    own_CG: Floats
    peers: int = 1

    @property
    def free(self) -> bool:
        return self.kind not in ("none", "order")

    def seconds_CG(self, start_C: Floats, x: float) -> Floats:
        if self.kind == "start-up":
            return start_C[:, None] + self.rest_CG + x
        return start_C[:, None] + np.maximum(self.rest_CG, self.own_CG / x)


def suspects(scene: Scene, topology: Topology) -> list[Suspect]:
    """Everything that is tried, `none` first; of compute, GPUs alone."""
    predicted_CG = scene.predicted_CG
    nothing_CG = np.zeros_like(predicted_CG)
    found = [Suspect("none", "", predicted_CG, nothing_CG), *_tiers(scene), *_counted(_links(scene))]
    found += [*_counted(_parts(scene, "side", scene.sides)), *_counted(_parts(scene, "phase", scene.phases))]
    if scene.exchanges:
        found += _counted(_ranks(scene))
        found += _counted(_orders(scene, topology))
        found += _counted(_uplinks(scene, topology))
        found.append(Suspect("start-up", "", predicted_CG, nothing_CG))
    return found


def _counted(found: Iterator[Suspect]) -> list[Suspect]:
    every = list(found)
    return [replace(one, peers=len(every)) for one in every]


def _links(scene: Scene) -> Iterator[Suspect]:
    """Each link that carries anything, both directions of it."""
    best_CG, second_CG, which_CG = _two_largest(scene.links_CDG)
    for number, name in enumerate(scene.links.names):
        own_CG = scene.links_CDG[:, number]
        if own_CG.any():
            yield Suspect("link", name, np.where(which_CG == number, second_CG, best_CG), own_CG)


def _two_largest(links_CDG: Floats) -> tuple[Floats, Floats, Floats]:
    which_CG = links_CDG.argmax(axis=1)
    best_CG = links_CDG.max(axis=1)
    others_CDG = np.where(np.arange(links_CDG.shape[1])[None, :, None] == which_CG[:, None], 0.0, links_CDG)
    return best_CG, others_CDG.max(axis=1), which_CG


def _tiers(scene: Scene) -> Iterator[Suspect]:
    """All links of one tier, and all there are."""
    tier_D = np.array(scene.links.tiers)
    used = [tier for tier in dict.fromkeys(scene.links.tiers) if scene.links_CDG[:, tier_D == tier].any()]
    for tier in used if len(used) > 1 else ():
        own_CG = scene.links_CDG[:, tier_D == tier].max(axis=1)
        yield Suspect("tier", tier, scene.links_CDG[:, tier_D != tier].max(axis=1, initial=0.0), own_CG)
    if used:
        name = "" if len(used) > 1 else used[0]
        yield Suspect("tier", name, np.zeros_like(scene.predicted_CG), scene.predicted_CG)


def _ranks(scene: Scene) -> Iterator[Suspect]:
    """A rank whose process or host is busy: as if all links of its own were slow.

    One that shares all its links is late with its flows, and so is who waits for them.
    """
    for rank, own_D in enumerate(scene.links.own_GD):
        own_CG = scene.links_CDG[:, own_D].max(axis=1, initial=0.0)
        own_CG = own_CG if own_CG.any() else scene.pairs_CGG[:, :, rank]
        yield Suspect("rank", f"rank {rank}", scene.predicted_CG, own_CG)


def _parts(scene: Scene, kind: str, name_C: Sequence[str]) -> Iterator[Suspect]:
    """One side or one phase alone is slower, whatever its links: no link is to blame."""
    every = list(dict.fromkeys(name_C))
    for name in every if len(every) > 1 else ():
        own_C1 = np.array([one == name for one in name_C])[:, None]
        own_CG, rest_CG = scene.predicted_CG * own_C1, scene.predicted_CG * ~own_C1
        yield Suspect(kind, name, rest_CG, own_CG)


def _uplinks(scene: Scene, topology: Topology) -> Iterator[Suspect]:
    """Leaf switches that the topology does not tell of: x is 1 / oversubscription."""
    nodes = topology.node_count
    if topology.fabric.kind != "none":
        return
    for size in range(2, nodes // 2 + 1):
        if nodes % size:
            continue
        fabric = replace(topology.fabric, kind="leaf-spine", nodes_per_leaf=size, oversubscription=1.0)
        leafy = replace(topology, fabric=fabric)
        uses = uses_of(leafy)
        rates = {one.phase: _rates(topology, leafy, one.bytes_per_s_R) for one in scene.exchanges}
        leaf_D = np.array([tier == "leaf" for tier in uses.tiers])
        found_CDG = np.array([one.seconds_DG for one in finishes(uses, scene.exchanges, rates=rates)])
        if found_CDG[:, leaf_D].any():
            own_CG = found_CDG[:, leaf_D].max(axis=1)
            yield Suspect("uplinks", f"{size} nodes", scene.predicted_CG, own_CG)


def _rates(topology: Topology, leafy: Topology, bytes_per_s_R: Floats) -> Floats:
    """Those of the links that both have, and of the uplinks that one has not."""
    known = {one.name: rate for one, rate in zip(topology.resources, bytes_per_s_R.tolist(), strict=True)}
    return np.array([known.get(one.name, one.rate.bytes_per_s) for one in leafy.resources])


def _orders(scene: Scene, topology: Topology) -> Iterator[Suspect]:
    """Ranks that are not where the plan has them."""
    uses = uses_of(topology)
    nothing_CG = np.zeros_like(scene.predicted_CG)
    for name, place_G in _places(scene, topology):
        found_CG = np.array([one.seconds_G for one in finishes(uses, scene.exchanges, place_G)])
        if not np.allclose(found_CG, scene.predicted_CG):
            yield Suspect("order", name, found_CG, nothing_CG)


def _places(scene: Scene, topology: Topology) -> Iterator[tuple[str, Sequence[int]]]:
    """What a launcher may have done: dealt ranks over nodes in turn, swapped two nodes or two ranks."""
    node_G, count = topology.node_G, topology.gpu_count
    members = [np.flatnonzero(node_G == node).tolist() for node in range(topology.node_count)]
    sizes = {len(of_node) for of_node in members}
    if len(sizes) == 1 and 1 < len(members) < count:
        yield "ranks dealt over the nodes in turn", np.array(members).T.ravel().tolist()
    tried = 1
    nodes = combinations(range(len(members)), 2)
    for a, b in [(a, b) for a, b in nodes if len(members[a]) == len(members[b]) > 1][: MOST_ORDERS // 2]:
        tried += 1
        yield f"nodes {a} and {b} swapped", _swapped(count, members[a], members[b])
    worst = np.argsort(-np.abs(_misfit_G(scene)), kind="stable")[:WORST_RANKS]
    ranks = range(count) if count <= 2 * WORST_RANKS else sorted(worst.tolist())
    pairs = [(a, b) for a, b in combinations(ranks, 2) if node_G[a] != node_G[b]]
    for a, b in pairs[: MOST_ORDERS - tried]:
        yield f"ranks {a} and {b} swapped", _swapped(count, [a], [b])


def _misfit_G(scene: Scene) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        misfit_CG = np.log(scene.seconds_CG / (scene.start_C[:, None] + scene.predicted_CG))
    misfit_G: Floats = np.where(np.isfinite(misfit_CG), misfit_CG, 0.0).mean(axis=0)
    return misfit_G


def _swapped(count: int, some: Sequence[int], others: Sequence[int]) -> list[int]:
    place_G = list(range(count))
    for a, b in zip(some, others, strict=True):
        place_G[a], place_G[b] = b, a
    return place_G
