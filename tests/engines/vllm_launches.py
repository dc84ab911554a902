"""The launches of test_vllm_launches.py, and what must hold of the answer to each.

Every catalogue model on four machines, for both phases, as a server for all traffic and as half of a pair;
and a small model with each quantisation.
"""

import copy
import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from planner.base import BadInput
from planner.cost import ledger
from planner.engines import Emission, Verdict, find_engine, judge_launch
from planner.engines.vllm.launch import MOST_BUFFER_BYTES
from planner.model import ModelSpec, find_model, model_names, spec_from_config
from planner.problem import Problem
from planner.topology import read_topology
from tests.engines.catalogue import QUANTISATIONS
from tests.engines.configs import CONFIGS, Config
from tests.engines.vllm_catalogue import config_of
from tests.planner.engines.examples import question

ENGINE = find_engine("vllm")
MACHINES = {  # preset, and the GPU as the resolver knows it
    "8 x H100": ("hgx-h100", "h100"),
    "2 x 8 H100": ("hgx-h100:2", "h100"),
    "2 x 8 B200": ("hgx-b200:2", "b200"),
    "GB200 rack": ("gb200-nvl72", "gb200"),
}
TOKENS = {"decode": 128, "prefill": 4096}
KV_ROLES = {"mixed": None, "prefill": "kv_producer", "decode": "kv_consumer"}
Answer = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """One launch: what is emitted, or why nothing is."""

    model: ModelSpec
    config: Config | None  # None: no config of the architecture is known here
    machine: str
    phase: str
    role: str

    def __str__(self) -> str:
        return f"{self.model.name}, {self.machine}, {self.phase}, {self.role}"

    @cached_property
    def problem(self) -> Problem:
        """BadInput where the experts do not fit the machine."""
        topology = read_topology(MACHINES[self.machine][0])
        redundant = -self.model.experts % topology.gpu_count
        asked = question(self.model, topology, redundant, self.phase, TOKENS[self.phase])
        transport = ENGINE.transport(self.phase, topology, self.model)
        return replace(asked, workload=replace(asked.workload, transport=transport), replica_rule="hashed")

    @cached_property
    def verdict(self) -> Verdict:
        return judge_launch("vllm", self.problem, role=self.role)

    @cached_property
    def emission(self) -> Emission | BadInput:
        try:
            placement = ENGINE.default_placement(self.model, self.problem.gpus, self.problem.redundant)
            return ENGINE.emit(placement, self.problem, "MODEL", role=self.role)
        except BadInput as refused:
            return refused

    @cached_property
    def launch(self) -> Answer:
        """The first node's, for the resolver."""
        assert isinstance(self.emission, Emission)
        command, topology = self.emission.commands[0], self.problem.topology
        words = shlex.split(" ".join(command.words).replace("$HEAD_ADDRESS", "10.0.0.1"))
        environment = {name: value for name, value in command.environment if "$" not in value}
        return {
            "words": words[2:], "environment": environment, "config": self.config,
            "gpu": MACHINES[self.machine][1], "devices": topology.gpu_count // topology.node_count,
        }  # fmt: skip

    @property
    def is_asked(self) -> bool:
        return self.config is not None and isinstance(self.emission, Emission)

    @property
    def kernel_key(self) -> str:
        """What vLLM chooses its method and kernel by."""
        words = self.launch["words"]
        chosen = [
            words[words.index(flag) + 1] for flag in ("--all2all-backend", "--moe-backend") if flag in words
        ]
        balanced, newer = "--enable-eplb" in words, self.launch["gpu"] != "h100"
        return json.dumps([self.config, newer, balanced, *chosen], sort_keys=True)


def catalogue() -> Iterator[Asked]:
    for model in map(find_model, model_names()):
        config = config_of(model)
        for machine in MACHINES:
            for phase in TOKENS:
                yield from (Asked(model, config, machine, phase, role) for role in ("mixed", phase))


def quantised() -> Iterator[Asked]:
    """A small DeepSeek-V3 in every quantisation, read by moeplan from the same config.json."""
    for name, quantisation in QUANTISATIONS.items():
        config = copy.deepcopy(CONFIGS["deepseek_v3"])
        config |= {"quantization_config": quantisation} if quantisation else {}
        model = spec_from_config(config, name, "made for tests")
        for machine in ("8 x H100", "2 x 8 B200"):
            yield from (Asked(model, config, machine, phase, phase) for phase in TOKENS)


def key(asked: Asked) -> str:
    """Models of one shape have one launch."""
    return json.dumps(asked.launch, sort_keys=True)


def for_resolver(launches: Sequence[Asked]) -> dict[str, Answer]:
    """Each different launch once; a model is made where vLLM's choice of kernels could differ."""
    found: dict[str, Answer] = {}
    made: set[str] = set()
    for asked in launches:
        if asked.is_asked and key(asked) not in found:
            found[key(asked)] = {**asked.launch, "build": asked.kernel_key not in made}
            made.add(asked.kernel_key)
    return dict(sorted(found.items(), key=lambda one: bool(one[1]["build"])))


def faults(asked: Asked, answer: Answer, made: Answer | None) -> Iterator[str]:
    """What would not stand of a launch, by what vLLM made of it; `made`: of its model."""
    if "error" in answer:
        yield str(answer["error"])
        return
    yield from _meaning(asked, answer)
    experts = (made or {}).get("moe")
    if experts is None:
        yield f"no layer of experts was made: {(made or {}).get('error')}"
        return
    if answer["engine"]["eplb"] and not experts["supports_eplb"]:
        yield f"{experts['method']} does not support EPLB"
    if answer["engine"]["eplb"] and made and made.get("balanced") is None and "after_experts" not in made:
        yield "vLLM's balancer would find no layers in this model"
    if experts["kernel_batched"] not in (None, experts["batched"]):
        yield f"{experts['kernel']} takes other batches than the all-to-all brings"
    if "moe" in answer and "buffer" in answer["moe"]:
        yield from _buffer(asked, answer["moe"])


def _meaning(asked: Asked, answer: Answer) -> Iterator[str]:
    """The flags resolve to the plan."""
    problem, engine, tokens = asked.problem, answer["engine"], TOKENS[asked.phase]
    role = KV_ROLES[asked.role]
    meant = {
        "data": problem.gpus, "tensor": 1, "expert_parallel": True, "tokens": tokens, "chunked_prefill": True,
        "redundant": problem.redundant, "kv": role and ["NixlConnector", role],
    }  # fmt: skip
    meant |= {"requests": tokens} if asked.phase == "decode" else {}
    meant |= {"use_async": False} if engine["eplb"] else {"redundant": 0}
    for field, value in meant.items():
        if engine[field] != value:
            yield f"{field} is {engine[field]}, not {value}"
    if answer["host"] != "0.0.0.0":
        yield f"it listens on {answer['host']}"
    if engine["requests"] > tokens or max(engine["graph_sizes"], default=0) > tokens:
        yield f"requests {engine['requests']}, graphs {engine['graph_sizes'][-1:]}, steps of {tokens} tokens"
    gathers = problem.workload.transport == "allgather"
    if (engine["all2all"] == "allgather_reducescatter") != gathers:
        yield f"priced as {problem.workload.transport}, sent by {engine['all2all']}"


def _buffer(asked: Asked, experts: Answer) -> Iterator[str]:
    """What DeepEP dd758ca asserts of the buffer that vLLM asks for, csrc/legacy/buffer.hpp:107-116, :239."""
    buffer, ranks, low = experts["buffer"], experts["ranks"], experts["batched"]
    nvlink, network, devices = buffer["num_nvl_bytes"], buffer["num_rdma_bytes"], asked.launch["devices"]
    if network > MOST_BUFFER_BYTES or (ranks > 8 and ranks % 8) or (not low and ranks > 160):
        yield f"DeepEP takes no buffer of {network} bytes for {ranks} ranks"
    if not low and (network > 0) != (ranks > 8):
        yield f"normal mode of {ranks} ranks with {network} bytes for the network"
    if nvlink and min(ranks, 8) > devices and not buffer.get("allow_mnnvl"):
        yield f"CUDA IPC over hosts: {devices} GPUs each"
    if low and (experts["experts"] % ranks or experts["top_k"] > 11):
        yield f"{experts['experts']} experts on {ranks} ranks, top-k {experts['top_k']}"
    if low:
        (line,) = (line for line in ledger(asked.problem, "vllm").lines if line.name == "all_to_all")
        if line.size_bytes != network + nvlink:
            yield f"the ledger counts {line.size_bytes} bytes, vLLM takes {network + nvlink}"
