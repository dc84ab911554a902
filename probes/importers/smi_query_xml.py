"""`nvidia-smi -q -x`: the fields of its XML under the names that the text has."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from probes.importers.smi_fields import Fields
from probes.importers.xml_text import parse_xml

DOCTYPE = r"<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v\d{1,3}\.dtd\">"
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
    root = parse_xml(content, name, "nvidia-smi", DOCTYPE, begins="<nvidia_smi_log")
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
