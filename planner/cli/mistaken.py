"""A file in the wrong place: what it is, and the command that takes it.

Asked only where a command has already failed, so that reading what is right costs nothing.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from planner.cli.what_it_is import what_is

# What a flag takes, and what the words after a command are.
FLAGS = {
    "--topology": ("topology",),
    "--load": ("load",),
    "--model": ("model",),
    "--map": ("map", "plan"),
    "--from": ("plan", "map"),
    "--measured": ("text", "measurement"),
    "--calibration": ("calibration",),
    "--replay": ("load",),
}
COMMANDS = {
    "evaluate": ("plan",),
    "emit": ("plan",),
    "traffic": ("plan",),
    "report": ("plan",),
    "validate": ("plan",),
    "compare": ("plan", "map"),
    "check": ("plan", "map", "emission"),
    "convert": ("plan", "map"),
    "import": ("text", "measurement", "probe", "topology", "calibration"),
    "probe": ("probe",),
    "load show": ("load",),
    "model show": ("model",),
    "topology show": ("topology",),
    "topology check": ("topology",),
}
AFTER_THE_FIRST = {"topology check": ("text", "measurement")}  # benchmarks behind the machine
ARTICLES = {
    "topology": "a topology",
    "load": "a load",
    "model": "a model's config.json",
    "map": "an engine's map",
    "plan": "a plan",
    "emission": "what emit wrote",
    "text": "what a tool printed about a machine",
    "measurement": "a measurement",
    "probe": "a probe's record",
    "calibration": "a calibration",
}


def explained(fault: str, arguments: Sequence[str]) -> str:
    """The fault, or where it is of a file that belongs elsewhere: what the file is, and where it belongs."""
    command = _command(arguments)
    later = set(_plain(arguments)[len(command.split()) + 1 :])
    for flag, text in _given(arguments):
        of_command = AFTER_THE_FIRST if command in AFTER_THE_FIRST and text in later else COMMANDS
        expected = FLAGS.get(flag) if flag else of_command.get(command)
        name = text.rsplit(":", maxsplit=1)[0] if flag == "--topology" and ":" in text else text
        if expected is None or name not in fault:
            continue
        found = what_is(Path(name))
        if found is not None and found.kind not in expected:
            wanted = " or ".join(ARTICLES[kind] for kind in expected)
            return f"{f'{flag} ' if flag else ''}{name}: this is {found.words}, not {wanted}; {found.use}"
    return fault


def _command(arguments: Sequence[str]) -> str:
    words = [word for word in arguments[:2] if not word.startswith("-")]
    return next((name for name in (" ".join(words), *words[:1]) if name in COMMANDS), "")


def _plain(arguments: Sequence[str]) -> list[str]:
    """The words that are neither flags nor what a flag takes; --json takes nothing."""
    pairs = zip(("", *arguments), arguments, strict=False)
    return [word for before, word in pairs if word[:1] != "-" and (before[:1] != "-" or before == "--json")]


def _given(arguments: Sequence[str]) -> Iterable[tuple[str, str]]:
    """(flag, text) of every argument; the flag is empty where it is none's."""
    before = ""
    for word in arguments:
        if word.startswith("--") and "=" in word:
            flag, _, text = word.partition("=")
            yield flag, text
        elif not word.startswith("-"):
            yield (before, word) if before in FLAGS else ("", word)
        before = word if word.startswith("-") else ""
