"""The vLLM plugin of a plan: a whole package, whose policy returns the plan's rows.

vLLM is a stand-in here; tests/engines asks vLLM itself.
"""

import json
import runpy
import sys
from importlib.metadata import distributions
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from planner.base import BadInput, parse_yaml
from planner.engines import plugin_engines
from planner.engines.common.vllm_plugin import package
from planner.model import ModelSpec, find_model
from planner.placement import Placement
from tests.planner.engines.examples import TINY, machine, pip_install, question, random_placement

ENGINE = plugin_engines()["vllm"]
PLACEMENT = random_placement(TINY, 8, 16)


def install(files: dict[str, str], folder: Path) -> dict[str, Any]:
    """The generated module's names, run from where it would be installed."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return runpy.run_path(str(folder / "vllm_plugin" / "moeplan_vllm_plan" / "__init__.py"))


@pytest.fixture
def policies(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A stand-in for vllm.distributed.eplb.policy, and its table of policies."""
    policy: Any = ModuleType("vllm.distributed.eplb.policy")
    policy.AbstractEplbPolicy, policy.EPLB_POLICIES = object, {"default": None}
    for name in ("vllm", "vllm.distributed"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "vllm.distributed.eplb", SimpleNamespace(policy=policy))
    monkeypatch.setitem(sys.modules, policy.__name__, policy)
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
    layers: int, experts: int, slots: int, ranks: int, message: str, tmp_path: Path
) -> None:
    """A plan is never served for a shape it was not made for."""
    with pytest.raises(RuntimeError, match=message):
        install(package(PLACEMENT, TINY), tmp_path)["rows_for"](layers, experts, slots, ranks)


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
        for word in ("pip install ./vllm_plugin", "about step 750", "never served on a GPU")
    )


def test_a_model_without_a_balancer_gets_no_plugin() -> None:
    """Nothing would call it."""
    model = find_model("gpt-oss-20b")
    with pytest.raises(BadInput, match=r"no expert balancer for gpt_oss.*leave --plugin out"):
        ENGINE.emit_with_plugin(random_placement(model, 8, 0), question(model, machine(8), 0), "m")
