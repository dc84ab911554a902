"""The vLLM plugin of a plan: a whole package, whose policy returns the rows of a map that may change.

vLLM is a stand-in here; tests/engines asks vLLM itself.
"""

import json
import os
import runpy
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.base import BadInput, parse_yaml
from planner.engines import plugin_engines
from planner.engines.common.vllm_plan_plugin import Live, Windows, checked
from planner.engines.common.vllm_plugin import REQUIREMENT, package
from planner.model import ModelSpec, find_model
from planner.placement import Placement
from tests.planner.engines.examples import TINY, machine, pip_install, question, random_placement

ENGINE = plugin_engines()["vllm"]
PLACEMENT = random_placement(TINY, 8, 16)
MAP = "vllm_plugin/moeplan_vllm_plan/plan_map.json"


def install(files: dict[str, str], folder: Path) -> dict[str, Any]:
    """The generated module's names, run from where it would be installed."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return runpy.run_path(str(folder / "vllm_plugin" / "moeplan_vllm_plan" / "__init__.py"))


def plan_text(seed: int = 0, **other: object) -> str:
    """A map of the plan's shape, with some of it changed."""
    return json.dumps(json.loads(package(random_placement(TINY, 8, 16, seed), TINY)[MAP]) | other)


@pytest.fixture
def live(tmp_path: Path) -> Live:
    """The map of the first plan, in a file of its own."""
    path = tmp_path / "plan_map.json"
    path.write_text(plan_text(0))
    return Live(path, path)


@pytest.fixture
def policies(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A stand-in for vLLM's table of policies, in a process that is its only rank."""
    policy: Any = ModuleType("vllm.distributed.eplb.policy")
    policy.AbstractEplbPolicy, policy.EPLB_POLICIES = object, {"default": None}
    group = SimpleNamespace(world_size=1, rank_in_group=0)
    state: Any = ModuleType("vllm.distributed.parallel_state")
    state.get_eplb_group = lambda: group
    for name in ("vllm", "vllm.distributed", "vllm.distributed.eplb"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for module in (policy, state):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    found: dict[str, Any] = policy.EPLB_POLICIES
    return found


def test_the_policy_returns_the_plans_rows(tmp_path: Path, policies: dict[str, Any]) -> None:
    """Main model and draft model are told apart by their number of layers; whatever the load, the rows are
    the plan's, int64 on the CPU.
    """
    torch = pytest.importorskip("torch", reason="the policy answers with a tensor")
    module = install(package(PLACEMENT, TINY), tmp_path)
    module["register"]()
    module["register"]()
    ask = policies["default"].rebalance_experts
    main, draft = (ask(torch.rand(layers, 64), 80, 8, 2, 8, None) for layers in (3, 1))
    assert main.tolist() == PLACEMENT.expert_LP[:3].tolist()
    assert draft.tolist() == PLACEMENT.expert_LP[3:].tolist()
    assert (main.dtype, main.device.type) == (torch.int64, "cpu")


@pytest.mark.parametrize(
    ("layers", "experts", "slots", "ranks", "message"),
    [
        (2, 64, 80, 8, "2 layers, and the plan has 3 MoE and 1 draft"),
        (3, 63, 80, 8, "63, 80, 8"),
        (3, 64, 72, 8, "64, 72, 8"),
        (3, 64, 80, 4, "64, 80, 4"),
    ],
)
def test_another_model_or_size_stops_the_engine(
    layers: int, experts: int, slots: int, ranks: int, message: str, live: Live
) -> None:
    """A plan is never served for a shape it was not made for."""
    with pytest.raises(RuntimeError, match=message):
        live.rows_for(layers, experts, slots, ranks)


def test_pip_installs_the_package(tmp_path: Path) -> None:
    """With the entry point in the group that vLLM loads in every process, and the data file, without which
    the module cannot start.
    """
    install(package(PLACEMENT, TINY), tmp_path)
    site = pip_install(tmp_path / "vllm_plugin", tmp_path / "site")
    (found,) = distributions(name="moeplan-vllm-plan", path=[str(site)])
    assert [(entry.group, entry.value) for entry in found.entry_points] == [
        ("vllm.general_plugins", "moeplan_vllm_plan:register")
    ]
    assert (site / "moeplan_vllm_plan" / "plan_map.json").is_file()


def test_a_changed_file_is_the_map_from_then_on(live: Live) -> None:
    """And is known by its digest."""
    before = live.digest
    live.path.write_text(plan_text(1))
    live.refresh()
    assert live.plan == json.loads(plan_text(1))
    assert live.digest != before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (plan_text(1)[:500], "changes nothing"),
        ("[]", "it is no plan map"),
        ("[" * 100_000, "changes nothing"),
        (plan_text(1, ranks=4), "the engine runs"),
        (plan_text(1, layer_ids=[2, 3, 4, 5]), "the engine runs"),
        (plan_text(1, moe=[[0] * 80] * 3), "row 0 of moe does not hold 64 experts"),
        (plan_text(1, moe=[[float(expert % 64) for expert in range(80)]] * 3), "row 0 of moe does not hold"),
        (plan_text(1, slots="80"), "its sizes are"),
        (plan_text(1, draft=None), "changes nothing"),
        (None, "No such file"),
    ],
)
def test_a_file_that_is_no_map_of_this_engine_changes_nothing(
    text: str | None, said: str, live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    """Broken, of another shape, or gone: the last good map stays, which is said once; a good one later is
    taken.
    """
    live.path.write_text(text) if text is not None else live.path.unlink()
    for _ in range(3):
        live.refresh()
    assert live.plan == json.loads(plan_text(0))
    assert said in caplog.text
    assert len(caplog.records) == 1
    live.path.write_text(plan_text(2))
    live.refresh()
    assert live.plan == json.loads(plan_text(2))


def test_the_packaged_map_is_used_where_the_named_file_is_not_there(tmp_path: Path) -> None:
    """On a host without the plan's folder; rank 0's map is told to it later."""
    (tmp_path / "packaged").write_text(plan_text(1))
    assert Live(tmp_path / "absent", tmp_path / "packaged").plan == json.loads(plan_text(1))


def test_the_map_of_a_plan_is_a_sound_one() -> None:
    """What is emitted passes the plugin's own check."""
    assert checked(json.loads(plan_text())) == json.loads(plan_text())


def test_a_folder_that_cannot_be_written_stops_no_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once."""
    (tmp_path / "file").touch()
    windows = Windows(tmp_path / "file", 2)
    for _ in range(2):
        windows.write("moe", np.ones((3, 64)), [3, 4, 5], "digest")
    assert [record.message.partition(":")[2][:29] for record in caplog.records] == [
        " load windows are not written"
    ]


def test_a_clock_that_goes_back_loses_no_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest stay by the order in which they came, and names keep that order."""
    windows = Windows(tmp_path, 3)
    for place, now in enumerate((5_000, 6_000, 100, 200, 300)):
        monkeypatch.setattr("time.time_ns", lambda now=now: now)
        windows.write("moe", np.full((1, 4), place + 1), [3], "digest")
    found = [int(np.load(path)["counts"][0, 0]) for path in sorted(tmp_path.iterdir())]
    assert found == [3, 4, 5]


def test_the_policy_writes_each_window_it_is_shown(
    tmp_path: Path, policies: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Into the named folder, counts by expert with their layers and the digest of the map."""
    torch = pytest.importorskip("torch", reason="the policy answers with a tensor")
    monkeypatch.setenv("MOEPLAN_WINDOWS_DIR", str(tmp_path / "windows"))
    install(package(PLACEMENT, TINY), tmp_path)["register"]()
    policies["default"].rebalance_experts(torch.full((3, 64), 7), 80, 8, 2, 8, None)
    (path,) = (tmp_path / "windows").iterdir()
    window = np.load(path)
    assert (window["counts"].tolist(), window["counts"].dtype) == ([[7] * 64] * 3, np.int64)
    assert window["layer_ids"].tolist() == [3, 4, 5]
    assert str(window["map_sha256"]) == policies["default"].live.digest


def test_the_launch_starts_nothing_without_the_plugin(tmp_path: Path) -> None:
    """It ends with 2 and says what to install; where pip has installed it, vLLM starts."""
    emission = ENGINE.emit_with_plugin(PLACEMENT, question(TINY, machine(8), 16), "m")
    assert emission.commands[0].requires == (REQUIREMENT,)
    install(package(PLACEMENT, TINY), tmp_path)
    (tmp_path / "launch.sh").write_text(emission.launch)
    for name, line in (("vllm", 'echo "$MOEPLAN_MAP"'), ("python3", f'exec {sys.executable} "$@"')):
        (tmp_path / name).write_text(f"#!/bin/bash\n{line}\n")
        (tmp_path / name).chmod(0o755)

    def launched(**environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{tmp_path}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", str(tmp_path / "launch.sh")], env={"PATH": path, **environment}, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip

    missing = launched()
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "pip install ./vllm_plugin" in missing.stderr
    site = str(pip_install(tmp_path / "vllm_plugin", tmp_path / "site"))
    assert launched(PYTHONPATH=site).stdout == f"{tmp_path / MAP}\n"
    assert launched(PYTHONPATH=site, VLLM_PLUGINS="another").returncode == 2


def test_the_plan_is_data_and_not_code() -> None:
    """The module is the same for every plan; only the JSON differs, and rows stay on one line."""
    first, second = (package(random_placement(TINY, 8, 16, seed), TINY) for seed in (0, 1))
    assert [name for name in first if first[name] != second[name]] == [
        "vllm_plugin/moeplan_vllm_plan/plan_map.json"
    ]
    assert json.loads(first["vllm_plugin/moeplan_vllm_plan/plan_map.json"])["layer_ids"] == [3, 4, 5, 6]


def test_as_many_draft_as_moe_layers_cannot_be_told_apart() -> None:
    """The number of layers is all that vLLM asks by."""
    model = ModelSpec(
        "one", "mixtral", 1, (0,), 4, 1, 8, 8, 8, "bf16", "made for tests", draft_layer_ids=(1,)
    )
    with pytest.raises(BadInput, match="as many MoE layers as draft layers"):
        package(Placement(PLACEMENT.expert_LP[:2], (0, 1), 8), model)


def test_with_the_plugin_the_plan_is_not_ignored() -> None:
    """The flags turn the balancer on, synchronously; the notes say what to install, when it works, and what
    was not tested.
    """
    emission = ENGINE.emit_with_plugin(PLACEMENT, question(TINY, machine(4, 4), 16), "m")
    assert emission.ignored == ""
    assert set(emission.files) == {"launch.sh", *package(PLACEMENT, TINY)}
    assert parse_yaml(emission.launch.split("--eplb-config '")[1].split("'")[0], "flag")["use_async"] is False
    assert all(
        any(word in note for note in emission.notes)
        for word in ("pip install ./vllm_plugin", "about step 750", "never served on a GPU", "may change")
    )
    assert dict(emission.commands[0].environment)["MOEPLAN_MAP"] == f'"$PLAN_DIR"/{MAP}'


def test_a_model_without_a_balancer_gets_no_plugin() -> None:
    """Nothing would call it."""
    model = find_model("gpt-oss-20b")
    with pytest.raises(BadInput, match=r"no expert balancer for gpt_oss.*leave --plugin out"):
        ENGINE.emit_with_plugin(random_placement(model, 8, 0), question(model, machine(8), 0), "m")
