"""Where engines' own sources lie: folders of MOEPLAN_ENGINE_SOURCES, which no repository of ours holds.

lmdeploy/eplb.py: wheel 0.18.0, lmdeploy/pytorch/nn/eplb.py
fastdeploy/eplb.py, manager.py: PaddlePaddle/FastDeploy, eplb/eplb.py at 66549b3 and the HTTP loops of
    eplb/experts_manager.py at 09aeac7
hygon/static_eplb.py, eplb_dispatch.py: HYGON-AI/vllm-plugin-das at 1114afb and add1781
lightllm/envs_utils.py, redundancy_topk_ids_repair.py, fused_moe_weight.py: ModelTC/LightLLM at 87881ae
rtp_llm/load_config.py, loader.py: alibaba/rtp-llm, tag v0.2.0, rtp_llm/model_loader
tokenspeed/tokenspeed/, dispatch.py: wheel of tokenspeed 0.1.1; tokenspeed-kernel 0.1.4, ops/moe/dispatch.py
"""

import ast
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(os.environ.get("MOEPLAN_ENGINE_SOURCES", "/nowhere"))


def needs(engine: str, *names: str) -> pytest.MarkDecorator:
    """Skips where files of an engine are not there."""
    reason = f"MOEPLAN_ENGINE_SOURCES names no folder with the sources of {engine}"
    return pytest.mark.skipif(not all((ROOT / name).exists() for name in names), reason=reason)


def source(name: str) -> Path:
    return ROOT / name


def stub(name: str, **values: Any) -> ModuleType:
    """A module of that name, and its packages, with these values."""
    parts = name.split(".")
    for end in range(1, len(parts)):
        sys.modules.setdefault(".".join(parts[:end]), ModuleType(".".join(parts[:end])))
    module = ModuleType(name)
    vars(module).update(values)
    sys.modules[name] = module
    return module


def loaded(name: str, path: Path) -> Any:
    """An engine's file as a module of that name."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def function_of(path: Path, name: str, names: dict[str, Any]) -> Any:
    """One function or method of a file whose imports are not to be had, compiled as it stands."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)
    found.decorator_list = []
    exec(compile(ast.Module([found], []), str(path), "exec"), names)
    return names[name]


def held(expert_P: Any, gpus: int) -> Any:
    """The experts of each GPU, in ascending order."""
    return np.sort(np.asarray(expert_P).reshape(gpus, -1), axis=1).tolist()
