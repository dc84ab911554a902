"""NVLink of one node: islands behind a switch, or links of pairs. Values only, GPUs counted from 0."""

from dataclasses import dataclass, replace

from planner.base import BadInput, Rate
from planner.topology.members import check_groups

_PARTS = {"none": "neither islands nor pairs", "switch": "islands", "mesh": "pairs", "bridge": "pairs"}


@dataclass(frozen=True)
class Island:
    """GPUs of one node on one NVLink switch fabric, each with its own rate in and out."""

    gpus: tuple[int, ...]
    rates: tuple[Rate, ...]

    def keep(self, new: dict[int, int]) -> "Island":
        kept = [(new[gpu], rate) for gpu, rate in zip(self.gpus, self.rates, strict=True) if gpu in new]
        return Island(tuple(gpu for gpu, _ in kept), tuple(rate for _, rate in kept))


@dataclass(frozen=True)
class PairLink:
    """A direct NVLink connection of two GPUs: `rate` in each direction, all lanes together."""

    gpus: tuple[int, int]
    rate: Rate

    def keep(self, new: dict[int, int]) -> "PairLink":
        first, second = self.gpus
        return replace(self, gpus=(new[first], new[second]))


@dataclass(frozen=True)
class NvLink:
    """How the GPUs of a node are joined by NVLink.

    `switch` has islands; `mesh` and `bridge` have pairs; `none` has neither.
    """

    kind: str = "none"
    islands: tuple[Island, ...] = ()
    pairs: tuple[PairLink, ...] = ()

    def check(self, where: str, gpu_count: int) -> None:
        self._check_kind(where)
        check_groups(f"{where}: NVLink island", [island.gpus for island in self.islands], gpu_count)
        for island in self.islands:
            if len(island.rates) != len(island.gpus):
                raise BadInput(
                    f"{where}: an NVLink island of {len(island.gpus)} GPUs has {len(island.rates)} rates; "
                    "give one, or one for each GPU"
                )
        for link in self.pairs:
            check_groups(f"{where}: NVLink pair", [link.gpus], gpu_count)
        if len({frozenset(link.gpus) for link in self.pairs}) != len(self.pairs):
            asked = "add its lanes up into one rate"
            raise BadInput(f"{where}: a pair of GPUs is listed twice under NVLink; {asked}")

    def _check_kind(self, where: str) -> None:
        if self.kind not in _PARTS:
            raise BadInput(f"{where}: NVLink kind {self.kind!r} is not one of {', '.join(_PARTS)}")
        fits_islands = bool(self.islands) == (_PARTS[self.kind] == "islands")
        fits_pairs = bool(self.pairs) == (_PARTS[self.kind] == "pairs")
        if not (fits_islands and fits_pairs):
            found = f"this one has {len(self.islands)} islands and {len(self.pairs)} pairs"
            raise BadInput(f"{where}: NVLink kind '{self.kind}' goes with {_PARTS[self.kind]}; {found}")

    def keep(self, new: dict[int, int]) -> "NvLink":
        """Between the GPUs that have a new number, by it."""
        islands = [island.keep(new) for island in self.islands if any(gpu in new for gpu in island.gpus)]
        pairs = [link.keep(new) for link in self.pairs if all(gpu in new for gpu in link.gpus)]
        return NvLink(self.kind, tuple(islands), tuple(pairs)) if islands or pairs else NO_NVLINK


NO_NVLINK = NvLink()
