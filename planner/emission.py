"""From a plan file to the files an engine loads."""

from dataclasses import replace
from pathlib import Path

from planner.engines import Emission, find_engine, vllm
from planner.errors import BadInput
from planner.files import read_text, write_atomic
from planner.plan_file import EMITTED_PLAN, read_plan


def emit_plan(
    plan_file: Path,
    engine: str,
    model_path: str | None = None,
    version: str | None = None,
    *,
    require_map: bool = False,
    flags_only: bool = False,
    plugin: bool = False,
) -> Emission:
    """What `engine` loads to serve the plan. BadInput where the plan breaks a hard rule or one of the engine's limits.

    Where the engine would not serve the plan's placement: a launch without it, a map for inspection, a warning. `flags_only` leaves that map out, and
    with `require_map` it is BadInput.
    """
    problem, placement, value = read_plan(plan_file)
    found = find_engine(engine)
    path = model_path or problem.model.name
    if plugin and (engine != vllm.NAME or flags_only):
        raise BadInput("--plugin is for --engine vllm without --flags-only: the plugin makes vLLM's balancer return the plan's map")
    emission = vllm.emit(placement, problem, path, version, plugin=True) if plugin else found.emit(placement, problem, path, version)
    if emission.ignored and require_map:
        plugin_too = ", --plugin writes the package that makes its balancer follow the plan" if engine == vllm.NAME else ""
        raise BadInput(f"{plan_file}: {emission.ignored}; nothing was written. Without --require-map the flags are written alone{plugin_too}")
    if flags_only:
        emission = replace(emission, files={name: text for name, text in emission.files.items() if name not in emission.for_inspection})
    if flags_only and not emission.ignored:
        raise BadInput(f"{plan_file}: {found.TITLE} serves the plan's placement for {problem.model.architecture}; leave --flags-only out")
    if problem.replica_rule != found.REPLICA_RULE:
        note = (
            f"the plan was judged under the replica rule '{problem.replica_rule}' (engine {value.get('engine') or 'none'}); {found.TITLE} uses "
            f"'{found.REPLICA_RULE}': `moeplan evaluate {plan_file} --engine {engine}` shows what that costs"
        )
        emission = replace(emission, notes=(*emission.notes, note))
    return emission


def write_emission(emission: Emission, plan_file: Path, folder: Path) -> list[Path]:
    """Write the files and a copy of the plan into the folder, which is made where it is absent. Each file is replaced whole or not at all."""
    plan = read_text(plan_file)
    try:
        for name in (EMITTED_PLAN, *emission.files):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be made a folder ({error.strerror})") from error
    return [write_atomic(folder / name, text) for name, text in sorted({**emission.files, EMITTED_PLAN: plan}.items())]
