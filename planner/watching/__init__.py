"""Watching: a running server's load as a rolling window, when another plan pays, and the swap to it."""

from planner.watching.look import Asked
from planner.watching.metrics import Metrics
from planner.watching.rounds import Round, Watch
from planner.watching.running import Running
from planner.watching.verdict import Terms

__all__ = ["Asked", "Metrics", "Round", "Running", "Terms", "Watch"]
