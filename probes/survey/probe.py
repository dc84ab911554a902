"""Look at the machine at hand, or merge what several hosts recorded.

To look is to discover, record, measure, and assemble.
"""

import os
import socket
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from planner.base import BadInput
from probes.base.facts import Facts, MeasureFacts
from probes.collective.job import Sweep
from probes.collective.run import measure
from probes.host.look import probe_host
from probes.importers.registry import read_file
from probes.machine.hints import Hints
from probes.measure.file import Measurement, write_measurement
from probes.ranks.early import taking_part
from probes.ranks.launch import Launch, adopt, launch_of
from probes.record.anonymise import anonymise, anonymise_measured
from probes.record.file import make_record, write_record
from probes.record.merge import merge
from probes.survey.found import Found
from probes.survey.from_files import find
from probes.survey.subnet import probe_subnet

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Look:
    """How to look. `folder` None: nothing is recorded, unless a launcher started several."""

    sweep: Sweep
    folder: Path | None = None
    measure: bool = False
    nccl_tests: Path | None = None
    ranks: int | None = None  # None: one for each GPU here
    device: str = "auto"
    timeout_seconds: float = 600.0
    subnet: bool = False
    anonymise: bool = False
    anonymise_key: str = ""
    nvml_timeout: float = 20.0
    sysfs_root: Path = Path("/sys")


def probe_here(look: Look, hints: Hints, progress: Progress | None = None) -> tuple[Found | None, list[Path]]:
    """What this host is made of, and the files written.

    None where a launcher started several processes: their files are merged later.

    BadInput where there is no GPU to see. With `measure`, every process of the launch takes part; rank 0
    writes what was measured.
    """
    launch = adopt(os.environ) if look.measure else launch_of(os.environ)
    with taking_part() if look.measure else nullcontext():
        return _probed(look, hints, launch, progress)


def _probed(
    look: Look, hints: Hints, launch: Launch | None, progress: Progress | None
) -> tuple[Found | None, list[Path]]:
    folder = look.folder or (Path() if launch else None)
    taken = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    facts: list[Facts] = []
    written: list[Path] = []
    if launch is None or launch.speaks:
        if progress:
            progress(0.0, "asking NVML and sysfs")
        record = make_record(probe_host(look.sysfs_root, look.nvml_timeout), taken, launch)
        record = anonymise(record, look.anonymise_key) if look.anonymise else record
        facts.append(record.host)
        written += [write_record(record, folder)] if folder else []
        facts += [probe_subnet()] if look.subnet and launch is None else []  # of a launch, the merge asks
    if look.measure:
        if progress:
            progress(0.3, "measuring all-to-all")
        rank, measured = _measured(look)
        facts += measured
        if rank == 0 and folder:
            path = folder / f"moeplan-measure-{_host(look, launch)}.json"
            written.append(write_measurement(Measurement(taken, measured), path))
    return (None if launch else find(facts, hints)), written


def _measured(look: Look) -> tuple[int, tuple[MeasureFacts, ...]]:
    """The rank of this process, and what was measured."""
    rank, measured = measure(
        look.sweep,
        ranks=look.ranks,
        nccl_tests=look.nccl_tests,
        device=look.device,
        timeout_seconds=look.timeout_seconds,
    )
    if look.anonymise:
        measured = tuple(anonymise_measured(one, look.anonymise_key) for one in measured)
    return rank, measured


def merge_files(files: Sequence[Path], hints: Hints, *, subnet: bool = False) -> Found:
    """The cluster of several hosts' probe files.

    Measurements and other tools' files among them are taken too, and the live subnet if asked for.
    """
    if not files:
        raise BadInput("--merge: give the files that probes of the hosts have written")
    probes = [path for path in files if path.name.startswith("moeplan-probe-")]
    others = [path for path in files if path not in probes]
    facts: list[Facts] = list(merge(probes)) if probes else []
    facts += [fact for path in others for fact in read_file(path)]
    facts += [probe_subnet()] if subnet else []
    return find(facts, hints)


def _host(look: Look, launch: Launch | None) -> str:
    """Part of a file's name; an anonymised measurement names the launch, not the host."""
    return (launch.run if launch and launch.run else "here") if look.anonymise else socket.gethostname()
