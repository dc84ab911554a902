"""The words that start vLLM on one node, for every engine that is vLLM underneath."""

from planner.engines.common import script
from planner.engines.common.layout import gpus_per_node
from planner.problem import Problem

RPC_PORT = 13345


def serve_words(problem: Problem, model_path: str, node: int) -> list[str]:
    """`vllm serve` with a data-parallel rank for the GPUs that share a request's attention, as bash words.

    Node 0 serves; the others join it without an API server. A rank's GPUs follow each other on one node.
    """
    shared = problem.workload.attention_tp
    counts = tuple(count // shared for count in gpus_per_node(problem.topology))
    words = ["vllm", "serve", script.quote(model_path), "--tensor-parallel-size", str(shared)]
    words += ["--data-parallel-size", str(problem.gpus // shared)]
    if len(counts) > 1:
        words += ["--data-parallel-size-local", str(counts[node])]
        words += ["--data-parallel-address", '"$HEAD_ADDRESS"', "--data-parallel-rpc-port", str(RPC_PORT)]
    if node:
        words += ["--data-parallel-start-rank", str(sum(counts[:node])), "--headless"]
    return words
