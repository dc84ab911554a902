"""The commands that run a traffic matrix, as a person would type them in the folder that it was written to.

Both benchmarks start a process a rank. `env` sets the matrix on every host, whatever launcher is used.
"""

from collections.abc import Mapping

from planner.exchange.formats import ELEMENT, Whole, most_bytes

NCCL, UCC = "nccl-tests", "ucc_perftest"
MATRIX = {NCCL: "nccl_matrix.txt", UCC: "ucc_matrix.txt"}  # the names that cloudai looks for
RESULT = {NCCL: "nccl.log", UCC: "ucc.log"}
SCRIPT = "run.sh"


def command(tool: str, folder: str, sent_GG: Whole) -> str:
    """Behind a launcher that starts as many processes as there are ranks."""
    matrix = f"{folder}/{MATRIX[tool]}"
    if tool == UCC:
        return (
            f"ucc_perftest -c alltoallv -d {ELEMENT.lower()} -m cuda -F -w 10 -n 50 --gen file:name={matrix}"
        )
    size = most_bytes(sent_GG)
    # -a 3: the time of the slowest rank, as a layer waits for it
    return (
        f"env NCCL_TESTS_ALLTOALLV_MATRIX_FILE={matrix} ALLTOALLV_MATRIX_FILE={matrix} "
        f"alltoallv_perf -b {size} -e {size} -g 1 -a 3 -w 10 -n 50"
    )


def script(launcher: str, commands: Mapping[str, Mapping[str, str]]) -> str:
    """Runs all matrices by one tool. `commands`: by folder, then by tool."""
    lines = [
        "#!/bin/bash",
        f"# bash {SCRIPT} nccl-tests|ucc_perftest; LAUNCH='srun --mpi=pmix' or the like starts the ranks.",
        "# Rank i must be GPU i of the plan; the folder must lie at the same path on every host.",
        "set -euo pipefail",
        'cd "$(dirname "$0")"',
        f"launch=${{LAUNCH:-{launcher}}}",
        'case "${1:-}" in',
    ]
    for tool, result in RESULT.items():
        runs = [f"  $launch {of[tool]} | tee {folder}/{result}" for folder, of in commands.items()]
        lines += [f"{tool})", *runs, "  ;;"]
    lines += [f'*) echo "{SCRIPT}: give {" or ".join(RESULT)}" >&2; exit 2 ;;', "esac", ""]
    return "\n".join(lines)
