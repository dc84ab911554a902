"""vLLM 0.33.0: the ids that --enable-return-routed-experts gives, one .npy a request; and its balancedness log, which holds no load.

Shapes: T tokens, L decoder layers, K = top_k.
"""

import re
from collections.abc import Sequence

import numpy as np

from planner.base import BadInput
from planner.load.dumps.opened import Opened
from planner.load.dumps.parts import join_requests
from planner.load.formats import Recording
from planner.model import ModelSpec

LOG_LINE = re.compile(
    r"EPLB step: \d+ for model .*?avg_tokens=([0-9.]{1,30}), max_tokens=(\d{1,30}), balancedness=([0-9.]{1,10})"
)


def recognise(found: Opened, model: ModelSpec) -> bool:
    """An .npy of uint8 or uint16 [token, decoder layer, k], or a log with EPLB lines."""
    if found.kind == "text":
        return LOG_LINE.search(found.value) is not None
    if (
        found.kind != "array"
        or not isinstance(found.value, np.ndarray)
        or found.value.dtype not in (np.uint8, np.uint16)
    ):
        return False
    return (
        found.value.ndim == 3
        and found.value.shape[1:] == (model.layers, model.top_k)
        and len(found.value) > 0
    )


def read(dumps: Sequence[Opened], model: ModelSpec, ranks: str | None) -> list[Recording]:
    """All requests as one trace, a sequence a request. BadInput for a log, and where the axes could be read in two ways."""
    del ranks
    for found in dumps:
        if found.kind == "text":
            raise BadInput(f"{found.path}: {_about_log(found.value)}")
        if (
            len(found.value) == model.layers == len(model.moe_layer_ids)
        ):  # with a dense layer its zero rows tell the axes apart
            raise BadInput(
                f"{found.path}: as many tokens as {model.name} has layers ({model.layers}), so its axes could be [token, layer, k] or [layer, token, k]; "
                "give it as an .npz with 'topk_ids' [layer, token, k] and 'seq_lens'"
            )
    return [join_requests([(found.path, found.value.astype(np.int32)) for found in dumps], model, "vLLM")]


def _about_log(text: str) -> str:
    """What a balancedness log says, and what it cannot say."""
    balancedness = [
        float(match[3]) for match in LOG_LINE.finditer(text) if match[3].count(".") < 2 and match[3] != "."
    ]
    figures = (
        f"{len(balancedness)} lines, balancedness {min(balancedness):.4f} to {max(balancedness):.4f}"
        if balancedness
        else "no readable line"
    )
    return (
        f"this is vLLM's balancedness log ({figures}). It has no count by expert, so it is no load; it is good for a cross-check: compare it with the "
        "mean/max over GPUs that `moeplan evaluate` predicts. To record a load start the server with --enable-return-routed-experts"
    )
