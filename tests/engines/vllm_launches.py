"""The launches of test_vllm_launches.py, and what must hold of vLLM's answer to each."""

import json
import shlex
from collections.abc import Iterator, Sequence
from functools import cached_property

from planner.cost import ledger
from planner.engines import Emission
from planner.engines.vllm.launch import MOST_BUFFER_BYTES
from tests.engines import launches
from tests.engines.launches import TOKENS, Answer, Launch
from tests.engines.vllm_catalogue import config_of

GPUS = {"8 x H100": "h100", "2 x 8 H100": "h100", "2 x 8 B200": "b200", "GB200 rack": "gb200"}
KV_ROLES = {"mixed": None, "prefill": "kv_producer", "decode": "kv_consumer"}


class Asked(Launch):
    ENGINE = "vllm"
    CHECKED = "vLLM 0.33.0's own resolution and expert layers, on a CPU"

    @cached_property
    def launch(self) -> Answer:
        """The first node's, for the resolver."""
        assert isinstance(self.emission, Emission)
        command, topology = self.emission.commands[0], self.problem.topology
        words = shlex.split(" ".join(command.words).replace("$HEAD_ADDRESS", "10.0.0.1"))
        environment = {name: value for name, value in command.environment if "$" not in value}
        return {
            "words": words[2:], "environment": environment, "config": self.config,
            "gpu": GPUS[self.machine], "devices": topology.gpu_count // topology.node_count,
        }  # fmt: skip

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
    return launches.catalogue(Asked, config_of)


def shared_attention() -> Iterator[Asked]:
    return launches.shared_attention(Asked, config_of)


def quantised() -> Iterator[Asked]:
    return launches.quantised(Asked, [(phase, phase) for phase in TOKENS])


def for_resolver(asked_for: Sequence[Asked]) -> dict[str, Answer]:
    """Each different launch once; a model is made where vLLM's choice of kernels could differ."""
    found: dict[str, Answer] = {}
    made: set[str] = set()
    for asked in asked_for:
        if asked.is_asked and asked.key not in found:
            found[asked.key] = {**asked.launch, "build": asked.kernel_key not in made}
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
    problem, engine, shared = asked.problem, answer["engine"], asked.attention_tp
    tokens, role = TOKENS[asked.phase] * shared, KV_ROLES[asked.role]
    meant = {
        "data": problem.gpus // shared, "tensor": shared,
        "expert_parallel": True, "tokens": tokens, "chunked_prefill": True,
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
    if asked.attention_tp > 1 and experts["deals_out"] != asked.attention_tp:
        yield f"tokens are dealt out over {experts['deals_out']} GPUs of a request"
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
