"""Recording a Hugging Face model: the ids in the trace are those that the model's forward used.

In every family; what cannot be recorded says so.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from click.testing import CliRunner, Result

from planner.base import BadInput
from planner.cli import main
from planner.load import read_load
from planner.model import find_model, spec_from_config
from probes.routing.hf_model import encode_all, load_model
from probes.routing.hooks import experts_of, record_routing
from probes.routing.prompts import cut
from probes.routing.trace import RoutingTrace, check_ids, check_room, write_trace
from tests.probes.routing.toy import TEXT
from tests.probes.tiny_moe import CONFIGS, MOE_LAYERS, make_model, save_model, save_tokenizer, transformers

SEQUENCES = ([1, 2, 3, 4, 5, 6, 7], [250, 9, 17, 9, 88], list(range(40, 70)))


@pytest.fixture(scope="module")
def mixtral(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model("mixtral", tmp_path_factory.mktemp("mixtral"))


def recorded(kind: str) -> tuple[Any, RoutingTrace]:
    module = make_model(CONFIGS[kind]())
    return module, record_routing(
        module, spec_from_config(module.config.to_dict(), kind, kind), SEQUENCES, kind
    )


def router_logits(module: Any, tokens: list[int]) -> list[npt.NDArray[Any]]:
    """Of each MoE layer [token, expert], as the model itself returns them, in a forward pass of its own."""
    import torch

    with torch.no_grad():
        out = module.base_model(input_ids=torch.tensor([tokens]), output_router_logits=True)
    return [logits.reshape(len(tokens), -1).double().numpy() for logits in out.router_logits]


def chosen(kind: str, logits_TE: npt.NDArray[Any], router: Any, k: int) -> npt.NDArray[Any]:
    """The experts of each token, ascending, worked out from the logits as the model's paper says."""
    if kind == "deepseek_v3":
        scores_TE = 1 / (1 + np.exp(-logits_TE)) + router.e_score_correction_bias.double().numpy()
        scores_TGE = scores_TE.reshape(len(scores_TE), 4, -1)
        best_TG = np.sort(scores_TGE, axis=2)[:, :, -2:].sum(axis=2)
        out_TG = best_TG < np.sort(best_TG, axis=1)[:, [-2]]
        logits_TE = np.where(out_TG[:, :, None], -np.inf, scores_TGE).reshape(scores_TE.shape)
    return np.sort(np.argsort(-logits_TE, axis=1)[:, :k], axis=1)


def moeplan(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def refused(*arguments: object) -> str:
    """The one line of a command that refuses its input."""
    result = moeplan(*arguments)
    assert result.exit_code == 2, result.output
    assert result.output.count("\n") == 1
    return result.output


@pytest.mark.parametrize("kind", CONFIGS)
def test_ids_are_those_the_model_chose(kind: str) -> None:
    """In each family, of every token and layer: the top-k that follows from the logits the model returns, and
    not the same for all tokens.
    """
    module, trace = recorded(kind)
    assert trace.model.moe_layer_ids == MOE_LAYERS[kind]
    assert trace.sequence_lengths == (7, 5, 30)
    logits = [router_logits(module, tokens) for tokens in SEQUENCES]
    for row, layer in enumerate(MOE_LAYERS[kind]):
        block = module.base_model.layers[layer].mlp
        logits_TE = np.concatenate([of_layers[row] for of_layers in logits])
        expected_TK = chosen(kind, logits_TE, getattr(block, "gate", None) or block.router, trace.model.top_k)
        assert np.array_equal(np.sort(trace.experts_LTK[row], axis=1), expected_TK), f"layer {layer}"
    assert len(np.unique(trace.experts_LTK[0], axis=0)) > 5


@pytest.mark.parametrize("kind", CONFIGS)
def test_recorded_ids_make_the_experts_output(kind: str) -> None:
    """Another expert in a token's place changes the model's output, so the ids that are recorded are the ones
    that compute it.
    """
    import torch

    module, trace = recorded(kind)
    layer = MOE_LAYERS[kind][-1]
    experts = module.base_model.layers[layer].mlp.experts
    other = next(expert for expert in range(trace.model.experts) if expert not in trace.experts_LTK[-1, 0])

    def output(replace: int | None) -> torch.Tensor:
        def swap(_experts: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
            hidden, ids, *rest = args
            assert np.array_equal(ids.numpy(), trace.experts_LTK[-1, :7])
            if replace is not None:
                ids = ids.clone()
                ids[0, 0] = replace
            return (hidden, ids, *rest)

        hook = experts.register_forward_pre_hook(swap)
        with torch.no_grad():
            found: torch.Tensor = module(input_ids=torch.tensor([SEQUENCES[0]])).logits
        hook.remove()
        return found

    assert torch.equal(output(None), output(int(trace.experts_LTK[-1, 0, 0])))
    assert not torch.equal(output(None), output(other))


def test_hooks_are_removed() -> None:
    """A model is left as it was, also after a fault."""
    module, _ = recorded("olmoe")
    model = spec_from_config(module.config.to_dict(), "olmoe", "olmoe")
    with pytest.raises(IndexError):
        record_routing(module, model, [[999]], "token past the vocabulary")
    assert not any(experts._forward_pre_hooks for experts in experts_of(module).values())


def test_command_writes_what_load_show_reads(mixtral: Path, tmp_path: Path) -> None:
    """From the folder of a model and a text to a trace, to the load of each sequence: tokens x top_k
    assignments in every layer.
    """
    (tmp_path / "text.txt").write_text(TEXT)
    read = ("--text", tmp_path / "text.txt", "--sequence-characters", 40)
    written = ("-o", tmp_path / "t.npz", "--json")
    found = moeplan("record", "--model-path", mixtral, "--bytes", *read, *written)
    assert found.exit_code == 0, found.output
    told = json.loads(found.output)
    assert (told["tokens"], told["phase"]) == (len(TEXT), "prefill")
    assert (told["layers"], told["top_k"]) == ([0, 1, 2], 2)
    assert "bytes of the text" in told["notes"][0]
    shown = moeplan("load", "show", tmp_path / "t.npz", "--model", mixtral / "config.json", "--json")
    assert shown.exit_code == 0, shown.output
    load = read_load([tmp_path / "t.npz"], find_model(str(mixtral / "config.json")))
    lengths = [len(piece) for piece in cut(TEXT, 40)]
    assert load.windows == len(lengths) == told["sequences"]
    assert load.tokens_WLE.sum(axis=2).tolist() == [[2 * length] * 3 for length in lengths]
    assert load.trace is not None
    assert (load.phase, load.source) == ("prefill", f"recorded from {mixtral}")
    assert any("bytes of the text" in note for note in load.notes)


def test_same_text_gives_the_same_bytes(mixtral: Path, tmp_path: Path) -> None:
    """Two runs, one file."""
    (tmp_path / "text.txt").write_text(TEXT)
    for name in ("a.npz", "b.npz"):
        files = ("--text", tmp_path / "text.txt", "-o", tmp_path / name)
        assert moeplan("record", "--model-path", mixtral, "--bytes", *files).exit_code == 0
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_tokenizer_of_the_folder_is_used(tmp_path: Path) -> None:
    """Where the folder has a tokenizer, its tokens are fed, and nothing is noted."""
    save_tokenizer(save_model("olmoe", tmp_path / "olmoe"))
    loaded = load_model(str(tmp_path / "olmoe"), "cpu")
    assert encode_all(loaded, ["abc", "é"]) == ([97, 98, 99], [233])
    assert loaded.notes == ()


def test_model_of_qwen3_that_transformers_wrote_is_read(tmp_path: Path) -> None:
    """The number of experts has another name there (transformers 5) than in the releases of Qwen."""
    folder = save_model("qwen3_moe", tmp_path)
    assert find_model(str(folder / "config.json")).experts == 16


def test_folder_without_a_tokenizer(mixtral: Path, tmp_path: Path) -> None:
    """Names the way out."""
    (tmp_path / "text.txt").write_text(TEXT)
    files = ("--text", tmp_path / "text.txt", "-o", tmp_path / "t.npz")
    assert "--bytes" in refused("record", "--model-path", mixtral, *files)
    assert not (tmp_path / "t.npz").exists()


def test_sequence_longer_than_the_model_takes(mixtral: Path, tmp_path: Path) -> None:
    """128 positions, 129 bytes."""
    (tmp_path / "text.txt").write_text("x" * 129)
    files = ("--text", tmp_path / "text.txt", "-o", tmp_path / "t.npz")
    line = refused("record", "--model-path", mixtral, "--bytes", *files)
    assert "129 tokens" in line
    assert "--sequence-characters" in line


def test_missing_weight(tmp_path: Path) -> None:
    """It would be filled with random numbers, and the choices would be noise."""
    from safetensors.torch import load_file, save_file

    folder = save_model("mixtral", tmp_path)
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.self_attn.q_proj.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    missing = r"1 weights are missing, the first is model\.layers\.1\.self_attn\.q_proj\.weight"
    with pytest.raises(BadInput, match=missing):
        load_model(str(folder), "cpu", as_bytes=True)


def test_file_cut_short(tmp_path: Path) -> None:
    """A download that stopped: one line, no traceback."""
    folder = save_model("mixtral", tmp_path)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    with pytest.raises(BadInput, match="transformers cannot load this model"):
        load_model(str(folder), "cpu", as_bytes=True)


def test_pickled_weights_are_not_loaded(mixtral: Path, tmp_path: Path) -> None:
    """A .bin file can hold code."""
    import torch

    (tmp_path / "config.json").write_text((mixtral / "config.json").read_text())
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(BadInput, match="safetensors"):
        load_model(str(tmp_path), "cpu", as_bytes=True)


def test_code_beside_a_model_is_not_run(mixtral: Path, tmp_path: Path) -> None:
    """A config that names its own classes is refused; the file is not imported."""
    config = json.loads((mixtral / "config.json").read_text()) | {
        "model_type": "mine",
        "auto_map": {"AutoConfig": "mine.Mine"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(BadInput, match="cannot load"):
        load_model(str(tmp_path), "cpu", as_bytes=True)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("config", "told"), [(None, "cannot load"), ({"model_type": "llama"}, "llama"), ("{", "cannot load")]
)
def test_folder_that_is_no_moe_model(config: Any, told: str, tmp_path: Path) -> None:
    """An empty folder, a dense model, a damaged config."""
    if config is not None:
        (tmp_path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    with pytest.raises(BadInput, match=told):
        load_model(str(tmp_path), "cpu", as_bytes=True)


@pytest.mark.parametrize("path", ["./absent", "/absent/model", "a/b/c", "~/model"])
def test_folder_that_is_not_there(path: str) -> None:
    """What cannot be a name on the hub is not asked for there."""
    with pytest.raises(BadInput, match="no such folder"):
        load_model(path, "cpu")


def test_experts_that_are_not_called_with_ids() -> None:
    """Llama 4 hands its experts the tokens already sorted: refused, with what to do instead."""
    config = transformers.Llama4TextConfig(
        **{
            key: value
            for key, value in CONFIGS["mixtral"]().to_dict().items()
            if key in ("vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size")
        },
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=8,
        intermediate_size_mlp=64,
        num_local_experts=4,
        num_experts_per_tok=1,
        interleave_moe_layer_step=1,
    )
    module = transformers.Llama4ForCausalLM(config).eval()
    with pytest.raises(BadInput, match="--server"):
        record_routing(
            module, spec_from_config(module.config.to_dict(), "llama4", "llama4"), [[1, 2, 3]], "llama4"
        )


def test_layers_that_the_config_does_not_say() -> None:
    """A config that was edited and a model that was built from it differ: refused."""
    module, trace = recorded("deepseek_v3")
    other = spec_from_config(
        module.config.to_dict() | {"first_k_dense_replace": 2, "mlp_layer_types": None}, "edited", "edited"
    )
    assert trace.model.moe_layer_ids != other.moe_layer_ids
    with pytest.raises(BadInput, match=r"called in layers 1-2, but its config\.json says layers 2"):
        record_routing(module, other, [[1, 2, 3]], "edited")


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ([[[0, 1]], [[2, 3]], [[4, 8]]], "layer 2, token 0 has the expert id 8"),
        ([[[0, 1]], [[2, -1]], [[4, 5]]], "layer 1, token 0 has the expert id -1"),
        ([[[0, 0]], [[2, 3]], [[4, 5]]], "layer 0, token 0 chooses expert 0 twice"),
        ([[[0, 1]], [[2, 3]]], "3 MoE layers"),
        ([[[0.0, 1.0]], [[2.0, 3.0]], [[4.0, 5.0]]], "float64"),
    ],
)
def test_ids_that_no_router_chose(ids: list[Any], told: str) -> None:
    """Each is told with its layer, token and value."""
    model = spec_from_config(CONFIGS["mixtral"]().to_dict(), "mixtral", "mixtral")
    with pytest.raises(BadInput, match=told):
        check_ids(np.array(ids), model, "here")


def test_trace_too_large_to_read_back() -> None:
    """Refused before hours of recording, not after."""
    model = spec_from_config(CONFIGS["mixtral"]().to_dict(), "mixtral", "mixtral")
    check_room(1 << 20, model, "here")
    with pytest.raises(BadInput, match="--sequences"):
        check_room(1 << 30, model, "here")


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """A folder that is not there: one line, and no file half written."""
    _, trace = recorded("olmoe")
    with pytest.raises(BadInput, match="cannot be written"):
        write_trace(trace, tmp_path / "absent" / "t.npz")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "--model-path"),
        (("--model-path", "x", "--server", "http://h"), "one of them"),
        (("--model-path", "x", "-o", "t.npy"), ".npz"),
        (("--model-path", "x", "-o", "absent/t.npz"), "the folder absent is not there"),
        (("--model-path", "x", "--engine", "sglang", "-o", "t.npz"), "belong to --server"),
        (("--server", "http://h", "-o", "t.npz"), "--engine"),
        (("--server", "http://h", "--engine", "vllm", "-o", "t.npz"), "--model"),
        (("--server", "http://h", "--engine", "vllm", "--dump-on-server"), "sglang"),
        (("--server", "http://h", "--engine", "vllm", "--bytes", "-o", "t.npz"), "--bytes"),
    ],
)
def test_flags_that_do_not_belong_together(arguments: tuple[str, ...], told: str, tmp_path: Path) -> None:
    """Told before anything is read or loaded."""
    assert told in refused("record", "--text", tmp_path / "absent.txt", *arguments)
