"""What each engine is asked for the routing of one prompt, and how its answer is read.

Read in SGLang 0.5.23 and vLLM 0.33.0. Shapes: T tokens, D decoder layers (dense ones included), K = top_k.
"""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.base import BadInput, parse_npz
from planner.model import ModelSpec
from probes.routing.trace import Ids
from probes.routing.web import Server, post_json

_NO_ROUTING = "the answer holds no 'routed_experts'; start the server with --enable-return-routed-experts"


@dataclass(frozen=True, eq=False)
class Answer:
    """What a server said of one prompt."""

    ids_TDK: Ids
    tokens: int  # of the prompt and generated


def sglang_question(prompt: str, new_tokens: int) -> dict[str, Any]:
    sampling = {"max_new_tokens": new_tokens, "temperature": 0, "ignore_eos": True}
    return {"text": prompt, "sampling_params": sampling}


def _ask_sglang(server: Server, model: ModelSpec, prompt: str, new_tokens: int) -> Answer:
    where = server.at("/generate")
    question = {**sglang_question(prompt, new_tokens), "return_routed_experts": True}
    told = post_json(server, "/generate", question)
    meta = told.get("meta_info") if isinstance(told, dict) else None
    if not isinstance(meta, dict):
        raise BadInput(f"{where}: the answer holds no 'meta_info'; is this an SGLang server?")
    content, row_bytes = _routing_in(meta, where), 4 * model.layers * model.top_k
    if len(content) % row_bytes:
        layers = f"{model.layers} decoder layers x {model.top_k}"
        raise BadInput(
            f"{where}: {len(content):,} bytes of int32 ids are no whole number of tokens of {model.name} "
            f"({layers}); is --model the model that is served?"
        )
    ids_TDK = np.frombuffer(content, dtype="<i4").reshape(-1, model.layers, model.top_k)
    return Answer(ids_TDK, _tokens(meta, where))


def _ask_vllm(server: Server, model: ModelSpec, prompt: str, new_tokens: int) -> Answer:
    del model  # the array states its own shape
    where = server.at("/v1/completions")
    question = {"prompt": prompt, "max_tokens": new_tokens, "temperature": 0, "ignore_eos": True}
    told = post_json(server, "/v1/completions", question)
    choices = told.get("choices") if isinstance(told, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise BadInput(f"{where}: the answer holds no single entry in 'choices'; is this a vLLM server?")
    arrays = parse_npz(_routing_in(choices[0], where), f"{where}: 'routed_experts'")
    if "array" not in arrays:
        raise BadInput(f"{where}: 'routed_experts' is an archive, not an array; is this a vLLM server?")
    return Answer(arrays["array"], _tokens(told.get("usage"), where))


ENGINES: dict[str, Callable[[Server, ModelSpec, str, int], Answer]] = {
    "sglang": _ask_sglang,
    "vllm": _ask_vllm,
}


def _routing_in(part: dict[str, Any], where: str) -> bytes:
    """The bytes of its array."""
    text = part.get("routed_experts")
    if text is None:
        raise BadInput(f"{where}: {_NO_ROUTING}")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise BadInput(f"{where}: 'routed_experts' is not base64 ({error})") from error


def _tokens(usage: Any, where: str) -> int:
    """Tokens of prompt and answer."""
    told = usage if isinstance(usage, dict) else {}
    counts = [told.get(key) for key in ("prompt_tokens", "completion_tokens")]
    whole = [count for count in counts if type(count) is int and 0 <= count < 1 << 31]
    if len(whole) != 2:
        untold = "the answer does not say how many tokens prompt and completion have"
        raise BadInput(f"{where}: {untold}, so its routing cannot be checked")
    return sum(whole)
