"""Makes vLLM's expert balancer return a plan's placement, and follow it when its file changes.

Written by moeplan for vLLM 0.33.0; it needs nothing of moeplan where it is installed. The map is the file
that MOEPLAN_MAP names, else plan_map.json beside this one. Before each rearrangement EP rank 0 alone reads it
and tells the others, so that all ranks have one map whatever lies on their hosts. A file that is gone,
broken, or for another model or machine changes nothing. Each load window that vLLM shows is written into the
folder MOEPLAN_WINDOWS_DIR, else load_windows beside the map; the newest 64 (MOEPLAN_WINDOWS_KEEP) stay.
"""

import hashlib
import importlib
import json
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

log = logging.getLogger("vllm.moeplan")
Plan = dict[str, Any]

MAP, WINDOWS, KEEP = "MOEPLAN_MAP", "MOEPLAN_WINDOWS_DIR", "MOEPLAN_WINDOWS_KEEP"
MAP_NAME, FOLDER, KEPT = "plan_map.json", "load_windows", 64
SIZES = ("experts", "slots", "ranks")
KINDS = ("moe", "draft")


def checked(plan: Any, like: Plan | None = None) -> Plan:
    """The plan. ValueError where it is none, or not of the shape of `like`."""
    if not isinstance(plan, dict) or not {*SIZES, *KINDS, "layer_ids"} <= set(plan):
        raise ValueError("it is no plan map")
    experts, slots, ranks = sizes = tuple(plan[name] for name in SIZES)
    if not all(type(size) is int and size > 0 for size in sizes) or slots % ranks or slots < experts:
        raise ValueError(f"its sizes are {sizes}")
    for kind in KINDS:
        for number, row in enumerate(plan[kind]):
            whole = all(type(expert) is int for expert in row)
            if not whole or len(row) != slots or set(row) != set(range(experts)):
                raise ValueError(f"row {number} of {kind} does not hold {experts} experts in {slots} slots")
    if like is not None and shape(plan) != shape(like):
        raise ValueError(f"it is for {shape(plan)}, and the engine runs {shape(like)}")
    return plan


def shape(plan: Plan) -> str:
    sizes = ", ".join(f"{plan[name]} {name}" for name in SIZES)
    layers = " and ".join(f"{len(plan[kind])} {kind}" for kind in KINDS)
    return f"{sizes}, {layers} layers {plan['layer_ids']}"


class Live:
    """The map in force, of a file that may change. `digest`: SHA-256 of the file that it was read from."""

    def __init__(self, path: Path, packaged: Path) -> None:
        self.path, self.refused = path, ""
        content = (path if path.is_file() else packaged).read_bytes()
        self.plan, self.digest = checked(json.loads(content)), _digest(content)

    def refresh(self) -> None:
        """Takes what the file holds now, whole or not at all."""
        digest = ""
        try:
            content = self.path.read_bytes()
            digest = _digest(content)
            if digest in (self.digest, self.refused):
                return
            self.plan, self.digest = checked(json.loads(content), like=self.plan), digest
            log.warning("moeplan: the map is now that of %s, SHA-256 %s", self.path, digest)
        except (OSError, ValueError, TypeError, RecursionError) as error:
            if not digest and self.refused == str(error):
                return  # said before
            self.refused = digest or str(error)
            log.warning("moeplan: %s changes nothing: %s", self.path, error)

    def rows_for(self, layers: int, experts: int, slots: int, ranks: int) -> tuple[str, list[list[int]]]:
        """The plan's rows for a model with that many MoE layers: the main model's, or the draft model's.

        RuntimeError where the plan is not for it.
        """
        asked, planned = (experts, slots, ranks), tuple(self.plan[name] for name in SIZES)
        if asked != planned:
            raise RuntimeError(
                f"moeplan: vLLM runs {asked} experts, slots and ranks, "
                f"and the plan is for {planned}: serve with the plan's launch.sh"
            )
        for kind in KINDS:
            if self.plan[kind] and len(self.plan[kind]) == layers:
                return kind, self.plan[kind]
        counts = f"{len(self.plan['moe'])} MoE and {len(self.plan['draft'])} draft layers"
        raise RuntimeError(
            f"moeplan: vLLM asks for a placement of {layers} layers, "
            f"and the plan has {counts}: this is another model than the plan's"
        )

    def layer_ids(self, kind: str) -> list[int]:
        split, ids = len(self.plan["moe"]), self.plan["layer_ids"]
        return list(ids[:split] if kind == "moe" else ids[split:])


class Windows:
    """A folder of load windows, each written whole or not at all, the newest `keep` of a kind."""

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder, self.keep, self.number, self.fault = folder, max(keep, 1), 0, ""

    def write(self, kind: str, counts: Any, layer_ids: Sequence[int], digest: str) -> None:
        """`counts` [layer, expert]: tokens over the window. All zeros, as in vLLM's profile run, is none."""
        if not counts.any():
            return
        try:
            self._write(kind, counts, layer_ids, digest)
        except OSError as error:  # a full disk or a read-only folder stops no server
            if str(error) != self.fault:
                log.warning("moeplan: load windows are not written: %s", error)
            self.fault = str(error)

    def _write(self, kind: str, counts: Any, layer_ids: Sequence[int], digest: str) -> None:
        numpy: Any = importlib.import_module("numpy")
        self.folder.mkdir(parents=True, exist_ok=True)
        held = sorted(self.folder.glob(f"window-{kind}-*.npz"))
        name = f"window-{kind}-{_after(held):020d}-{self.number:06d}.npz"
        self.number += 1
        half = self.folder / f".{name}.{os.getpid()}"
        named = {"layer_ids": numpy.asarray(layer_ids), "map_sha256": numpy.asarray(digest)}
        with half.open("wb") as file:
            numpy.savez(file, counts=counts.astype(numpy.int64), **named)
        half.replace(self.folder / name)
        for old in [*held, self.folder / name][: -self.keep]:
            old.unlink(missing_ok=True)


def _after(held: Sequence[Path]) -> int:
    """Nanoseconds of the clock, past the newest window held: where the clock was put back, order stays."""
    newest = held[-1].name.split("-")[2] if held else ""
    return max(time.time_ns(), int(newest) + 1 if newest.isdecimal() else 0)


def told(group: Any, value: Any) -> Any:
    """EP rank 0's value, on every rank: vLLM asks all ranks, in one order, from one thread of each."""
    if group.world_size == 1:
        return value
    return group.broadcast_object(value if group.rank_in_group == 0 else None, src=0)


def started() -> tuple[Live, Windows]:
    packaged = Path(__file__).with_name(MAP_NAME)
    live = Live(Path(os.environ.get(MAP) or packaged), packaged)
    folder = os.environ.get(WINDOWS)
    keep = os.environ.get(KEEP, "")
    return live, Windows(
        Path(folder) if folder else live.path.with_name(FOLDER), int(keep) if keep.isdecimal() else KEPT
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def register() -> None:
    """Called by vLLM in each of its processes; calling it again changes nothing."""
    torch: Any = importlib.import_module("torch")
    parallel_state: Any = importlib.import_module("vllm.distributed.parallel_state")
    policy: Any = importlib.import_module("vllm.distributed.eplb.policy")
    if hasattr(policy.EPLB_POLICIES["default"], "live"):
        return
    found, windows = started()

    # its base is vLLM's, found when vLLM calls
    class PlannedPolicy(policy.AbstractEplbPolicy):  # type: ignore[misc]
        """Returns physical_to_logical_map [layers, slots], int64 on the CPU, whatever the load."""

        live = found

        @classmethod
        def rebalance_experts(
            cls,
            weight: Any,
            num_replicas: int,
            num_groups: int,
            num_nodes: int,
            num_ranks: int,
            old: Any = None,
        ) -> Any:
            del num_groups, num_nodes, old
            group, (layers, experts) = parallel_state.get_eplb_group(), weight.shape
            if group.rank_in_group == 0:
                cls.live.refresh()
            cls.live.plan, cls.live.digest = told(group, (cls.live.plan, cls.live.digest))
            kind, rows = cls.live.rows_for(layers, experts, num_replicas, num_ranks)
            if group.rank_in_group == 0:
                windows.write(kind, weight.cpu().numpy(), cls.live.layer_ids(kind), cls.live.digest)
            return torch.tensor(rows, dtype=torch.int64)

    policy.EPLB_POLICIES["default"] = PlannedPolicy
