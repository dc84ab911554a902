"""What every figure rests on: rates, constants, load, lengths, the machine's own words; weakest last."""

from itertools import groupby

from planner.base import human_bandwidth, human_bytes
from planner.cost import constants_of, whole_step
from planner.load import shipped_load
from planner.model import find_model, model_names
from planner.page.evidence_kind import KINDS, kind_tag
from planner.page.html import Content, tag
from planner.page.tables import folded_table, table_of
from planner.page.told import Told
from planner.report.details import WARNING

TITLE = "What it rests on"
MEANINGS = {
    "exact": "counted from the model's own shapes",
    "measured": "on the machine that is planned for",
    "read": "from a driver, the system, a model's configuration, or an engine's sources",
    "imported": "from a file that was given, or what a tool printed",
    "fitted": "to measurements that others published, on the chip named",
    "preset": "from data sheets and publications, shipped with moeplan",
    "assumed": "nobody said or measured it",
}

Row = tuple[str, str, str, str]  # what, figure, kind, source


def section(told: Told) -> Content:
    rows = sorted(
        [*_links(told), *_gpus(told), *_fabric(told), *_constants(told), *_question(told)], key=_strength
    )
    cells = [
        [what, said, kind_tag(kind), tag("span", source, class_="long")] for what, said, kind, source in rows
    ]
    notes = [note for note in told.value.get("notes", ()) if not note.startswith(WARNING)]
    meanings = [[kind_tag(kind), MEANINGS[kind]] for kind in KINDS]
    return [
        table_of(
            ("what", "figure", "evidence", "source and error"),
            cells,
            "Assumptions, the strongest first",
            words=(0, 1, 2, 3),
        ),
        table_of(
            ("evidence", "meaning"), meanings, "Kinds of evidence, from strongest to weakest", words=(0, 1)
        ),
        tag("h3", "Notes") if notes else None,
        tag("ul", [tag("li", note) for note in notes]) if notes else None,
        _faults(told),
        _provenance(told),
    ]


def _strength(row: Row) -> tuple[int, str, str]:
    return KINDS.index(row[2]), row[0], row[1]


def _links(told: Told) -> list[Row]:
    """Rates by tier, kind and source."""
    found = sorted(
        (one.tier, one.rate.evidence.kind, one.rate.evidence.source, one.rate.bytes_per_s)
        for one in told.problem.topology.resources
    )
    rows = []
    for (tier, kind, source), group in groupby(found, key=lambda one: one[:3]):
        rates = [one[3] for one in group]
        said = " to ".join(dict.fromkeys(map(human_bandwidth, (min(rates), max(rates)))))
        rows.append((f"{len(rates):,} {tier} rates", said, kind, source))
    return rows


def _gpus(told: Told) -> list[Row]:
    return [
        (
            f"GPU {model.name}",
            f"{human_bytes(model.memory_bytes)}, {human_bandwidth(model.memory_bytes_per_s)}",
            model.evidence.kind,
            model.evidence.source,
        )
        for model in told.problem.topology.models
    ]


def _fabric(told: Told) -> list[Row]:
    topology = told.problem.topology
    if topology.node_count == 1:
        return []
    fabric, evidence = topology.fabric, topology.fabric.evidence
    over = (
        f"oversubscribed {fabric.oversubscription:g} : 1" if fabric.kind != "none" else "no bottleneck known"
    )
    rows = [("network between nodes", f"{fabric.kind}, {over}", evidence.kind, evidence.source)]
    if topology.calibration is not None:
        rows.append(
            (
                "calibration of this machine",
                "start-up and efficiency",
                "measured",
                "moeplan validate --calibrate",
            )
        )
    return rows


def _constants(told: Told) -> list[Row]:
    """Of dispatch, combine and compute, with their own error; of the whole step."""
    found = constants_of(told.problem)
    rows = [
        (f"constants of {name}", _judged(one.held_out), "fitted", f"{one.source}; {one.error}")
        for name, one in (
            ("dispatch", found.dispatch),
            ("combine", found.combine),
            ("compute", found.compute),
        )
    ]
    whole = whole_step(told.problem, told.judged, told.engine)
    error = "not judged on this GPU" if whole.error_share is None else f"± {whole.error_share:.0%}"
    rows.append(("whole step", error, "fitted", whole.error))
    if whole.basis.startswith("assumed"):
        rows.append(("attention and dense layers", "-", "assumed", whole.basis))
    return rows


def _judged(held_out: float | None) -> str:
    return "error not judged here" if held_out is None else f"± {held_out:.1%} on what was left out"


def _question(told: Told) -> list[Row]:
    """What was asked, and what nobody said."""
    workload, load = told.problem.workload, told.problem.load
    lengths = f"{workload.prompt_tokens:,} + {workload.output_tokens:,} tokens a request"
    rows = [
        (
            "lengths of requests",
            lengths,
            "read" if workload.context_given else "assumed",
            "given" if workload.context_given else "usual",
        )
    ]
    layers, unmeasured = len(load.layer_ids), len(load.unmeasured_layer_ids)
    measured = f"{layers - unmeasured} of {layers} layers"
    if unmeasured < layers:
        rows.append(("expert load", measured, _load_kind(told), load.source))
    if unmeasured:
        rows.append(
            (
                "expert load",
                f"{unmeasured} of {layers} layers",
                "assumed",
                f"{load.source}: no count of these layers",
            )
        )
    rows.append(
        (
            "model",
            told.problem.model.name,
            "read",
            str(told.value["provenance"].get("model_source", "the plan file")),
        )
    )
    return rows


def _load_kind(told: Told) -> str:
    """Published figures ship with moeplan; every other load was a file."""
    name = told.problem.model.name
    shipped = shipped_load(find_model(name)) if name in model_names() else None
    return "preset" if shipped is not None and shipped.source == told.problem.load.source else "imported"


def _faults(told: Told) -> Content:
    """Sentences of whoever looked at the machine."""
    faults = [
        f"node {number}: {fault}"
        for number, node in enumerate(told.problem.topology.nodes)
        for fault in node.faults
    ]
    return (
        [tag("h3", "What was found wrong with the machine"), tag("ul", [tag("li", one) for one in faults])]
        if faults
        else None
    )


def _provenance(told: Told) -> Content:
    rows = [[key, str(value)] for key, value in told.value["provenance"].items()]
    return folded_table(("provenance", "of this plan file"), rows, "Provenance", words=(0, 1), shown=20)
