"""TensorRT-LLM's releases: which models each loads a map for, and what it has not.

No wheel and no tag could be had. What is here was read in public copies of its sources: 1.0rc4 (000a01d),
copies of main from 2025-07 to 2026-04 that bracket each release, and the pull requests that are named, by
their date (1.0: a branch of 2025-08; 1.2: a branch of 2026-01). Nothing was run.
"""

from planner.engines.common.releases import Release
from planner.model import ModelSpec

TITLE = "TensorRT-LLM"
# `model_type` of the classes in moe_load_balancer.py, moe_model_arch_list, from 1.0rc4 to 2025-12. Later
# lists have deepseek_v32, glm_moe_dsa and nemotron_h (2026-04), then kimi_k25 and more.
LISTED = frozenset(("deepseek_v3", "kimi_k2", "llama4", "mixtral", "qwen2_moe", "qwen3_moe"))
LISTED_1_2 = LISTED | {"gpt_oss"}  # #8886 (2025-11)
BIASED = frozenset(("gpt_oss",))  # experts with biases
# `quantization` of the releases that the WIDEEP backend has kernels for; "": none.
QUANTISED = frozenset(("", "fp8", "modelopt"))

# What a release may have, as `Release.flags`.
# flashinfer#1601 ports #6645 (2025-08); before it, aarch64 alone.
X86_NVLINK = "NVLink all-to-all on x86"
NVLINK_TWO_SIDED = "NVLinkTwoSided"  # its name since #9388 (2025-11); MNNVL before
DEEPEP_GRAPHS = "CUDA graphs with DeepEP"  # #7514 (2025-10)
# fused_moe_wide_ep.py: DeepGEMM where is_sm_100f(), absent in copies of 2025-07.
BLACKWELL_FP8 = "FP8 on Blackwell"
# llm_args.py: in copies of 2025-07 the sizes of the command line, given or not, take the place of the file's.
OPTION_SIZES = "sizes in the options file"
# cache_transceiver_config.backend in capitals; in small letters in copies of 2025-07.
PAIR = "pair"

_READ = "copies of its sources around its date, read; not run"
_SINCE_1_2 = frozenset((X86_NVLINK, NVLINK_TWO_SIDED, DEEPEP_GRAPHS, BLACKWELL_FP8, OPTION_SIZES, PAIR))
_GONE = "its sources refuse the WIDEEP backend (#17119), the one that moeplan writes launches for"
RELEASES = (
    Release("1.0", _READ, LISTED),
    Release("1.2", _READ, LISTED_1_2, _SINCE_1_2),
    Release("1.2.1", _READ, LISTED_1_2, _SINCE_1_2),
    Release("1.3", "#17119, #17797 (2026-07, 2026-08), read", refused=_GONE),
)


def why_no_map(model: ModelSpec, release: Release) -> tuple[str, str]:
    """Why this release would not serve the model from a map, and the source; both empty where it would."""
    if not release.reads_map(model):
        fails = "with one the server fails at start, since it never divides the slots over the ranks"
        source = (
            "moe_load_balancer.py, moe_model_arch_list; llm_args.py, num_local_slots; #12607, #13386; read"
        )
        return f"loads no map for {model.architecture}, which its list of models has not: {fails}", source
    if model.quantization not in QUANTISED:
        kernels = f"loads a map with its WIDEEP backend, which has no kernel for {model.quantization} weights"
        source = "fused_moe_wide_ep.py, _get_quant_method; model_config.py, load_hf_quant_config; read"
        return f"{kernels} (it takes bf16, block-scaled fp8, ModelOpt's fp8 and nvfp4)", source
    if model.architecture in BIASED:
        biased = "loads a map with its WIDEEP backend, which refuses experts with biases"
        return f"{biased}: those of {model.architecture}", "create_moe.py, create_moe_backend, read"
    return "", ""
