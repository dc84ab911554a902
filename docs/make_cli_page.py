"""Write docs/cli.md: every command's own help, so that the page cannot drift. Run it with `make docs`."""

from collections.abc import Iterator
from pathlib import Path

import click

PAGE = Path(__file__).resolve().parent / "cli.md"
HEAD = (
    "# Commands\n\nGenerated from the commands themselves (`make docs`); exit codes: 0 done, "
    "1 the plan or map is valid but not what it is said to be, 2 it breaks a rule or cannot be used, "
    "130 Ctrl-C (`solve` writes the best plan found so far, with a note in it).\n"
)


def cli_page() -> str:
    """The page's text."""
    from planner.cli import main

    helps = _helps(main, "moeplan", None)
    return HEAD + "".join(f"\n## `{path}`\n\n```text\n{text}\n```\n" for path, text in helps)


def _helps(command: click.Command, name: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    """The command's path and help, then those of the commands below it by name.

    100 columns whatever the terminal.
    """
    settings = {**command.context_settings, "terminal_width": 100, "max_content_width": 100}
    context = click.Context(command, info_name=name, parent=parent, **settings)
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            child = command.get_command(context, below)
            if child is not None and not child.hidden:
                yield from _helps(child, below, context)


if __name__ == "__main__":
    PAGE.write_text(cli_page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
