"""What a plan file says of a model: every fact of it that was used."""

from planner.model.attention import KINDS, Attention
from planner.model.body import DTYPES, KV_BYTES, Body
from planner.model.limits import LARGEST_WIDTH, MOST_EXPERTS, MOST_LAYERS
from planner.model.model import BYTES_PER_WEIGHT, ModelSpec
from planner.schema import Listing, Maybe, Text, Whole, shape_of

_WIDTH, _SOME_WIDTH = Whole(1, LARGEST_WIDTH), Whole(0, LARGEST_WIDTH)
_FLAGS = ("gate", "shared_values")
_LEAST = {"layers": 1, "heads": 1, "key_dim": 1, "value_dim": 1}
_ATTENTION = shape_of(
    Attention,
    {
        "kind": Text(tuple(KINDS)),
        **{
            name: Whole(_LEAST.get(name, 0), LARGEST_WIDTH)
            for name in Attention.__dataclass_fields__
            if name not in ("kind", *_FLAGS)
        },
    },
)
BODY_SHAPE = shape_of(
    Body,
    {
        "attention": Listing(_ATTENTION, 1, MOST_LAYERS),
        "draft_attention": Listing(_ATTENTION, 0, MOST_LAYERS),
        "vocabulary": Whole(1, 1 << 31),
        "dense_layers": Whole(0, MOST_LAYERS),
        "dense_width": _SOME_WIDTH,
        "dense_matrices": Whole(1, 8),
        "shared_width": _SOME_WIDTH,
        **dict.fromkeys(("attention_dtype", "dense_dtype", "shared_dtype"), Text(DTYPES)),
        "kv_dtype": Text(tuple(KV_BYTES)),
    },
)
MODEL_SHAPE = shape_of(
    ModelSpec,
    {
        "layers": Whole(1, MOST_LAYERS),
        "moe_layer_ids": Listing(Whole(0, MOST_LAYERS), 1, MOST_LAYERS),
        "draft_layer_ids": Listing(Whole(0, 2 * MOST_LAYERS), 0, MOST_LAYERS),
        **dict.fromkeys(("experts", "top_k"), Whole(1, MOST_EXPERTS)),
        **dict.fromkeys(("hidden", "expert_intermediate", "dispatch_width"), _WIDTH),
        "weight_dtype": Text(tuple(BYTES_PER_WEIGHT)),
        "shared_experts": Whole(0, MOST_EXPERTS),
        **dict.fromkeys(("expert_groups", "groups_per_token"), Whole(1, MOST_EXPERTS)),
        "expert_matrices": Whole(1, 8),
        "body": Maybe(BODY_SHAPE),
    },
)
