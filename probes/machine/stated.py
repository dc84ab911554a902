"""The fault where a number is in no source and nobody says it."""


class MissingFigureError(Exception):
    """A number without which there is no topology; the text says which, and how to give it."""
