"""ModelSpec: what a plan needs to know of a Mixture-of-Experts model."""

from dataclasses import dataclass
from functools import cached_property

from planner.base import BadInput
from planner.model.body import Body
from planner.model.limits import LARGEST_WIDTH, MOST_CELLS, MOST_EXPERTS, MOST_LAYERS


@dataclass(frozen=True)
class ModelSpec:
    """One model. Layers are absolute decoder layer ids, as in the model's own config.

    For DeepSeek-V3: 61 layers, of which 3..60 hold 256 routed experts each, and one draft (MTP) layer that
    gets the id 61. Shared experts are kept apart and never placed.
    """

    name: str
    architecture: str  # `model_type` of the model's config
    layers: int  # decoder layers, dense ones included, draft layers not
    moe_layer_ids: tuple[int, ...]
    experts: int
    top_k: int
    hidden: int
    expert_intermediate: int
    dispatch_width: int  # elements a token carries to an expert: hidden, or less for a latent MoE
    weight_dtype: str  # bf16, fp8, mxfp4, nvfp4, int4
    source: str
    draft_layer_ids: tuple[int, ...] = ()
    shared_experts: int = 0
    expert_groups: int = 1
    groups_per_token: int = 1
    expert_matrices: int = 3  # gate, up, down; 2 where the expert has no gate
    dtype_assumed: bool = False  # the release's weight dtype could not be verified
    quant_method: str = ""  # of its config's quantization, where that is not the usual one of its dtype
    facts_of: str = ""  # the entry of the catalogue whose facts these are, where it has none of this name
    body: Body | None = None  # outside the routed experts; None: not known, a rule of thumb has to do

    def __post_init__(self) -> None:
        for field, most in MOST.items():
            if not 1 <= getattr(self, field) <= most:
                value = getattr(self, field)
                raise BadInput(
                    f"model {self.name}: {field} is {value}; it must be at least 1, at most {most:,}"
                )
        if self.top_k > self.experts:
            raise BadInput(f"model {self.name}: top_k {self.top_k} is more than its {self.experts} experts")
        self._check_layer_ids()
        if self.weight_dtype not in BYTES_PER_WEIGHT:
            known = ", ".join(BYTES_PER_WEIGHT)
            raise BadInput(f"model {self.name}: weight dtype {self.weight_dtype!r} is not one of {known}")

    def _check_layer_ids(self) -> None:
        ids = self.moe_layer_ids
        if not ids:
            raise BadInput(f"model {self.name}: no layer holds routed experts; there is nothing to place")
        if list(ids) != sorted(set(ids)) or not 0 <= ids[0] <= ids[-1] < self.layers:
            span = f"0..{self.layers - 1}"
            raise BadInput(f"model {self.name}: MoE layer ids must be distinct, ascending and within {span}")
        if len(self.placed_layer_ids) * self.experts > MOST_CELLS:
            size = f"{len(self.placed_layer_ids)} layers of {self.experts} experts"
            raise BadInput(f"model {self.name}: {size} are more than the {MOST_CELLS:,} experts we plan for")
        if any(layer < self.layers for layer in self.draft_layer_ids):
            raise BadInput(
                f"model {self.name}: draft layer ids {self.draft_layer_ids} "
                f"must follow the {self.layers} decoder layers"
            )

    @cached_property
    def placed_layer_ids(self) -> tuple[int, ...]:
        """Layers that need a row in a placement: MoE layers, then draft layers."""
        return self.moe_layer_ids + self.draft_layer_ids

    @property
    def quantization(self) -> str:
        """`quant_method` of the release, by which engines choose their kernels; empty for plain 16 bits."""
        return self.quant_method or USUAL_METHODS[self.weight_dtype]

    @property
    def expert_weights(self) -> int:
        """Weights of one routed expert of one layer."""
        return self.expert_matrices * self.dispatch_width * self.expert_intermediate

    @property
    def expert_bytes(self) -> float:
        """Weight bytes of one routed expert of one layer, block scales included."""
        return self.expert_weights * BYTES_PER_WEIGHT[self.weight_dtype]

    @property
    def flops_per_assignment(self) -> float:
        """Floating point operations of one (token, expert) assignment."""
        return 2.0 * self.expert_weights


MOST = {
    "layers": MOST_LAYERS,
    **dict.fromkeys(("experts", "top_k"), MOST_EXPERTS),
    **dict.fromkeys(("hidden", "expert_intermediate", "dispatch_width"), LARGEST_WIDTH),
}
BYTES_PER_WEIGHT = {
    "bf16": 2.0,
    "fp8": 1.0 + 4 / (128 * 128),  # one float32 scale a 128 x 128 block
    "mxfp4": 0.5 + 1 / 32,  # one 8-bit scale for 32 weights
    "nvfp4": 0.5 + 1 / 16,  # one 8-bit scale for 16 weights
    "int4": 0.5 + 2 / 32,  # one bf16 scale for 32 weights
}
USUAL_METHODS = {  # `quant_method` that releases of a dtype mostly have
    "bf16": "",
    "fp8": "fp8",
    "mxfp4": "mxfp4",
    "nvfp4": "modelopt",
    "int4": "compressed-tensors",
}
