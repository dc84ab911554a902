"""From a plan file to the files an engine loads."""

from pathlib import Path

from planner.engines import Emission, find_engine
from planner.errors import BadInput
from planner.files import read_text, write_atomic
from planner.plan_file import EMITTED_PLAN, read_plan


def emit_plan(plan_file: Path, engine: str, model_path: str | None = None) -> Emission:
    """What `engine` loads to serve the plan. BadInput where the plan breaks a hard rule or one of the engine's limits."""
    problem, placement, value = read_plan(plan_file)
    found = find_engine(engine)
    emission = found.emit(placement, problem, model_path or problem.model.name)
    if problem.replica_rule != found.REPLICA_RULE:
        note = (
            f"the plan was judged under the replica rule '{problem.replica_rule}' (engine {value.get('engine') or 'none'}); {found.TITLE} uses "
            f"'{found.REPLICA_RULE}': `moeplan evaluate {plan_file} --engine {engine}` shows what that costs"
        )
        emission = Emission(emission.files, emission.launch, (*emission.notes, note))
    return emission


def write_emission(emission: Emission, plan_file: Path, folder: Path) -> list[Path]:
    """Write the files and a copy of the plan into the folder, which is made where it is absent. Each file is replaced whole or not at all."""
    plan = read_text(plan_file)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be made a folder ({error.strerror})") from error
    return [write_atomic(folder / name, text) for name, text in sorted({**emission.files, EMITTED_PLAN: plan}.items())]
