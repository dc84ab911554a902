"""The commands that make a topology: of what other tools wrote, and of the machine at hand."""

from pathlib import Path
from typing import Any

import click

from planner.base import BadInput
from planner.cli.console import progress_bar, say, tell
from planner.cli.options import FILE, device_option, json_option, option, options

HINTS = ("gpu", "gpu_model", "nic", "nic_of", "nodes", "oversubscription", "nvlink_domain_nodes", "cpu_rates")
hint_options = options(  # what a person adds to sources that do not say everything
    option("-o", "--output", type=FILE, help="Topology file to write, .json; `solve --topology` reads it."),
    option(
        "--cpu-rates",
        is_flag=True,
        help="Take rates measured between CPU processes (gloo) for the machine's.",
    ),
    option("--nvlink-domain-nodes", type=int, help="Hosts in one NVLink domain: 18 in an NVL72 rack."),
    option(
        "--oversubscription",
        type=float,
        help="Down / up bandwidth of a leaf switch where no source tells it.",
    ),
    option("--nodes", type=int, help="How many hosts there are like the one described."),
    option(
        "--nic-of",
        multiple=True,
        metavar="GPU=NIC",
        help="NIC that a GPU of each host uses, where that is not the nearest: 3=mlx5_0. May be repeated.",
    ),
    option("--nic", help="Rate of each NIC where no source tells it: 400G."),
    option("--gpu-model", type=FILE, metavar="FILE", help="GPU models of your own, .yaml or .json."),
    option("--gpu", help="GPU model where no source names it: H100-SXM, A100-SXM-80GB, ..."),
)
measure_options = options(
    option(
        "--measure",
        is_flag=True,
        help="Also measure all-to-all bandwidth: nccl-tests where it is found, else torch.distributed.",
    ),
    option(
        "--emulate",
        metavar="TOPOLOGY",
        help="With --measure: measure this preset or file, emulated here, as if its links were unknown.",
    ),
    option("--smallest", default="8 MiB", metavar="SIZE", help="First size of the all-to-all, per GPU."),
    option("--largest", default="256 MiB", metavar="SIZE", help="Last size; each is twice the one before."),
    option("--nccl-tests", type=FILE, help="Folder of alltoall_perf."),
    option("--ranks", type=int, help="Processes to measure between; one for each GPU where it is not given."),
    device_option("What to measure between."),
    option(
        "--timeout",
        "timeout_seconds",
        type=float,
        default=600.0,
        help="Seconds that the whole measurement may take.",
    ),
)
look_options = options(
    option(
        "--subnet",
        is_flag=True,
        help="Also ask ibnetdiscover for the switches between hosts (as root, on one host).",
    ),
    option("--anonymise", is_flag=True, help="Replace host names, GUIDs, UUIDs and serials by pseudonyms."),
    option(
        "--anonymise-key",
        default="",
        show_default=False,
        help="Secret that makes the pseudonyms unguessable; the same key gives the same ones.",
    ),
    option("--nvml-timeout", type=float, default=20.0, help="Seconds that a GPU may take to answer."),
    option("--sysfs-root", type=FILE, default=Path("/sys")),
)


@click.command("import")
@click.argument("files", metavar="[preset:NAME[:NODES]] FILE...", nargs=-1, required=True, type=FILE)
@hint_options
@json_option
def import_command(files: tuple[Path, ...], as_json: bool, output: Path | None, **hints: Any) -> None:
    """Make a topology of what you already have: `nvidia-smi topo -m`, NCCL XML, nccl-tests, ibnetdiscover,
    Slurm, ... Beside a preset or a topology file: put a measurement, or a calibration, onto that machine.

    Example: moeplan import preset:hgx-h100:2 alltoall.log -o cluster.json

    Example: moeplan import topo.txt ibstat.txt --gpu H100-SXM --nodes 4 -o cluster.json
    """
    from probes.survey.from_files import import_files

    _report(import_files(files, _hints(hints)), output, as_json)


@click.command()
@click.argument("files", metavar="[FILE...]", nargs=-1, type=FILE)
@option(
    "--merge",
    is_flag=True,
    help="Merge the FILEs that probes of several hosts have written, instead of probing.",
)
@option(
    "--record",
    "folder",
    type=FILE,
    help="Folder for this host's probe file. [default under srun, torchrun, mpirun: .]",
)
@measure_options
@look_options
@hint_options
@json_option
def probe(
    files: tuple[Path, ...], merge: bool, as_json: bool, output: Path | None, subnet: bool, **flags: Any
) -> None:
    """Look at this machine: GPUs, NVLink domains, NICs, and with --measure their bandwidth. Several hosts:
    start it on each, then --merge.

    Example: srun -N 4 moeplan probe --record /shared/probes

    Example: moeplan probe --merge /shared/probes/*.json -o cluster.json

    Example: moeplan probe --measure --emulate lab.yaml -o probed.json
    """
    from probes.survey.probe import merge_files, probe_here

    emulate = flags.pop("emulate")
    if emulate is not None:
        _report(_probe_emulated(emulate, files, merge=merge, **flags), output, as_json)
        return

    if files and not merge:
        other = "to read other tools' output use moeplan import"
        raise BadInput(f"{files[0]}: files are given with --merge; {other}")
    hints = _hints({name: flags.pop(name) for name in HINTS})
    if merge:
        _report(merge_files(files, hints, subnet=subnet), output, as_json)
        return
    with progress_bar("probe") as progress:
        found, written = probe_here(_look(subnet=subnet, **flags), hints, progress)
    if found is not None:
        _report(found, output, as_json)
    elif output:
        merge_them = "the probe files are written: merge them with moeplan probe --merge"
        raise BadInput(f"-o {output}: one of several hosts is no machine yet; {merge_them}")
    if written and not as_json:
        tell("\n".join(f"wrote {path}" for path in written))


def _probe_emulated(
    emulate: str, files: tuple[Path, ...], *, merge: bool, measure: bool, timeout_seconds: float, **_: Any
) -> Any:
    from planner.topology import read_topology
    from probes.survey.emulated import probe_emulated

    if merge or files or not measure:
        together = "is measured, and nothing else is looked at: say --measure --emulate TOPOLOGY alone"
        raise BadInput(f"--emulate {emulate}: an emulated cluster {together}")
    topology = read_topology(emulate)
    with progress_bar("probe") as progress:
        return probe_emulated(topology, timeout_seconds, progress)


def _look(smallest: str, largest: str, **flags: Any) -> Any:
    from planner.base import parse_bytes
    from probes.collective.job import Sweep
    from probes.survey.probe import Look

    return Look(sweep=Sweep(int(parse_bytes(smallest)), int(parse_bytes(largest))), **flags)


def _hints(flags: dict[str, Any]) -> Any:
    from probes.machine.hints import Hints
    from probes.machine.own_gpus import read_gpu_models
    from probes.survey.from_files import parse_nic, parse_nic_of

    nic, nic_of, models = (flags.pop(name) for name in ("nic", "nic_of", "gpu_model"))
    own = read_gpu_models(models) if models else ()
    return Hints(nic_bytes_per_s=parse_nic(nic), nic_of=parse_nic_of(nic_of), own_gpus=own, **flags)


def _report(found: Any, output: Path | None, as_json: bool) -> None:
    """Show what was found; the topology goes to the file, or the command says why there is none."""
    from planner.base import write_json
    from planner.report.machine import found_report

    if output:
        write_json(output, found.topology.to_dict())
    say(found_report(found), found.to_dict(), as_json)
    if output and not as_json:
        tell(f"wrote {output}")
