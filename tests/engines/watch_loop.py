"""A closed loop: vLLM's own balancer serves by a plan, its plugin tells windows, `watch` hands over maps.

Loads are those of six domains that OLMoE was recorded on (three of its layers, ../shared/data/loads): windows
are drawn from their shares.
"""

import json
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.cost import cost
from planner.engines.common.vllm_plugin import MAP_PATH
from planner.load import LoadProfile
from planner.maps import emit_plan
from planner.model import ModelSpec, find_model
from planner.placement import Placement
from planner.plan import Plan, read_plan, write_plan
from planner.planning import solve
from planner.problem import Problem
from planner.solvers import Search, Workforce, find_placement
from planner.watching import Asked, Round, Running, Terms, Watch
from probes.watching.place import Place
from probes.watching.sources.vllm import source
from probes.watching.swaps.vllm import MapFile
from tests.places import SHARED

RECORDED = SHARED / "data/loads/olmoe-1b-7b_ai2_counts.npz"
DOMAINS = ("arxiv", "book", "c4", "github", "tulu", "wikipedia")
LAYERS, TOKENS = (0, 7, 15), 100_000
# Its architecture is one for which vLLM has a balancer; for OLMoE itself it has none.
MODEL: ModelSpec = replace(find_model("olmoe"), moe_layer_ids=LAYERS, architecture="qwen3_moe")
ASKED = Asked(most_moves="10%", terms=Terms(least_gain=0.001))

Counts = npt.NDArray[np.int64]


@cache
def recorded(domain: str) -> LoadProfile:
    with np.load(RECORDED) as arrays:
        counts_LE = arrays[f"expert_counts__{domain}"].astype(np.int64)
    return LoadProfile(counts_LE[None], LAYERS, domain)


@cache
def window(domain: str, draw: int) -> Counts:
    """Tokens of a window of the domain."""
    found = np.random.default_rng([draw, DOMAINS.index(domain)]).multinomial(
        TOKENS * MODEL.top_k, recorded(domain).shares_LE
    )
    return np.asarray(np.minimum(found, TOKENS), dtype=np.int64)


@cache
def first_plan() -> Plan:
    return solve(MODEL, "hgx-h100:2x2", recorded(DOMAINS[0]), redundant=16, engine="vllm", phase="prefill")


@cache
def oracle(domain: str) -> Placement:
    """The best that is found for the recorded counts themselves, with any number of moves."""
    return find_placement(posed(domain), Search(workforce=Workforce(1))).placement


def posed(domain: str) -> Problem:
    return replace(first_plan().problem, load=recorded(domain))


def seconds(rows: list[list[int]], domain: str) -> float:
    """A step's MoE layers by the map in force, on the recorded counts."""
    return cost(posed(domain), Placement(np.array(rows), LAYERS, 4)).total_seconds


class Serving:
    """vLLM's balancer with the plugin of a plan, in a process of its own; and watch beside it."""

    def __init__(self, python: str, folder: Path) -> None:
        self.folder, self.plan_file = folder, folder / "plan.json"
        write_plan(first_plan(), self.plan_file)
        for name, text in emit_plan(self.plan_file, "vllm", plugin=True, trust=True).files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        self.map_file, self.windows = folder / "plan_map.json", folder / "windows"
        self.map_file.write_text((folder / MAP_PATH).read_text())
        self.drawn = 0
        self._known: list[list[list[int]]] = []
        self.watch: Watch | None = None
        oracle_file = Path(__file__).with_name("vllm_watch_oracle.py")
        with (folder / "oracle.log").open("w") as log:
            self._run = subprocess.Popen(
                [python, str(oracle_file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                text=True,
            )  # fmt: skip
        package = str((folder / MAP_PATH).parent)
        sizes = {"experts": MODEL.experts, "slots": MODEL.experts + 16, "layers": len(LAYERS), "keep": 16}
        self._tell({"package": package, "folder": str(folder), **sizes})
        while self._line() != "ready":
            pass

    def serve(self, domain: str) -> dict[str, Any]:
        """A window of the domain is served; what is in force after it."""
        self.drawn += 1
        self._tell({"counts": window(domain, self.drawn).tolist()})
        answer: dict[str, Any] = json.loads(self._line())
        return answer

    def checked(self, domain: str) -> list[list[int]]:
        """A window is served; a whole map that was written is in force on every rank, with its weights."""
        self._know()
        found = self.serve(domain)
        assert (found["same"], found["follow"]) == (True, True)
        rows: list[list[int]] = found["rows"]
        assert rows in self._known
        return rows

    def _know(self) -> None:
        """The maps that have been written, whole ones alone."""
        for path in (self.plan_file, self.folder / "next.json"):
            if path.exists():
                rows = read_plan(path).placement.expert_LP.tolist()
                if rows not in self._known:
                    self._known.append(rows)

    def put_clock(self, by_seconds: float) -> None:
        self._tell({"clock": by_seconds})

    def round(self) -> Round:
        if self.watch is None:
            running = Running(self.plan_file, self.folder / "next.json")
            told = source(Place(folder=self.windows), MODEL)
            self.watch = Watch(running, self.folder / "watch.db", told, ASKED, MapFile(self.map_file), 16)
        return self.watch.round()

    def stop_watch(self) -> None:
        if self.watch is not None:
            self.watch.close()
        self.watch = None

    def whole(self) -> None:
        """Every file that a plan or a map is in is a whole one."""
        for path in (self.plan_file, self.folder / "next.json"):
            if path.exists():
                read_plan(path)
        json.loads(self.map_file.read_text())

    def close(self) -> None:
        self.stop_watch()
        assert self._run.stdin is not None
        self._run.stdin.close()
        self._run.wait(60)
        assert self._run.stdout is not None
        self._run.stdout.close()

    def _tell(self, value: dict[str, Any]) -> None:
        assert self._run.stdin is not None
        self._run.stdin.write(f"{json.dumps(value)}\n")
        self._run.stdin.flush()

    def _line(self) -> str:
        assert self._run.stdout is not None
        line = self._run.stdout.readline().strip()
        assert line, (self.folder / "oracle.log").read_text()[-2000:]
        return line
