"""Judge a map file that an engine would load: read by content, one validator for every format, each fault with its layer and slot.

Shapes: L layers, P slots, G GPUs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.catalog import find_model
from planner.engines import MapFile, engine_names, find_engine
from planner.errors import BadInput, Infeasible
from planner.files import parse_yaml, read_json, read_text
from planner.model import ModelSpec
from planner.plan_file import EMITTED_PLAN, SCHEMA, disagreements, plan_from_dict, read_plan
from planner.problem import check_slots
from planner.rules import row_violations

SHOWN_PROBLEMS = 8  # a fault of one layer is often that of all
LARGEST_MAP_BYTES = 64 << 20  # 61 layers of 4096 slots are 1.5 MB


@dataclass(frozen=True)
class MapReport:
    """What was found. `ok` where nothing is wrong; `unchecked` says what could not be judged, and what it takes."""

    kind: str
    problems: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    facts: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self.problems

    def text(self) -> str:
        """The report for a terminal, a line for each finding."""
        facts = ", ".join(f"{name} {value}" for name, value in self.facts.items())
        count = len(self.problems)
        verdict = "ok" if self.ok else f"{count} problem{'s' if count > 1 else ''}"
        bad = [f"bad: {line}" for line in self.problems[:SHOWN_PROBLEMS]] + ([f"bad: and {count - SHOWN_PROBLEMS} more"] if count > SHOWN_PROBLEMS else [])
        return "\n".join([f"{self.kind}: {facts}", *bad, *(f"not checked: {line}" for line in self.unchecked), verdict])

    def to_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


def check_file(path: str | Path, model_name: str | None = None, ep: int | None = None) -> MapReport:
    """Judge a plan or a map. BadInput where the file is neither, or cannot be read.

    A map beside the plan it was emitted from is judged against that plan's model and EP size where none are given.
    """
    value = _read(path)
    if isinstance(value, dict) and "schema" in value:
        return _plan_report(value, path, ep)
    model, beside = find_model(model_name) if model_name else None, Path(path).with_name(EMITTED_PLAN)
    if model is None and ep is None and beside.is_file():
        problem, _, _ = read_plan(beside)
        report = check_value(value, str(path), problem.model, problem.gpus)
        return replace(report, facts={**report.facts, "model and EP size from": str(beside)})
    return check_value(value, str(path), model, ep)


def check_map(path: str | Path, model: ModelSpec | None = None, gpus: int | None = None) -> MapReport:
    """Judge a map. Without `model` the expert count is inferred; without `gpus` it is not known which slots share a GPU."""
    return check_value(_read(path), str(path), model, gpus)


def check_value(value: Any, where: str, model: ModelSpec | None = None, gpus: int | None = None) -> MapReport:
    """Judge parsed JSON or YAML; BadInput where it is no engine's map."""
    for engine in engine_names():
        found = find_engine(engine).read_map(value)
        if found is not None:
            return judge(found, model, gpus)
    held = f"the keys {', '.join(repr(key)[:40] for key in list(value)[:5]) or 'none'}" if isinstance(value, dict) else f"a {type(value).__name__}"
    raise BadInput(f"{where}: not a map we know, it holds {held}; expected 'physical_to_logical_map' (SGLang) or 'num_slots' (TensorRT-LLM)")


def judge(found: MapFile, model: ModelSpec | None, gpus: int | None) -> MapReport:
    """Every rule on one map. At most one problem for a layer and rule."""
    if gpus is not None and gpus < 1:
        raise BadInput(f"EP size {gpus}: it must be at least 1")
    problems = list(found.problems)
    rows = {layer: _integers(row, layer, problems) for layer, row in found.rows}
    slots = found.slots or next((len(row) for row in rows.values() if row is not None), 0)
    problems += [f"layer {layer}: {len(row)} slots, expected {slots}" for layer, row in rows.items() if row is not None and len(row) != slots]
    whole = {layer: row for layer, row in rows.items() if row is not None and len(row) == slots}
    if model is not None:
        problems += _layer_problems([layer for layer, _ in found.rows], model, every_layer=found.every_layer)
    expert_LP = np.array(list(whole.values()), dtype=np.int64).reshape(len(whole), slots)
    experts = model.experts if model else int(expert_LP.max(initial=-1)) + 1
    if whole:
        problems += _row_problems(expert_LP, tuple(whole), experts, gpus, model)
    facts: dict[str, int | str] = {"layers": len(found.rows), "slots": slots, "experts": experts}
    facts["experts from"] = "the model" if model else "the largest id + 1"
    if gpus:
        facts["EP size"] = gpus
    elif whole:
        facts["EP sizes without duplicates"] = ", ".join(map(str, _clean_sizes(expert_LP))) or "none"
    return MapReport(found.kind, tuple(problems), tuple(_unchecked(model, gpus)), facts)


def _read(path: str | Path) -> Any:
    """JSON or YAML by content. A flow mapping in YAML begins like JSON, so the suffix decides between the two."""
    text = read_text(path, LARGEST_MAP_BYTES)
    if text.lstrip()[:1] in {"{", "["} and Path(path).suffix not in {".yaml", ".yml"}:
        return read_json(path, LARGEST_MAP_BYTES)
    return parse_yaml(text, str(path))


def _integers(row: Any, layer: int, problems: list[str]) -> list[int] | None:
    """The row, or None and a problem where a cell is no whole number that an expert id could be."""
    if not isinstance(row, list) or not row:
        problems.append(f"layer {layer}: the row is {'empty' if row == [] else f'a {type(row).__name__}'}; expected a list of expert ids")
        return None
    for slot, cell in enumerate(row):
        if type(cell) is not int:
            problems.append(f"layer {layer}, slot {slot}: {repr(cell)[:40]} is not a whole number")
            return None
        if not -(2**31) <= cell < 2**31:
            problems.append(f"layer {layer}, slot {slot}: expert id {cell:.3g} is out of every range")
            return None
    return row


def _layer_problems(layers: list[int], model: ModelSpec, *, every_layer: bool) -> Iterator[str]:
    """Missing rows; and surplus ones where a row's place says its layer. A key that the engine never looks up does no harm."""
    if every_layer:
        if len(layers) != model.layers:
            hint = ""
            if len(layers) == len(model.moe_layer_ids):
                hint = "; there is one row for each MoE layer, so the engine would give layers the rows of later ones: dense layers need a row too"
            yield f"{len(layers)} rows, and {model.name} has {model.layers} decoder layers, each of which needs a row in its place{hint}"
        return
    for layer in model.placed_layer_ids:
        if layer not in layers:
            draft = " (a draft layer: the engine asks for it when MTP is on)" if layer in model.draft_layer_ids else ""
            yield f"layer {layer} of {model.name} has no row{draft}"


def _row_problems(expert_LP: npt.NDArray[np.int64], layer_ids: tuple[int, ...], experts: int, gpus: int | None, model: ModelSpec | None) -> Iterator[str]:
    """The judge's rules of rows. Without an EP size nothing is said of duplicates, nor of divisibility."""
    slots = expert_LP.shape[1]
    if experts > slots:
        row, slot = np.unravel_index(int(expert_LP.argmax()), expert_LP.shape)
        named = (
            f"{model.name} has {experts} experts"
            if model
            else f"layer {layer_ids[row]}, slot {slot}: expert id {expert_LP[row, slot]} implies {experts} experts"
        )
        yield f"{named}, and a row has {slots} slots, so some expert has none"
        if model is None:  # an absurd id would make the count below as large as itself
            return
    for violation in row_violations(expert_LP, layer_ids, experts, gpus or 1):
        if gpus is None and violation.rule == "distinct":
            continue
        yield _nearest(model, gpus, slots) or violation.text if violation.rule == "divides" else violation.text


def _nearest(model: ModelSpec | None, gpus: int | None, slots: int) -> str | None:
    """What a slot count that does not divide could be instead, in the words of the check that every question passes."""
    try:
        if model and gpus:
            check_slots(model, gpus, slots - model.experts)
    except Infeasible as error:
        return str(error)
    return None


def _clean_sizes(expert_LP: npt.NDArray[np.int64]) -> list[int]:
    """EP sizes, divisors of the slot count, for which no GPU holds an expert twice."""
    slots = expert_LP.shape[1]
    sizes = (size for size in range(1, slots + 1) if slots % size == 0)
    return [size for size in sizes if not (np.diff(np.sort(expert_LP.reshape(len(expert_LP), size, -1), axis=2), axis=2) == 0).any()]


def _unchecked(model: ModelSpec | None, gpus: int | None) -> Iterator[str]:
    if model is None:
        yield "that the map has the model's experts, and a row for each of its layers: name the model"
    if gpus is None:
        yield "that no expert sits twice on one GPU, and that slots divide over GPUs: give the EP size"


def _plan_report(value: dict[str, Any], path: str | Path, ep: int | None) -> MapReport:
    problem, placement, plan = plan_from_dict(value, str(path))
    problems = disagreements(problem, placement, plan)
    if ep is not None and ep != problem.gpus:
        problems.insert(0, f"the plan is for an EP size of {problem.gpus}, not {ep}")
    facts: dict[str, int | str] = {"model": problem.model.name, "layers": len(placement.layer_ids), "slots": placement.slots, "EP size": problem.gpus}
    return MapReport(f"plan ({SCHEMA})", tuple(problems), (), facts)
