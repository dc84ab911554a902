"""The program that each rank of a validation run executes on one machine: `python -m probes.dispatch.worker FOLDER` (`probes.ranks.start` starts it)."""

import sys
from pathlib import Path

from probes.dispatch.job import load
from probes.dispatch.run import party, work_text
from probes.ranks.worker import Task, serve


def _task(directory: Path) -> Task:
    job = load(directory / "job.npz")
    return party(job), work_text(job)


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1]), _task))
