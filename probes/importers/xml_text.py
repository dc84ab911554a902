"""XML out of a file: no DTD and no entity is accepted, so that Python's parser has nothing to expand."""

import re
import xml.etree.ElementTree as ET

from planner.base import BadInput
from probes.importers.text import utf8_text

LARGEST_XML = 16 << 20  # a dump of 72 GPUs on 18 hosts is some 300 kB


def parse_xml(
    content: bytes, name: str, writer: str, doctype: str = "", begins: str = "", hint: str = " text"
) -> ET.Element:
    """The root element, from where the text first has `begins`: a paste has more before it.

    `doctype` is a pattern of the one line that the program `writer` itself puts on top. BadInput where the
    file is too large, is not UTF-8 (`hint` says what it should be), has a DTD, or is no whole XML.
    """
    if len(content) > LARGEST_XML:
        most = f"the {LARGEST_XML:,} of any file of {writer}"
        raise BadInput(f"{name}: {len(content):,} bytes are more than {most}")
    text = utf8_text(content, name, hint)
    text = re.sub(doctype, "", text, count=1) if doctype else text
    if "<!" in text.replace("<!--", ""):
        raise BadInput(f"{name}: has a DTD of its own, which {writer} never writes; it is not read")
    try:
        return ET.fromstring(text[text.index(begins) :])  # noqa: S314 - entities and DTDs were refused above
    except (ET.ParseError, ValueError) as error:  # ValueError: an encoding declaration that names no encoding
        line = getattr(error, "position", (1, 0))[0]
        raise BadInput(f"{name}: line {line}: not whole XML ({error}); the file may be cut short") from error
