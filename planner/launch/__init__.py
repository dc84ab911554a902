"""Launchers: how a plan's node commands are started with its rank order kept. One file a launcher."""

from planner.launch.registry import hosts_of, hosts_of_pair, job_for, launched, launcher_names

__all__ = ["hosts_of", "hosts_of_pair", "job_for", "launched", "launcher_names"]
