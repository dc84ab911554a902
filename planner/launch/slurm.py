"""A Slurm batch file.

Slurm sorts the hosts of an allocation by its own order, whatever --nodelist says; a host file and the
arbitrary distribution give each task its host (seen with Slurm 22.05: SLURM_PROCID follows the file,
SLURM_NODEID does not).
"""

from collections.abc import Mapping
from dataclasses import replace

from planner.launch import shell
from planner.launch.job import SCRIPT, Job, Launch
from planner.launch.network import network_notes
from planner.launch.validating import VALIDATE
from planner.plan import EMITTED_PLAN

NAME = "slurm"
TITLE = "Slurm batch file"
ACCELERATORS = ("nvidia",)
BATCH = "job.sbatch"
VALIDATE_BATCH = "validate.sbatch"
LIVE_SECONDS = 120


def write(job: Job) -> Launch:
    notes = [f"submit from the folder of the files, which every node must reach: sbatch {BATCH}"]
    if job.nodes > 1 and not job.hosts:
        notes.append(
            "the plan names no hosts: Slurm chooses them, in its own order; "
            "give --hosts to fix which host is which node of the plan"
        )
    if _some_left_out(job):
        notes.append(
            "WARNING: GPUs are left out by their numbers on the hosts: ask for all GPUs of these nodes "
            "(sbatch --gpus-per-node), for Slurm numbers those that it gives anew"
        )
    files = {SCRIPT: shell.script_text(job), BATCH: batch_text(job)}
    return Launch(files, BATCH, (*notes, *network_notes(job)))


def validate(job: Job) -> Mapping[str, str]:
    """The batch file that starts `moeplan validate` on the same hosts, by torchrun on each."""
    commands = tuple(replace(command, per_gpu=False) for command in job.commands)
    checked = replace(job, commands=commands, title=f"moeplan validate of {job.title}")
    batch = batch_text(checked, VALIDATE, name="validate")
    return {**shell.validate(job), VALIDATE_BATCH: batch}


def _some_left_out(job: Job) -> bool:
    return any(node.devices for node in job.topology.nodes)


def batch_text(job: Job, script: str = SCRIPT, name: str = "") -> str:
    """The batch file of one of the scripts in its folder."""
    parts = [_head(job, name), _host_files(job), [""], _check(job), [""], _start(job, script), [""]]
    return "\n".join(line for part in parts for line in part)


def _head(job: Job, name: str) -> list[str]:
    counts = job.gpus_of_nodes
    alike = len(set(counts)) == 1 and not _some_left_out(job)
    return [
        "#!/usr/bin/env bash",
        f"# {job.title}. Written by moeplan; submit it from this folder.",
        f"#SBATCH --job-name={'-'.join(filter(None, ('moeplan', name, job.label)))}",
        f"#SBATCH --nodes={job.nodes}",
        *([f"#SBATCH --nodelist={','.join(job.hosts)}"] if job.hosts else []),
        *([f"#SBATCH --gpus-per-node={counts[0]}"] if alike else []),
        "#SBATCH --exclusive",
        "#SBATCH --output=moeplan-%j.log",
        "set -euo pipefail",
        'export PLAN_DIR="${PLAN_DIR:-$SLURM_SUBMIT_DIR}"',
    ]


def _host_files(job: Job) -> list[str]:
    """Two files: the hosts a node each, and a rank each."""
    folder = 'FOLDER="$(mktemp -d "$PLAN_DIR/.moeplan-$SLURM_JOB_ID-XXXXXX")"'
    ranks = 'for ((gpu = 0; gpu < GPUS[node]; gpu++)); do echo "${HOSTS[node]}" >> "$FOLDER/ranks"; done'
    return [
        *_hosts(job),
        'export HEAD_ADDRESS="${HOSTS[0]}"',
        f"{folder}  # on a file system that all nodes share",
        "trap 'rm -rf -- \"$FOLDER\"' EXIT",
        f"GPUS=({' '.join(map(str, job.gpus_of_nodes))})  # of each node, in the plan's order",
        'for node in "${!HOSTS[@]}"; do',
        '    echo "${HOSTS[node]}" >> "$FOLDER/nodes"',
        f"    {ranks}",
        "done",
    ]


def _check(job: Job) -> list[str]:
    """The check before serving, by every rank."""
    tasks = f"--nodes={job.nodes} --ntasks={sum(job.gpus_of_nodes)}"
    srun = f"srun {tasks} --distribution=arbitrary --overcommit --kill-on-bad-exit=1"
    hosts = '--hosts "$(IFS=,; echo "${HOSTS[*]}")"'
    live = f'moeplan check --live "$PLAN_DIR/{EMITTED_PLAN}" {hosts}'
    return [
        "# Before anything is served: does every rank sit where the plan has it?",
        "if command -v moeplan > /dev/null; then",
        f'    SLURM_HOSTFILE="$FOLDER/ranks" {srun} \\',
        f'        {live} --gather "$FOLDER" --timeout {LIVE_SECONDS}',
        "else",
        '    echo "moeplan is not installed on $(hostname): the start-up check is left out" >&2',
        "fi",
    ]


def _start(job: Job, script: str) -> list[str]:
    """A task for each GPU where MPI starts the ranks, else one for each node, which is told its number."""
    file, mpi, rank, tasks = "nodes", "", 'NODE_RANK="$SLURM_PROCID" ', job.nodes
    if job.per_gpu:
        file, mpi, rank, tasks = "ranks", " --mpi=pmix", "", sum(job.gpus_of_nodes)
    srun = f"srun{mpi} --nodes={job.nodes} --ntasks={tasks}"
    return [
        f'export SLURM_HOSTFILE="$FOLDER/{file}"',
        f"{srun} --distribution=arbitrary --cpu-bind=none --kill-on-bad-exit=1 \\",
        f'    bash -c \'{rank}exec bash "$PLAN_DIR/{script}" "$@"\' moeplan "$@"',
    ]


def _hosts(job: Job) -> list[str]:
    if job.hosts:
        return [f"HOSTS=({' '.join(job.hosts)})  # the plan's node order"]
    listed = 'mapfile -t HOSTS < <(scontrol show hostnames "$SLURM_JOB_NODELIST")'
    other = f'echo "the plan has {job.nodes} nodes, Slurm gave ${{#HOSTS[@]}}" >&2'
    return [
        f"{listed}  # Slurm's own order: the plan names no hosts",
        f'[ "${{#HOSTS[@]}}" -eq {job.nodes} ] || {{ {other}; exit 2; }}',
    ]
