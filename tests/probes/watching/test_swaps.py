"""How engines are handed a plan: the map file of vLLM's plugin, FastDeploy's own way of rearranging."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.base import BadInput
from planner.maps import emit_plan
from planner.plan import Origin, judged, write_plan
from probes.watching.place import Place
from probes.watching.registry import find_swapper
from probes.watching.swaps.fastdeploy import Balancer
from probes.watching.swaps.vllm import MapFile
from tests.planner.engines.examples import TINY, machine, question, random_placement
from tests.planner.watching.watched import plan_in
from tests.probes.engine_server import Engine, ok, serving

Files = dict[str, str]


def vllm_files(folder: Path, seed: int) -> Files:
    return dict(emit_plan(plan_in(folder, seed, f"{seed}.json"), "vllm", plugin=True).files)


@pytest.fixture
def swap(tmp_path: Path) -> MapFile:
    """The map of the first plan, where vLLM reads it."""
    files = vllm_files(tmp_path, 0)
    (tmp_path / "plan_map.json").write_text(next(text for name, text in files.items() if "plan_map" in name))
    place = Place(folder=tmp_path / "load_windows")
    found = find_swapper("vllm", place, None)
    assert isinstance(found, MapFile)
    return found


def test_the_map_is_replaced_whole(swap: MapFile, tmp_path: Path) -> None:
    """The one in place is known whatever its spaces; windows name the new one by its digest."""
    first, second = (vllm_files(tmp_path, seed) for seed in (0, 1))
    swap.path.write_text(json.dumps(json.loads(swap.path.read_text()), indent=3))
    assert (swap.in_place(first), swap.in_place(second)) == (True, False)
    assert swap.hand_over(second) is False
    assert (swap.in_place(first), swap.in_place(second)) == (False, True)
    assert swap.digest(second) != swap.digest(first)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(("key", "value"), [("experts", 63), ("slots", 72), ("ranks", 4), ("layer_ids", [1])])
def test_a_map_of_another_shape_is_not_replaced(
    key: str, value: object, swap: MapFile, tmp_path: Path
) -> None:
    text = json.dumps(json.loads(swap.path.read_text()) | {key: value})
    swap.path.write_text(text)
    with pytest.raises(BadInput, match="the map in place is of other"):
        swap.hand_over(vllm_files(tmp_path, 1))
    assert swap.path.read_text() == text


@pytest.mark.parametrize("text", ["[1]", "{", ""])
def test_what_is_no_map_is_not_replaced(text: str, swap: MapFile, tmp_path: Path) -> None:
    swap.path.write_text(text)
    with pytest.raises(BadInput, match=r"plan_map.json"):
        swap.hand_over(vllm_files(tmp_path, 1))
    assert swap.path.read_text() == text


def test_a_full_disk_leaves_the_map(swap: MapFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, before = vllm_files(tmp_path, 1), swap.path.read_text()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(BadInput, match="No space left"):
        swap.hand_over(files)
    assert swap.path.read_text() == before


def test_engines_that_cannot_swap_are_told_so(tmp_path: Path) -> None:
    for engine in ("sglang", None):
        with pytest.raises(BadInput, match="fastdeploy and vllm take"):
            find_swapper(engine, Place(folder=tmp_path), None)
    with pytest.raises(BadInput, match="name it with --map"):
        find_swapper("vllm", Place(folder=tmp_path / "nowhere"), None)
    with pytest.raises(BadInput, match="reads no map"):
        find_swapper("fastdeploy", Place(urls=("http://h:1",)), tmp_path / "map.json")


class FastDeploy:
    """Its manager: it asks every address that it is told for counts, and loads the experts by their sum."""

    def __init__(self, engine: Engine) -> None:
        self.status, self.counts, self.refuses = ["FREE"], list[Any](), ""
        engine.answers["/rearrange_experts"] = self.rearrange
        engine.answers["/check_redundant"] = lambda _: ok({"code": 0, "status": self._next()})

    def rearrange(self, body: Any) -> tuple[int, bytes]:
        if self.refuses:
            return 400, json.dumps({"code": 1, "msg": self.refuses}).encode()
        from probes.routing.web import Server, post_json

        for address in body["ips"]:
            told = post_json(Server(f"http://{address}", 5), "/get_per_expert_tokens_stats", {})
            self.counts += told["data"]
        self.status = ["LOAD_SUCC"]
        return ok({"code": 0, "msg": "ok"})

    def _next(self) -> str:
        return self.status[0]


@pytest.fixture
def engine() -> Iterator[Engine]:
    with serving(Engine()) as found:
        yield found


def fastdeploy_files(folder: Path) -> Files:
    model = replace(TINY, name="ernie", architecture="ernie4_5_moe", expert_groups=1, groups_per_token=1)
    placement = random_placement(model, 8, 16)
    plan = judged(question(model, machine(8), 16), placement, origin=Origin("fastdeploy"))
    return dict(emit_plan(write_plan(plan, folder / "plan.json"), "fastdeploy", trust=True).files)


def test_fastdeploy_is_handed_the_counts(engine: Engine, tmp_path: Path) -> None:
    """Its manager gets the plan's table, once, whatever the number of ranks; then it serves by it."""
    manager, files = FastDeploy(engine), fastdeploy_files(tmp_path)
    with serving(Engine()) as other:
        swap = find_swapper("fastdeploy", Place(urls=(engine.url, other.url)), None)
        assert swap.in_place(files) is None
        assert swap.hand_over(files) is True
    assert manager.counts == [json.loads(files["expert_stats.json"])]


def test_fastdeploy_that_refuses_keeps_its_placement(engine: Engine, tmp_path: Path) -> None:
    manager, files = FastDeploy(engine), fastdeploy_files(tmp_path)
    manager.refuses = "rearrange is doing"
    with pytest.raises(BadInput, match="was not made to rearrange") as fault:
        Balancer((engine.url.removeprefix("http://"),)).hand_over(files)
    assert "\n" not in str(fault.value)
    assert manager.counts == []
