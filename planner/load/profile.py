"""LoadProfile: assignments (token, expert) per window, layer and expert, and the trace they came from.

Shapes: W windows, L layers, E experts, T tokens, K = top_k.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.base import BadInput

Counts = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]

NEGATIVE_COUNTS = (
    "counts cannot be negative (an int32 counter that wrapped around looks like this: record shorter windows)"
)


@dataclass(frozen=True, eq=False)
class Trace:
    """The top-k expert ids of each token, sequence after sequence. `sequence_lengths` sum to T.

    Its rows are those of the profile it belongs to; a layer that was not recorded has -1 all along its row.
    """

    experts_LTK: Ids
    sequence_lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        shape, total = self.experts_LTK.shape, sum(self.sequence_lengths)
        if len(shape) != 3:
            raise BadInput(f"a trace has the axes [layer, token, k]; this one has shape {list(shape)}")
        if total != shape[1]:
            raise BadInput(f"sequence lengths sum to {total}, the trace holds {shape[1]} tokens")
        self.experts_LTK.flags.writeable = False

    @property
    def recorded_L(self) -> npt.NDArray[np.bool_]:
        """Whether each layer's row holds ids (True) or was not recorded (False)."""
        return self.experts_LTK[:, 0, 0] >= 0

    def with_sequences(self, chosen: "list[int]") -> "Trace":
        """The same trace, these sequences only."""
        starts = np.concatenate([[0], np.cumsum(self.sequence_lengths)])
        tokens = np.concatenate([np.arange(starts[s], starts[s + 1]) for s in chosen])
        lengths = tuple(self.sequence_lengths[s] for s in chosen)
        return Trace(self.experts_LTK[:, tokens].copy(), lengths)

    def thinned(self, most: int) -> "Trace":
        """At most so many of its tokens, evenly spread over all sequences."""
        tokens = self.experts_LTK.shape[1]
        kept = min(most, tokens)
        kept_T = np.arange(kept) * tokens // kept
        lengths = np.diff(np.searchsorted(kept_T, np.cumsum(self.sequence_lengths)), prepend=0)
        return Trace(self.experts_LTK[:, kept_T].copy(), tuple(lengths[lengths > 0].tolist()))


@dataclass(frozen=True, eq=False)
class LoadProfile:
    """A measured load.

    >>> load = LoadProfile(np.array([[[3, 1], [2, 2]]]), layer_ids=(0, 5), source="by hand")
    >>> load.windows, load.experts, load.total_LE.tolist()
    (1, 2, [[3, 1], [2, 2]])
    """

    tokens_WLE: Counts
    layer_ids: tuple[int, ...]  # absolute ids of the L rows
    source: str  # the file or publication
    window_unit: str = "window"  # what one window is: a step, a minute, a domain, a sequence
    window_names: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()  # each window's file, where several were given; those of one are neighbours
    phase: str = "unknown"  # prefill, decode, unknown
    trace: Trace | None = None
    unmeasured_layer_ids: tuple[int, ...] = ()  # their rows are filled from other layers, or assumed
    notes: tuple[str, ...] = ()  # what a reader of the figures must know

    def __post_init__(self) -> None:
        self._check_counts()
        self._check_labels()
        self.tokens_WLE.flags.writeable = False

    def _check_counts(self) -> None:
        """BadInput where the counts are not those of as many ascending layers, or one is negative."""
        tokens_WLE, layer_ids = self.tokens_WLE, self.layer_ids
        if tokens_WLE.ndim != 3 or 0 in tokens_WLE.shape:
            raise BadInput(
                f"{self.source}: counts need the axes [window, layer, expert], none empty; "
                f"got shape {list(tokens_WLE.shape)}"
            )
        if tokens_WLE.dtype != np.int64:
            raise TypeError(f"counts must be int64, not {tokens_WLE.dtype}")
        rows = tokens_WLE.shape[1]
        if len(layer_ids) != rows or list(layer_ids) != sorted(set(layer_ids)):
            raise BadInput(
                f"{self.source}: {rows} layer rows need as many distinct, ascending layer ids; "
                f"got {list(layer_ids)}"
            )
        if (tokens_WLE < 0).any():
            window, layer, expert = np.argwhere(tokens_WLE < 0)[0]
            where = f"window {window}, layer {layer_ids[layer]}, expert {expert}"
            count = tokens_WLE[window, layer, expert]
            raise BadInput(f"{self.source}: {where} has the count {count}; {NEGATIVE_COUNTS}")

    def _check_labels(self) -> None:
        """That names, domains and trace are those of as many windows. Only names come from a person."""
        windows, trace = len(self.tokens_WLE), self.trace
        if self.window_names and len(self.window_names) != windows:
            raise BadInput(
                f"{self.source}: {windows} windows need as many names; got {len(self.window_names)}"
            )
        if self.domains and len(self.domains) != windows:
            raise ValueError(f"{windows} windows need as many domains; got {len(self.domains)}")
        fits = (
            trace is None
            or (len(trace.sequence_lengths), len(trace.experts_LTK)) == self.tokens_WLE.shape[:2]
        )
        if not fits:
            raise ValueError("a trace has the profile's layers as rows and one sequence a window")

    @property
    def windows(self) -> int:
        return len(self.tokens_WLE)

    @property
    def domain_names(self) -> tuple[str, ...]:
        """The domains in the order of their windows; empty where the load is one series."""
        return tuple(dict.fromkeys(self.domains))

    def of_domain(self, name: str) -> "LoadProfile | None":
        """The windows of that domain, None where the load has none."""
        chosen = [window for window, domain in enumerate(self.domains) if domain == name]
        return self.with_windows(chosen) if chosen else None

    @property
    def experts(self) -> int:
        return int(self.tokens_WLE.shape[2])

    @property
    def total_LE(self) -> Counts:
        """Assignments summed over windows."""
        return np.asarray(self.tokens_WLE.sum(axis=0), dtype=np.int64)

    @property
    def shares_LE(self) -> npt.NDArray[np.float64]:
        """Each layer's load as shares that sum to 1; even shares for a layer without any assignment."""
        total_LE = self.total_LE.astype(np.float64)
        sums_L1 = total_LE.sum(axis=1, keepdims=True)
        return np.where(sums_L1 > 0, total_LE / np.where(sums_L1 > 0, sums_L1, 1), 1 / self.experts)

    def with_windows(self, chosen: "list[int]") -> "LoadProfile":
        """The same profile, these windows only; a trace keeps their sequences."""
        names, domains = self.window_names, self.domains
        return replace(
            self,
            tokens_WLE=self.tokens_WLE[chosen].copy(),
            window_names=tuple(names[w] for w in chosen) if names else (),
            domains=tuple(domains[w] for w in chosen) if domains else (),
            trace=self.trace.with_sequences(chosen) if self.trace else None,
        )
