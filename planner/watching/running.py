"""PLAN, the file of the plan that runs: read anew when it changes, replaced by the next when that runs."""

import hashlib
from pathlib import Path

from planner.base import BadInput, parse_json, read_bytes, write_atomic
from planner.plan import SavedPlan, plan_from_dict
from planner.watching.look import check_replannable


class Running:
    """PLAN, and beside it NEXT, the file of the plan that pays."""

    def __init__(self, plan_file: Path, next_file: Path) -> None:
        if plan_file.resolve() == next_file.resolve():
            raise BadInput(f"-o {next_file}: PLAN is what runs; name another file for what should run next")
        self.plan_file, self.next_file = plan_file, next_file
        self._digest = ""
        self._saved: SavedPlan | None = None
        self.refresh()

    @property
    def saved(self) -> SavedPlan:
        assert self._saved is not None
        return self._saved

    def refresh(self) -> None:
        """PLAN as it is now. BadInput where it is no plan any more: what was read last stays."""
        content = read_bytes(self.plan_file)
        digest = hashlib.sha256(content).hexdigest()
        if digest != self._digest:
            where = str(self.plan_file)
            saved = plan_from_dict(parse_json(content.decode("utf-8", "replace"), where), where)
            check_replannable(saved, where)
            self._digest, self._saved = digest, saved

    def next_digest(self) -> str:
        """SHA-256 of NEXT; empty where it is not there."""
        return hashlib.sha256(read_bytes(self.next_file)).hexdigest() if self.next_file.is_file() else ""

    def adopt(self) -> None:
        """PLAN is NEXT from now on: the whole file or nothing."""
        write_atomic(self.plan_file, read_bytes(self.next_file))
        self.refresh()
