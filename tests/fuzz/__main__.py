"""`python -m tests.fuzz [SECONDS]`: each target for its share of time, a row each; exit 1 if one fails."""

import random
import resource
import sys
import tempfile
import time
import traceback
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.targets import TARGETS, Target, inputs, tried

BATCH = 200
LONGEST_SECONDS = 10.0  # of one read; a longer one is a hang


def fuzzed(target: Target, seconds: float, folder: Path) -> tuple[int, list[str]]:
    """Tries, and the last line of each kind of failure."""
    tries, found, until = 0, dict[str, str](), time.monotonic() + seconds
    while time.monotonic() < until:

        @seed(random.randrange(1 << 30))
        @settings(
            max_examples=BATCH, deadline=None, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(content=inputs(target))
        def once(content: bytes) -> None:
            nonlocal tries
            if time.monotonic() > until:
                return
            tries, began = tries + 1, time.monotonic()
            try:
                tried(target, content, folder)
                if time.monotonic() - began > LONGEST_SECONDS:
                    found["hang"] = "took longer than 10 s"
            except Exception as fault:  # noqa: BLE001 - all of them are findings
                where = traceback.extract_tb(fault.__traceback__)[-1]
                key = f"{type(fault).__name__} at {Path(where.filename).name}:{where.lineno}"
                if key not in found:
                    found[key] = str(fault)[:120]
                    (folder / f"finding-{len(found)}-{target.name}").write_bytes(content)

        once()
    return tries, [f"{key}: {text}" for key, text in found.items()]


def main(seconds: float) -> int:
    folder, share, total, failed = Path(tempfile.mkdtemp(prefix="fuzz-")), seconds / len(TARGETS), 0, 0
    print(f"{'kind':24} {'tries':>8} {'found':>6}")  # noqa: T201 - a program
    for name, target in TARGETS.items():
        tries, found = fuzzed(target, share, folder)
        total, failed = total + tries, failed + len(found)
        print(f"{name:24} {tries:8} {len(found):6}", *found, sep="\n    ", flush=True)  # noqa: T201
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'all':24} {total:8} {failed:6}   peak memory {peak:.0f} MB; findings in {folder}")  # noqa: T201
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 180.0))
