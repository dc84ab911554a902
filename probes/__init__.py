"""From hardware to values: what touches a machine. Only `planner.cli` imports it, and late."""
