"""Rich tables whose words come from files and servers: nothing in them acts on the terminal."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.segment import Segment

from planner.base import harmless


class Tables(Console):
    """A console that spells out what would act; rich's own colours are its own."""

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(harmless(segment.text), segment.style)
