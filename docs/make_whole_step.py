"""Writes planner/data/whole_step.yaml, the calibration of whole steps; needs the extra `aiconfigurator`."""

import sys
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

import yaml

from planner.base import write_atomic
from planner.bench.whole_data import calibrated
from planner.bench.whole_law import SPLIT
from planner.bench.whole_rows import read_rows, rows_folder
from planner.bench.whole_terms import measured, possible

FILE = Path(__file__).resolve().parent.parent / "planner/data/whole_step.yaml"
SAID = """\
# How much of each term a whole step takes: coefficients and errors, our own figures, fitted to measured
# steps that ship with aiconfigurator-core (Apache-2.0) and are no part of this repository.
# Terms: planner/cost/whole/terms.py and first_token.py.
# Made by `python docs/make_whole_step.py`; checked against the rows by `moeplan bench --study whole-step`.
"""


def main() -> None:
    folder = rows_folder()
    if folder is None:
        sys.exit("aiconfigurator-core is not installed: pip install 'moeplan[aiconfigurator]'")
    rows, sliced = ([measured(row) for row in read_rows(folder, sliced=kind)] for kind in (False, True))
    today = datetime.now(tz=timezone.utc).date().isoformat()
    source = f"measured steps of aiconfigurator-core {version('aiconfigurator-core')}, {SPLIT}; {today}"
    content = {"source": source, **calibrated(rows, possible(sliced))}
    write_atomic(FILE, SAID + yaml.safe_dump(content, sort_keys=False, width=110))


if __name__ == "__main__":
    main()
