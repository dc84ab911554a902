"""How many windows a second `watch` takes in, and how much memory it has: run as a program, it prints both.

1,000 windows of 58 layers and 256 experts as vLLM's plugin writes them, heard by the source and kept by the
state file; then one look, the re-plan included.
"""

import os
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from planner.model import ModelSpec, find_model
from planner.plan import write_plan
from planner.planning import solve
from planner.watching import Asked, Running, Watch
from probes.watching.place import Place
from probes.watching.sources.vllm import source

WINDOWS, ASSIGNMENTS = 1000, 8_000_000  # of a layer in a window: 1,000 steps of 1,000 tokens


def main() -> None:
    model = replace(find_model("deepseek-v3"), draft_layer_ids=())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.fork() == 0:  # its memory is not ours
            _write(folder, model)
            os._exit(0)
        os.wait()
        asked = Asked()
        running = Running(folder / "plan.json", folder / "next.json")
        told = source(Place(folder=folder / "load_windows"), running.saved.problem.model)
        watched = Watch(running, folder / "watch.db", told, asked)
        began, busy = time.perf_counter(), time.process_time()
        heard = watched._hear()[0]  # noqa: SLF001 - the part of a round that is measured by itself
        seconds, busy = time.perf_counter() - began, time.process_time() - busy
        hearing = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        began = time.perf_counter()
        watched.round()
        looking = time.perf_counter() - began
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        watched.close()
        size = (folder / "watch.db").stat().st_size / 2**20
    print(f"{heard} windows of 58 x 256: {heard / seconds:,.0f} a second ({heard / busy:,.0f} a CPU second)")
    print(f"peak memory {hearing:.0f} MB while it hears, {most:.0f} MB with a re-plan of {looking:.1f} s")
    print(f"state file {size:.1f} MB")


def _write(folder: Path, model: ModelSpec) -> None:
    plan = solve(model, "hgx-h100:4", redundant=32, engine="vllm", method="greedy")
    write_plan(plan, folder / "plan.json")
    (folder / "load_windows").mkdir()
    draw = np.random.default_rng(0)
    shares = draw.dirichlet(np.full(256, 2.0), 58)
    for number in range(WINDOWS):
        counts = np.minimum(draw.multinomial(ASSIGNMENTS, shares), ASSIGNMENTS // 8)
        np.savez(
            folder / "load_windows" / f"window-moe-{number:020d}-000000.npz",
            counts=counts.astype(np.int64),
            layer_ids=np.arange(3, 61),
            map_sha256=np.asarray("0" * 64),
        )


if __name__ == "__main__":
    main()
