"""Releases of one architecture: a name that the catalogue has not, and the entry whose facts are its own.

What a release was trained for (-Instruct, -Thinking, -Base) and when (-2507) changes no fact. How its weights
are stored (-FP8, -AWQ) changes one: the dtype is then taken from the name, and called assumed. Anything else
in a name may be another architecture.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.base import BadInput
from planner.model.hf_config import shown

TRAINED = re.compile(
    r"instruct|inst|thinking|reasoning|base|chat|it|pt|hf|sft|zero|original|[0-9]{4}|[0-9]{6}"
)
# Words of a name -> weight dtype of the routed experts, and how the release spells that where it is unusual.
STORED = {
    "fp8": ("fp8", ""),
    "bf16": ("bf16", ""),
    "fp16": ("bf16", ""),
    "mxfp4": ("mxfp4", ""),
    "nvfp4": ("nvfp4", ""),
    "fp4": ("nvfp4", ""),  # as NVIDIA's releases are called; AMD's are called MXFP4
    "awq": ("int4", "awq"),
    "gptq": ("int4", "gptq"),
    "int4": ("int4", ""),
    "w4a16": ("int4", ""),
    "quantized.w4a16": ("int4", ""),
}
SAID_BESIDE = ("4bit", "dynamic", "block")  # of a release that says its dtype too: -AWQ-4bit, -FP8-dynamic
UNKNOWN_STORAGE = re.compile(
    r"gguf|mlx|exl[23]|bnb|int8|w8a8|w4a8|w4afp8|[235678]bit|q[2-8](_[0-9a-z_]+)?|quantized\..*"
)


@dataclass(frozen=True)
class Words:
    """A name in its parts."""

    stem: str  # what the architecture goes by
    stored: tuple[str, ...]  # how its weights are stored, as words of STORED
    unknown: tuple[str, ...]  # ways to store weights that no plan is made for


def words_of(name: str) -> Words:
    """
    >>> words_of("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8")
    Words(stem='qwen3-30b-a3b', stored=('fp8',), unknown=())
    """
    parts = name.strip().lower().split("/")[-1].split("-")
    stem, stored, unknown = parts[:1], [], []
    for part in parts[1:]:
        if part in STORED:
            stored.append(part)
        elif UNKNOWN_STORAGE.fullmatch(part):
            unknown.append(part)
        elif not (TRAINED.fullmatch(part) or part in SAID_BESIDE):
            stem.append(part)
    return Words("-".join(stem), tuple(stored), tuple(unknown))


def entry_of(name: str, spellings: Mapping[str, str]) -> str | None:
    """The entry whose facts a release has, by its name; None where no entry's architecture goes by it.

    `spellings` -> entry. Of several entries the one that says the same of its weights, else that says least.
    """
    asked = words_of(name)
    found: dict[str, int] = {}
    for spelling, entry in spellings.items():
        known = words_of(spelling)
        if known.stem == asked.stem:
            rank = 0 if set(known.stored) == set(asked.stored) else 1 + len(known.stored)
            found[entry] = min(rank, found.get(entry, rank))
    return min(found, key=lambda entry: (found[entry], len(entry), entry)) if found else None


def dtype_of(name: str, entry: str) -> tuple[str, str] | None:
    """(weight dtype, how it is spelled) that the name states beside the entry's; None where that is the same.

    BadInput where it states a way to store weights that no plan is made for.
    """
    asked, known = words_of(name), words_of(entry)
    if asked.unknown:
        raise BadInput(
            f"model {shown(name)} is {entry} with its weights stored as {' '.join(asked.unknown)}, which "
            f"moeplan has no figures for; give its config.json, or plan with {entry} itself"
        )
    if set(asked.stored) == set(known.stored):
        return None
    stated = {STORED[word] for word in asked.stored}
    dtypes = {dtype for dtype, _ in stated}
    if len(dtypes) > 1:
        raise BadInput(
            f"model {shown(name)} names {len(dtypes)} weight dtypes, {', '.join(sorted(dtypes))}; "
            "give its config.json, which says which of them the experts have"
        )
    return max(stated, key=lambda one: (one[1], one[0])) if stated else None


def same_weights(first: str, second: str) -> bool:
    """Whether two names can be of one training: the same but for the owner and how weights are stored.

    >>> same_weights("Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b-FP8"), same_weights("DeepSeek-V3", "DeepSeek-R1")
    (True, False)
    """
    return _trained(first) == _trained(second)


def _trained(name: str) -> list[str]:
    parts = name.strip().lower().split("/")[-1].split("-")
    said: Iterable[str] = (*STORED, *SAID_BESIDE)
    return [part for part in parts if part not in said and not UNKNOWN_STORAGE.fullmatch(part)]
