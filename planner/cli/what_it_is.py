"""What a file or a folder is, by its content."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from planner.base import BadInput

LARGEST_BYTES = 64 << 20
TOPOLOGY_KEYS = {"nodes", "fabric"}
MODEL_KEYS = {"model_type", "architectures"}
LOAD_KEYS = {"counts", "trace"}


class WhatItIs(NamedTuple):
    kind: str  # a key of ARTICLES
    words: str  # 'a plan of moeplan'
    use: str  # the command that takes it


def what_is(path: Path) -> WhatItIs | None:
    """What a file or folder is, by its content; None where that is not known, or it cannot be read."""
    try:
        if path.is_dir():
            return _folder(path)
        if not path.is_file() or path.stat().st_size > LARGEST_BYTES:
            return None
        content = path.read_bytes()
    except OSError:
        return None
    found = _tree(path, content) or _arrays(path) or _table(path, content)
    return found or _text(path, content)


def _folder(path: Path) -> WhatItIs | None:
    if (path / "moeplan-emission.json").exists():
        inside = f"; its plan is {path / 'plan.json'}" if (path / "plan.json").exists() else ""
        return WhatItIs("emission", "a folder that emit wrote", f"moeplan check {path} judges it{inside}")
    if (path / "config.json").exists():
        return WhatItIs("model", "a model's folder", f"--model {path} takes it")
    return None


def _tree(path: Path, content: bytes) -> WhatItIs | None:
    """JSON or YAML of ours, of an engine, or of a model."""
    from planner.base import parse_json, parse_yaml

    if path.suffix.lower() not in (".json", ".yaml", ".yml") and content.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        text = content.decode()
        value = parse_yaml(text, "") if path.suffix.lower() in (".yaml", ".yml") else parse_json(text, "")
    except (BadInput, UnicodeDecodeError):
        return None
    if not isinstance(value, dict):
        return None
    looks = (_with_schema, _machine_or_model, _map)
    return next((found for found in (look(path, value) for look in looks) if found), None)


def _with_schema(path: Path, value: dict[str, Any]) -> WhatItIs | None:
    """What says itself what it is."""
    from planner.plan import SCHEMA

    uses = {
        SCHEMA: (
            "plan",
            "a plan",
            f"moeplan evaluate, emit, check and validate take it, and solve --from {path}",
        ),
        "moeplan/probe/1": (
            "probe",
            "a probe of one host",
            f"moeplan probe --merge {path} makes a topology of it",
        ),
        "moeplan/measure/1": (
            "measurement",
            "a measurement",
            f"moeplan import {path} takes it beside other files",
        ),
        "moeplan/calibration/1": (
            "calibration",
            "a calibration",
            f"solve --calibration {path} takes it, and moeplan import beside the machine's file",
        ),
    }
    found = uses.get(str(value.get("schema")))
    return WhatItIs(*found) if found else None


def _machine_or_model(path: Path, value: dict[str, Any]) -> WhatItIs | None:
    if value.keys() >= TOPOLOGY_KEYS:
        return WhatItIs("topology", "a topology", f"--topology {path} takes it")
    if MODEL_KEYS & value.keys():
        return WhatItIs("model", "a model's config.json", f"--model {path} takes it")
    if LOAD_KEYS & value.keys():
        return _load(path)
    if isinstance(value.get("files"), dict) and "emission" in path.name:
        return WhatItIs("emission", "what emit wrote", f"moeplan check {path.parent} judges the folder")
    return None


def _map(path: Path, value: Any) -> WhatItIs | None:
    from planner.maps import find_map

    try:
        _, found = find_map(value, str(path))
    except BadInput:
        return None
    use = f"moeplan check {path} judges it, moeplan convert and moeplan solve --from take it"
    return WhatItIs("map", f"a map ({found.kind})", use)


def _load(path: Path) -> WhatItIs:
    return WhatItIs("load", "a load", f"--load {path} takes it, and moeplan load show {path} draws it")


def _arrays(path: Path) -> WhatItIs | None:
    """NumPy files: counts and traces, or the tensors of a balancer."""
    from planner.base import read_npz

    if path.suffix.lower() not in (".npz", ".npy"):
        return None
    try:
        names = set(read_npz(path))
    except BadInput:
        return None
    if "physical_to_logical_map" in names:
        use = f"moeplan check {path} judges it, and moeplan convert takes it"
        return WhatItIs("map", "a balancer's tensors", use)
    return _load(path)


def _table(path: Path, content: bytes) -> WhatItIs | None:
    """A CSV with a column for layers."""
    first = content[:4096].decode("utf-8", errors="replace").splitlines()[:1]
    cells = [cell.strip().lower() for cell in first[0].split(",")] if first else []
    has_counts = {"count", "tokens"} & set(cells) or any(
        re.fullmatch(r"(e|expert_?)?[0-9]+", cell) for cell in cells
    )
    return _load(path) if {"layer", "layer_id"} & set(cells) and has_counts else None


def _text(path: Path, content: bytes) -> WhatItIs | None:
    """What a tool printed about a machine: an importer knows it."""
    from probes.importers.registry import importers, short_names

    known = [importer for importer in importers() if importer.recognise(content, str(path))]
    if not known:
        return None
    words = f"what a tool printed about a machine ({', '.join(short_names(known))})"
    return WhatItIs("text", words, f"moeplan import {path} -o machine.json makes a topology of it")
