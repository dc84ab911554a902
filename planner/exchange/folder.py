"""A folder of traffic matrices: written from a plan, read back with what each was predicted to take.

Schema 'moeplan/traffic/1', in manifest.json (docs/formats.md).
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from planner.base import BadInput, dump_json, read_bytes, read_json, write_folder
from planner.exchange.commands import MATRIX, NCCL, SCRIPT, UCC, command, script
from planner.exchange.formats import Whole as Matrix
from planner.exchange.formats import most_bytes, pattern_text, rows_text, whole_GG
from planner.exchange.sides import LayerExchange
from planner.problem import Problem
from planner.schema import Flag, Kind, Listing, Number, Record, Text, Whole, shape_of
from planner.topology import LARGEST_GPUS

MANIFEST, SCHEMA = "manifest.json", "moeplan/traffic/1"
DEEPEST = 3  # folders between the manifest and a matrix


@dataclass(frozen=True)
class Written:
    """One exchange as it was written. `bytes` are the cost model's, `file_bytes` those of the files."""

    folder: str
    side: str
    layer: int
    phase: str
    hop: str
    bytes: float
    file_bytes: int
    largest_rank_bytes: int
    rank_0_bytes: int
    predicted_seconds: float
    bottleneck: str
    predicted_phase_seconds: float
    sha256: dict[str, str]  # by file name
    commands: dict[str, str]  # by tool, without the launcher


_BYTES, _SECONDS = Whole(0, 1 << 62), Number(0, 1e9)
_WRITTEN = shape_of(
    Written,
    {
        "layer": Whole(0, 1 << 20),
        "bytes": Number(0, 1e30),
        **dict.fromkeys(("file_bytes", "largest_rank_bytes", "rank_0_bytes"), _BYTES),
        **dict.fromkeys(("predicted_seconds", "predicted_phase_seconds"), _SECONDS),
    },
)
TRAFFIC = Kind(
    "a list of traffic matrices",
    SCHEMA,
    "`moeplan traffic PLAN -o FOLDER` writes one",
    Record(
        {
            "schema": Text((SCHEMA,)),
            "plan_sha256": Text(form="[0-9a-f]{64}", said="a SHA-256"),
            "ranks": Whole(1, LARGEST_GPUS),
            "exchanges": Listing(_WRITTEN, 0, 1 << 20),
        },
        {
            **dict.fromkeys(("model", "transport", "phase", "load", "launcher"), Text()),
            "tokens_per_rank": _BYTES,
            "traced": Flag(),
            "hosts": Listing(Text(), 0, LARGEST_GPUS),
        },
    ),
)


@dataclass(frozen=True)
class Traffic:
    """A folder of matrices and the plan that they are of."""

    folder: Path
    plan_sha256: str
    ranks: int
    exchanges: tuple[Written, ...]


def write_traffic(
    problem: Problem, plan_file: Path, exchanges: Sequence[LayerExchange], folder: Path
) -> list[Path]:
    """The matrices, a script that runs them and the manifest: all or nothing. Same plan, same bytes."""
    texts: dict[str, str] = {}
    written = []
    for one in exchanges:
        sent_GG = whole_GG(one.exchange.bytes_GG)
        files = {MATRIX[NCCL]: rows_text(sent_GG), MATRIX[UCC]: pattern_text(sent_GG)}
        texts |= {f"{one.folder}/{name}": text for name, text in files.items()}
        written.append(_as_written(one, sent_GG, files))
    manifest = _manifest(problem, plan_file, written)
    texts[SCRIPT] = script(manifest["launcher"], {one.folder: one.commands for one in written})
    texts[MANIFEST] = dump_json(manifest)
    if (folder / MANIFEST).is_file():
        TRAFFIC.check(
            read_json(folder / MANIFEST), str(folder / MANIFEST)
        )  # somebody else's is not ours to write
    return write_folder(folder, texts)


def _as_written(one: LayerExchange, sent_GG: Matrix, files: Mapping[str, str]) -> Written:
    exchange = one.exchange
    return Written(
        folder=one.folder,
        side=one.side,
        layer=one.layer_id,
        phase=exchange.phase,
        hop=exchange.hop,
        bytes=float(exchange.bytes_GG.sum()),
        file_bytes=int(sent_GG.sum()),
        largest_rank_bytes=most_bytes(sent_GG),
        rank_0_bytes=int(sent_GG[0].sum()),
        predicted_seconds=exchange.seconds,
        bottleneck=exchange.bottleneck,
        predicted_phase_seconds=exchange.phase_seconds,
        sha256={name: _digest(text.encode()) for name, text in files.items()},
        commands={tool: command(tool, one.folder, sent_GG) for tool in MATRIX},
    )


def _manifest(problem: Problem, plan_file: Path, written: Sequence[Written]) -> dict[str, Any]:
    names = [node.name for node in problem.topology.nodes]
    return {
        "schema": SCHEMA,
        "plan_sha256": _digest(read_bytes(plan_file)),
        "model": problem.model.name,
        "transport": problem.workload.transport,
        "phase": problem.workload.phase,
        "tokens_per_rank": problem.workload.tokens_per_rank,
        "load": problem.load.source,
        "traced": problem.load.trace is not None,
        "ranks": problem.gpus,
        "hosts": [names[node] for node in problem.node_G.tolist()] if all(names) else [],
        "launcher": f"mpirun -np {problem.gpus}",
        "exchanges": [asdict(one) for one in written],
    }


def read_traffic(path: Path, plan_file: Path) -> Traffic:
    """The folder that `path` is, or that it lies in.

    BadInput where there is none, or it is of another plan.
    """
    start = path if path.is_dir() else path.parent
    folders = [start, *start.absolute().parents[:DEEPEST]]
    folder = next((one for one in folders if (one / MANIFEST).is_file()), None)
    if folder is None:
        raise BadInput(
            f"{path}: lies in no folder that `moeplan traffic` wrote (no {MANIFEST}); keep a result beside "
            "the matrix that was run"
        )
    where = str(folder / MANIFEST)
    value = read_json(folder / MANIFEST)
    TRAFFIC.check(value, where)
    if value["plan_sha256"] != _digest(read_bytes(plan_file)):
        raise BadInput(f"{folder}: its matrices are of another plan than {plan_file}; write them anew")
    exchanges = tuple(Written(**one) for one in value["exchanges"])
    return Traffic(folder, value["plan_sha256"], value["ranks"], exchanges)


def check_unchanged(traffic: Traffic, written: Written, tool: str) -> None:
    """BadInput where the matrix that a tool ran is gone, or is not the one that was written."""
    path = traffic.folder / written.folder / MATRIX[tool]
    if _digest(read_bytes(path)) != written.sha256.get(path.name):
        raise BadInput(
            f"{path}: it was changed since `moeplan traffic` wrote it; write it anew and run it again"
        )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
