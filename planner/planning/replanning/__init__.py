"""`solve --from`: what runs now, on the GPUs planned for, and the moves away from it."""

from planner.planning.replanning.current import parse_moves, read_running
from planner.planning.replanning.moving import moved, replanned
from planner.planning.replanning.resizing import find_current

__all__ = ["find_current", "moved", "parse_moves", "read_running", "replanned"]
