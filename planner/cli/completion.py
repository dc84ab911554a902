"""What a shell completes: the names of models, topologies, engines and launchers, beside files.

Each is read when a shell asks for it, and no sooner.
"""

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _of(names: Callable[[], Iterable[str]], *, files: bool) -> Complete:
    def complete(
        _context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Names that begin like it; files where they are taken too, and no name does."""
        begun = incomplete.lower()
        found = [
            CompletionItem(name if name.startswith(incomplete) else name.lower())
            for name in sorted(set(names()))
            if name.lower().startswith(begun)
        ]
        return found or ([CompletionItem(incomplete, type="file")] if files else [])

    return complete


def _models() -> Iterable[str]:
    from planner.model import model_aliases, model_names

    for name in model_names():
        yield from (name, name.split("/")[-1], *model_aliases(name))


def _topologies() -> Iterable[str]:
    from planner.base import topology_names

    return topology_names()


def _engines() -> Iterable[str]:
    from planner.engines import engine_names

    return engine_names()


def _launchers() -> Iterable[str]:
    from planner.launch import launcher_names

    return launcher_names()


complete_model = _of(_models, files=True)
complete_topology = _of(_topologies, files=True)
complete_engine = _of(_engines, files=False)
COMPLETED: dict[str, Complete] = {
    "--model": complete_model,
    "--topology": complete_topology,
    "--engine": complete_engine,
    "--launcher": _of(_launchers, files=False),
}
