"""What every shape of a value in a file can do: check a value, and say itself as JSON Schema."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from planner.base import BadInput, shown


@dataclass(frozen=True)
class Shape(ABC):
    """A kind of value that a file may hold. `words` name it in a message: 'a whole number from 1 to 8'."""

    @property
    @abstractmethod
    def words(self) -> str: ...

    @abstractmethod
    def fits(self, value: Any) -> bool:
        """Whether the value itself is of this kind; what it holds is looked at by `inside`."""

    def inside(self, value: Any, where: str) -> None:
        """BadInput with the place of the first thing in it that does not fit. Asked where `fits` is true."""
        del value, where

    @abstractmethod
    def json_schema(self) -> dict[str, Any]:
        """The same as JSON Schema, draft 2020-12."""

    def check(self, value: Any, where: str, key: str | None = None) -> None:
        """BadInput names the place, the value, and what was expected. `key`: of the mapping at `where`."""
        if not self.fits(value):
            place = f"{where}: '{key}' is" if key is not None else f"{where}:"
            raise BadInput(f"{place} {shown(value)}; expected {self.words}")
        self.inside(value, f"{where}: {key}" if key is not None else where)
