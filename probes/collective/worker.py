"""The program that each rank of a measurement executes on one machine: `python -m probes.collective.worker FOLDER` (`probes.ranks.start` starts it)."""

import sys
from pathlib import Path

from probes.collective.job import load
from probes.collective.run import party, work_text
from probes.ranks.worker import Task, serve


def _task(directory: Path) -> Task:
    job = load(directory / "job.json")
    return party(job), work_text(job)


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1]), _task))
