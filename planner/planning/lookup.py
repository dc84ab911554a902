"""Names and files of a question looked up, and every assumption that fills a gap written down."""

from pathlib import Path

from planner.base import BadInput
from planner.engines import Engine, map_formats, stand_ins
from planner.load import LoadProfile, read_load, shipped_load, uniform_load
from planner.maps import read_slot_map
from planner.model import ModelSpec
from planner.planning.request import PlanRequest
from planner.problem import OUTPUT_TOKENS, PROMPT_TOKENS, Workload
from planner.topology import (
    MEASURED_OTHERWISE,
    Topology,
    calibrated,
    kept_comparisons,
    read_calibration,
    read_topology,
)

DEFAULT_TOPOLOGY = "hgx-h100"
GATHERED, GATHERED_RULE = "allgather", "row-index"  # of a launch without an all-to-all
TOKENS_PER_RANK = {"decode": 128, "prefill": 4096}


def find_topology(
    text: str | Topology | None, ep: int | None = None, calibrations: tuple[Path, ...] = ()
) -> tuple[Topology, tuple[str, ...]]:
    """The topology asked for with these calibrations, cut to the EP size where one is given, and notes on
    what was assumed.
    """
    topology = text if isinstance(text, Topology) else read_topology(text or DEFAULT_TOPOLOGY)
    topology = with_calibrations(topology, calibrations)
    notes: tuple[str, ...] = ()
    if not text:
        assumed = f"the preset {DEFAULT_TOPOLOGY} was assumed, one node of {topology.gpu_count} GPUs"
        notes = (f"no topology given: {assumed}",)
    notes += tuple(
        f"planned with what was measured: {one.text}; moeplan topology check says why and what it costs"
        for one in kept_comparisons(topology)
        if one.departs
    )
    notes += _measured_otherwise(topology)
    notes += calibration_notes(topology)
    if ep is None or ep == topology.gpu_count:
        return topology, notes
    first, sizes = len(topology.nodes[0].gpus), topology.ep_sizes()
    if 0 < ep <= first:
        return topology.select(1, ep), notes
    whole = sizes[first - 1 :]
    if ep not in whole:
        shown = ", ".join(map(str, whole[:8])) + (", ..." if len(whole) > 8 else "")
        raise BadInput(
            f"--ep {ep}: {topology.name} has whole nodes for EP sizes {shown}, "
            f"or up to {first} GPUs of its first node"
        )
    return topology.select(whole.index(ep) + 1), notes


def _measured_otherwise(topology: Topology) -> tuple[str, ...]:
    """What a benchmark shows that was too short to take its rates from."""
    faults = dict.fromkeys(fault for node in topology.nodes for fault in node.faults)
    told = [one.removeprefix(MEASURED_OTHERWISE) for one in faults if one.startswith(MEASURED_OTHERWISE)]
    return tuple(
        f"WARNING: planned with the stated rates, though {one}: measure a sweep of sizes" for one in told
    )


def with_calibrations(topology: Topology, files: tuple[Path, ...]) -> Topology:
    """BadInput where one is damaged, or was not taken on such links."""
    for path in files:
        topology = calibrated(topology, read_calibration(path), f"--calibration {path}")
    return topology


def calibration_notes(topology: Topology) -> tuple[str, ...]:
    """That the seconds are those of runs on this machine, over which backend."""
    if topology.calibration is None:
        return ()
    over = topology.calibration.backend
    runs = ", ".join(dict.fromkeys(f"{one.machine}, {one.date}" for one in topology.calibration.phases))
    cpu = ": seconds are those of CPU processes, no GPU sends so" if over == "gloo" else ""
    return (f"predicted with a calibration over {over} ({runs}){cpu}",)


def find_load(
    files: tuple[Path, ...] | LoadProfile,
    model: ModelSpec,
    map_file: Path | None = None,
    ranks: str | None = None,
) -> LoadProfile:
    """The load in the files; where none are given the profile shipped for the model, else an even one that
    says so.
    """
    if isinstance(files, LoadProfile):
        return files
    if files:
        return read_load(files, model, read_slot_map(map_file, model) if map_file else None, ranks)
    if map_file:
        raise BadInput(
            f"--map {map_file}: it says which experts the slots of a load held, and no --load was given"
        )
    return shipped_load(model) or uniform_load(model)


def workload_for(
    request: PlanRequest, model: ModelSpec, topology: Topology, engine: Engine | None = None
) -> Workload:
    """Tokens, dtypes and transport of a step: what was asked, else the engine's own, else the usual."""
    phase, tokens = request.phase, request.tokens_per_rank
    usual_dtype = "fp8" if model.weight_dtype == "fp8" else "bf16"
    dispatch_dtype = engine.dispatch_dtype(model) if engine else usual_dtype
    transport = request.transport or usual_transport(phase, topology, model, engine)
    if tokens is None:
        tokens = TOKENS_PER_RANK[phase]
    prompt, output = request_lengths(request)
    given = any(length is not None for length in (request.context, request.isl, request.osl))
    return Workload(
        tokens,
        phase,
        dispatch_dtype,
        "bf16",
        transport,
        prompt_tokens=prompt,
        output_tokens=output,
        attention_tp=request.attention_tp,
        context_given=given,
    )


def refuse_other_transport(
    request: PlanRequest, rule: str, model: ModelSpec, topology: Topology, engine: Engine | None
) -> None:
    """BadInput where an all-to-all is asked for and the rule is that of a launch without one."""
    asked = request.transport
    if rule != GATHERED_RULE or asked in (None, GATHERED):
        return
    if engine is not None and engine.transport(request.phase, topology, model) != GATHERED:
        return
    who = (
        f"{engine.TITLE} would serve {model.name} on {topology.name}"
        if engine
        else f"an engine with {rule} runs"
    )
    raise BadInput(
        f"--transport {asked}: {who} without an all-to-all ({rule}): every GPU gets every token; "
        f"use --transport {GATHERED}, or leave it out"
    )


def request_lengths(request: PlanRequest) -> tuple[int, int]:
    """Tokens of a request's prompt and output: as asked, a context half and half, else what is assumed."""
    if request.context is None:
        prompt = PROMPT_TOKENS if request.isl is None else request.isl
        return prompt, OUTPUT_TOKENS if request.osl is None else request.osl
    if request.isl is not None or request.osl is not None:
        both = "--context is --isl and --osl together"
        raise BadInput(f"--context {request.context}: {both}; give it alone, or the two of them")
    if request.context < 2:
        raise BadInput(f"--context {request.context}: a request has a prompt and an output; give 2 or more")
    return request.context - request.context // 2, request.context // 2


def usual_transport(phase: str, topology: Topology, model: ModelSpec, engine: Engine | None) -> str:
    """The engine's own, else what is usual on the machine."""
    if engine:
        return engine.transport(phase, topology, model)
    if phase == "decode":
        return "slot"
    return "rank" if min(topology.node_count, topology.domain_count) == 1 else "node"


def model_notes(model: ModelSpec) -> tuple[str, ...]:
    notes = []
    if model.facts_of:
        notes.append(
            f"the catalogue has no {model.name}: "
            f"the facts are those of {model.facts_of}, the same architecture"
        )
    if model.dtype_assumed:
        notes.append(f"the weight dtype of {model.name} is not verified: {model.weight_dtype} was assumed")
    return tuple(notes)


def map_notes(engine: Engine | None, model: ModelSpec) -> tuple[str, ...]:
    """Where the plan's map would not be read, said before anyone counts on the plan."""
    if engine is None or engine.NAME not in (*map_formats(), *stand_ins()) or engine.reads_map(model):
        return ()
    instead = "it would serve its default placement, and `emit` writes no map for it"
    return (f"{engine.TITLE} {engine.VERSION} does not read a map for {model.architecture}: {instead}",)
