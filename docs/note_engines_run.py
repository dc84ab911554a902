"""Write into docs/engines.md when the engines' own tests passed, and with which commit (`make engines`)."""

import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path

PAGE = Path(__file__).resolve().parent / "engines.md"
LINE = re.compile(r"^Last passed: .*$", re.MULTILINE)


def commit() -> str:
    """The commit that is checked out, and whether the tree differs from it."""
    words = ["git", "describe", "--always", "--dirty=, with changes", "--abbrev=10", "--exclude=*"]
    asked = subprocess.run(words, cwd=PAGE.parent, check=True, capture_output=True, text=True, timeout=20)
    return asked.stdout.strip()


if __name__ == "__main__":
    said = f"Last passed: {datetime.now(tz=timezone.utc):%Y-%m-%d}, commit {commit()}."
    text, count = LINE.subn(said, PAGE.read_text(encoding="utf-8"))
    assert count == 1, "docs/engines.md has no line for the last run"
    PAGE.write_text(text, encoding="utf-8")
    print(said)
