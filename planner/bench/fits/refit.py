"""Every chip's constants fitted to what the tables have of it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from planner.bench.fits.compute import NAMES, ComputeFit, ComputeRows, compute_rows, fit_compute
from planner.bench.fits.phase_fit import PhaseFit, fit_phase
from planner.bench.fits.phase_rows import PHASES, Floats, PhaseRows
from planner.bench.fits.tables import Columns, Tables
from planner.topology import gpu_model

GPU_MODELS = {  # the figures that shares are of
    "A100": "A100-SXM-80GB",
    "H100": "H100-SXM-80GB",
    "H200": "H200-SXM-141GB",
    "B200": "B200-SXM-180GB",
    "B300": "B300-SXM-288GB",
    "GB200": "GB200-186GB",
    "GB300": "GB300-278GB",
    "L40S": "L40S-48GB",
    "RTX PRO 6000": "RTX-PRO-6000-96GB",
}
NVLINK_CHIPS = ("A100", "H100", "H200", "B200", "B300", "GB200", "GB300")
SEVERAL_NODES = (
    "H100"  # whose growth with ranks and share of the NIC chips take that were measured on one node
)
PHASE_TABLES: dict[str, Callable[[Tables], Mapping[str, Columns]]] = {
    "slot": lambda tables: tables.low_latency,
    "rank": lambda tables: tables.normal,
    "allgather": lambda tables: tables.collectives,
}


@dataclass(frozen=True)
class Refit:
    """One fit with the rows behind it. `kind`: dispatch or combine and a transport; compute, its kernel and
    the weight dtype.
    """

    kind: tuple[str, ...]
    chip: str
    fit: PhaseFit | ComputeFit
    rows: PhaseRows | ComputeRows

    def seconds_N(self, rows: PhaseRows | ComputeRows) -> Floats:
        """What this fit makes of other rows of its kind."""
        if isinstance(self.fit, PhaseFit):
            assert isinstance(rows, PhaseRows)
            return self.fit.seconds_N(rows)
        assert isinstance(rows, ComputeRows)
        return self.fit.seconds_N(rows)


def refit(tables: Tables) -> Iterator[Refit]:
    """All that the tables allow, in a fixed order."""
    for direction in ("dispatch", "combine"):
        for transport in PHASE_TABLES:
            yield from _phases(tables, direction, transport)
    for kernel, found in (("masked", tables.masked), ("fused", tables.fused)):
        for dtype in NAMES:
            for chip, columns in found.items():
                gpu = gpu_model(GPU_MODELS[chip])
                rows = compute_rows(columns, dtype, gpu, masked=kernel == "masked")
                if rows is not None:
                    yield Refit(("compute", kernel, dtype), chip, fit_compute(rows), rows)


def _phases(tables: Tables, direction: str, transport: str) -> Iterator[Refit]:
    found = PHASE_TABLES[transport](tables)
    several: PhaseFit | None = None
    for chip in (SEVERAL_NODES, *(chip for chip in NVLINK_CHIPS if chip != SEVERAL_NODES)):
        if chip not in found:
            continue
        rows = PHASES[transport](found[chip], chip, direction)
        fit = fit_phase(rows, several)
        if chip == SEVERAL_NODES and transport == "slot":
            several = fit
        yield Refit((direction, transport), chip, fit, rows)
