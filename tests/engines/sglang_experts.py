"""For sglang_resolver.py: a launch's experts layer, built by SGLang's own classes, and where its batches go.

Weights lie on torch's meta device at the model's real sizes. Each dispatch format of the launch is handed to
the layer, up to the point where a kernel would be called.
"""

import importlib
import types
from typing import Any
from unittest.mock import MagicMock

gpu = importlib.import_module("sglang_gpu")  # lies beside this file, which is run as a program's part
sglang = gpu.sglang
Config = dict[str, Any]
Found = dict[str, Any]

POST_LOAD = frozenset(  # what methods make of the weights once they are loaded
    (
        *("w13_blockscale_swizzled", "w2_blockscale_swizzled", "g1_alphas", "g2_alphas", "g1_scale_c"),
        *("w13_input_scale_quant", "w2_input_scale_quant", "trtllm_padded_hidden_size", "w13_weight_bias_"),
        *("_cutlass_swiglu_params", "_cutedsl_wrapper", "_cutedsl_scales", "_cutedsl_input_scale"),
        *("output1_scales_scalar", "output1_scales_gate_scalar", "output2_scales_scalar"),
    )
)


class ReachedError(Exception):
    """The engine would call a kernel now."""


def experts(args: Any, resolved: Config, config: Config, capability: tuple[int, int]) -> Found:
    """{"runner", "quant_method", "layer", "batches": {format: {"ok", "way"}}}, or {"error"}."""
    sglang("runtime_context").publish(args, role="scheduler")
    moe = sglang("layers.moe.utils")
    moe.initialize_moe_config()
    gpu.with_kernels(capability[0])
    _ranks(resolved["tp_size"], resolved["ep_size"])
    found: Found = {"a2a": moe.get_moe_a2a_backend().value}
    arguments = layer_arguments(config)
    arguments["num_experts"] += resolved["ep_num_redundant_experts"] or 0
    layer = _built(_quantisation(args), arguments)
    runner = layer.runner_backend
    found |= {"layer": arguments, "quant_method": type(layer.quant_method).__name__}
    found["runner"] = None if runner is None else runner.value
    found["batches"] = {kind: path(layer, kind) for kind in formats(found["a2a"], resolved)}
    return found


def layer_arguments(config: Config) -> Config:
    """What the model's own MoE block hands to its experts class, as models/*.py have it."""
    text, kind = config.get("text_config", config), config["model_type"]

    def first(*names: str) -> Any:
        return next((text[name] for name in names if text.get(name) is not None), None)

    found = {
        "num_experts": first("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"),
        "top_k": first("num_experts_per_tok", "moe_top_k", "moe_topk", "moe_k"),
        "hidden_size": text["hidden_size"],
        "intermediate_size": first("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size"),
    }
    clamped = {"gemm1_alpha": 1.702, "gemm1_clamp_limit": text.get("swiglu_limit", 7.0)}
    if kind.startswith("nemotron_h"):
        found["hidden_size"] = first("moe_latent_size", "hidden_size")
        found |= {"activation": text.get("mlp_hidden_act", "relu2"), "is_gated": False}
    if kind == "gpt_oss":
        found |= {"intermediate_size": text["intermediate_size"], "with_bias": True, **clamped}
    if kind.startswith("minimax_m3"):
        found |= {"intermediate_size": text["intermediate_size"], "is_gated": True, **clamped}
    return found


def formats(a2a: str, resolved: Config) -> list[str]:
    """The dispatch formats that this launch's batches take."""
    if a2a != "deepep":
        return ["standard"]
    mode, role = resolved["deepep_mode"], resolved["disaggregation_mode"]
    normal = mode == "normal" or (mode == "auto" and role != "decode")
    low = mode == "low_latency" or (mode == "auto" and role != "prefill")
    return ["deepep_normal"] * normal + ["deepep_ll"] * low


def _ranks(tp: int, ep: int) -> None:
    parallel = sglang("runtime_context").get_parallel()
    group = types.SimpleNamespace(device_group=None, world_size=tp, rank_in_group=0, ranks=list(range(tp)))
    sizes = {"tp_size": tp, "moe_ep_size": ep, "moe_tp_size": tp // ep}
    ranks = {"tp_rank": 0, "moe_ep_rank": 0, "moe_tp_rank": 0, "tp_group": group, "moe_ep_group": group}
    try:
        parallel.override_permanently(**sizes, **ranks)
    except Exception:  # noqa: BLE001 - one rank: it keeps its sizes
        parallel._stamp.update(ranks)


def _quantisation(args: Any) -> Any:
    config = sglang("arg_groups.model_override_base").model_config_of(args)
    load: Config = {"download_dir": None, "ignore_patterns": None, "model_loader_extra_config": {}}
    load_config = types.SimpleNamespace(load_format="dummy", **load)
    return sglang("model_loader.loader")._get_quantization_config(config, load_config)


def _built(quantisation: Any, arguments: Config) -> Any:
    import torch

    module = sglang("layers.moe.fused_moe_triton.layer")
    create = module.create_moe_dispatcher

    def dispatcher(config: Any, quant_method: Any) -> Any:
        try:
            return create(config, quant_method=quant_method)
        except ImportError:  # a package that is not here: taken as installed
            return types.SimpleNamespace(absent=True, set_quant_config=lambda *_: None)

    module.create_moe_dispatcher = dispatcher
    make = sglang("layers.moe.ep_moe.layer").get_moe_impl_class(quantisation)
    torch.set_default_dtype(torch.bfloat16)
    names = {"layer_id": 3, "prefix": "model.layers.3.mlp.experts", "params_dtype": torch.bfloat16}
    with torch.device("meta"):
        layer = make(quant_config=quantisation, **names, **arguments)
    method = layer.quant_method
    if hasattr(method, "forward_cuda"):  # a fused operation that dispatches by platform
        method.forward = method._forward_method = method.forward_cuda
    return layer


def path(layer: Any, kind: str) -> Found:
    """Which way a batch of this format takes through the layer."""
    runner_module, backend = sglang("layers.moe.moe_runner.runner"), layer.runner_backend
    if kind == "standard":
        if backend is None:
            return {"ok": True, "way": f"{type(layer.quant_method).__name__} calls its kernel itself"}
        a2a = sglang("layers.moe.utils").get_moe_a2a_backend().value
        fused = runner_module.FusedOpPool.get_fused_func(a2a, backend.value)
        if fused is not None:
            return {"ok": True, "way": f"fused {fused.__name__}"}
        return _outcome(lambda: runner_module.PermuteMethodPool.get_pre_permute(kind, backend.value))
    _stop_at_kernels(layer, runner_module)
    return _outcome(lambda: layer.run_moe_core(_batch(layer, kind)))


def _outcome(run: Any) -> Found:
    try:
        run()
    except ReachedError as reached:
        return {"ok": True, "way": str(reached)}
    except BaseException as error:  # noqa: BLE001 - the engine's refusal is the answer
        return {"ok": False, "way": f"{type(error).__name__}: {error}"[:300]}
    return {"ok": True, "way": "returned"}


def _batch(layer: Any, kind: str) -> Any:
    import torch

    dispatch = sglang("layers.moe.token_dispatcher")
    x = torch.empty(8, layer.hidden_size, device="meta", dtype=torch.bfloat16)
    ids, weights = torch.zeros(8, layer.top_k, dtype=torch.int64), torch.zeros(8, layer.top_k)
    if kind == "deepep_normal":
        return dispatch.DeepEPNormalDispatchOutput(x, None, ids, weights, [8])
    return dispatch.DeepEPLLDispatchOutput(x, None, ids, weights, None, 8)


def _stop_at_kernels(layer: Any, runner_module: Any) -> None:
    def run(self: Any, dispatch_output: Any, *_quant_info: Any, **_named: Any) -> None:
        if self.fused_func is not None:
            raise ReachedError(f"fused {self.fused_func.__name__}")
        form, name = dispatch_output.format.value, self.runner_core.runner_backend.value
        runner_module.PermuteMethodPool.get_pre_permute(form, name)
        runner_module.PermuteMethodPool.get_post_permute(name, form)
        raise ReachedError(f"permute {form} to {name}")

    import torch

    real = torch.nn.Module.__getattr__

    def missing(self: Any, name: str) -> Any:
        return MagicMock() if name in POST_LOAD else real(self, name)

    type(layer).__getattr__ = missing
    runner_module.MoeRunner.run = run
