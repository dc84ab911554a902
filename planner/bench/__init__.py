"""Benchmark: studies of what moeplan does beside what others do, in the same process. One file a study."""

from planner.bench.frame import Table
from planner.bench.registry import run_bench

__all__ = ["Table", "run_bench"]
