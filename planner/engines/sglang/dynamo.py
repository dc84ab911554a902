"""SGLang as a worker of ai-dynamo, which pins an earlier release."""

from collections.abc import Sequence

from planner.base import BadInput
from planner.engines.common import dynamo
from planner.engines.sglang.launch import ATTN_DP

PINNED = "0.5.21"


def dynamo_words(words: Sequence[str]) -> list[str]:
    """BadInput where the words are those of a later release than the one that ai-dynamo pins."""
    if ATTN_DP in words:
        raise BadInput(
            f"ai-dynamo 1.6.1 pins SGLang {PINNED}, which has no {ATTN_DP}: "
            f"emit with --engine-version {PINNED}, or use --launcher shell"
        )
    return dynamo.worker(words, ["python3", "-m", "sglang.launch_server"], ["python3", "-m", "dynamo.sglang"])
