"""The toy model that the server of these tests serves, and what models are given to read."""

from tests.probes.engine_server import DENSE, EXPERTS, LAYERS, TOP_K

TEXT = (
    "The quick brown fox jumps over the lazy dog.\nA second line, "
    "and some more words to choose experts for: 0123456789.\n"
)
PROMPTS = ("first prompt", "another one", "zzz")
CONFIG = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": LAYERS,
    "first_k_dense_replace": DENSE,
    "n_routed_experts": EXPERTS,
    "num_experts_per_tok": TOP_K,
    "hidden_size": 64,
    "moe_intermediate_size": 32,
    "torch_dtype": "bfloat16",
}
