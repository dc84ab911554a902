"""Body: a model outside its routed experts, as far as its configuration says."""

from dataclasses import dataclass, fields
from typing import Any

from planner.base import BadInput
from planner.model.attention import Attention

KV_BYTES = {"bf16": 2.0, "fp8": 1.0}  # of an element of the KV cache
DTYPES = ("bf16", "fp8", "mxfp4", "nvfp4", "int4")


@dataclass(frozen=True)
class Body:
    """Attention, dense and shared layers, embeddings. Embeddings, LM head and routers are in 16 bits.

    Left out: norms, biases, and the vision or audio parts of multimodal models.
    """

    attention: tuple[Attention, ...]  # of the decoder, a kind each
    vocabulary: int
    tied: bool = False  # the LM head is the embedding
    draft_attention: tuple[Attention, ...] = ()  # of the draft layers that hold experts
    dense_layers: int = 0  # with a feed-forward network in place of experts, or beside them
    dense_width: int = 0
    dense_matrices: int = 3
    shared_width: int = 0  # of all shared experts of a layer together
    attention_dtype: str = "bf16"
    dense_dtype: str = "bf16"
    shared_dtype: str = "bf16"
    kv_dtype: str = "bf16"  # that the release asks for

    def __post_init__(self) -> None:
        if not self.attention:
            raise BadInput("the model's body has no attention: every decoder has some")
        for name, least in (("vocabulary", 1), ("dense_layers", 0), ("dense_width", 0), ("shared_width", 0)):
            if getattr(self, name) < least:
                raise BadInput(f"the model's body: {name} is {getattr(self, name)}; at least {least}")
        for name in ("attention_dtype", "dense_dtype", "shared_dtype"):
            if getattr(self, name) not in DTYPES:
                dtype = getattr(self, name)
                raise BadInput(f"the model's body: {name} {dtype!r} is not one of {', '.join(DTYPES)}")
        if self.kv_dtype not in KV_BYTES:
            raise BadInput(
                f"the model's body: kv_dtype {self.kv_dtype!r} is not one of {', '.join(KV_BYTES)}"
            )

    @property
    def layers(self) -> tuple[Attention, ...]:
        """Attention of decoder and draft layers."""
        return self.attention + self.draft_attention

    def token_bytes(self, gpus: int = 1, kv_dtype: str | None = None) -> float:
        """KV bytes of one more token of context on each of `gpus` GPUs that share its attention.

        MLA's latent is whole on each; heads of keys divide down to one a GPU.
        """
        element = KV_BYTES[kv_dtype or self.kv_dtype]
        return sum(each.layers * each.token_bytes(element, gpus) for each in self.layers)

    def request_bytes(self, tokens: int, gpus: int = 1, kv_dtype: str | None = None) -> float:
        """Bytes of a request with a context of `tokens` on each GPU: KV cache, windows and states."""
        element = KV_BYTES[kv_dtype or self.kv_dtype]
        fixed = sum(each.layers * each.fixed_bytes(tokens, element, gpus) for each in self.layers)
        return tokens * self.token_bytes(gpus, kv_dtype) + fixed


def body_to_dict(body: Body) -> dict[str, Any]:
    """Plain values, without what is left at its default."""
    lists = {key: [_stated(each) for each in getattr(body, key)] for key in ("attention", "draft_attention")}
    return {**_stated(body), **{key: listed for key, listed in lists.items() if listed}}


def _stated(value: Body | Attention) -> dict[str, Any]:
    return {
        field.name: found
        for field in fields(value)
        if (found := getattr(value, field.name)) != field.default and not isinstance(found, tuple)
    }


def body_from_dict(value: dict[str, Any], where: str) -> Body:
    """The Body of plain values, as the catalogue and plan files hold it."""
    given = dict(value)
    try:
        for key in ("attention", "draft_attention"):
            listed = given.get(key, [])
            if not isinstance(listed, list | tuple) or not all(isinstance(each, dict) for each in listed):
                raise BadInput(f"{where}: '{key}' is not a list of mappings")
            given[key] = tuple(Attention(**each) for each in listed)
        return Body(**given)
    except TypeError as error:
        raise BadInput(f"{where}: {error}") from error
