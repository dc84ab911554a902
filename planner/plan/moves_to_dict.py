"""Moves, and the resize behind them, as plain values for JSON."""

from typing import Any

import numpy as np

from planner.plan.moves import Moves, steps_to_pay
from planner.plan.plain import attributes, rows
from planner.plan.resize import Resize


def moves_to_dict(moves: Moves, saved_seconds: float | None) -> dict[str, Any]:
    """Figures and every transfer: [wave, layer, expert, sending GPU, receiving GPU, slot], and every read."""
    found, reads = moves.transfers, moves.transfers.reads
    layer_ids = np.array(moves.layer_ids, dtype=np.int64)
    read = (layer_ids[reads.row_D], reads.expert_D, reads.target_D, reads.slot_D)
    columns = {
        "wave": found.wave_T,
        "layer": layer_ids[found.row_T],
        "expert": found.expert_T,
        "source": found.source_T,
        "target": found.target_T,
        "slot": found.slot_T,
    }
    return {
        "from": moves.previous,
        "allowed": moves.most,
        "needed": moves.needed,
        "moved_slots": moves.moved,
        "share": moves.share,
        "bytes": moves.total_bytes,
        **attributes(moves, "most_received_bytes", "seconds"),
        "saved_seconds_a_step": saved_seconds,
        "steps_to_pay": steps_to_pay(moves, saved_seconds),
        "waves": rows({"bytes": moves.bytes_W, "seconds": moves.seconds_W}),
        "columns": list(columns),
        "transfers": np.stack(list(columns.values()), axis=1).tolist(),
        "read_bytes": moves.read_bytes,
        "read_columns": ["layer", "expert", "target", "slot"],
        "reads": np.stack(read, axis=1).tolist(),
        "resize": resize_to_dict(moves.resize) if moves.resize else None,
    }


def resize_to_dict(resize: Resize) -> dict[str, Any]:
    """The numbers by which the transfers count GPUs and slots, and which of them each rank of the plan is."""
    return {
        "how": resize.how,
        "changed": list(resize.changed),
        "gpus": resize.topology.gpu_count,
        "gpu_of_rank": list(resize.kept_G),
    }
