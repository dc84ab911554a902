"""Routes vLLM's tokens by the rows of a recorded trace, layer by layer: what a plan was made for, replayed.

Written by moeplan for vLLM 0.33.0; it needs nothing of moeplan where it is installed. It is in force where
VLLM_MOE_ROUTING_SIMULATION_STRATEGY is moeplan_replay. The rows are those of replay.json beside this file, or
of the file that MOEPLAN_REPLAY names. Token after token takes row after row, over and over, the same rows in
every layer. What the model then says means nothing; its traffic and times are those of the trace.

vLLM's simulator tells a strategy no layer: each layer gets a strategy of its own when vLLM makes its runner.
Rows, and the place in them, are tensors on the layer's device, so a CUDA graph moves on when it is replayed.
"""

import functools
import importlib
import json
import logging
import os
from pathlib import Path
from typing import Any

log = logging.getLogger("vllm.moeplan")
NAME, FILE, ROWS = "moeplan_replay", "MOEPLAN_REPLAY", "replay.json"


class Recorded:
    """The rows of a file: `top_k` expert ids for each token and layer, the ids of a layer in one list."""

    def __init__(self, path: Path) -> None:
        found = json.loads(path.read_bytes())
        self.path, self.experts, self.top_k = path, found["experts"], found["top_k"]
        self.ids = {int(layer): ids for layer, ids in found["layers"].items()}
        lengths = {len(ids) for ids in self.ids.values()}
        if len(lengths) != 1 or lengths == {0} or lengths.pop() % self.top_k:
            raise ValueError(f"moeplan: {path}: its layers have not the same whole tokens")

    @property
    def tokens(self) -> int:
        return int(len(next(iter(self.ids.values()))) // self.top_k)

    def check(self, layer: int, top_k: int, experts: int) -> None:
        """RuntimeError where these rows are not for a layer of the model that is served."""
        if layer not in self.ids:
            raise RuntimeError(
                f"moeplan: {self.path} has no rows of layer {layer}; record them, or serve without it"
            )
        if (top_k, experts) != (self.top_k, self.experts):
            raise RuntimeError(
                f"moeplan: {self.path} has {self.top_k} of {self.experts} experts a token, "
                f"and layer {layer} chooses {top_k} of {experts}: this is another model than the trace's"
            )


def first_row(parallel: Any, tokens: int, *, gathered: bool) -> int:
    """The row of a rank's first token: ranks that bring tokens of their own start evenly apart in the trace.

    Ranks that share tokens start alike. So do all where tokens were `gathered` before they are routed: then
    every rank routes the tokens of all, in one order.
    """
    if parallel.pcp_size > 1:
        raise RuntimeError("moeplan: a replay knows no prefill context parallelism; serve without it")
    if gathered:
        return 0
    shared = not parallel.is_sequence_parallel
    rank, ranks = (parallel.dp_rank, parallel.dp_size) if shared else (parallel.ep_rank, parallel.ep_size)
    return int(tokens * rank // ranks)


def strategies(torch: Any, base: Any, recorded: Recorded) -> tuple[Any, Any]:
    """(what vLLM is given for all layers, what each layer then gets)."""

    # their base is vLLM's, found when vLLM calls
    class Replay(base):  # type: ignore[misc]
        """Stands for the layers' own until each has it."""

        def route_tokens(self, *given: Any, **named: Any) -> Any:
            del given, named
            raise RuntimeError("moeplan: a layer of experts was not made by vLLM's MoERunner: it has no rows")

    class LayerReplay(base):  # type: ignore[misc]
        """The rows of one layer."""

        def __init__(self, layer: int, runner: Any) -> None:
            self.layer, self.runner = layer, runner
            self.rows: Any = None
            self.place: Any = None
            recorded.check(layer, runner.router.top_k, runner.moe_config.num_logical_experts)

        def route_tokens(
            self, hidden_states: Any, router_logits: Any, top_k: int, indices_type: Any = None
        ) -> Any:
            del router_logits
            tokens, device = hidden_states.shape[0], hidden_states.device
            if self.rows is None or self.rows.device != device:
                self.start(device)
            taken = (self.place + torch.arange(tokens, device=device)) % len(self.rows)
            self.place.add_(tokens).remainder_(len(self.rows))
            ids = self.rows[taken].to(torch.long if indices_type is None else indices_type)
            return torch.full((tokens, top_k), 1 / top_k, dtype=torch.float32, device=device), ids

        def start(self, device: Any) -> None:
            """At the first tokens, those of vLLM's profile run: only now is it settled who gathers."""
            ids = torch.tensor(recorded.ids[self.layer], dtype=torch.int32, device=device)
            self.rows = ids.reshape(-1, recorded.top_k)
            parallel = self.runner.moe_config.moe_parallel_config
            first = first_row(parallel, recorded.tokens, gathered=self.runner.do_naive_dispatch_combine)
            self.place = torch.full((1,), first, dtype=torch.int64, device=device)

    return Replay(), LayerReplay


def register() -> None:
    """Called by vLLM in each of its processes; calling it again changes nothing."""
    if os.environ.get("VLLM_MOE_ROUTING_SIMULATION_STRATEGY", "").lower() != NAME:
        return
    layers = "vllm.model_executor.layers.fused_moe"
    routing: Any = importlib.import_module(f"{layers}.router.routing_simulator_router")
    runner: Any = importlib.import_module(f"{layers}.runner.moe_runner")
    if NAME in routing.RoutingSimulator.get_available_strategies():
        return
    recorded = Recorded(Path(os.environ.get(FILE) or Path(__file__).with_name(ROWS)))
    torch: Any = importlib.import_module("torch")
    shared, of_layer = strategies(torch, routing.RoutingStrategy, recorded)
    routing.RoutingSimulator.register_strategy(NAME, shared)
    made = runner.MoERunner.__init__

    @functools.wraps(made)
    def with_rows(self: Any, *args: Any, **named: Any) -> None:
        made(self, *args, **named)
        if getattr(self.router, "_strategy", None) is shared:
            self.router._strategy = of_layer(self.layer_id, self)  # noqa: SLF001 - vLLM has no other door

    runner.MoERunner.__init__ = with_rows
    log.warning(
        "moeplan: tokens are routed by the %s rows of %s, not by the model", recorded.tokens, recorded.path
    )
