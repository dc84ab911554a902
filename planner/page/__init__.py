"""Pages: a plan, a comparison or a sweep as one HTML file, complete in itself. `sections` are a plan's."""

from planner.page.page_of import page_of

__all__ = ["page_of"]
