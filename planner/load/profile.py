"""LoadProfile: assignments (token, expert) counted per window, layer and expert; and the trace they came from, where there is one.

Shapes: W windows, L layers, E experts, T tokens, K = top_k.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.base import BadInput

Counts = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Trace:
    """The top-k expert ids of each token, sequence after sequence. `sequence_lengths` sum to T.

    Its rows are those of the profile it belongs to; a layer that was not recorded has -1 everywhere in its row.
    """

    experts_LTK: Ids
    sequence_lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.experts_LTK.ndim != 3:
            raise BadInput(
                f"a trace has the axes [layer, token, k]; this one has shape {list(self.experts_LTK.shape)}"
            )
        if sum(self.sequence_lengths) != self.experts_LTK.shape[1]:
            raise BadInput(
                f"sequence lengths sum to {sum(self.sequence_lengths)}, the trace holds {self.experts_LTK.shape[1]} tokens"
            )
        self.experts_LTK.flags.writeable = False

    @property
    def recorded_L(self) -> npt.NDArray[np.bool_]:
        """Whether each layer's row holds ids (True) or was not recorded (False)."""
        return self.experts_LTK[:, 0, 0] >= 0


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
    domains: tuple[
        str, ...
    ] = ()  # of each window: the file it comes from, where several were given; windows of one domain follow each other
    phase: str = "unknown"  # prefill, decode, unknown
    trace: Trace | None = None
    unmeasured_layer_ids: tuple[
        int, ...
    ] = ()  # rows that were not measured: filled from other layers, or assumed
    notes: tuple[str, ...] = ()  # what a reader of the figures must know

    def __post_init__(self) -> None:
        tokens_WLE = self.tokens_WLE
        if tokens_WLE.ndim != 3 or 0 in tokens_WLE.shape:
            raise BadInput(
                f"{self.source}: counts need the axes [window, layer, expert], none empty; got shape {list(tokens_WLE.shape)}"
            )
        if tokens_WLE.dtype != np.int64:
            raise TypeError(f"counts must be int64, not {tokens_WLE.dtype}")
        if len(self.layer_ids) != tokens_WLE.shape[1] or list(self.layer_ids) != sorted(set(self.layer_ids)):
            raise BadInput(
                f"{self.source}: {tokens_WLE.shape[1]} layer rows need as many distinct, ascending layer ids; got {list(self.layer_ids)}"
            )
        if (tokens_WLE < 0).any():
            window, layer, expert = np.argwhere(tokens_WLE < 0)[0]
            raise BadInput(
                f"{self.source}: window {window}, layer {self.layer_ids[layer]}, expert {expert} has the count {tokens_WLE[window, layer, expert]}; "
                "counts cannot be negative (an int32 counter that wrapped around looks like this: record shorter windows)"
            )
        if self.window_names and len(self.window_names) != len(tokens_WLE):
            raise BadInput(
                f"{self.source}: {len(tokens_WLE)} windows need as many names; got {len(self.window_names)}"
            )
        if self.domains and len(self.domains) != len(tokens_WLE):
            raise ValueError(f"{len(tokens_WLE)} windows need as many domains; got {len(self.domains)}")
        if (
            self.trace is not None
            and (len(self.trace.experts_LTK), len(self.trace.sequence_lengths)) != tokens_WLE.shape[:2][::-1]
        ):
            raise ValueError("a trace has the profile's layers as rows and one sequence a window")
        tokens_WLE.flags.writeable = False

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
        """Each layer's load as shares that sum to 1. A layer without any assignment has no signal and gets even shares."""
        total_LE = self.total_LE.astype(np.float64)
        sums_L1 = total_LE.sum(axis=1, keepdims=True)
        return np.where(sums_L1 > 0, total_LE / np.where(sums_L1 > 0, sums_L1, 1), 1 / self.experts)

    def with_windows(self, chosen: "list[int]") -> "LoadProfile":
        """The same profile, these windows only, without its trace's other sequences (a window of a trace is one sequence)."""
        trace = self.trace
        if trace is not None:
            starts = np.concatenate([[0], np.cumsum(trace.sequence_lengths)])
            tokens = np.concatenate([np.arange(starts[w], starts[w + 1]) for w in chosen])
            trace = Trace(
                trace.experts_LTK[:, tokens].copy(), tuple(trace.sequence_lengths[w] for w in chosen)
            )
        names, domains = (
            tuple(labels[w] for w in chosen) if labels else () for labels in (self.window_names, self.domains)
        )
        return replace(
            self, tokens_WLE=self.tokens_WLE[chosen].copy(), window_names=names, domains=domains, trace=trace
        )
