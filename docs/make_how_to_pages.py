"""Write what the commands of docs/how-to/*.md print into the pages, so that no answer there is an old one.

Run it with `make docs`. A command keeps as many lines as the page shows of it, and `...` where there are
more; one without a line is shown without its output.
"""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from click.testing import CliRunner

PAGES = sorted((Path(__file__).resolve().parent / "how-to").glob("*.md"))
CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
NAMED_FILE = re.compile(r"^```\w+ name=(?P<name>[\w.-]+)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
EXIT = re.compile(r"\s#.*\bexit (?P<code>\d+)\s*$")
PROMPT, MORE = "$ moeplan ", "..."
RUNNER = CliRunner(env={"COLUMNS": None})  # a pipe's width, whatever the terminal


def how_to_page(page: Path) -> str:
    """The page's text with what its commands print now, run in order, beside the files that it shows.

    RuntimeError where a command does not end as the page says (`# exit 2`, else 0).
    """
    text = page.read_text(encoding="utf-8")
    before = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for named in NAMED_FILE.finditer(text):
                Path(named["name"]).write_text(named["body"], encoding="utf-8")
            return CONSOLE.sub(lambda block: "".join(_block(block[0])), text)
        finally:
            os.chdir(before)


def _block(body: str) -> Iterator[str]:
    """The lines of one console block."""
    for part in filter(None, re.split(rf"^(?={re.escape(PROMPT)})", body, flags=re.MULTILINE)):
        line, *shown = part.splitlines()
        count = len([each for each in shown if each != MORE])
        printed = _printed(line)
        yield f"{line}\n"
        yield from (f"{each.rstrip()}\n" for each in printed[:count])
        if 0 < count < len(printed):
            yield f"{MORE}\n"


def _printed(line: str) -> list[str]:
    from planner.cli import main

    arguments = shlex.split(line.removeprefix(PROMPT), comments=True)
    found = RUNNER.invoke(main, arguments, prog_name="moeplan")
    code = EXIT.search(line)
    if found.exit_code != (int(code["code"]) if code else 0):
        raise RuntimeError(f"{line}: exit {found.exit_code}\n{found.output}") from found.exception
    return found.output.splitlines()


if __name__ == "__main__":
    for one in PAGES:
        if len(sys.argv) == 1 or one.stem in sys.argv[1:]:
            one.write_text(how_to_page(one), encoding="utf-8")
            print(f"wrote how-to/{one.name}")
