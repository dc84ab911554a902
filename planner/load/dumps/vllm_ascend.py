"""vllm-ascend (source of 2026-08-22): the one file it records is its map, which is no load and is refused.

It keeps its expert heat in memory. Its offline planner takes a plain tensor [layer, expert], which
`planner.load.dumps.eplb` reads.
"""

from collections.abc import Sequence

from planner.base import BadInput, read_bytes
from planner.load.dumps.opened import Opened
from planner.load.recording import Recording
from planner.model import ModelSpec

HEAD_BYTES = 4096


def recognise(found: Opened, model: ModelSpec) -> bool:
    """A JSON file that begins with the keys of an expert map."""
    del model
    return (
        found.kind == "name"
        and found.path.suffix.lower() == ".json"
        and b'"moe_layer_count"' in read_bytes(found.path)[:HEAD_BYTES]
    )


def read(dumps: Sequence[Opened], model: ModelSpec, ranks: str | None) -> list[Recording]:
    """BadInput: a map says where experts sit, not how much they are used."""
    del model, ranks
    raise BadInput(
        f"{dumps[0].path}: this is vllm-ascend's expert map (expert_map_path or expert_map_record_path): "
        "it says where experts sit, not how often they are chosen. `moeplan check` judges it; "
        "as a load give counts, like the tensor [layer, expert] that its offline planner takes"
    )
