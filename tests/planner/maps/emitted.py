"""Folders as `emit` leaves them, with a map of any format: plan, map, launch script and list of digests."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from planner.engines import find_format
from planner.maps.manifest import MANIFEST, manifest_text
from planner.model import ModelSpec
from planner.placement import Placement
from planner.plan import judged, read_plan, write_plan
from tests.planner.engines.examples import machine, question

Rows = Mapping[int, Sequence[int]]


def rows_of(placement: Placement) -> dict[int, list[int]]:
    return dict(zip(placement.layer_ids, placement.expert_LP.tolist(), strict=True))


def emitted(folder: Path, name: str, model: ModelSpec, placement: Placement) -> Path:
    """The map of that format in the folder of an emission."""
    redundant = placement.slots - model.experts
    problem = question(model, machine(placement.gpus), redundant)
    plan = write_plan(judged(problem, placement), folder / "plan.json")
    path = write_rows(folder, name, model, rows_of(placement), placement.gpus)
    (folder / "launch.sh").write_text("true\n")
    texts = {one.name: one.read_text() for one in (plan, path, folder / "launch.sh")}
    (folder / MANIFEST).write_text(manifest_text(texts))
    return path


def write_rows(folder: Path, name: str, model: ModelSpec, rows: Rows, gpus: int) -> Path:
    """These rows as a map of that format, in the place of the one that was emitted."""
    path = folder / find_format(name).MAP_NAME
    path.write_text(find_format(name).map_text(rows, model, gpus))
    return path


def replan(folder: Path, placement: Placement) -> None:
    """Another placement for the same question in plan.json."""
    problem = read_plan(folder / "plan.json").problem
    write_plan(judged(problem, placement), folder / "plan.json")
