"""What TensorRT-LLM's own sources make of a launch: options, flags, all-to-all, list of models.

Argument: a source tree (the folder that holds tensorrt_llm/). stdin: {"options": {...}, "environment": {...},
"machines": [[EP size, top_k, ranks on a host, whether NVLink is up], ...]}. stdout: {"version", "flags",
"models", "unknown": keys of the options that no argument has, "sections": what the sections resolve to, or
"error", "methods": the all-to-all of each machine}.

The package needs a GPU build to be imported, so the classes and functions that answer are taken out of their
files by name and run alone; what they ask the machine is answered from stdin.
"""

import ast
import json
import math
import os
import sys
import types
import typing
from collections.abc import Iterable
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import pydantic

PARTS = {
    "arguments": "llmapi/llm_args.py",
    "commands": "commands/serve.py",
    "backend": "_torch/modules/fused_moe/fused_moe_wide_ep.py",
    "interface": "_torch/modules/fused_moe/interface.py",
    "methods": "_torch/modules/fused_moe/alltoall_method_types.py",
    "balancer": "_torch/modules/fused_moe/moe_load_balancer.py",
    "version": "version.py",
}
SECTIONS = {
    "cuda_graph_config": "CudaGraphConfig",
    "moe_config": "MoeConfig",
    "cache_transceiver_config": "CacheTransceiverConfig",
}
Namespace = dict[str, Any]


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")


def field(default: Any = ..., *, status: str | None = None, **kwargs: Any) -> Any:
    """Their own `Field` knows how stable an argument is."""
    del status
    known = {"default_factory", "description", "gt", "ge", "le", "lt", "init", "repr"}
    return pydantic.Field(default, **{key: value for key, value in kwargs.items() if key in known})


def read(root: Path, part: str) -> ast.Module:
    path = root / "tensorrt_llm" / PARTS[part]
    return ast.parse(path.read_text() if path.is_file() else "")


def named(trees: Iterable[ast.Module], name: str) -> ast.stmt:
    """The class, function or assignment of that name."""
    for node in (node for tree in trees for node in ast.walk(tree)):
        targets = getattr(node, "targets", [])
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
            return node
        if isinstance(node, ast.Assign) and any(getattr(one, "id", "") == name for one in targets):
            return node
    raise SystemExit(f"these sources have no {name}")


def run(node: ast.stmt, names: Namespace) -> Any:
    """The object that a definition makes, alone: without decorators, and below the bases that are known."""
    if isinstance(node, ast.ClassDef):
        node.decorator_list = []
        node.bases = [base for base in node.bases if getattr(base, "id", "") in names]
    elif isinstance(node, ast.FunctionDef):
        node.decorator_list, node.returns = [], None
    body = ast.fix_missing_locations(ast.Module([node], []))
    exec(compile(body, "tensorrt_llm", "exec"), names)
    return names[node.name] if isinstance(node, (ast.ClassDef, ast.FunctionDef)) else None


def keys_of(tree: ast.Module) -> set[str]:
    """The arguments of the PyTorch backend."""
    classes = [named([tree], name) for name in ("BaseLlmArgs", "TorchLlmArgs")]
    fields = [one for found in classes if isinstance(found, ast.ClassDef) for one in found.body]
    return {
        one.target.id for one in fields if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }


def sections(tree: ast.Module, options: dict[str, Any]) -> dict[str, Any]:
    pydantic_names = {name: getattr(pydantic, name) for name in pydantic.__all__ if name != "Field"}
    names = {**vars(typing), **pydantic_names, "Enum": Enum, "math": math, "Field": field}
    names |= {"StrictBaseModel": Strict, "BaseModel": Strict, "__name__": "oracle"}
    found = {}
    for key, kind in SECTIONS.items():
        made = run(named([tree], kind), names)
        if key in options and not (key == "cuda_graph_config" and options[key] is None):
            found[key] = made(**options[key]).model_dump()  # as theirs: a section that is null fails
    return found


def flags_of(tree: ast.Module) -> list[str]:
    """What `trtllm-serve serve` takes."""
    serve = named([tree], "serve")
    assert isinstance(serve, ast.FunctionDef)
    words = (
        node.value for one in serve.decorator_list for node in ast.walk(one) if isinstance(node, ast.Constant)
    )
    return sorted({word for word in words if isinstance(word, str) and word.startswith("--")})


def methods(root: Path, machines: Iterable[tuple[int, int, int, bool]]) -> list[str]:
    trees = [read(root, part) for part in ("backend", "interface", "methods")]
    names: Namespace = {
        "IntEnum": IntEnum,
        "os": os,
        "deep_ep_installed": True,
        "torch": types.SimpleNamespace(),
    }
    names |= {"Mapping": Any, "__name__": "oracle"}
    names["torch"].dtype, names["torch"].bfloat16 = str, "bfloat16"
    run(named(trees, "AlltoallMethodType"), names)
    select = run(named(trees, "select_alltoall_method_type"), names)
    return [_method(select, names, *machine) for machine in machines]


def _method(select: Any, names: Namespace, ep: int, top_k: int, local: int, nvlink: bool) -> str:
    names["local_mpi_size"] = lambda: local
    names["MnnvlMemory"] = types.SimpleNamespace(supports_mnnvl=lambda: nvlink)
    mapping = types.SimpleNamespace(enable_attention_dp=True, tp_size=ep, moe_ep_size=ep)
    found: str = select(mapping, top_k, "bfloat16", True).name
    return found


def main() -> None:
    root, asked = Path(sys.argv[1]), json.load(sys.stdin)
    os.environ.update(asked["environment"])
    arguments = read(root, "arguments")
    version: Namespace = {}
    run(named([read(root, "version")], "__version__"), version)
    listed: Namespace = {}
    run(named([read(root, "balancer")], "moe_model_arch_list"), listed)
    answer = {
        "version": version["__version__"],
        "flags": flags_of(read(root, "commands")),
        "models": listed["moe_model_arch_list"],
        "unknown": sorted(set(asked["options"]) - keys_of(arguments)),
        "methods": methods(root, asked["machines"]),
    }
    try:
        answer["sections"] = sections(arguments, asked["options"])
    except (pydantic.ValidationError, TypeError) as error:
        answer["error"] = str(error)
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
