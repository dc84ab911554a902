"""Record which experts a Hugging Face model's own forward pass uses.

A hook before each layer's experts sees the ids that they are called with. Nothing is computed again, so every
way to choose (groups, biases, hashing) is recorded as it is. Shapes: L MoE layers, T tokens, K = top_k.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.base import BadInput
from planner.load import spans
from planner.model import ModelSpec
from probes.routing.progress import Progress, one_by_one
from probes.routing.trace import Ids, RoutingTrace, check_ids, check_room, join

Place = tuple[str, int]  # the name of the stack of layers, and the layer's id in it


def experts_of(module: Any) -> dict[Place, Any]:
    """The modules called 'experts', by the stack and the layer they are in.

    That of model.layers.3.mlp.experts is ('model.layers', 3).
    """
    name_of_model = type(module).__name__
    found: dict[Place, Any] = {}
    for name, inner in module.named_modules():
        parts = name.split(".")
        at = next((index for index, part in enumerate(parts) if part.isdecimal()), None)
        if parts[-1] == "experts" and at is not None:
            place = (".".join(parts[:at]), int(parts[at]))
            if place in found:
                twice = f"layer {place[1]} of {name_of_model} has two sets of experts"
                raise BadInput(f"{twice}; moeplan cannot record such a model")
            found[place] = inner
    if not found:
        why = "a dense model, or one this version of transformers writes differently"
        raise BadInput(f"{name_of_model} has no module called 'experts': {why}")
    return found


def record_routing(
    module: Any,
    model: ModelSpec,
    sequences: Sequence[Sequence[int]],
    source: str,
    notes: Sequence[str] = (),
    progress: Progress | None = None,
) -> RoutingTrace:
    """The trace of `module`, a transformers model in eval mode, over token ids.

    It runs one sequence at a time and without a cache. BadInput where its experts are not called with ids, or
    not in the layers that `model` says.
    """
    check_room(sum(map(len, sequences)), model, source)
    places, seen = experts_of(module), _Seen()
    recorded: list[Ids] = []
    with ExitStack() as hooks:
        for place, experts in places.items():
            hooks.callback(experts.register_forward_pre_hook(seen.hook_for(place), with_kwargs=True).remove)
        for number, tokens in one_by_one(sequences, progress):
            seen.calls.clear()
            _forward(module, tokens)
            ids_LTK = _stack(seen.calls, places, model)
            where = f"{source}, sequence {number}"
            if ids_LTK.shape[1] != len(tokens):
                few = f"the experts saw {ids_LTK.shape[1]} of {len(tokens)} tokens"
                raise BadInput(f"{where}: {few}; moeplan cannot record a model that skips tokens")
            recorded.append(check_ids(ids_LTK, model, where))
    return join(model, recorded, source, "prefill", notes)


class _Seen:
    """What the hooks saw during one forward pass."""

    def __init__(self) -> None:
        self.calls: dict[Place, npt.NDArray[Any]] = {}

    def hook_for(self, place: Place) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], None]:
        layer = f"layer {place[1]}"

        def hook(experts: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            ids = next((value for value in (*args, *kwargs.values()) if _is_ids(value)), None)
            if ids is None:
                missing = f"{type(experts).__name__} is not called with the ids of the chosen experts"
                remedy = "record from a running server instead (moeplan record --server)"
                raise BadInput(f"{layer}: {missing}, so they cannot be recorded; {remedy}")
            if place in self.calls:
                twice = "the experts are called twice in one forward pass"
                raise BadInput(f"{layer}: {twice}; moeplan cannot record such a model")
            self.calls[place] = ids.detach().cpu().numpy()

        return hook


def _is_ids(value: Any) -> bool:
    """Whether it is a tensor [token, k] of whole numbers."""
    import torch

    whole = (torch.int64, torch.int32, torch.int16, torch.uint8)
    return isinstance(value, torch.Tensor) and value.ndim == 2 and value.dtype in whole


def _forward(module: Any, tokens: Sequence[int]) -> None:
    """One pass of the decoder alone: the logits over the vocabulary are not needed."""
    import torch

    with torch.inference_mode():
        module.base_model(input_ids=torch.tensor([list(tokens)], device=module.device), use_cache=False)


def _stack(calls: dict[Place, npt.NDArray[Any]], places: dict[Place, Any], model: ModelSpec) -> Ids:
    """[layer, token, k] of the layers that were called.

    BadInput unless these are all the MoE layers of one stack.
    """
    stacks = sorted({stack for stack, _ in calls})
    if len(stacks) != 1:
        told = f"the experts of {', '.join(stacks) or 'no layer'} were called"
        raise BadInput(f"{model.name}: {told}; moeplan records models with one stack of layers")
    called = tuple(sorted(layer for _, layer in calls))
    there = tuple(sorted(layer for stack, layer in places if stack == stacks[0]))
    _check_layers(called, there, "the model holds experts in", model)
    _check_layers(called, model.moe_layer_ids, "its config.json says", model)
    shapes = {calls[stacks[0], layer].shape for layer in called}
    if len(shapes) != 1:
        differ = f"layers choose for different tokens or numbers of experts ({sorted(shapes)})"
        raise BadInput(f"{model.name}: {differ}; moeplan plans models with one value")
    return np.stack([calls[stacks[0], layer] for layer in called])


def _check_layers(called: tuple[int, ...], expected: tuple[int, ...], name: str, model: ModelSpec) -> None:
    if called != expected:
        told = f"experts were called in layers {spans(called)}, but {name} layers {spans(expected)}"
        raise BadInput(f"{model.name}: {told}; moeplan cannot record it")
