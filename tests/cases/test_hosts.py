"""C22: ranks start on the hosts that the plan has them on."""

from dataclasses import replace
from pathlib import Path

from planner.base import write_json
from planner.topology import compare, planned_seats
from tests.cases.asked import Made, run, solved
from tests.planner.engines.examples import machine

HOSTS = ("node7", "node66", "node8", "node70")  # a launcher that sorts by name starts node66 first


def test_c22_the_launch_pins_the_hosts(model: Made, tmp_path: Path) -> None:
    """The job says which host is which node, and hands Slurm that order as a file."""
    write_json(tmp_path / "machine.json", machine(2, 2, 2, 2).to_dict())
    question = f"--model {model(16)} --topology {tmp_path}/machine.json --redundant 0"
    plan = solved(tmp_path / "plan.json", question)
    launcher = f"--launcher slurm --hosts {','.join(HOSTS)}"
    assert run(f"emit {plan} --engine sglang {launcher} -o {tmp_path}/out").exit_code == 0
    job = (tmp_path / "out/job.sbatch").read_text()
    assert "HOSTS=(node7 node66 node8 node70)" in job
    assert job.count("--distribution=arbitrary") == job.count("SLURM_HOSTFILE=") == 2
    launch = (tmp_path / "out/launch.sh").read_text()
    assert all(f"node {node} of the plan is {host}\n" in launch for node, host in enumerate(HOSTS))


def test_c22_ranks_on_sorted_hosts_are_caught() -> None:
    """The check before serving names the first rank that is elsewhere, and both hosts."""
    topology = machine(2, 2, 2, 2)
    started = planned_seats(topology, tuple(sorted(HOSTS)))
    seen = [replace(seat, node=None, uuid=f"GPU-{seat.rank}") for seat in started]
    first = compare(planned_seats(topology, HOSTS), seen).mismatches[0]
    assert first == "rank 0 runs on host node66, the plan has it on node7"
