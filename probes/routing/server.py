"""Record the routing of a running server through the engine's own endpoints.

These are SGLang's /generate, vLLM's /v1/completions, SGLang's recorder. Both engines return logical ids,
captured before replicas are picked, for every token but the last, which was sampled and not yet run.

Shapes: T tokens, D decoder layers (dense ones included), L MoE layers, K = top_k.
"""

from collections.abc import Sequence
from typing import Any

from planner.base import BadInput
from planner.load import check_dense
from planner.model import ModelSpec
from probes.routing.engines import ENGINES, Answer, sglang_question
from probes.routing.progress import Progress, one_by_one
from probes.routing.trace import Ids, RoutingTrace, check_ids, check_room, join
from probes.routing.web import NoAnswer, Server, fetch, get_json, post_json


def record_server(
    server: Server,
    engine: str,
    model: ModelSpec,
    prompts: Sequence[str],
    new_tokens: int = 1,
    progress: Progress | None = None,
) -> RoutingTrace:
    """The routing of prompts, sent one after another, each with `new_tokens` to generate.

    BadInput where the server does not return it, or not of `model`.
    """
    if engine not in ENGINES:
        raise BadInput(f"--engine {engine[:40]!r}: routing can be recorded from {' and '.join(ENGINES)}")
    if new_tokens < 1:
        raise BadInput(f"{new_tokens} new tokens were asked for; engines generate at least 1")
    ask, recorded, tokens = ENGINES[engine], [], 0
    for number, prompt in one_by_one(prompts, progress):
        where = f"{server.url}, sequence {number}"
        recorded.append(_placed(ask(server, model, prompt, new_tokens), model, where))
        tokens += recorded[-1].shape[1]
        check_room(tokens, model, where)
    phase, notes = "prefill", []
    if new_tokens > 1:
        phase, notes = "unknown", [f"each sequence is a prompt and {new_tokens - 1} generated tokens"]
    return join(model, recorded, f"{server.url} ({engine})", phase, notes)


def dump_on_sglang(
    server: Server, prompts: Sequence[str], new_tokens: int = 1, progress: Progress | None = None
) -> str:
    """Drive SGLang's expert distribution recorder over the prompts; its mode.

    It writes its files on the server. The recorder is stopped whatever happens. A server without one is
    refused before it is asked: its scheduler would end at the first request (0.5.23).
    """
    mode = recorder_mode(server)
    fetch(server, "/start_expert_distribution_record", {})
    try:
        for _, prompt in one_by_one(prompts, progress):
            post_json(server, "/generate", sglang_question(prompt, new_tokens))
    finally:
        fetch(server, "/stop_expert_distribution_record", {})
    fetch(server, "/dump_expert_distribution_record", {})
    return mode


def recorder_mode(server: Server) -> str:
    """The mode of SGLang's recorder. BadInput where it is off: a server without one dies of being asked."""
    try:
        told = get_json(server, "/server_info")
    except NoAnswer as fault:
        if fault.status != 404:
            raise
        told = get_json(server, "/get_server_info")  # before 0.5.23
    mode = _find(told, "expert_distribution_recorder_mode")
    if not isinstance(mode, str) or not mode:
        off = f"{server.url}: its expert distribution recorder is off"
        raise BadInput(f"{off}; start the server with --expert-distribution-recorder-mode stat")
    return mode[:40]


def _placed(answer: Answer, model: ModelSpec, where: str) -> Ids:
    """[layer, token, k] of the MoE layers, checked."""
    ids_TDK = answer.ids_TDK
    if ids_TDK.ndim != 3 or ids_TDK.shape[1:] != (model.layers, model.top_k):
        has = f"{model.name} has {model.layers} decoder layers and chooses {model.top_k} experts"
        shape = f"the routing has shape {list(ids_TDK.shape)}"
        raise BadInput(f"{where}: {shape}; {has}: is --model the model that is served?")
    if len(ids_TDK) != answer.tokens - 1:
        got = f"routing of {len(ids_TDK)} tokens for {answer.tokens} tokens of prompt and answer"
        raise BadInput(f"{where}: {got}; all but the last are expected, so some were lost")
    found_LTK = check_ids(ids_TDK[:, list(model.moe_layer_ids)].transpose(1, 0, 2), model, where)
    check_dense(ids_TDK, model, where)
    return found_LTK


def _find(tree: Any, key: str) -> Any:
    """The value of a key wherever it stands: versions nest their settings differently."""
    if isinstance(tree, dict):
        if key in tree:
            return tree[key]
        tree = list(tree.values())
    if not isinstance(tree, list):
        return None
    return next((found for entry in tree if (found := _find(entry, key)) is not None), None)
