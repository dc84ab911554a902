"""What a person says about every host, and the fault where a number is in no source and nobody says it."""

from dataclasses import dataclass


class MissingFigureError(Exception):
    """A number without which there is no topology; the text says which, and how to give it."""


@dataclass(frozen=True)
class Stated:
    """What a person said on the command line about every host."""

    gpu: str | None
    nic_bytes_per_s: float | None
