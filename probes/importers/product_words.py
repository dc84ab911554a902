"""A GPU's product name anywhere in a text: in a heading, a comment, a line of a log."""

import re

from probes.machine.gpu_names import GPUS, links_of_gpu

LARGEST_TEXT = 1 << 20
_VAGUE = frozenset({"h100", "a800", "gh200", "a100-40gb", "a100-80gb", "v100-sxm2", "rtx-8000"})  # of several
_NAMES = sorted({name for gpu in GPUS for name in gpu.names} - _VAGUE, key=len, reverse=True)


_ASKED = re.compile(
    r"(?:GPU|Device) \d{1,3}(?:, ?\d{1,3}){0,127}: |NVIDIA-SMI |NVSMI LOG|GPU-[0-9a-fA-F]{8}-"
)


def _words(name: str) -> str:
    return "[ _-]{1,2}".join(map(re.escape, name.split("-")))


# a name of one word is a product's behind its maker alone: L4, A10, T4
_LONG = "|".join(_words(name) for name in _NAMES if "-" in name)
_ANY = "|".join(map(_words, _NAMES))
_PRODUCT = re.compile(
    rf"(?<![\w-])(?:(?:NVIDIA|Tesla)[ -]{{1,2}}(?:Tesla )?(?P<made>{_ANY})|(?P<bare>{_LONG}))(?![\w-]|\.\d)",
    re.IGNORECASE,
)


def product_in(text: str) -> str | None:
    """The one GPU product that a text names; None where it names none, or several.

    None also where a tool lists its GPUs in the same text: that is read by its own importer.

    >>> product_in("our 2 nodes of 8x NVIDIA B200, bought before the A10s")
    'NVIDIA B200'
    """
    models: dict[str, str] = {}
    text = text[:LARGEST_TEXT]
    for found in _PRODUCT.finditer(text) if _ASKED.search(text) is None else ():
        name = found["made"] or found["bare"]
        links = links_of_gpu(name)
        if links is not None:
            models.setdefault(links.model, f"NVIDIA {name}")
    return next(iter(models.values())) if len(models) == 1 else None
