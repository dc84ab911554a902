"""The page in a real Chromium: clicked through, by keyboard, on a phone, in the dark, on paper."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.page.plan_page import plan_page
from planner.page.sections import ORDER
from tests.planner.page.browser import Browser, browser, chromium
from tests.planner.page.pages import large_plan

SHOWN = "getComputedStyle({}).display !== 'none'"


def written(folder: Path, name: str, machine: str, model: str) -> Path:
    page = folder / name
    page.write_text(plan_page(large_plan(folder, machine, model)), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a plan of 16 layers on 24 GPUs: more columns than show their figures."""
    chromium()
    folder = tmp_path_factory.mktemp("browser")
    return written(folder, "page.html", "hgx-h100:3", "olmoe")


@pytest.fixture(scope="module")
def chrome(path: Path) -> Iterator[Browser]:
    with browser(path.parent) as found:
        yield found


def test_it_opens_without_a_complaint_and_asks_for_nothing_else(chrome: Browser, path: Path) -> None:
    """And every link of its contents leads to a section in sight."""
    chrome.open(path)
    names = chrome.value("[...document.querySelectorAll('nav a')].map(a => a.hash.slice(1))")
    assert names == [name for name in ORDER if name not in ("moves", "losses")]
    for name in names:
        chrome.value(f"document.querySelector('nav a[href=\"#{name}\"]').click()")
        top = chrome.value(f"document.getElementById('{name}').getBoundingClientRect().top")
        at_the_end = chrome.value("innerHeight + scrollY >= document.documentElement.scrollHeight - 2")
        assert 0 <= top <= 60 or at_the_end, name
    assert chrome.value("document.querySelector('dl.answer').children.length") == 10
    assert chrome.faults() == []


def test_a_script_that_the_page_does_not_name_is_not_run(chrome: Browser, path: Path) -> None:
    """The policy holds in the browser, not only in the text."""
    page = path.with_name("altered.html")
    page.write_text(path.read_text().replace("<main", "<script>document.title = 'got in'</script><main", 1))
    chrome.open(page)
    assert chrome.value("document.title") != "got in"
    assert any("Content Security Policy" in fault for fault in chrome.faults())


def test_sides_are_chosen_by_click(chrome: Browser, path: Path) -> None:
    chrome.open(path)
    shown = "[...document.querySelectorAll('#balance .panel')].map(panel => !panel.hidden)"
    assert chrome.value(shown) == [True, False, False]
    chrome.value("document.querySelectorAll('#balance .sides button')[2].click()")
    assert chrome.value(shown) == [False, False, True]
    pressed = "[...document.querySelectorAll('#balance .sides button')].map(b => b.ariaPressed)"
    assert chrome.value(pressed) == ["false", "false", "true"]


def test_a_heat_map_is_read_by_keyboard(chrome: Browser, path: Path) -> None:
    """One stop of the Tab key; arrows go from cell to cell; the line below says where."""
    chrome.open(path)
    chrome.value("document.querySelector('#balance .scroll').focus()")
    chrome.press("Tab")
    says = "document.querySelector('#balance .says').textContent"
    row = "document.querySelector('#balance tbody').rows[{}].cells[{}].textContent"
    first = chrome.value(row.format(0, 0))
    assert chrome.value(says) == f"layer {first}, GPU 0: {chrome.value(row.format(0, 1))}"
    chrome.press("ArrowDown")
    chrome.press("ArrowRight")
    second = chrome.value(row.format(1, 0))
    assert chrome.value(says) == f"layer {second}, GPU 1: {chrome.value(row.format(1, 2))}"
    chrome.press("Tab")
    assert chrome.value("document.activeElement.textContent") == "figures"


def test_a_dense_map_shows_its_figures_when_asked(chrome: Browser, path: Path) -> None:
    chrome.open(path)
    size = "getComputedStyle(document.querySelector('#balance td')).fontSize"
    assert chrome.value(size) == "0px"
    chrome.value("document.querySelector('#balance button.numbers').click()")
    assert chrome.value(size) != "0px"


def test_the_drawing_says_what_a_link_carries(chrome: Browser, path: Path) -> None:
    chrome.open(path)
    said = chrome.value(
        "(() => { const link = [...document.querySelectorAll('#topology [data-says]')]"
        ".find(item => item.dataset.says.includes('/nic')); link.dispatchEvent(new MouseEvent('mouseover', "
        "{bubbles: true})); return document.querySelector('#topology .says').textContent; })()"
    )
    assert said.startswith("node0/nic")
    assert "engine default" in said


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_scrolls_no_page_sideways(chrome: Browser, path: Path, dark: bool) -> None:
    """What is wider than 390 pixels scrolls inside its own frame."""
    chrome.open(path, width=390, dark=dark)
    assert chrome.value("document.documentElement.scrollWidth") == 390
    wide = chrome.value(
        "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > 391 "
        "&& !e.closest('.scroll, pre, nav, svg')).map(e => e.outerHTML.slice(0, 80))"
    )
    assert wide == []


def test_dark_is_dark_and_paper_is_white(chrome: Browser, path: Path) -> None:
    """On paper every side is there, and nothing to press."""
    ground = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    chrome.open(path, dark=True)
    assert max(chrome.value(ground)) < 60
    chrome.open(path, dark=True, media="print")
    assert min(chrome.value(ground)) == 255
    panels = "[...document.querySelectorAll('.panel')].every(p => getComputedStyle(p).display === 'block')"
    assert chrome.value(panels)
    assert not chrome.value(f"[...document.querySelectorAll('button')].some(e => {SHOWN.format('e')})")


def test_it_prints(chrome: Browser, path: Path) -> None:
    chrome.open(written(path.parent, "small.html", "hgx-h100:2x2", "mixtral"))
    assert base64.b64decode(chrome.ask("Page.printToPDF")["data"]).startswith(b"%PDF")


@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out_from_what_is_behind_them(chrome: Browser, path: Path, dark: bool) -> None:
    """A contrast of 4.5 at least (WCAG AA), for text of the page and in the cells of heat maps."""
    chrome.open(path, dark=dark)
    assert chrome.value(CONTRASTS) == []


CONTRASTS = """
(() => {
  document.querySelectorAll('.dense').forEach(table => table.classList.add('shown'));
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(x => x / 255)
      .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (item) => {
    for (let one = item; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (!colour.includes(', 0)')) return colour;
    }
  };
  const seen = new Set(), low = [];
  const names = ['p', 'td', 'th', 'span', 'a', 'button', 'dd', 'summary', 'figcaption'].map(n => 'main ' + n);
  for (const item of document.querySelectorAll(names.join())) {
    const pair = getComputedStyle(item).color + ' on ' + behind(item);
    if (!item.textContent.trim() || seen.has(pair)) continue;
    seen.add(pair);
    const [a, b] = [light(getComputedStyle(item).color), light(behind(item))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) low.push([pair, item.tagName, item.className, contrast.toFixed(2)].join(' '));
  }
  return low;
})()
"""
