"""Serving without expert parallelism: which engines slice every expert over their GPUs, and by what words.

An engine's module says so in a `SLICED`; of one that has none it was not read. Nothing is emitted for it: no
expert has a place that a plan could choose.
"""

from dataclasses import dataclass

from planner.engines.common.attention import undivided_heads
from planner.model import ModelSpec


@dataclass(frozen=True)
class Sliced:
    """Words of a launch; in them GPUS is all GPUs, SHARED those of a request's attention, GROUPS the groups
    of these.
    """

    words: str  # where all GPUs share attention
    words_apart: str  # where they do not
    fp8_block: int  # what a slice of experts with fp8 blocks of 128 x 128 must be a multiple of
    source: str
    only_all_or_one: bool = False  # attention of a request on all GPUs, or on one

    def launch(self, gpus: int, shared: int) -> str:
        text = self.words if shared == gpus else self.words_apart
        return (
            text.replace("GPUS", str(gpus))
            .replace("SHARED", str(shared))
            .replace("GROUPS", str(gpus // shared))
        )

    def refuses(self, model: ModelSpec, gpus: int, shared: int) -> str:
        """Why it would not serve the model so; empty where it would."""
        width, rest = divmod(model.expert_intermediate, gpus)
        if rest:
            return f"experts {model.expert_intermediate} wide do not divide over {gpus} GPUs"
        if model.weight_dtype == "fp8" and width % self.fp8_block:
            return f"a slice {width} wide is no multiple of {self.fp8_block}, of fp8 blocks"
        if self.only_all_or_one and shared not in (1, gpus):
            return f"attention of a request is on all GPUs or on one, not on {shared}"
        return next((limit.text for limit in undivided_heads(model, shared)), "")
