"""Run by an interpreter that has vLLM 0.33.0: its balancer's state on four processes that move real weights.

stdin: {"package": folder of the plugin's module, "folder": where maps and windows lie, "steps": [[name, text
of the map file, or "" to remove it, or null to leave it], ...]}. Ranks 2 and 3 are told another file, as on a
host whose folder nobody changes. The last line of stdout is {"first": steps until the first rearrangement,
"then": steps to each later one, "maps": [{"name", "rows" in force, "same" on every rank, "follow": a slot's
weights are those of the expert that the map says}]}. Groups, devices and the model are stand-ins.
"""

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

EXPERTS, SLOTS, RANKS, LAYERS = 8, 12, 4, 3
LOCAL, WINDOW, INTERVAL = SLOTS // RANKS, 8, 16
PORT = "29577"


def vllm(name: str) -> Any:
    return importlib.import_module(f"vllm.{name}")


class Rank:
    """One process: the plugin registered, a model of small weights, vLLM's own EplbState over it."""

    def __init__(self, rank: int, asked: dict[str, Any]) -> None:
        self.torch: Any = importlib.import_module("torch")
        self.rank, self.steps, self.calls = rank, 0, 0
        self.load: dict[str, Any] = {}
        self._join(asked)
        self._register(asked["package"])
        parallel = vllm("config.parallel")
        config = parallel.EPLBConfig(
            num_redundant_experts=SLOTS - EXPERTS, use_async=False, communicator="torch_gloo",
            window_size=WINDOW, step_interval=INTERVAL,
        )  # fmt: skip
        launched = SimpleNamespace(eplb_config=config, enable_elastic_ep=False, num_ubatches=1)
        self.weights = [[self.torch.zeros(LOCAL, 5)] for _ in range(LAYERS)]
        self.state = vllm("distributed.eplb.eplb_state").EplbState(launched, self.torch.device("cpu"))
        self.state.add_model(self._model(), SimpleNamespace(compute_hash=lambda: "m", model="stand-in"))
        self.model_state = self.state.model_states["m"]
        for layer, slot, expert in self._held():
            self.weights[layer][0][slot].fill_(100 * layer + expert)
        self._count_calls()
        self.state.step(is_dummy=True, is_profile=True)  # as the engine's profile run does

    def until_rearranged(self) -> int:
        """Forward steps until the policy was asked again."""
        before, started = self.calls, self.steps
        while self.calls == before:
            self.steps += 1
            self.load["load"][:] = self.torch.arange(SLOTS, dtype=self.torch.int32) + self.rank
            self.state.step()
        return self.steps - started

    def report(self) -> tuple[list[list[int]], bool]:
        """The map in force, and whether this rank's weights are those of its experts."""
        sound = all(
            bool((self.weights[layer][0][slot] == 100 * layer + expert).all())
            for layer, slot, expert in self._held()
        )
        return self.model_state.physical_to_logical_map.tolist(), sound

    def _held(self) -> list[tuple[int, int, int]]:
        """(layer, local slot, expert) of this rank."""
        rows = self.model_state.physical_to_logical_map.tolist()
        first = self.rank * LOCAL
        return [(layer, slot, rows[layer][first + slot]) for layer in range(LAYERS) for slot in range(LOCAL)]

    def _model(self) -> Any:
        model = MagicMock(
            num_routed_experts=EXPERTS, num_logical_experts=EXPERTS, num_redundant_experts=SLOTS - EXPERTS,
            num_physical_experts=SLOTS, num_local_physical_experts=LOCAL, num_moe_layers=LAYERS,
            num_expert_groups=1, expert_weights=self.weights, moe_layers=[],
        )  # fmt: skip
        model.set_eplb_state = lambda load, *_: self.load.update(load=load)
        return model

    def _join(self, asked: dict[str, Any]) -> None:
        folder = Path(asked["folder"])
        here = folder / ("plan_map.json" if self.rank < RANKS // 2 else "other_host.json")
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": PORT, "VLLM_LOGGING_LEVEL": "ERROR"}
        os.environ |= {"MOEPLAN_MAP": str(here), "MOEPLAN_WINDOWS_KEEP": str(asked.get("keep", 3))}
        os.environ["MOEPLAN_WINDOWS_DIR"] = str(folder / "windows")
        torch = self.torch
        torch.set_num_threads(1)
        torch.distributed.init_process_group("gloo", rank=self.rank, world_size=RANKS)
        vllm("distributed.eplb.eplb_communicator")
        vllm("distributed.eplb.eplb_state").get_node_count = lambda: 1
        state, whole = vllm("distributed.parallel_state"), torch.distributed.group.WORLD
        torch.accelerator.current_stream = lambda *_: SimpleNamespace(synchronize=lambda: None)
        torch.Event = lambda **_: SimpleNamespace(
            record=lambda: None, synchronize=lambda: None, elapsed_time=lambda _: 0.0
        )
        group = SimpleNamespace(
            world_size=RANKS, rank_in_group=self.rank, device_group=whole, cpu_group=whole,
            ranks=list(range(RANKS)), mq_broadcaster=None,
        )  # fmt: skip
        group.broadcast_object = lambda value=None, src=0: state.GroupCoordinator.broadcast_object(
            group, value, src
        )
        state._EP = state._EPLB = group
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").startswith("vllm") and "PIN_MEMORY" in vars(module):
                module.PIN_MEMORY = False  # type: ignore[attr-defined] # there is no device to pin for

    def _register(self, package: str) -> None:
        found = importlib.util.spec_from_file_location("moeplan_vllm_plan", Path(package) / "__init__.py")
        assert found is not None
        assert found.loader is not None
        module: Any = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        module.register()

    def _count_calls(self) -> None:
        policy = self.state.policy
        original = policy.rebalance_experts.__func__

        def counted(cls: Any, *args: Any) -> Any:
            self.calls += 1
            return original(cls, *args)

        policy.rebalance_experts = classmethod(counted)


def serve(rank: int, asked: dict[str, Any], answer: Any) -> None:
    own, seen, steps = Rank(rank, asked), [], []
    distributed = own.torch.distributed
    path = Path(asked["folder"]) / "plan_map.json"
    for name, text in asked["steps"]:
        if rank == 0 and text is not None:
            put(path, text)
        distributed.barrier()
        steps.append(own.until_rearranged())
        gathered: list[Any] = [None] * RANKS
        distributed.all_gather_object(gathered, own.report())
        rows = gathered[0][0]
        alike, follow = all(one[0] == rows for one in gathered), all(one[1] for one in gathered)
        seen.append({"name": name, "rows": rows, "same": alike, "follow": follow})
    if rank == 0:
        answer.put({"first": steps[0], "then": steps[1:], "maps": seen})
    distributed.barrier()


def put(path: Path, text: str) -> None:
    """The file replaced whole, or removed."""
    if not text:
        path.unlink()
        return
    half = path.with_suffix(".half")
    half.write_text(text)
    half.replace(path)


def main() -> None:
    asked = json.load(sys.stdin)
    context = importlib.import_module("torch.multiprocessing").get_context("spawn")
    answer = context.SimpleQueue()
    ranks = [context.Process(target=serve, args=(rank, asked, answer)) for rank in range(RANKS)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(300)
    said = answer.get() if not answer.empty() else {"error": "no answer"}
    print(json.dumps(said))  # noqa: T201 - a program


if __name__ == "__main__":
    main()
