"""A Hugging Face model as transformers loads it, and how its text becomes token ids.

Code that comes with a model is never run.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.base import BadInput
from planner.model import ModelSpec, spec_from_config

_LOADING_FAULTS = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError),
    *(RuntimeError, ImportError),
)
Encode = Callable[[str], list[int]]


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model ready to run, and what moeplan knows of it."""

    module: Any
    spec: ModelSpec
    encode: Encode
    longest: int  # tokens of a sequence
    notes: tuple[str, ...]


def load_model(path: str, device: str = "auto", *, as_bytes: bool = False) -> LoadedModel:
    """The model in a folder or of a name on the hub.

    BadInput where it is no MoE model, does not load, or a weight is missing.
    """
    if not Path(path).is_dir() and (path.startswith(("/", ".", "~")) or path.count("/") > 1):
        hub = "not a name on the hub either (those look like allenai/OLMoE-1B-7B-0924)"
        raise BadInput(f"{path}: no such folder, and {hub}")
    transformers = _transformers()
    config = _tried(path, lambda: transformers.AutoConfig.from_pretrained(path, trust_remote_code=False))
    spec = spec_from_config(config.to_dict(), Path(path).name or path, path)
    encode = _bytes_of(config, path) if as_bytes else _tokenizer(path)
    loaded, told = _tried(path, lambda: _from_pretrained(transformers, path))
    missing = sorted(told["missing_keys"])
    if missing:  # transformers would fill them with random numbers, and the router's choices would be noise
        lack = f"{len(missing)} weights are missing, the first is {missing[0]}"
        raise BadInput(f"{path}: {lack}; complete the download")
    longest = int(getattr(config.get_text_config(), "max_position_embeddings", None) or 1 << 30)
    notes = ("tokens are the bytes of the text, not the model's own tokens",) if as_bytes else ()
    return LoadedModel(_on_device(loaded, device), spec, encode, longest, notes)


def _from_pretrained(transformers: Any, path: str) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(
        path, trust_remote_code=False, use_safetensors=True, dtype="auto", output_loading_info=True
    )


def encode_all(model: LoadedModel, prompts: Sequence[str]) -> tuple[list[int], ...]:
    """Token ids of each prompt. BadInput where one is empty or longer than the model takes."""
    sequences = tuple(model.encode(prompt) for prompt in prompts)
    for number, tokens in enumerate(sequences):
        if not tokens:
            none = f"sequence {number} ({prompts[number][:30]!r}) has no tokens"
            raise BadInput(f"{none}; the model's tokenizer may be incomplete: try --bytes")
        if len(tokens) > model.longest:
            takes = f"{len(tokens):,} tokens, {model.spec.name} takes {model.longest:,}"
            remedy = "cut the text shorter with --sequence-characters"
            raise BadInput(f"sequence {number} has {takes}; {remedy}")
    return sequences


def _transformers() -> Any:
    try:
        import torch  # noqa: F401 - transformers imports without it, and fails later and less clearly
        import transformers
    except ImportError as error:
        raise BadInput(
            "recording a Hugging Face model needs torch and transformers: pip install torch transformers"
        ) from error
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    # the hub tells each of its retries; the fault that follows says it once
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    return transformers


def _tried(path: str, load: Callable[[], Any]) -> Any:
    """What `load` returns; what transformers and safetensors raise at a bad model becomes one line."""
    from safetensors import SafetensorError

    try:
        return load()
    except (*_LOADING_FAULTS, SafetensorError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise BadInput(
            f"{path}: transformers cannot load this model ({lines[0][:300]}); "
            "give a complete folder or a name on the hub"
        ) from error


def _tokenizer(path: str) -> Encode:
    import transformers

    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, trust_remote_code=False)
    except Exception as error:  # tokenizers raises a bare Exception at a damaged file
        raise BadInput(
            f"{path}: no tokenizer that transformers can load ({str(error)[:200]}); "
            "--bytes feeds the text's bytes instead"
        ) from error

    def encode(text: str) -> list[int]:
        return list(tokenizer(text, verbose=False)["input_ids"])

    return encode


def _bytes_of(config: Any, path: str) -> Encode:
    words = int(config.get_text_config().vocab_size)
    if words < 256:
        raise BadInput(f"{path}: --bytes needs a vocabulary of 256 tokens; this model has {words}")
    return lambda text: list(text.encode())


def _on_device(module: Any, device: str) -> Any:
    import torch

    chosen = device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return module.eval().to(chosen)
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was built with CUDA
        raise BadInput(
            f"the model cannot be put on {chosen} ({str(error).splitlines()[0][:200]}); try --device cpu"
        ) from error
