"""vLLM 0.33.0: the ids that --enable-return-routed-experts gives, one .npy a request.

Its balancedness log, which holds no load, is refused.
Shapes: T tokens, L decoder layers, K = top_k.
"""

import re
from collections.abc import Sequence

import numpy as np

from planner.base import BadInput
from planner.load.dumps.opened import Opened
from planner.load.dumps.parts import join_requests
from planner.load.recording import Recording
from planner.model import ModelSpec

LOG_LINE = re.compile(
    r"EPLB step: \d+ for model .*?"
    r"avg_tokens=([0-9.]{1,30}), max_tokens=(\d{1,30}), balancedness=([0-9.]{1,10})"
)


def recognise(found: Opened, model: ModelSpec) -> bool:
    """An .npy of uint8 or uint16 [token, decoder layer, k], or a log with EPLB lines."""
    if found.kind == "text":
        return LOG_LINE.search(found.value) is not None
    ids = found.value
    if found.kind != "array" or not isinstance(ids, np.ndarray) or ids.dtype not in (np.uint8, np.uint16):
        return False
    return ids.ndim == 3 and ids.shape[1:] == (model.layers, model.top_k) and len(ids) > 0


def read(dumps: Sequence[Opened], model: ModelSpec, ranks: str | None) -> list[Recording]:
    """All requests as one trace, a sequence a request.

    BadInput for a log, and where the axes could be read in two ways.
    """
    del ranks
    for found in dumps:
        if found.kind == "text":
            raise BadInput(f"{found.path}: {_about_log(found.value)}")
        # with a dense layer its zero rows tell the axes apart
        if len(found.value) == model.layers == len(model.moe_layer_ids):
            raise BadInput(
                f"{found.path}: as many tokens as {model.name} has layers ({model.layers}), "
                "so its axes could be [token, layer, k] or [layer, token, k]; "
                "give it as an .npz with 'topk_ids' [layer, token, k] and 'seq_lens'"
            )
    return [join_requests([(found.path, found.value.astype(np.int32)) for found in dumps], model, "vLLM")]


def _about_log(text: str) -> str:
    """What a balancedness log says, and what it cannot say."""
    written = [match[3] for match in LOG_LINE.finditer(text)]
    values = [float(figure) for figure in written if figure.count(".") < 2 and figure != "."]
    figures = "no readable line"
    if values:
        figures = f"{len(values)} lines, balancedness {min(values):.4f} to {max(values):.4f}"
    return (
        f"this is vLLM's balancedness log ({figures}). It has no count by expert, so it is no load; "
        "it is good for a cross-check: "
        "compare it with the mean/max over GPUs that `moeplan evaluate` predicts. "
        "To record a load start the server with --enable-return-routed-experts"
    )
