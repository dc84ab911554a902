"""A checked reader of a Hugging Face config.json: a value is what it should be, or one line says why not."""

from dataclasses import dataclass
from typing import Any

from planner.base import BadInput, is_whole
from planner.model.limits import MOST_LAYERS


class Missing(BadInput):
    """A fact that the file does not state."""


@dataclass(frozen=True)
class HfConfig:
    """The text model's part of a config.json.

    Keys are tried from left to right in 'a|b'; a dot goes into a nested mapping; null counts as absent.
    """

    values: dict[str, Any]
    where: str

    def get(self, keys: str) -> Any:
        for key in keys.split("|"):
            found: Any = self.values
            for part in key.split("."):
                found = found.get(part) if isinstance(found, dict) else None
            if found is not None:
                return found
        return None

    def whole(self, keys: str, least: int, most: int, default: int | None = None) -> int:
        value = self.get(keys)
        if value is None and default is None:
            raise Missing(
                f"{self.where}: the key {quoted(keys)} is missing or null; "
                "give the model's complete config.json"
            )
        return self.check(keys, default if value is None else value, least, most)

    def check(self, keys: str, value: Any, least: int, most: int) -> int:
        if type(value) is not int or not least <= value <= most:
            expected = f"expected a whole number from {least} to {most:,}"
            raise BadInput(f"{self.where}: {quoted(keys)} is {shown(value)}; {expected}")
        return value

    def wholes(self, key: str, most: int) -> list[int] | None:
        """A list of whole numbers, or its spelling '3,4,5'."""
        value = self.get(key)
        if isinstance(value, str):
            value = [_number(part) for part in value.split(",")]
        if value is None:
            return None
        if not isinstance(value, list) or len(value) > most:
            expected = f"expected a list of at most {most:,} whole numbers"
            raise BadInput(f"{self.where}: '{key}' is {shown(value)}; {expected}")
        return [self.check(key, entry, 0, MOST_LAYERS) for entry in value]

    def words(self, key: str, layers: int | None, known: tuple[str, ...]) -> list[str] | None:
        """One of the known words for each layer."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) > MOST_LAYERS or layers not in (None, len(value)):
            count = f"{layers:,}" if layers is not None else f"at most {MOST_LAYERS:,}"
            expected = f"expected a list with one word for each of {count} layers"
            raise BadInput(f"{self.where}: '{key}' is {shown(value)}; {expected}")
        for entry in value:
            if entry not in known:
                raise BadInput(f"{self.where}: '{key}' holds {shown(entry)}; known are {', '.join(known)}")
        return value


def _number(part: str) -> int | str:
    return int(part) if is_whole(part.strip()) and len(part) < 10 else part


def quoted(keys: str) -> str:
    return " or ".join(f"'{key}'" for key in keys.split("|"))


def shown(value: Any) -> str:
    """A value in one short line, whatever a hostile file put there."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a whole number of {value.bit_length()} bits"  # repr() refuses the largest
    if isinstance(value, (list, dict)):
        return f"a {'list' if isinstance(value, list) else 'mapping'} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
