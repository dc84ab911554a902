"""From a plan file to the files an engine loads: closed where the engine would not read the plan's map."""

import hashlib
from dataclasses import replace
from pathlib import Path

from planner.base import BadInput, check_keys, dump_json, read_json, read_text, write_atomic
from planner.engines import Emission, engine_names, find_engine, map_formats, sglang, vllm, vllm_ascend
from planner.load import LoadProfile
from planner.model import ModelSpec
from planner.placement import Placement
from planner.plan import EMITTED_PLAN, read_plan
from planner.problem import Problem

MANIFEST = "moeplan-emission.json"  # what was written into the folder, and its digests
MANIFEST_SCHEMA = "moeplan/emission/1"


def emit_plan(
    plan_file: Path,
    engine: str,
    model_path: str | None = None,
    version: str | None = None,
    *,
    flags_only: bool = False,
    plugin: bool = False,
    draft: bool = True,
) -> Emission:
    """What `engine` loads to serve the plan. BadInput where the plan breaks a hard rule or one of the engine's limits.

    BadInput too where the engine has a map file and would not read this one, unless `flags_only` asks for the launch without it. An engine that has no
    map file (vLLM without its `plugin`) is given its flags, and a note that says so: nothing is there that could be misread. Without `draft` the
    engine is served without its draft (MTP) layers, and their limits do not count.
    """
    problem, placement, value = read_plan(plan_file)
    found = find_engine(engine)
    path = model_path or problem.model.name
    if plugin and (engine != vllm.NAME or flags_only):
        raise BadInput(
            "--plugin is for --engine vllm without --flags-only: the plugin makes vLLM's balancer return the plan's map"
        )
    if not draft:
        if engine != sglang.NAME:
            raise BadInput(
                f"--no-draft is for --engine {sglang.NAME}: the draft layers of other engines take the plan's redundant experts"
            )
        problem, placement = _without_draft(problem, placement)
    emission = (
        vllm.emit(placement, problem, path, version, plugin=True)
        if plugin
        else found.emit(placement, problem, path, version)
    )
    if emission.ignored and engine in map_formats() and not flags_only:
        others = _served_by(problem.model, engine)
        elsewhere = f", and {' or '.join(others)} would serve the plan" if others else ""
        raise BadInput(
            f"{plan_file}: {emission.ignored}; nothing was written. --flags-only writes the launch without the map{elsewhere}"
        )
    if flags_only and not emission.ignored:
        raise BadInput(
            f"{plan_file}: {found.TITLE} serves the plan's placement for {problem.model.architecture}; leave --flags-only out"
        )
    phase, topology = problem.workload.phase, problem.topology
    rule, transport = found.replica_rule(phase, topology), found.transport(phase, topology, problem.model)
    if not emission.ignored and (problem.replica_rule, problem.workload.transport) != (rule, transport):
        note = (
            f"the plan was judged under the replica rule '{problem.replica_rule}' and transport '{problem.workload.transport}' (engine "
            f"{value.get('engine') or 'none'}); {found.TITLE} uses '{rule}' and '{transport}': "
            f"`moeplan evaluate {plan_file} --engine {engine}` shows what that costs"
        )
        emission = replace(emission, notes=(*emission.notes, note))
    return emission


def _without_draft(problem: Problem, placement: Placement) -> tuple[Problem, Placement]:
    """The same question and answer about the MoE layers alone."""
    kept = problem.model.moe_layer_ids
    load = LoadProfile(problem.load.tokens_WLE[:, : len(kept)].copy(), kept, problem.load.source)
    model = replace(problem.model, draft_layer_ids=())
    return replace(problem, model=model, load=load), Placement(
        placement.expert_LP[: len(kept)], kept, placement.gpus
    )


def _served_by(model: ModelSpec, engine: str) -> list[str]:
    """What to give `emit` in the place of `engine` so that the plan's map is read, as far as the model decides it. NPUs are no way out for a GPU."""
    readers = [
        f"--engine {name}"
        for name in engine_names()
        if name not in (engine, vllm_ascend.NAME) and find_engine(name).reads_map(model)
    ]
    return [*readers, f"--engine {vllm.NAME} --plugin"] if model.architecture in vllm.BALANCED else readers


def write_emission(emission: Emission, plan_file: Path, folder: Path) -> list[Path]:
    """Write the files, a copy of the plan and a list of both into the folder, which is made where it is absent. Each file is replaced whole or not at all.

    Files that an earlier emission wrote here and this one does not are removed: an engine must not find a map of another plan. One that was changed since
    is nobody's to remove: then BadInput, and nothing is written.
    """
    texts = {**emission.files, EMITTED_PLAN: read_text(plan_file)}
    stale = [folder / name for name in _earlier(folder, keep=set(texts))]
    texts[MANIFEST] = dump_json(
        {
            "schema": MANIFEST_SCHEMA,
            "files": {name: _digest(text.encode()) for name, text in sorted(texts.items())},
        }
    )
    try:
        for name in texts:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be made a folder ({error.strerror})") from error
    for path in stale:
        path.unlink(missing_ok=True)
    return [write_atomic(folder / name, text) for name, text in sorted(texts.items())]


def _earlier(folder: Path, keep: set[str]) -> list[str]:
    """Names of what an earlier emission wrote into the folder, without those to keep and those that are gone."""
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return []
    digests = check_keys(read_json(manifest), str(manifest), {"schema": str, "files": dict})["files"]
    found = []
    for name in sorted(set(digests) - keep):
        path = folder / name
        if not path.is_file() or folder.resolve() not in path.resolve().parents:
            continue
        if _digest(path.read_bytes()) != digests[name]:
            raise BadInput(
                f"{path}: an earlier emission wrote it, it was changed since, and this one has no such file: move it away, or name another folder"
            )
        found.append(name)
    return found


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
