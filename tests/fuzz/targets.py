"""What is fuzzed: each reader, and commands that read, with real seeds. A target is given a damaged file."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from click.testing import CliRunner
from hypothesis import strategies as st

from planner.base import BadInput, harmless
from planner.cli import main
from planner.load import read_load
from planner.maps import check_file
from planner.model import find_model
from planner.plan import read_plan
from planner.topology import read_topology
from planner.topology.calibrated import read_calibration
from probes.importers.registry import read_file
from probes.record.file import read_record
from tests.mutations import damaged, damaged_bytes
from tests.planner.load.files import model
from tests.planner.schema.seeds import seeds

WIDE = b"window,layer,e0,e1,e2,e3\na,1,5,1,2,4\na,2,3,3,3,3\nb,1,4,2,2,4\nb,2,3,2,4,3\n"
LONG = b"layer_id,expert_id,count\n1,0,5\n1,1,1\n1,2,2\n1,3,4\n2,0,3\n2,1,3\n2,2,3\n2,3,3\n"
YAML = b"counts:\n  1: [5, 1, 2, 4]\n  2: [3, 3, 3, 3]\nphase: decode\nsource: by hand\n"
MAP = b'{"layer_ids": [1, 2], "physical_to_logical_map": [[0, 1, 2, 3], [3, 2, 1, 0]]}'
CONFIG = {
    "model_type": "qwen3_moe", "num_hidden_layers": 3, "num_experts": 4, "num_experts_per_tok": 2,
    "hidden_size": 64, "moe_intermediate_size": 32, "decoder_sparse_step": 1, "mlp_only_layers": [0],
    "torch_dtype": "bfloat16", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "vocab_size": 100,
}  # fmt: skip
SMALL = model()


class Target(NamedTuple):
    """`name` is that of the file, `seed` its content before the damage; `read` is given its path."""

    name: str
    seed: Callable[[], Any]  # bytes, or a value that is damaged as JSON
    read: Callable[[Path], object]


def _kind(kind: str) -> Callable[[], Any]:
    return lambda: seeds()[kind]


@cache
def _npy(suffix: str) -> bytes:
    import io

    out, counts = io.BytesIO(), np.array([[5, 1, 2, 4], [3, 3, 3, 3]])
    np.save(out, counts) if suffix == ".npy" else np.savez(out, counts=counts, layer_ids=np.array([1, 2]))
    return out.getvalue()


def _load(path: Path) -> object:
    return read_load([path], SMALL)


def _command(*words: str) -> Callable[[Path], object]:
    """A command with the file in the place of FILE; its answer is an exit code, and nothing in it acts."""

    def run(path: Path) -> None:
        done = CliRunner().invoke(main, [str(path) if word == "FILE" else word for word in words])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code in (0, 1, 2)
        assert harmless(done.output) == done.output

    return run


TARGETS: dict[str, Target] = {
    "load: wide CSV": Target("l.csv", lambda: WIDE, _load),
    "load: long CSV": Target("l.csv", lambda: LONG, _load),
    "load: YAML": Target("l.yaml", lambda: YAML, _load),
    "load: JSON": Target("l.json", _kind("load"), _load),
    "load: npy": Target("l.npy", lambda: _npy(".npy"), _load),
    "load: npz": Target("l.npz", lambda: _npy(".npz"), _load),
    "plan": Target("p.json", _kind("plan"), read_plan),
    "topology: JSON": Target("t.json", _kind("topology"), lambda path: read_topology(str(path))),
    "topology: bytes": Target(
        "t.yaml", lambda: json.dumps(seeds()["topology"]).encode(), lambda path: read_topology(str(path))
    ),
    "calibration": Target("c.json", _kind("calibration"), read_calibration),
    "probe": Target("h.json", _kind("probe"), read_record),
    "measurement": Target("m.json", _kind("measure"), read_file),
    "model: config.json": Target("config.json", lambda: CONFIG, lambda path: find_model(str(path))),
    "map": Target("map.json", lambda: MAP, check_file),
    "check PLAN": Target("p.json", _kind("plan"), _command("check", "FILE")),
    "check PLAN --engine": Target("p.json", _kind("plan"), _command("check", "FILE", "--engine", "trtllm")),
    "convert PLAN": Target(
        "p.json", _kind("plan"), _command("convert", "FILE", "--to", "eplb", "-o", "/dev/null")
    ),
    "evaluate PLAN": Target("p.json", _kind("plan"), _command("evaluate", "FILE")),
    "topology show FILE": Target("t.json", _kind("topology"), _command("topology", "show", "FILE")),
    "probe --merge FILE": Target("h.json", _kind("probe"), _command("probe", "--merge", "FILE")),
    "model show FILE": Target("config.json", lambda: CONFIG, _command("model", "show", "FILE")),
}


def inputs(target: Target) -> st.SearchStrategy[bytes]:
    """Damaged files: a value's parts changed, or its bytes."""
    seed = target.seed()
    if isinstance(seed, bytes):
        return damaged_bytes(seed)
    text = json.dumps(seed).encode()
    values = damaged(seed).map(lambda value: json.dumps(value).encode())
    return st.one_of(values, values, damaged_bytes(text))


def tried(target: Target, content: bytes, folder: Path) -> None:
    """Read, or refused in one line. Anything else is raised."""
    path = folder / target.name
    path.write_bytes(content)
    refusal = ""
    try:
        target.read(path)
    except BadInput as fault:
        refusal = str(fault)
    assert "\n" not in refusal
