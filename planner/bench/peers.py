"""Balancers of engines, taken out of their wheels without installing them. Needs torch.

One module and what it needs, run in this process.
"""

import importlib.util
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.bench.frame import Peers, Policy

VLLM_FOLDER = "vllm/distributed/eplb/policy"
SGLANG_FOLDER = "sglang/srt/eplb/eplb_algorithms"


def load_peers(wheels: Iterable[Path]) -> Peers:
    """The policies in these wheels of vLLM and SGLang, and where measured figures are; BadInput for any other
    file.
    """
    policies: dict[str, Policy] = {}
    figures: Path | None = None
    for wheel in wheels:
        if wheel.is_dir() or wheel.name.startswith("aiconfigurator_core-"):
            figures = wheel
            continue
        if importlib.util.find_spec("torch") is None:
            raise BadInput("the peer needs torch: pip install torch")
        policies |= _policies(wheel)
    return Peers(policies, figures)


def _policies(wheel: Path) -> dict[str, Policy]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
            version = wheel.name.split("-")[1] if wheel.name.count("-") else ""
            if f"{VLLM_FOLDER}/default.py" in names:
                found = _modules(archive, VLLM_FOLDER, ("abstract", "default"))
                return {f"vLLM {version} default": _vllm(found["default"])}
            if f"{SGLANG_FOLDER}/deepseek.py" in names:
                found = _modules(archive, SGLANG_FOLDER, ("deepseek", "deepseek_vec"))
                return {
                    f"SGLang {version} deepseek": _sglang(found["deepseek"]),
                    f"SGLang {version} deepseek_vec": _sglang_vec(found["deepseek_vec"]),
                }
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise BadInput(f"{wheel}: not a wheel ({error})") from error
    raise BadInput(f"{wheel}: holds neither vLLM's {VLLM_FOLDER} nor SGLang's {SGLANG_FOLDER}")


def _modules(archive: zipfile.ZipFile, folder: str, names: tuple[str, ...]) -> dict[str, Any]:
    """The modules as a package of their own, in this order.

    They may import each other and torch, nothing else.
    """
    package = "moeplan_peer_" + folder.split("/", maxsplit=1)[0]
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "__init__.py").write_text("", encoding="utf-8")
        for name in names:
            (Path(home) / f"{name}.py").write_bytes(archive.read(f"{folder}/{name}.py"))
        for name in ("__init__", *names):
            full = package if name == "__init__" else f"{package}.{name}"
            spec = importlib.util.spec_from_file_location(full, Path(home) / f"{name}.py")
            if spec is None or spec.loader is None:
                raise AssertionError(f"{full} cannot be imported")
            sys.modules[full] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[full])
    return {name: sys.modules[f"{package}.{name}"] for name in names}


def _vllm(module: Any) -> Policy:
    return _on_tensors(module.DefaultEplbPolicy.rebalance_experts)


def _sglang(module: Any) -> Policy:
    """SGLang's `deepseek` and `deepseek_hierarchical`: by nodes where there are several."""

    def run(load: Any, slots: int, groups: int, nodes: int, gpus: int) -> Any:
        return module.rebalance_experts(load, slots, groups, nodes, gpus, nodes > 1)[0]

    return _on_tensors(run)


def _sglang_vec(module: Any) -> Policy:
    """The same for `deepseek_vec`, which takes several steps; here one."""

    def run(load: Any, slots: int, groups: int, nodes: int, gpus: int) -> Any:
        return module.rebalance_experts(load[None], slots, slots // gpus, groups, nodes, nodes > 1)[0]

    return _on_tensors(run)


def _on_tensors(run: Callable[[Any, int, int, int, int], Any]) -> Policy:
    def policy(
        load_LE: npt.NDArray[np.float64], slots: int, groups: int, nodes: int, gpus: int
    ) -> npt.NDArray[np.int64]:
        import torch

        found = run(torch.from_numpy(load_LE), slots, groups, nodes, gpus)
        return np.asarray(found.cpu().numpy(), dtype=np.int64)

    return policy
