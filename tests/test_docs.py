"""The documentation is true: links resolve, commands run, generated pages and the change log are fresh."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from docs.make_cli_page import cli_page
from docs.make_how_to_pages import how_to_page
from docs.make_structure_page import structure_page
from planner import __version__
from planner.base import parse_yaml, read_yaml
from tests.places import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PAGES_WITH_COMMANDS = [page for page in PAGES if page.name == "README.md" or page.parent.name == "docs"]
HOW_TO = [page for page in PAGES if page.parent.name == "how-to"]
ANSWER_LINES = 5

FENCED = re.compile(r"^(`{3,}|~{3,}).*?^\1`*$", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(
    r"(?:<!-- not run:(?P<reason>[^\n]*?)-->\n+)?^```console\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
NAMED_FILE = re.compile(r"^```\w+ name=(?P<name>[\w.-]+)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
EXIT = re.compile(r"\s#.*\bexit (?P<code>\d+)\s*$")


@dataclass(frozen=True)
class Command:
    line: str  # after the prompt, continuation lines joined
    exit_code: int


def commands(text: str) -> list[Command]:
    """The `$ moeplan ...` lines of a page's console blocks that are to be run, in order."""
    found = []
    for block in CONSOLE.finditer(text):
        if block["reason"] is None:
            lines = re.sub(r"\\\n\s*", "", block["body"]).splitlines()
            for line in (line.removeprefix("$ ") for line in lines if line.startswith("$ moeplan ")):
                code = EXIT.search(line)
                found.append(Command(line, int(code["code"]) if code else 0))
    return found


def files(text: str) -> dict[str, str]:
    """The files that a page shows whole: fenced blocks that open like ```csv name=load.csv."""
    return {block["name"]: block["body"] for block in NAMED_FILE.finditer(text)}


def slug(heading: str) -> str:
    """The anchor a heading gets where the page is shown."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_local_links_resolve(page: Path) -> None:
    """Every link to a file of ours, and to a heading in one, leads somewhere."""
    broken = []
    for link in LINK.finditer(FENCED.sub("", page.read_text(encoding="utf-8"))):
        target, _, anchor = link["target"].partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        file = page.parent / target if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(link["target"])
    assert broken == []


@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `$ moeplan` line of a page, in order and in one folder with the files the page shows, exits as
    the page says (`# exit 2`, else 0).
    """
    text = page.read_text(encoding="utf-8")
    to_run = commands(text)
    if not to_run:
        return  # a page may show no command
    from planner.cli import main

    monkeypatch.chdir(tmp_path)
    for name, body in files(text).items():
        (tmp_path / name).write_text(body, encoding="utf-8")
    for command in to_run:
        result = CliRunner().invoke(main, shlex.split(command.line, comments=True)[1:], prog_name="moeplan")
        assert result.exit_code == command.exit_code, (
            f"{page.name}: {command.line}\n{result.output}\n{result.exception!r}"
        )


@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS, ids=lambda page: str(page.relative_to(ROOT)))
def test_exempt_commands_say_why(page: Path) -> None:
    """`<!-- not run: reason -->` needs its reason."""
    assert all(
        block["reason"] is None or block["reason"].strip()
        for block in CONSOLE.finditer(page.read_text(encoding="utf-8"))
    )


def test_commands_are_found() -> None:
    """Guards the tests above: prompts, continuations, exit codes and exemptions are read as meant."""
    text = (
        "```console\n$ moeplan solve \\\n    --seed 1\nplan written\n"
        "$ moeplan check x  # exit 2\n$ make demo\n```\n\n"
        "<!-- not run: needs GPUs -->\n```console\n$ moeplan validate y\n```\n"
    )
    assert commands(text) == [Command("moeplan solve --seed 1", 0), Command("moeplan check x  # exit 2", 2)]


def test_files_are_found() -> None:
    """Guards the tests above: a block with a name is a file, one without is not."""
    assert files("```csv name=load.csv\na,b\n1,2\n```\n\n```json\n{}\n```\n") == {"load.csv": "a,b\n1,2\n"}


def test_tutorial_uses_the_machine_of_the_tests() -> None:
    """The machine that the tutorial solves by hand is the one that the tests solve by hand."""
    shown = files((ROOT / "docs/tutorial.md").read_text(encoding="utf-8"))["two-nodes.yaml"]
    assert parse_yaml(shown, "tutorial") == read_yaml(ROOT / "tests/data/two-nodes.yaml")


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.name)
def test_a_how_to_answers_by_one_command(page: Path) -> None:
    """A question as its heading, a command that is run, and a line in the index."""
    text = page.read_text(encoding="utf-8")
    assert re.match(r"# .*\?\n", text), "the heading is the question"
    assert commands(text), "no command of it is run"
    assert f"how-to/{page.name}" in (ROOT / "docs/index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.name)
def test_a_how_to_shows_what_its_commands_say(page: Path) -> None:
    """The first lines of each, figures and widths apart: those may differ in their last digits elsewhere."""
    text = page.read_text(encoding="utf-8")
    assert answers(text) == answers(how_to_page(page)), "run `make docs`"
    assert any(len(answer) > 1 for answer in answers(text))


def answers(text: str) -> list[list[str]]:
    """Command and first lines of each command of a page, without their figures."""
    shown = [part for block in CONSOLE.finditer(text) for part in block["body"].split("$ moeplan ")[1:]]
    lines = [part.splitlines()[: 1 + ANSWER_LINES] for part in shown]
    return [[" ".join(re.sub(r"[\d.,]+", "#", each).split()) for each in some] for some in lines]


def test_readme_shows_a_command() -> None:
    """A README whose every command is exempt, or which has none, would pass the tests above by saying
    nothing.
    """
    assert commands((ROOT / "README.md").read_text(encoding="utf-8"))


def test_cli_page_is_fresh() -> None:
    """docs/cli.md is what the commands say of themselves."""
    assert (ROOT / "docs/cli.md").read_text(encoding="utf-8") == cli_page(), "run `make docs`"


def test_structure_page_is_fresh() -> None:
    """docs/structure.md has every module, with the first line of its docstring."""
    assert (ROOT / "docs/structure.md").read_text(encoding="utf-8") == structure_page(), "run `make docs`"


def test_change_log_knows_the_version() -> None:
    """[Unreleased] stands on top, and the newest release below it is the version of the code."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[([^\]]+)\]", text, re.MULTILINE)
    assert headings[:2] == ["Unreleased", __version__]
