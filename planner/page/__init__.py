"""The page that a plan is shown by: one HTML file, complete in itself. `sections` has one file a section."""

from planner.page.plan_page import plan_page
from planner.page.validation import read_validation

__all__ = ["plan_page", "read_validation"]
