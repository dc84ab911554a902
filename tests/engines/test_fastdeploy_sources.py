"""FastDeploy's own balancer, given our table over our relay, builds the plan; files: engine_sources."""

import json
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.engines import find_engine
from planner.engines.fastdeploy import served
from planner.load import LoadProfile
from planner.model import find_model
from tests.engines.engine_sources import held, loaded, needs, source
from tests.planner.engines.examples import TINY, machine, question, random_placement

pytestmark = needs("FastDeploy", "fastdeploy/eplb.py", "fastdeploy/manager.py")

ERNIE = replace(TINY, architecture="ernie4_5_moe")


def made_by_engine(table: list[list[int]], slots: int, gpus: int) -> Any:
    engine = loaded("fastdeploy_eplb", source("fastdeploy/eplb.py"))
    counts = np.array(table, dtype=np.int32)
    # as RedundantExpertManager.calculate_expert_rank_table calls it
    return engine.rebalance_experts(counts, slots, counts.shape[1], max(gpus // 8, 1), gpus, "")[0]


@pytest.mark.parametrize(
    ("nodes", "redundant", "exact"),
    [((8,), 0, 3), ((8,), 8, 3), ((8,), 24, 3), ((8, 8), 0, 3), ((8, 8), 32, 0)],
)
def test_the_engine_builds_the_plan(nodes: tuple[int, ...], redundant: int, exact: int) -> None:
    """All MoE layers up to 15 ranks, or without replicas; and what we say it makes is what it makes."""
    gpus = sum(nodes)
    placement = random_placement(ERNIE, gpus, redundant)
    draw = np.random.default_rng(1)
    counts = draw.integers(1, 1000, (1, len(ERNIE.placed_layer_ids), ERNIE.experts))
    problem = question(ERNIE, machine(*nodes), redundant)
    problem = replace(problem, load=LoadProfile(counts, ERNIE.placed_layer_ids, "made for tests"))
    emission = find_engine("fastdeploy").emit(placement, problem, "m")
    made = made_by_engine(json.loads(emission.files["expert_stats.json"]), problem.slots, gpus)
    told = served(placement, problem)
    found = 0
    for row, layer in enumerate(ERNIE.moe_layer_ids):
        assert held(made[layer], gpus) == held(told.expert_LP[row], gpus)
        found += held(made[layer], gpus) == held(placement.expert_LP[row], gpus)
    assert found == exact


def test_ernie_sized_layers_are_built(tmp_path: Path) -> None:
    """All layers of a real model on a node."""
    model = find_model("ernie-4.5-21b")
    placement, problem = random_placement(model, 8, 8), question(model, machine(8), 8)
    emission = find_engine("fastdeploy").emit(placement, problem, "m")
    made = made_by_engine(json.loads(emission.files["expert_stats.json"]), problem.slots, 8)
    for row, layer in enumerate(model.moe_layer_ids):
        assert held(made[layer], 8) == held(placement.expert_LP[row], 8)


def test_the_relay_gives_the_manager_the_plan_s_counts(tmp_path: Path) -> None:
    """rearrange.py against servers that answer as the engine's do, and the manager's own two loops."""
    manager = loaded("fastdeploy_manager", source("fastdeploy/manager.py"))
    placement, problem = random_placement(ERNIE, 8, 8), question(ERNIE, machine(8), 8)
    files = find_engine("fastdeploy").emit(placement, problem, "m").files
    for name in ("expert_stats.json", "rearrange.py"):
        (tmp_path / name).write_text(files[name])
    table = json.loads(files["expert_stats.json"])
    received: list[list[list[int]]] = []
    state = {"status": "FREE"}

    def rearrange(ips: list[str]) -> None:
        state["status"] = "DOING"
        found = manager.Manager(len(table), len(table[0]), ips, "u", "p")
        assert found.allgather_expert_token_stats()
        assert found.broadcast_expert_token_stats()
        state["status"] = "LOAD_SUCC"

    class Rank(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            value = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert (value["user"], value["passwd"]) == ("u", "p")
            answer: dict[str, object] = {"code": 0, "msg": "ok"}
            if self.path == "/check_redundant":
                answer["status"] = state["status"]
            elif self.path == "/get_per_expert_tokens_stats":
                answer["data"] = [[[7] * len(table[0])] * len(table)]  # its own load, which must not count
            elif value.get("action", "") == "recv_expert_weight":
                received.append(value["data"])
            else:
                threading.Thread(target=rearrange, args=(value["ips"],), daemon=True).start()
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Rank) for _ in range(8)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    addresses = [f"127.0.0.1:{server.server_port}" for server in servers]
    run = subprocess.run(
        [sys.executable, str(tmp_path / "rearrange.py"), *addresses],
        env={"FD_EPLB_USER": "u", "FD_EPLB_PASSWORD": "p", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    for server in servers:
        server.shutdown()
        server.server_close()
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "LOAD_SUCC"
    assert received == [table] * 8
