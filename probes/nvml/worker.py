"""The process that asks NVML, apart from ours: a sick GPU may hang or crash it.

Run as `python -m probes.nvml.worker [GPU to leave out ...]`. Prints one JSON object a line, each as soon as
it is known, so that what was answered before a hang is kept:
    {"asking": "GPU 3"}                        what the next lines wait for
    {"failed": "nvmlInit", "code": 18}         NVML cannot be used at all; nothing follows
    {"driver": "570.86", "count": 8}
    {"gpu": {"index": 3, "name": ..., "links": [...], "errors": {"mig": 3}}}     raw answers
    {"pairs": [{"gpus": [0, 1], "ancestor": 10, "p2p_read": 0, "p2p_nvlink": 0}, ...]}
    {"done": true}
`errors` holds NVML's code of each question it refused. Nothing is decoded here: `probes.nvml.decode` does,
tested without NVML.
"""

import ctypes
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pynvml  # type: ignore[import-untyped]

NODE_WORDS = 16  # 64 NUMA nodes a word; Grace machines have more than 32 of them
UNREADABLE = -1  # in place of an NVML code: an answer that is not text
LOST = (4, 15, 16)  # no permission, GPU is lost, reset required: nothing else can be asked of this GPU
FIELD_LINK_COUNT, FIELD_LINK_SPEED, FIELD_LINK_STATE = 91, 164, 165
LINK_P2P = 0  # pynvml's own name for capability 0 of P2P status is a tuple, so numbers are written out
OLDER_DRIVER = (2, 13, 25)  # invalid argument, no such function, no such version
Answers = dict[str, Any]


def main(left_out: frozenset[int]) -> None:
    try:
        asking("nvmlInit")
        pynvml.nvmlInit()
        asking("nvmlDeviceGetCount")
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        say({"failed": "nvmlInit", "code": error.value})
        return
    errors: dict[str, int] = {}
    say({"driver": ask(errors, "driver", pynvml.nvmlSystemGetDriverVersion), "count": count})
    handles: dict[int, Any] = {}
    for index in range(count):
        if index not in left_out:
            asking(f"GPU {index}")
            say({"gpu": ask_gpu(index, handles)})
    asking("pairs of GPUs")
    say({"pairs": [ask_pair(a, b, handles) for a in handles for b in handles if a < b]})
    say({"done": True})


def say(line: Answers) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def asking(what: str) -> None:
    say({"asking": what})


def ask(errors: dict[str, int], name: str, question: Callable[..., Any], *arguments: Any) -> Any:
    """The answer, or None with NVML's code in `errors`.

    Any NVML call may say: lost, not supported, not in this driver.
    """
    try:
        return question(*arguments)
    except pynvml.NVMLError as error:
        errors[name] = error.value
    except UnicodeDecodeError:
        errors[name] = UNREADABLE
    return None


def ask_gpu(index: int, handles: dict[int, Any]) -> Answers:
    errors: dict[str, int] = {}
    gpu: Answers = {"index": index, "errors": errors}
    handle = ask(errors, "handle", pynvml.nvmlDeviceGetHandleByIndex, index)
    if handle is None:
        return gpu
    for name, question in questions(handle).items():
        answer = ask(errors, name, question)
        if answer is not None:
            gpu[name] = answer
        if errors.get(name) in LOST:
            return gpu
    gpu["links"] = links(handle, gpu.get("link_count"), errors)
    handles[index] = handle
    return gpu


def questions(handle: Any) -> dict[str, Callable[[], Any]]:
    return {
        "name": lambda: pynvml.nvmlDeviceGetName(handle),
        "uuid": lambda: pynvml.nvmlDeviceGetUUID(handle),
        "pci": lambda: pci_address(pynvml.nvmlDeviceGetPciInfo(handle)),
        "memory": lambda: pynvml.nvmlDeviceGetMemoryInfo(handle).total,
        "mig": lambda: pynvml.nvmlDeviceGetMigMode(handle)[0],
        "virtualization": lambda: pynvml.nvmlDeviceGetVirtualizationMode(handle) & 0xFFFFFFFF,
        "numa": lambda: numa_nodes(pynvml.nvmlDeviceGetMemoryAffinity(handle, NODE_WORDS, 0)),
        "pcie_max_generation": lambda: pynvml.nvmlDeviceGetMaxPcieLinkGeneration(handle),
        "pcie_max_width": lambda: pynvml.nvmlDeviceGetMaxPcieLinkWidth(handle),
        "pcie_width": lambda: pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
        "bandwidth_mode": lambda: bandwidth_mode(handle),
        "link_count": lambda: field(handle, FIELD_LINK_COUNT),
        "fabric": lambda: fabric(handle),
    }


def pci_address(info: Any) -> str:
    """'0000:1b:00.0' from the numbers: the text that NVML gives is written otherwise than sysfs writes it."""
    return f"{info.domain:04x}:{info.bus:02x}:{info.device:02x}.0"


def numa_nodes(words: Any) -> list[int]:
    return [64 * index + bit for index, word in enumerate(words) for bit in range(64) if word >> bit & 1]


def bandwidth_mode(handle: Any) -> int:
    mode = pynvml.c_nvmlNvlinkGetBwMode_v1_t()
    pynvml.nvmlDeviceGetNvlinkBwMode(handle, ctypes.byref(mode))
    return int(mode.bwMode)


def field(handle: Any, number: int, scope: int = 0) -> int:
    """A field that is a whole number; its own return code counts, not only the call's."""
    value = pynvml.nvmlDeviceGetFieldValues(handle, [(number, scope)])[0]
    if value.nvmlReturn:
        raise pynvml.NVMLError(value.nvmlReturn)
    union = {1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}.get(value.valueType)
    if union is None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)
    return int(getattr(value.value, union))


def fabric(handle: Any) -> Answers:
    """The fabric registration in the newest of three versions that this driver knows."""
    for version, kind, call in (
        (3, pynvml.c_nvmlGpuFabricInfo_v3_t, pynvml.nvmlDeviceGetGpuFabricInfoV),
        (2, pynvml.c_nvmlGpuFabricInfo_v2_t, pynvml.nvmlDeviceGetGpuFabricInfoV),
        (1, pynvml.c_nvmlGpuFabricInfo_t, pynvml.nvmlDeviceGetGpuFabricInfo),
    ):
        info = kind()
        try:
            call(handle, ctypes.byref(info))
        except pynvml.NVMLError as error:
            if version > 1 and error.value in OLDER_DRIVER:
                continue
            raise
        return registration(info, version)
    raise AssertionError("version 1 returns or raises")


def registration(info: Any, version: int) -> Answers:
    """`state` is one byte in C, and what follows it is noise."""
    known = {
        "uuid": bytes(info.clusterUuid).hex(),
        "clique": info.cliqueId,
        "state": info.state & 0xFF,
        "status": info.status,
    }
    known |= {"health": info.healthMask} if version >= 2 else {}
    return known | ({"summary": info.healthSummary} if version >= 3 else {})


def links(handle: Any, count: int | None, errors: dict[str, int]) -> list[Answers]:
    """Every link index that exists.

    pynvml knows more indices than a GPU has links: 'invalid argument' past the last one is the end, not a
    fault.
    """
    found: list[Answers] = []
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS if count is None else count):
        refused: dict[str, int] = {}
        state = ask(refused, "state", pynvml.nvmlDeviceGetNvLinkState, handle, link)
        if state is None:
            code = refused["state"]
            if code not in (2, 3):
                errors[f"NVLink {link}"] = code
            if code == 13 or code in LOST or (code in (2, 3) and count is None):
                break
            continue
        found.append({"link": link, "state": state} | ask_link(handle, link))
    return found


def ask_link(handle: Any, link: int) -> Answers:
    return answered(
        {
            "version": lambda: pynvml.nvmlDeviceGetNvLinkVersion(handle, link),
            "p2p": lambda: pynvml.nvmlDeviceGetNvLinkCapability(handle, link, LINK_P2P),
            "remote_type": lambda: pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link),
            "remote": lambda: pci_address(pynvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link)),
            "mb_per_s": lambda: field(handle, FIELD_LINK_SPEED, link),
            "field_state": lambda: field(handle, FIELD_LINK_STATE, link),
        }
    )


def ask_pair(a: int, b: int, handles: dict[int, Any]) -> Answers:
    one, other = handles[a], handles[b]
    return {"gpus": [a, b]} | answered(
        {
            "ancestor": lambda: pynvml.nvmlDeviceGetTopologyCommonAncestor(one, other),
            "p2p_read": lambda: pynvml.nvmlDeviceGetP2PStatus(one, other, 0),
            "p2p_nvlink": lambda: pynvml.nvmlDeviceGetP2PStatus(one, other, 2),
        }
    )


def answered(questions: dict[str, Callable[[], Any]]) -> Answers:
    """The answers that there are; why others are missing is not told."""
    errors: dict[str, int] = {}
    answers = {name: ask(errors, name, question) for name, question in questions.items()}
    return {name: answer for name, answer in answers.items() if answer is not None}


if __name__ == "__main__":
    main(frozenset(map(int, sys.argv[1:])))
    # without nvmlShutdown and interpreter teardown: either may hang on a sick GPU, and the answers are out
    os._exit(0)
