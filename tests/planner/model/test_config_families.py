"""A config.json of each family gives the right facts."""

import pytest

from tests.planner.model.configs import (
    DBRX,
    DEEPSEEK,
    ERNIE,
    GEMMA,
    GPT_OSS,
    HUNYUAN,
    JAMBA,
    KIMI,
    LLAMA4,
    LONGCAT,
    MIXTRAL,
    NEMOTRON,
    QWEN,
    STEP,
    read,
    refusal,
    without,
)


def test_mixtral_holds_experts_in_every_layer() -> None:
    """The plainest family, and the bytes of one expert by hand."""
    spec = read(MIXTRAL)
    assert (spec.architecture, spec.layers, spec.experts, spec.top_k) == ("mixtral", 32, 8, 2)
    assert spec.moe_layer_ids == tuple(range(32))
    assert spec.draft_layer_ids == ()
    assert spec.expert_bytes == 3 * 4096 * 14336 * 2


def test_deepseek_has_dense_layers_groups_and_a_draft_layer() -> None:
    """61 layers of which 3..60 hold experts, and the MTP layer is number 61."""
    spec = read(DEEPSEEK)
    assert spec.moe_layer_ids == tuple(range(3, 61))
    assert spec.draft_layer_ids == (61,)
    assert (spec.experts, spec.top_k, spec.shared_experts) == (256, 8, 1)
    assert (spec.expert_groups, spec.groups_per_token) == (8, 4)
    assert (spec.weight_dtype, spec.dtype_assumed) == ("fp8", False)
    assert spec.expert_bytes == pytest.approx(44.04e6, rel=1e-3)


def test_deepseek_layer_step_counts_from_layer_zero() -> None:
    """With moe_layer_freq 2 the even layers after the dense ones hold experts."""
    assert read(DEEPSEEK, moe_layer_freq=2).moe_layer_ids == tuple(range(4, 61, 2))


def test_a_list_of_flags_wins_over_first_k_dense_replace() -> None:
    """MiniMax-M3 and MiMo name each layer."""
    spec = read(DEEPSEEK, num_hidden_layers=5, moe_layer_freq=[0, 1, 0, 1, 1])
    assert spec.moe_layer_ids == (1, 3, 4)


def test_a_list_of_words_wins_over_first_k_dense_replace() -> None:
    """GLM-5.2 names each layer dense or sparse."""
    spec = read(DEEPSEEK, num_hidden_layers=4, mlp_layer_types=["dense", "sparse", "dense", "sparse"])
    assert spec.moe_layer_ids == (1, 3)


def test_hash_routed_layers_hold_experts_too() -> None:
    """DeepSeek-V4 states no dense layer, and its experts' dtype apart from the rest."""
    config = without(DEEPSEEK, "first_k_dense_replace")
    spec = read(config, model_type="deepseek_v4", num_hash_layers=3, expert_dtype="fp4")
    assert spec.moe_layer_ids == tuple(range(61))
    assert spec.weight_dtype == "mxfp4"


def test_qwen_counts_its_step_from_layer_one() -> None:
    """decoder_sparse_step 2 means layers 1, 3, 5; mlp_only_layers are dense; the shared expert is a width."""
    spec = read(QWEN, decoder_sparse_step=2, mlp_only_layers=[3])
    assert spec.moe_layer_ids == (1, 5)
    assert spec.shared_experts == 1


def test_qwen_with_a_shared_width_of_zero_has_no_shared_expert() -> None:
    """Qwen3-Coder states the width 0."""
    assert read(QWEN, shared_expert_intermediate_size=0).shared_experts == 0


def test_nemotron_reads_its_pattern_of_letters() -> None:
    """Two matrices an expert, a latent dispatch width, draft steps of an attention and an expert layer."""
    spec = read(NEMOTRON)
    assert (spec.layers, spec.moe_layer_ids, spec.draft_layer_ids) == (6, (1, 4), (7, 9))
    assert (spec.dispatch_width, spec.hidden, spec.expert_matrices) == (1024, 4096, 2)
    assert spec.expert_bytes == 2 * 1024 * 2688 * 2


def test_nemotron_reads_its_list_of_blocks() -> None:
    """The newer spelling of the same facts."""
    config = without(NEMOTRON, "hybrid_override_pattern")
    assert read(config, layers_block_type=["mamba", "moe", "attention", "moe"]).moe_layer_ids == (1, 3)


def test_nemotron_without_latent_size_dispatches_the_hidden_vector() -> None:
    """moe_latent_size null means no latent projection."""
    assert read(NEMOTRON, moe_latent_size=None).dispatch_width == 4096


def test_hunyuan_reads_lists_with_one_entry_a_layer() -> None:
    """The release spells top_k, width and shared experts once a layer."""
    spec = read(HUNYUAN)
    assert (spec.top_k, spec.expert_intermediate, spec.shared_experts, spec.experts) == (8, 3072, 1, 64)
    assert spec.moe_layer_ids == (0, 1, 2, 3)


def test_hunyuan_skipped_layers_may_differ() -> None:
    """Only layers that hold experts must agree."""
    spec = read(HUNYUAN, moe_topk=[1, 8, 8, 8], moe_layer_num_skipped=1)
    assert (spec.top_k, spec.moe_layer_ids) == (8, (1, 2, 3))


def test_hunyuan_layers_that_differ_are_refused() -> None:
    """One top_k for all layers is what a plan can use."""
    assert "'moe_topk' differs between MoE layers" in refusal(HUNYUAN, moe_topk=[8, 8, 4, 8])


def test_ernie_reads_start_end_and_interval() -> None:
    """An end of -1 is the last layer; the interval counts from layer one, as in transformers."""
    assert read(ERNIE).moe_layer_ids == tuple(range(1, 28))
    some = read(ERNIE, moe_layer_start_index=3, moe_layer_end_index=10, moe_layer_interval=2)
    assert some.moe_layer_ids == (3, 5, 7, 9)
    assert read(ERNIE).shared_experts == 2


def test_dbrx_reads_its_nested_ffn_config() -> None:
    """Facts one mapping down, under names of their own."""
    spec = read(DBRX)
    assert (spec.layers, spec.hidden) == (40, 6144)
    assert (spec.experts, spec.top_k, spec.expert_intermediate) == (16, 4, 10752)


def test_kimi_reads_its_text_config() -> None:
    """A latent MoE inside a multimodal config, with packed 4-bit floats."""
    spec = read(KIMI)
    assert (spec.architecture, spec.experts, spec.top_k, spec.shared_experts) == ("kimi_k3", 896, 16, 2)
    assert (spec.dispatch_width, spec.hidden, spec.weight_dtype) == (3584, 7168, "mxfp4")
    assert spec.moe_layer_ids == tuple(range(1, 93))


def test_a_known_text_model_is_read_in_an_unknown_frame() -> None:
    """Vision wrappers of a known text model need no row of their own."""
    assert read(KIMI, model_type="kimi_k9").architecture == "kimi_linear"


def test_llama4_alternates() -> None:
    """Step 2 gives the odd layers; an explicit list wins."""
    assert read(LLAMA4).moe_layer_ids == tuple(range(1, 48, 2))
    listed = {**LLAMA4["text_config"], "moe_layers": [5, 3]}
    assert read(LLAMA4, text_config=listed).moe_layer_ids == (3, 5)


def test_jamba_has_a_period_and_an_offset() -> None:
    """Period 2, offset 1: the odd layers."""
    assert read(JAMBA).moe_layer_ids == tuple(range(1, 32, 2))


def test_gpt_oss_is_mxfp4() -> None:
    """Its quantization has no groups to read, only a method."""
    assert read(GPT_OSS).weight_dtype == "mxfp4"


def test_gemma_has_its_own_name_for_top_k() -> None:
    """The dense MLP beside the experts is no shared expert."""
    spec = read(GEMMA)
    assert (spec.top_k, spec.shared_experts, spec.expert_intermediate) == (8, 0, 704)


def test_step_enumerates_layers_and_drafts() -> None:
    """Draft layers 6..8 are dense unless named: 7 is."""
    spec = read(STEP)
    assert (spec.moe_layer_ids, spec.draft_layer_ids, spec.experts, spec.top_k) == ((3, 4, 5), (7,), 288, 8)


def test_longcat_zero_compute_experts_are_refused() -> None:
    """Tokens that choose an expert without weights go nowhere: the facts we keep cannot say so."""
    assert "256 zero-compute experts" in refusal(LONGCAT)
    assert read(LONGCAT, zero_expert_num=0).experts == 512
