"""Where tests find things: the checkout, and the public recordings that may lie beside it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
