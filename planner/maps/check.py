"""Judge a plan or a map file that an engine would load: read by content, one validator for every format, one report."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from planner.base import BadInput, parse_yaml, read_json, read_npz, read_text
from planner.engines import MapFile, engine_names, find_engine, find_format, map_formats
from planner.maps.rules import cell_violations, clean_sizes, layer_violations, rows_LP, whole_rows
from planner.model import ModelSpec, find_model
from planner.plan import EMITTED_PLAN, SCHEMA, disagreements, plan_from_dict, read_plan
from planner.problem import Problem, Violation

SHOWN_PROBLEMS = 8  # a fault of one layer is often that of all
LARGEST_MAP_BYTES = 64 << 20  # 61 layers of 4096 slots are 1.5 MB


@dataclass(frozen=True)
class MapReport:
    """What was found. `ok` where nothing is wrong; `unchecked` says what could not be judged, and what it takes."""

    kind: str
    violations: tuple[Violation, ...] = ()
    unchecked: tuple[str, ...] = ()
    facts: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self.violations

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(violation.text for violation in self.violations)

    def text(self) -> str:
        """The report for a terminal, a line for each finding."""
        facts = ", ".join(f"{name} {value}" for name, value in self.facts.items())
        count = len(self.problems)
        verdict = "ok" if self.ok else f"{count} problem{'s' if count > 1 else ''}"
        bad = [f"bad: {line}" for line in self.problems[:SHOWN_PROBLEMS]] + (
            [f"bad: and {count - SHOWN_PROBLEMS} more"] if count > SHOWN_PROBLEMS else []
        )
        return "\n".join(
            [f"{self.kind}: {facts}", *bad, *(f"not checked: {line}" for line in self.unchecked), verdict]
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            **asdict(self),
            "violations": [asdict(violation) for violation in self.violations],
            "problems": self.problems,
        }


def check_file(
    path: str | Path, model_name: str | None = None, ep: int | None = None, engine: str | None = None
) -> MapReport:
    """Judge a plan or a map, also as `engine` would take it (an engine's name, or a map format's). BadInput where it is neither, or cannot be read.

    A map beside the plan it was emitted from is judged against that plan's model and EP size where none are given.
    """
    if engine is not None and engine not in map_formats():
        find_engine(engine)
    value = read_value(path)
    if isinstance(value, dict) and "schema" in value:
        return _plan_report(value, path, ep, engine)
    model, beside = find_model(model_name) if model_name else None, Path(path).with_name(EMITTED_PLAN)
    if model is None and ep is None and beside.is_file():
        problem, _, _ = read_plan(beside)
        report = check_value(value, str(path), problem.model, problem.gpus, engine)
        return replace(report, facts={**report.facts, "model and EP size from": str(beside)})
    return check_value(value, str(path), model, ep, engine)


def check_map(path: str | Path, model: ModelSpec | None = None, gpus: int | None = None) -> MapReport:
    """Judge a map. Without `model` the expert count is inferred; without `gpus` it is not known which slots share a GPU."""
    return check_value(read_value(path), str(path), model, gpus)


def check_value(
    value: Any, where: str, model: ModelSpec | None = None, gpus: int | None = None, engine: str | None = None
) -> MapReport:
    """Judge parsed JSON or YAML; BadInput where it is no engine's map."""
    named, found = find_map(value, where, prefer=engine)
    report = judge(found, model, gpus)
    if engine is None:
        return report
    gpus = gpus or found.gpus
    return replace(
        report, violations=(*report.violations, *_engine_violations(engine, named, model, report, gpus))
    )


def find_map(value: Any, where: str, prefer: str | None = None) -> tuple[str, MapFile]:
    """The map in a parsed file and the name of its format. The tensors of a balancer look like SGLang's map: they are taken for one where `prefer` says so."""
    last = "eplb"
    for name in sorted(map_formats(), key=lambda name: (name != prefer, name == last, name)):
        found = find_format(name).read_map(value)
        if found is not None:
            return name, found
    held = (
        f"the keys {', '.join(repr(key)[:40] for key in list(value)[:5]) or 'none'}"
        if isinstance(value, dict)
        else f"a {type(value).__name__}"
    )
    raise BadInput(
        f"{where}: not a map we know, it holds {held}; expected 'physical_to_logical_map' (SGLang, EPLB), 'num_slots' (TensorRT-LLM) "
        "or 'layer_list' (vllm-ascend)"
    )


def judge(found: MapFile, model: ModelSpec | None, gpus: int | None) -> MapReport:
    """Every rule on one map. At most one violation for a layer and rule."""
    if gpus is not None and gpus < 1:
        raise BadInput(f"EP size {gpus}: it must be at least 1")
    broken = [Violation("format", problem) for problem in found.problems]
    if gpus and found.gpus and gpus != found.gpus:
        broken.append(Violation("gpus", f"the map is for {found.gpus} devices, not for an EP size of {gpus}"))
    gpus = gpus or found.gpus
    rows = whole_rows(found, model, broken)
    if model is not None:
        broken += layer_violations(found, model)
    expert_LP = rows_LP(rows) if rows else None
    experts = model.experts if model else (int(expert_LP.max()) + 1 if expert_LP is not None else 0)
    if rows:
        broken += cell_violations(rows, experts, gpus, model)
    slots = expert_LP.shape[1] if expert_LP is not None else found.slots or 0
    facts: dict[str, int | str] = {"layers": len(found.rows), "slots": slots, "experts": experts}
    facts["experts from"] = "the model" if model else "the largest id + 1"
    if gpus:
        facts["EP size"] = gpus
    elif expert_LP is not None:
        facts["EP sizes without duplicates"] = ", ".join(map(str, clean_sizes(expert_LP))) or "none"
    return MapReport(found.kind, tuple(broken), tuple(_unchecked(model, gpus)), facts)


def read_value(path: str | Path) -> Any:
    """JSON, YAML or .npz, by content. A flow mapping in YAML begins like JSON, so the suffix decides between the two."""
    if Path(path).suffix == ".npz":
        arrays = read_npz(path, LARGEST_MAP_BYTES)
        named = (
            {"layer_ids": None} if "physical_to_logical_map" in arrays else {}
        )  # so that it is taken for EPLB's tensors
        return {**named, **{name: array.tolist() for name, array in arrays.items()}}
    text = read_text(path, LARGEST_MAP_BYTES)
    if text.lstrip()[:1] in {"{", "["} and Path(path).suffix not in {".yaml", ".yml"}:
        return read_json(path, LARGEST_MAP_BYTES)
    return parse_yaml(text, str(path))


def _engine_violations(
    engine: str, named: str, model: ModelSpec | None, report: MapReport, gpus: int | None
) -> Iterator[Violation]:
    """What this engine would make of a map of this kind for this model."""
    if engine not in engine_names():
        if engine != named:
            yield Violation(
                "format", f"this is a map of {find_format(named).TITLE}, not {find_format(engine).TITLE}"
            )
        return
    found = find_engine(engine)
    if engine not in map_formats():
        yield Violation("ignored", f"{found.TITLE} {found.VERSION} reads no map file")
        return
    if engine != named:
        text = f"{found.TITLE} would not read this: it is a map of {find_format(named).TITLE}; `moeplan convert --to {engine}` makes its own"
        yield Violation("format", text)
    if model is not None:
        if not found.reads_map(model):
            yield Violation(
                "ignored",
                f"{found.TITLE} {found.VERSION} does not read a map for {model.architecture}: it would ignore this one",
            )
        yield from found.map_limits(model, int(report.facts["slots"]), gpus or 2)


def _unchecked(model: ModelSpec | None, gpus: int | None) -> Iterator[str]:
    if model is None:
        yield "that the map has the model's experts, and a row for each of its layers: name the model"
    if gpus is None:
        yield "that no expert sits twice on one GPU, and that slots divide over GPUs: give the EP size"


def _plan_report(value: dict[str, Any], path: str | Path, ep: int | None, engine: str | None) -> MapReport:
    problem, placement, plan = plan_from_dict(value, str(path))
    broken = [Violation("figures", text) for text in disagreements(problem, placement, plan)]
    if ep is not None and ep != problem.gpus:
        broken.insert(0, Violation("gpus", f"the plan is for an EP size of {problem.gpus}, not {ep}"))
    if engine is not None:
        broken += _served(engine, problem)
    facts: dict[str, int | str] = {
        "model": problem.model.name,
        "layers": len(placement.layer_ids),
        "slots": placement.slots,
        "EP size": problem.gpus,
    }
    return MapReport(f"plan ({SCHEMA})", tuple(broken), (), facts)


def _served(engine: str, problem: Problem) -> Iterator[Violation]:
    """What stands between a plan and this engine."""
    found = find_engine(engine)
    yield from found.limits(problem)
    if not found.reads_map(problem.model):
        yield Violation(
            "ignored",
            f"{found.TITLE} {found.VERSION} reads no map for {problem.model.architecture}: it would not serve this plan's placement",
        )
