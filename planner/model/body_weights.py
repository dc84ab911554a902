"""Weights outside the routed experts, part by part: how many, how stored, what a GPU holds of them."""

from dataclasses import dataclass, replace

from planner.model.body import Body
from planner.model.model import BYTES_PER_WEIGHT, ModelSpec


@dataclass(frozen=True)
class Part:
    """Weights of one part of a model, of all its layers."""

    weights: int
    dtype: str

    @property
    def size_bytes(self) -> float:
        """Block scales included."""
        return self.weights * BYTES_PER_WEIGHT[self.dtype]


def body_parts(model: ModelSpec, gpus: int = 1) -> dict[str, Part]:
    """Parts on each of `gpus` GPUs that share a request's attention; empty where the model has no body.

    Attention, dense layers, shared experts, embedding and head divide over them, as vLLM's tensor
    parallelism does; routers and the draft's own projection are whole on each.
    """
    body = model.body
    if body is None:
        return {}
    layers = len(model.placed_layer_ids)
    shared = model.expert_matrices * model.hidden * body.shared_width
    table = body.vocabulary * model.hidden
    return {
        "attention": Part(_attention(body, model.hidden, gpus), body.attention_dtype),
        "dense": Part(_divided(_dense(body, model.hidden), gpus), body.dense_dtype),
        "shared": Part(_divided(layers * shared, gpus), body.shared_dtype),
        "router": Part(layers * _router(model), "bf16"),
        "embedding": Part(_divided(table, gpus), "bf16"),
        "head": Part(0 if body.tied else _divided(table, gpus), "bf16"),
        "draft": Part(len(model.draft_layer_ids) * 2 * model.hidden**2, "bf16"),
    }


def total_weights(model: ModelSpec, *, draft: bool = False) -> int:
    """Weights of the whole model, routed experts included, as model names and cards count them.

    Cards leave draft layers out. ValueError where the model has no body.
    """
    if model.body is None:
        raise ValueError(f"{model.name} has no body")
    if not draft:
        model = without_draft(model)
    experts = len(model.placed_layer_ids) * model.experts * model.expert_weights
    return experts + sum(part.weights for part in body_parts(model).values())


def without_draft(model: ModelSpec) -> ModelSpec:
    """The same model without its draft layers."""
    body = None if model.body is None else replace(model.body, draft_attention=())
    return replace(model, draft_layer_ids=(), body=body)


def _attention(body: Body, hidden: int, gpus: int) -> int:
    return sum(each.layers * each.weights(hidden, gpus) for each in body.layers)


def _dense(body: Body, hidden: int) -> int:
    return body.dense_layers * body.dense_matrices * hidden * body.dense_width


def _router(model: ModelSpec) -> int:
    """The router of a layer, and where experts are latent the way there and back."""
    latent = 2 * model.hidden * model.dispatch_width if model.dispatch_width < model.hidden else 0
    return model.hidden * model.experts + latent


def _divided(weights: int, gpus: int) -> int:
    return -(-weights // gpus)
