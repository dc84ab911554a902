"""What a launch of TensorRT-LLM says: its options file, its words, its environment, from one value."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from planner.engines.common import script
from planner.engines.common.command import Endpoint
from planner.engines.common.layout import gpus_per_node
from planner.engines.common.releases import Release
from planner.engines.common.sizes import AUTO, GATHERED_TOKENS, NORMAL, Sizes, sizes_of
from planner.engines.common.sizes import GATHER as GATHERED
from planner.engines.common.verdict import DECODE, MIXED, PREFILL
from planner.engines.trtllm import alltoall
from planner.engines.trtllm.load_balancer import MAP_NAME
from planner.engines.trtllm.releases import DEEPEP_GRAPHS, OPTION_SIZES, why_no_map
from planner.problem import Problem

OPTIONS_NAME = "extra_llm_api_options.yaml"
OPTIONS_FLAG = (
    "--extra_llm_api_options"  # --config is another name for it since #9104 (2025-12); 1.0 has none
)
TRANSFER = "DEFAULT"
_MODES = {alltoall.LOW_LATENCY: AUTO, alltoall.GATHER: GATHERED}


@dataclass(frozen=True)
class Launch:
    """One server: what was planned, by which release it is served, and for what."""

    problem: Problem
    release: Release
    role: str = MIXED

    @cached_property
    def with_map(self) -> bool:
        return not why_no_map(self.problem.model, self.release)[0]

    @cached_property
    def method(self) -> tuple[str, str]:
        """The all-to-all, and why it is not the usual one."""
        problem = self.problem
        return alltoall.method_of(problem.workload.phase, problem.topology, problem.model, self.release)

    @cached_property
    def sizes(self) -> Sizes:
        """Low latency takes the decode steps, what is larger is gathered: `auto`, in the words of sizes."""
        workload = self.problem.workload
        mode = _MODES.get(self.method[0], NORMAL)
        return sizes_of(
            workload.phase, workload.tokens_per_rank, self.role, mode, gpus=self.problem.gpus, page=1
        )

    @property
    def graphs(self) -> int:
        """The largest decode batch with a CUDA graph; 0: none is captured."""
        blocks = self.method[0] == alltoall.DEEPEP and DEEPEP_GRAPHS not in self.release.flags
        return 0 if blocks and self.with_map else self.sizes.running

    @property
    def step_tokens(self) -> int:
        """The most tokens that a rank brings to a step."""
        return max(self.sizes.running, self.sizes.chunk)

    @property
    def environment(self) -> list[str]:
        """NAME=value; nothing where there is no map, and TensorRT-LLM chooses its own backend."""
        if not self.with_map:
            return []
        return alltoall.environment(self.method[0], self.sizes.buffer, self.release)

    @property
    def gathered_tokens(self) -> int:
        """What is computed at once where every rank holds all tokens; 0 where nothing bounds it.

        No less than a decode step of all ranks: cut in two it would not go through DeepEP.
        """
        gpus, method = self.problem.gpus, self.method[0]
        gathers = method == alltoall.GATHER or (method == alltoall.LOW_LATENCY and self.sizes.chunk > 0)
        bound = max(GATHERED_TOKENS, self.sizes.running * gpus)
        return bound if gathers and bound < self.step_tokens * gpus else 0


def node_words(launch: Launch, model_path: str) -> list[str]:
    """TensorRT-LLM is started by MPI, once for each GPU; on one node it starts its ranks itself."""
    gpus, environment = str(launch.problem.gpus), launch.environment
    words = ["trtllm-serve", script.quote(model_path), *Endpoint().listen]
    words += ["--tp_size", gpus, "--ep_size", gpus, *size_words(launch), OPTIONS_FLAG, OPTIONS_NAME]
    started = words if launch.problem.topology.node_count == 1 else ["trtllm-llmapi-launch", *words]
    return ["env", *environment, *started] if environment else started


def size_words(launch: Launch) -> list[str]:
    """The sizes again, for a release that heeds those of its command line alone."""
    if OPTION_SIZES in launch.release.flags:
        return []
    return ["--max_batch_size", str(launch.sizes.running), "--max_num_tokens", str(launch.step_tokens)]


def options_text(launch: Launch) -> str:
    """As YAML: sections of one level, and values that JSON writes alike."""
    lines = []
    for key, value in options(launch).items():
        if isinstance(value, dict):
            lines += [f"{key}:", *(f"  {name}: {_scalar(held)}" for name, held in value.items())]
        else:
            lines.append(f"{key}: {_scalar(value)}")
    return "\n".join([*lines, ""])


def _scalar(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def options(launch: Launch) -> dict[str, Any]:
    """What the options file says. A key without a value (`moe_config:`) fails at start, but for graphs."""
    problem = launch.problem
    found: dict[str, Any] = {
        "enable_attention_dp": True,
        "tensor_parallel_size": problem.gpus,
        "moe_expert_parallel_size": problem.gpus,
        "gpus_per_node": gpus_per_node(problem.topology)[0],
        **size_options(launch),
        **role_options(launch.role),
    }
    if launch.with_map:
        bound = {"max_num_tokens": launch.gathered_tokens} if launch.gathered_tokens else {}
        found["moe_config"] = {"backend": "WIDEEP", **bound, "load_balancer": f"./{MAP_NAME}"}
    return found


def size_options(launch: Launch) -> dict[str, Any]:
    sizes, graphs = launch.sizes, launch.graphs
    running = {"max_batch_size": sizes.running} if sizes.running else {}
    chunks = {"enable_chunked_prefill": True} if sizes.chunk else {}
    captured = {"enable_padding": True, "max_batch_size": graphs} if graphs else None
    return {**running, "max_num_tokens": launch.step_tokens, **chunks, "cuda_graph_config": captured}


def role_options(role: str) -> dict[str, Any]:
    """Half of a pair hands over its KV cache; a context server's overlap scheduler does not know how."""
    alone = {"disable_overlap_scheduler": True} if role == PREFILL else {}
    return {**alone, "cache_transceiver_config": {"backend": TRANSFER}} if role in (PREFILL, DECODE) else {}
