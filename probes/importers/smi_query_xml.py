"""`nvidia-smi -q -x`: the fields of its XML under the names that the text has."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from planner.base import BadInput
from probes.importers.smi_fields import Fields
from probes.importers.text import utf8_text

LARGEST_XML = 16 << 20
_DOCTYPE = re.compile(r"<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v\d{1,3}\.dtd\">")
_NAMES = {  # tags whose words the text writes otherwise
    "uuid": "gpu uuid",
    "current_mig": "current",
    "max_link_gen": "max",
    "max_link_width": "max",
    "current_link_width": "current",
    "pcie_gen": "pcie generation",
    "link_widths": "link width",
}


def is_log(content: bytes) -> bool:
    return b"<nvidia_smi_log" in content[:4096]


def read_log(content: bytes, name: str) -> tuple[int | None, list[tuple[str, Fields]]]:
    """How many GPUs are attached, and the fields of each. BadInput where it is no whole XML, or has a DTD."""
    if len(content) > LARGEST_XML:
        raise BadInput(f"{name}: {len(content):,} bytes are more than the {LARGEST_XML:,} of any such log")
    text = _DOCTYPE.sub("", utf8_text(content, name), count=1)
    if "<!" in text.replace("<!--", ""):
        raise BadInput(f"{name}: has a DTD of its own, which nvidia-smi never writes; it is not read")
    try:
        root = ET.fromstring(text[text.index("<nvidia_smi_log") :])  # noqa: S314 - entities and DTDs were refused above
    except (ET.ParseError, ValueError) as error:
        line = getattr(error, "position", (1, 0))[0]
        raise BadInput(f"{name}: line {line}: not whole XML ({error}); the file may be cut short") from error
    attached = (root.findtext("attached_gpus") or "").strip()
    gpus = [(gpu.get("id", "").lower()[-12:], dict(_fields(gpu, ""))) for gpu in root.findall("gpu")]
    return int(attached) if re.fullmatch(r"\d{1,4}", attached) else None, gpus


def _fields(element: ET.Element, heading: str) -> Iterator[tuple[str, str]]:
    for child in element:
        key = _NAMES.get(child.tag, child.tag.replace("_", " ").lower())
        if len(child):
            yield from _fields(child, key)
        else:
            value = (child.text or "").strip()
            yield f"{heading}/{key}", value
            if not heading:
                yield key, value
