"""Flags that say how hard to search, and on what."""

import click

from planner.cli.options import option, options

effort_options = options(
    option(
        "--method",
        default="auto",
        help="auto tries several; "
        "linear, round-robin, greedy, refine, pinned, remote, affinity, sparse or cpsat is one.",
    ),
    option("--seed", type=int, default=0),
    option(
        "--budget",
        "budget_seconds",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Wall-clock limit; plans may then differ from run to run.",
    ),
    option(
        "--prove",
        is_flag=True,
        help="Spend half of the budget, or a counted effort, on proofs: "
        "exact bounds, and all placements where they are few.",
    ),
)
worker_options = options(
    option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Processes that share the layers; the plan is the same for any number. [default: by size]",
    ),
    option(
        "--ray",
        metavar="ADDRESS",
        help="Share the layers over this Ray cluster: HOST:PORT, ray://HOST:PORT or auto. "
        "Needs ray: pip install 'ray[client]'.",
    ),
)
