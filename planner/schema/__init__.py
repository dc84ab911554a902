"""Schema: what a file of ours holds, said once: to read it, to test what is written, and to publish."""

from planner.schema.of_types import shape_of
from planner.schema.published import published
from planner.schema.scalars import Flag, Number, Plain, Text, Whole
from planner.schema.shape import Shape
from planner.schema.shapes import Either, Listing, Maybe, Nested, Record, Table
from planner.schema.versions import Kind

__all__ = [
    "Either",
    "Flag",
    "Kind",
    "Listing",
    "Maybe",
    "Nested",
    "Number",
    "Plain",
    "Record",
    "Shape",
    "Table",
    "Text",
    "Whole",
    "published",
    "shape_of",
]
