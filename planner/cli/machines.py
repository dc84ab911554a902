"""Commands about machines: presets, files, what other tools wrote, and the machine at hand."""

from pathlib import Path
from typing import Any

import click

from planner.base import BadInput
from planner.cli.console import FILE, json_option, progress_bar, say


@click.group()
def topology() -> None:
    """Machines that ship with moeplan, and topology files."""


@topology.command("list")
@json_option
def topology_list(as_json: bool) -> None:
    """List the presets.

    Example: moeplan topology list
    """
    from planner.base import topology_names
    from planner.report.topology import preset_rows, preset_table

    rows = preset_rows(topology_names())
    say(preset_table(rows), [row._asdict() for row in rows], as_json)


@topology.command("show")
@click.argument("name", metavar="NAME[:NODES[xGPUS]]|FILE")
@json_option
def topology_show(name: str, as_json: bool) -> None:
    """Draw a machine; print its tiers, bisection bandwidth and oversubscription.

    Example: moeplan topology show hgx-h100:4
    """
    from planner.report.topology import topology_report, topology_summary
    from planner.topology import read_topology

    found = read_topology(name)
    say(topology_report(found), topology_summary(found), as_json)


@topology.command("check")
@click.argument("name", metavar="NAME[:NODES[xGPUS]]|FILE")
@click.option(
    "--model",
    "model_name",
    default="mixtral",
    show_default=True,
    help="Model whose step the costs are predicted for.",
)
@click.option("--phase", type=click.Choice(["decode", "prefill"]), default="decode", show_default=True)
@click.option(
    "--tokens-per-rank",
    type=int,
    help="Tokens each GPU brings to a step. [default: 128 in decode, 4096 in prefill]",
)
@json_option
def topology_check(
    name: str, model_name: str, phase: str, tokens_per_rank: int | None, as_json: bool
) -> None:
    """Say what is wrong with a machine for expert-parallel serving, what it costs a model, and what to do.

    Example: moeplan topology check gcp-a3-high:4 --model deepseek-v3
    """
    from dataclasses import asdict

    from planner.model import find_model
    from planner.planning import PlanRequest, diagnose, find_topology, workload_for
    from planner.report.machine import findings_table

    found, _ = find_topology(name)
    request = PlanRequest(model_name, topology=name, phase=phase, tokens_per_rank=tokens_per_rank)
    spec = find_model(model_name)
    findings = diagnose(found, spec, workload_for(request, spec, found))
    say(findings_table(findings), [asdict(finding) for finding in findings], as_json)


def _hint_options(command: Any) -> Any:
    """What a person adds to sources that do not say everything."""
    for option in (
        click.option("--gpu", help="GPU model where no source names it: H100-SXM, A100-SXM-80GB, ..."),
        click.option("--nic", help="Rate of each NIC where no source tells it: 400G."),
        click.option("--nodes", type=int, help="How many hosts there are like the one described."),
        click.option(
            "--oversubscription",
            type=float,
            help="Down / up bandwidth of a leaf switch where no source tells it.",
        ),
        click.option(
            "--nvlink-domain-nodes", type=int, help="Hosts in one NVLink domain: 18 in an NVL72 rack."
        ),
        click.option(
            "--cpu-rates",
            is_flag=True,
            help="Take rates measured between CPU processes (gloo) for the machine's.",
        ),
        click.option(
            "-o", "--output", type=FILE, help="Topology file to write, .json; `solve --topology` reads it."
        ),
    ):
        command = option(command)
    return command


@click.command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@_hint_options
@json_option
def import_command(files: tuple[Path, ...], as_json: bool, output: Path | None, **hints: Any) -> None:
    """Make a topology of what you already have: `nvidia-smi topo -m`, NCCL XML, nccl-tests, ibnetdiscover, Slurm, ...

    Example: moeplan import topo.txt ibstat.txt --gpu H100-SXM --nodes 4 -o cluster.json
    """
    from probes.survey.from_files import import_files

    _report(import_files(files, _hints(hints)), output, as_json)


@click.command()
@click.argument("files", metavar="[FILE...]", nargs=-1, type=FILE)
@click.option(
    "--merge",
    is_flag=True,
    help="Merge the FILEs that probes of several hosts have written, instead of probing.",
)
@click.option(
    "--record",
    "folder",
    type=FILE,
    help="Folder for this host's probe file. [default under srun, torchrun, mpirun: .]",
)
@click.option(
    "--measure",
    is_flag=True,
    help="Also measure all-to-all bandwidth: nccl-tests where it is found, else torch.distributed.",
)
@click.option(
    "--smallest",
    default="8 MiB",
    show_default=True,
    metavar="SIZE",
    help="First size of the all-to-all, per GPU.",
)
@click.option(
    "--largest",
    default="256 MiB",
    show_default=True,
    metavar="SIZE",
    help="Last size; each is twice the one before.",
)
@click.option("--nccl-tests", type=FILE, help="Folder of alltoall_perf.")
@click.option(
    "--ranks", type=int, help="Processes to measure between; one for each GPU where it is not given."
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="What to measure between.",
)
@click.option(
    "--timeout",
    "timeout_seconds",
    type=float,
    default=600.0,
    show_default=True,
    help="Seconds after which a measurement is ended.",
)
@click.option(
    "--subnet",
    is_flag=True,
    help="Also ask ibnetdiscover for the switches between hosts (as root, on one host).",
)
@click.option("--anonymise", is_flag=True, help="Replace host names, GUIDs, UUIDs and serials by pseudonyms.")
@click.option(
    "--anonymise-key",
    default="",
    help="Secret that makes the pseudonyms unguessable; the same key gives the same ones.",
)
@click.option(
    "--nvml-timeout",
    type=float,
    default=20.0,
    show_default=True,
    help="Seconds that a GPU may take to answer.",
)
@click.option("--sysfs-root", type=FILE, default=Path("/sys"), show_default=True)
@_hint_options
@json_option
def probe(
    files: tuple[Path, ...],
    merge: bool,
    as_json: bool,
    output: Path | None,
    smallest: str,
    largest: str,
    subnet: bool,
    **flags: Any,
) -> None:
    """Look at this machine: GPUs, NVLink domains, NICs, and with --measure their bandwidth. Several hosts: start it on each, then --merge.

    Example: srun -N 4 moeplan probe --record /shared/probes

    Example: moeplan probe --merge /shared/probes/*.json -o cluster.json
    """
    from planner.base import parse_bytes
    from probes.collective.job import Sweep
    from probes.survey.probe import Look, merge_files, probe_here

    if files and not merge:
        raise BadInput(
            f"{files[0]}: files are given with --merge; to read other tools' output use moeplan import"
        )
    hints = _hints(
        {
            name: flags.pop(name)
            for name in ("gpu", "nic", "nodes", "oversubscription", "nvlink_domain_nodes", "cpu_rates")
        }
    )
    if merge:
        _report(merge_files(files, hints, subnet=subnet), output, as_json)
        return
    with progress_bar("probe") as progress:
        sweep = Sweep(int(parse_bytes(smallest)), int(parse_bytes(largest)))
        found, written = probe_here(Look(sweep=sweep, subnet=subnet, **flags), hints, progress)
    if found is not None:
        _report(found, output, as_json)
    elif output:
        raise BadInput(
            f"-o {output}: one of several hosts is no machine yet; the probe files are written: merge them with moeplan probe --merge"
        )
    if written and not as_json:
        click.echo("\n".join(f"wrote {path}" for path in written))


def _hints(flags: dict[str, Any]) -> Any:
    from probes.machine.assemble import Hints
    from probes.survey.from_files import parse_nic

    return Hints(nic_bytes_per_s=parse_nic(flags.pop("nic")), **flags)


def _report(found: Any, output: Path | None, as_json: bool) -> None:
    """Show what was found; the topology goes to the file, or the command says why there is none."""
    from planner.base import write_json
    from planner.report.machine import found_report

    if output:
        write_json(output, found.topology.to_dict())
    say(found_report(found), found.to_dict(), as_json)
    if output and not as_json:
        click.echo(f"wrote {output}")
