"""NVML, asked in a child process with a time limit, since a sick GPU can hang or crash the library."""

import json
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.base import BadInput
from probes.base.command import Output, run
from probes.nvml.codes import Raw, error_text

WORKER = Path(__file__).with_name("worker.py")
NVML_TIMEOUT_SECONDS = 20.0
MOST_SICK_GPUS = 2  # each costs one more time limit
DONE: Raw = {"done": True}


@dataclass(frozen=True)
class NvmlAnswers:
    """Raw answers: `gpus` in NVML's order, those that could not be asked with 'sick'; `pairs` of them.

    `warnings` are about the asking itself.
    """

    driver: str | None
    gpus: tuple[Raw, ...]
    pairs: tuple[Raw, ...]
    warnings: tuple[str, ...] = ()


class NvmlUnusableError(BadInput):
    """NVML said no before any GPU could be asked; `code` is its number."""

    def __init__(self, code: int) -> None:
        super().__init__(f"NVML cannot be used: {error_text(code)} (code {code})")
        self.code = code


def ask_nvml(timeout_seconds: float = NVML_TIMEOUT_SECONDS) -> NvmlAnswers:
    """Every GPU's answers. A GPU that hangs or crashes NVML is left out and named.

    NvmlUnusableError or BadInput where nothing can be asked.
    """
    sick: dict[int, str] = {}
    while True:
        output = run([sys.executable, str(WORKER), *map(str, sick)], timeout_seconds)
        lines = _lines(output)
        for line in lines:
            if "failed" in line:
                raise NvmlUnusableError(line["code"])
        asked = next(
            (line["asking"] for line in reversed(lines) if "asking" in line),
            "the start of the process that asks it",
        )
        how = None if DONE in lines else _how(output, timeout_seconds)
        if how is None or asked == "pairs of GPUs":
            return _answers(lines, sick, how)
        if not asked.startswith("GPU ") or len(sick) == MOST_SICK_GPUS:
            before = f" (and before at GPU {', '.join(map(str, sick))})" if sick else ""
            raise BadInput(
                f"NVML {how} at {asked}{before}: a GPU may be hung; "
                "look for 'Xid' in dmesg, and note that nvidia-smi would hang as well"
            )
        sick[int(asked.removeprefix("GPU "))] = f"NVML {how} when asked about it: the GPU may be hung"


def _lines(output: Output) -> list[Raw]:
    """Whole lines alone: a killed process may leave half of one."""
    if output.exit_code is not None and output.exit_code > 0:
        raise RuntimeError(f"the process that asks NVML failed: {output.fault}")
    whole = output.stdout[: output.stdout.rfind("\n") + 1]
    return [json.loads(line) for line in whole.splitlines()]


def _how(output: Output, timeout_seconds: float) -> str:
    if output.exit_code is None:
        return f"did not answer within {timeout_seconds:g} s"
    return f"crashed ({signal.Signals(-output.exit_code).name})" if output.exit_code < 0 else "ended early"


def _answers(lines: Sequence[Raw], sick: Mapping[int, str], how: str | None) -> NvmlAnswers:
    head = next(line for line in lines if "count" in line)
    gpus = {index: {"index": index, "errors": {}, "sick": why} for index, why in sick.items()}
    gpus |= {line["gpu"]["index"]: line["gpu"] for line in lines if "gpu" in line}
    pairs: list[Raw] = next((line["pairs"] for line in lines if "pairs" in line), [])
    in_order = tuple(gpus[index] for index in range(head["count"]))
    stopped = f"NVML {how} at pairs of GPUs: PCIe distances and peer access between GPUs are not known"
    return NvmlAnswers(head["driver"], in_order, tuple(pairs), (stopped,) if how else ())
