"""What lies beside a map: the plan that it was emitted from, and the list of what was emitted."""

from dataclasses import dataclass
from pathlib import Path

from planner.base import BadInput
from planner.maps.manifest import Manifest, manifest_of
from planner.plan import EMITTED_PLAN, SavedPlan, read_plan
from planner.problem import Problem


@dataclass(frozen=True)
class Beside:
    """The plan and the list; None where there is none, and `fault` where the plan is there and broken."""

    plan_file: Path
    saved: SavedPlan | None
    fault: str
    manifest: Manifest | None
    name: str | None  # of the map in the list

    @property
    def map_changed(self) -> bool:
        return bool(self.manifest and self.name and self.manifest.changed(self.name))

    @property
    def plan_changed(self) -> bool:
        listed = self.manifest is not None and EMITTED_PLAN in self.manifest.digests
        beside = self.manifest is not None and self.plan_file.parent == self.manifest.folder
        return bool(self.manifest and listed and beside and self.manifest.changed(EMITTED_PLAN))


def beside(path: Path) -> Beside:
    """What lies beside the map, or in the folder of the emission that wrote it."""
    manifest = manifest_of(path)
    name = manifest.name_of(path) if manifest else None
    plan_file = (manifest.folder if manifest else path.parent) / EMITTED_PLAN
    saved, fault = None, ""
    try:
        saved = read_plan(plan_file) if plan_file.is_file() else None
    except BadInput as error:
        fault = str(error)
    return Beside(plan_file, saved, fault, manifest, name)


def problem_beside(path: Path) -> Problem | None:
    """The question of the plan beside a map. BadInput where the plan is there and broken."""
    found = beside(path)
    if found.fault:
        raise BadInput(found.fault)
    return found.saved.problem if found.saved else None
