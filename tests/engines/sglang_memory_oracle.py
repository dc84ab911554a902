"""Run by an interpreter that has SGLang 0.5.23, without a GPU: bytes of KV cache that it counts a token.

stdin: a list of [folder with a config.json, GPUs that share attention]. The last line of stdout is a list
with the cell size of each: of one token over all layers on one GPU. It is computed by SGLang's own
configurator from its own reading of the config; what a running server adds to that is replaced.
"""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.engines.sglang_oracle import replace_torchvision, sglang


def cell_bytes(folder: str, gpus: int) -> int:
    pools = sglang("model_executor.pool_configurator")
    config = sglang("configs.model_config").ModelConfig(folder)
    parallel = SimpleNamespace(attn_tp_size=gpus, attn_dcp_size=1)
    pools.get_parallel = lambda: parallel
    pools.get_memory = lambda: SimpleNamespace(enable_hisparse=False)
    caches = sglang("mem_cache.kv_cache_configurator")
    kernel = SimpleNamespace(dsa_prefill_backend="flashmla_sparse", dsa_decode_backend="flashmla_sparse")
    caches.get_disagg = lambda: SimpleNamespace(disaggregation_mode="null")
    caches.get_exec = lambda: SimpleNamespace(kernel=kernel)
    layers = config.num_hidden_layers
    cache = SimpleNamespace(
        model_config=config,
        kv_cache_dtype=torch.bfloat16,
        kv_cache_dtype_str="auto",
        server_args=SimpleNamespace(enable_hisparse=True),  # an index in every layer, none left out
        use_mla_backend=config.attention_arch.name == "MLA",
        layer_info=SimpleNamespace(start_layer=0, end_layer=layers),
        is_draft_worker=False,
    )
    found = pools.DefaultPoolConfigurator

    def index(**given: Any) -> Any:
        return found._compute_dsa_indexer_cell_size(SimpleNamespace(), **given)

    pool = SimpleNamespace(
        kv_cache_dtype_str="auto",
        _compute_dsa_indexer_cell_size=index,
        _compute_qsa_cell_size=found._compute_qsa_cell_size,
    )
    return int(found._compute_cell_size(pool, cache, layers))


def main() -> None:
    replace_torchvision()
    answers = [cell_bytes(folder, gpus) for folder, gpus in json.load(sys.stdin)]
    print(json.dumps(answers))  # noqa: T201 - a program


if __name__ == "__main__":
    main()
