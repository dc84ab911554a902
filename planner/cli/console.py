"""How the command line speaks: tables or JSON on stdout, progress and faults on stderr, and the exit codes.

The only module that prints.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from planner.base import BadInput, Stopped, harmless
from planner.cli.streams import of_the_system, ready_streams

if TYPE_CHECKING:
    from planner.solvers import Progress


UNFOLDED = 10_000  # columns: wider than any row
PROGRESS = "moeplan.progress"  # where a context keeps how progress is told


class Refused(click.ClickException):
    """What a person gave us cannot be used: one line on stderr, exit code 2."""

    exit_code = 2

    def format_message(self) -> str:
        return " ".join(self.message.split())

    def show(self, file: Any = None) -> None:
        del file
        tell(f"moeplan: {self.format_message()}", err=True)


class No(Refused):
    """The answer to the question is no."""

    exit_code = 1


class Interrupted(Refused):
    """Ctrl-C or another signal that asks us to end; the code that shells give to it."""

    exit_code = 130

    def __init__(self, message: str, signal_number: int = 2) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number  # type: ignore[misc]  # click reads it from the exception


class Commands(click.Group):
    """Turns a fault in what a person gave us into one line and exit code 2.

    A bug of ours keeps its traceback.
    """

    def main(self, *args: Any, **kwargs: Any) -> Any:
        ready_streams()
        return super().main(*args, **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["moeplan.arguments"] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BadInput as fault:
            from planner.cli.mistaken import explained

            raise Refused(explained(str(fault), ctx.meta.get("moeplan.arguments", ()))) from fault
        except MemoryError as fault:
            raise Refused(
                "there is not enough memory; take a smaller question, or another machine"
            ) from fault
        except OSError as fault:
            raise Refused(of_the_system(fault)) from fault
        except Stopped as stop:
            raise Interrupted(str(stop), stop.number) from stop
        except KeyboardInterrupt as stop:
            raise Interrupted("interrupted; no file was written or changed") from stop


def tell(text: str, *, err: bool = False) -> None:
    """A line or more, as every word of ours is printed: what a file or a server says cannot act."""
    click.echo(harmless(text), err=err)


def say(text: Any, value: Any, as_json: bool) -> None:
    """Text or a rich renderable for people, or JSON."""
    if as_json:
        from planner.base import dump_json

        click.echo(dump_json(value).replace("\x7f", "\\u007f"), nl=False)
    elif isinstance(text, str):
        tell(text)
    else:
        from planner.cli.tables import Tables

        looks: dict[str, Any] = {"color_system": None, "force_terminal": False} if plain() else {}
        Tables(width=width(), highlight=False, markup=False, **looks).print(text)


def plain() -> bool:
    """Whether no escape may be printed: NO_COLOR asks for that, whatever it is set to."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def noted(notes: Iterable[str], *written: str) -> str:
    """Notes and the files written, a line each; a warning says so itself."""
    told = [note if note.startswith("WARNING") else f"Note: {note}" for note in notes]
    return "\n".join([*told, *(f"wrote {path}" for path in written)])


def width() -> int:
    """Columns of the terminal, or as COLUMNS says.

    In a pipe or a file nothing is folded: a row is a line, and tools find whole names.
    """
    import shutil

    unfolded = UNFOLDED if not sys.stdout.isatty() else 80
    return shutil.get_terminal_size((unfolded, 40)).columns


@contextmanager
def progress_bar(title: str) -> "Iterator[Progress | None]":
    """Which step the work is in, on stderr: a bar where a person watches, nothing where a file or pipe does;
    with `moeplan --progress lines` a line a step, whoever watches.
    """
    context = click.get_current_context(silent=True)
    asked = context.meta.get(PROGRESS, "auto") if context else "auto"
    if asked == "none" or (asked == "auto" and not sys.stderr.isatty()):
        yield None
    elif asked == "lines" or plain():
        yield _lines(title)
    else:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(title, total=1.0)
            yield lambda share, text: bar.update(
                task, completed=share, description=harmless(f"{title}: {text}")
            )


def _lines(title: str) -> "Progress":
    """A line where the text is another than the last one's."""
    told = [""]

    def each(share: float, text: str) -> None:
        if text != told[0]:
            told[0] = text
            tell(f"{title}: {text} ({share:.0%})", err=True)

    return each
