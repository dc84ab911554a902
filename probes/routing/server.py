"""Record the routing of a running server through the engine's own endpoints: SGLang's /generate, vLLM's /v1/completions, SGLang's recorder.

Both engines return logical ids, captured before replicas are picked, for every token but the last, which was sampled and not yet run.
Read in SGLang 0.5.23 and vLLM 0.33.0. Shapes: T tokens, D decoder layers (dense ones included), L MoE layers, K = top_k.
"""

import base64
import binascii
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.base import DAMAGED_NPZ, BadInput
from planner.model import ModelSpec
from probes.routing.trace import Ids, RoutingTrace, check_ids, check_room, join
from probes.routing.web import NoAnswer, Server, fetch, get_json, post_json

Progress = Callable[[float, str], None]


@dataclass(frozen=True, eq=False)
class _Answer:
    """What a server said of one prompt."""

    ids_TDK: Ids
    tokens: int  # of the prompt and generated


def record_server(
    server: Server,
    engine: str,
    model: ModelSpec,
    prompts: Sequence[str],
    new_tokens: int = 1,
    progress: Progress | None = None,
) -> RoutingTrace:
    """The routing of prompts, sent one after another, each with `new_tokens` to generate. BadInput where the server does not return it, or not of `model`."""
    if engine not in ENGINES:
        raise BadInput(f"--engine {engine[:40]!r}: routing can be recorded from {' and '.join(ENGINES)}")
    if new_tokens < 1:
        raise BadInput(f"{new_tokens} new tokens were asked for; engines generate at least 1")
    ask, recorded, tokens = ENGINES[engine], [], 0
    for number, prompt in enumerate(prompts):
        where = f"{server.url}, sequence {number}"
        answer = ask(server, model, prompt, new_tokens)
        recorded.append(_placed(answer, model, where))
        tokens += recorded[-1].shape[1]
        check_room(tokens, model, where)
        if progress:
            progress((number + 1) / len(prompts), f"sequence {number + 1} of {len(prompts)}")
    notes = () if new_tokens == 1 else (f"each sequence is a prompt and {new_tokens - 1} generated tokens",)
    return join(
        model, recorded, f"{server.url} ({engine})", "prefill" if new_tokens == 1 else "unknown", notes
    )


def dump_on_sglang(
    server: Server, prompts: Sequence[str], new_tokens: int = 1, progress: Progress | None = None
) -> str:
    """Drive SGLang's expert distribution recorder over the prompts and have it write its files on the server; its mode. Stopped whatever happens.

    A server without a recorder is refused before it is asked: its scheduler would end at the first request (0.5.23).
    """
    mode = _recorder_mode(server)
    fetch(server, "/start_expert_distribution_record", {})
    try:
        for number, prompt in enumerate(prompts):
            post_json(server, "/generate", {"text": prompt, "sampling_params": _sampling(new_tokens)})
            if progress:
                progress((number + 1) / len(prompts), f"sequence {number + 1} of {len(prompts)}")
    finally:
        fetch(server, "/stop_expert_distribution_record", {})
    fetch(server, "/dump_expert_distribution_record", {})
    return mode


def _recorder_mode(server: Server) -> str:
    try:
        told = get_json(server, "/server_info")
    except NoAnswer as fault:
        if fault.status != 404:
            raise
        told = get_json(server, "/get_server_info")  # before 0.5.23
    mode = _find(told, "expert_distribution_recorder_mode")
    if not isinstance(mode, str) or not mode:
        raise BadInput(
            f"{server.url}: its expert distribution recorder is off; start the server with --expert-distribution-recorder-mode stat"
        )
    return mode[:40]


def _ask_sglang(server: Server, model: ModelSpec, prompt: str, new_tokens: int) -> _Answer:
    where = server.at("/generate")
    told = post_json(
        server,
        "/generate",
        {"text": prompt, "sampling_params": _sampling(new_tokens), "return_routed_experts": True},
    )
    meta = told.get("meta_info") if isinstance(told, dict) else None
    if not isinstance(meta, dict):
        raise BadInput(f"{where}: the answer holds no 'meta_info'; is this an SGLang server?")
    if meta.get("routed_experts") is None:
        raise BadInput(
            f"{where}: the answer holds no 'routed_experts'; start the server with --enable-return-routed-experts"
        )
    content, row = _decoded(meta["routed_experts"], where), 4 * model.layers * model.top_k
    if len(content) % row:
        raise BadInput(
            f"{where}: {len(content):,} bytes of int32 ids are no whole number of tokens of {model.name} ({model.layers} decoder layers x {model.top_k}); "
            "is --model the model that is served?"
        )
    ids_TDK = np.frombuffer(content, dtype="<i4").reshape(-1, model.layers, model.top_k)
    return _Answer(ids_TDK, _tokens(meta, where))


def _ask_vllm(server: Server, model: ModelSpec, prompt: str, new_tokens: int) -> _Answer:
    del model  # the array states its own shape
    where = server.at("/v1/completions")
    told = post_json(
        server,
        "/v1/completions",
        {"prompt": prompt, "max_tokens": new_tokens, "temperature": 0, "ignore_eos": True},
    )
    choices = told.get("choices") if isinstance(told, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise BadInput(f"{where}: the answer holds no single entry in 'choices'; is this a vLLM server?")
    if choices[0].get("routed_experts") is None:
        raise BadInput(
            f"{where}: the answer holds no 'routed_experts'; start the server with --enable-return-routed-experts"
        )
    content = _decoded(choices[0]["routed_experts"], where)
    try:
        ids_TDK = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except DAMAGED_NPZ as error:
        raise BadInput(
            f"{where}: 'routed_experts' is not a NumPy array ({str(error)[:100]}); pickled arrays are not loaded"
        ) from error
    return _Answer(ids_TDK, _tokens(told.get("usage"), where))


ENGINES: dict[str, Callable[[Server, ModelSpec, str, int], _Answer]] = {
    "sglang": _ask_sglang,
    "vllm": _ask_vllm,
}


def _placed(answer: _Answer, model: ModelSpec, where: str) -> Ids:
    """[layer, token, k] of the MoE layers, checked."""
    ids_TDK = answer.ids_TDK
    if ids_TDK.ndim != 3 or ids_TDK.shape[1:] != (model.layers, model.top_k):
        raise BadInput(
            f"{where}: the routing has shape {list(ids_TDK.shape)}; {model.name} has {model.layers} decoder layers and chooses {model.top_k} experts: "
            "is --model the model that is served?"
        )
    if len(ids_TDK) != answer.tokens - 1:
        raise BadInput(
            f"{where}: routing of {len(ids_TDK)} tokens for {answer.tokens} tokens of prompt and answer; all but the last are expected, so some were lost"
        )
    return check_ids(ids_TDK[:, list(model.moe_layer_ids)].transpose(1, 0, 2), model, where)


def _sampling(new_tokens: int) -> dict[str, Any]:
    return {"max_new_tokens": new_tokens, "temperature": 0, "ignore_eos": True}


def _tokens(usage: Any, where: str) -> int:
    """Tokens of prompt and answer."""
    counts = (
        [usage.get(key) for key in ("prompt_tokens", "completion_tokens")] if isinstance(usage, dict) else []
    )
    whole = [count for count in counts if type(count) is int and 0 <= count < 1 << 31]
    if len(whole) != 2:
        raise BadInput(
            f"{where}: the answer does not say how many tokens prompt and completion have, so its routing cannot be checked"
        )
    return sum(whole)


def _decoded(text: Any, where: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise BadInput(f"{where}: 'routed_experts' is not base64 ({error})") from error


def _find(tree: Any, key: str) -> Any:
    """The value of a key wherever it stands: versions nest their settings differently."""
    if isinstance(tree, dict):
        if key in tree:
            return tree[key]
        tree = list(tree.values())
    return (
        next((found for entry in tree if (found := _find(entry, key)) is not None), None)
        if isinstance(tree, list)
        else None
    )
