"""TensorRT-LLM as a worker of ai-dynamo, where its flags have other names."""

from collections.abc import Sequence

from planner.engines.common import dynamo

OPTIONS = "--extra-engine-args"
RENAMED = {
    "--tp_size": "--tensor-parallel-size",
    "--ep_size": "--expert-parallel-size",
    "--config": OPTIONS,
    "--extra_llm_api_options": OPTIONS,
}


def dynamo_words(words: Sequence[str]) -> list[str]:
    """Started by MPI where the engine's own is."""
    return dynamo.worker(words, ["trtllm-serve"], ["python3", "-m", "dynamo.trtllm", "--model"], RENAMED)
