"""The page of every command with a report in a real browser: axe finds nothing serious, in two sizes, light and dark.

The pictures in the documentation are taken from such pages. ``NODEWISE_WRITE_PICTURES=1`` renews them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

import pytest
from browser import CHROMIUM, Page, page
from pages import ROOT
from typer.testing import CliRunner

from nodewise_cli.app import app

EXAMPLES: Final = ROOT / "examples"
SIMULATION: Final = EXAMPLES / "simulation"
TRACES: Final = ROOT / "tests" / "fixtures" / "traces"
IMAGES: Final = ROOT / "docs" / "images"
SERIOUS: Final = ("serious", "critical")
LOOKS: Final = ((1280, False), (1280, True), (420, False), (420, True))
"""Widths of the window, and whether the page is dark."""
A1: Final = ("predict", EXAMPLES / "testbed.csv", "--job", "a1", "--workers", "1-16")
CURVE: Final = ("--measured", "1=19800,2=38100,4=72400", "--gpus-per-node", "8")
PAGES: Final[dict[str, tuple[str | Path, ...]]] = {
    "predict": A1,
    "predict measured": ("predict", *CURVE),
    "predict a model": (
        *("predict", EXAMPLES / "config.json", "--device", "H100", "--nodes", "pow2:1-64", "--workers-per-node", "8"),
        *("--global-batch", "1024"),
    ),
    "plan": ("plan", EXAMPLES / "config.json", "--cluster", "H100=4x8", "--batch", "512", "--flags", "megatron"),
    "card": (
        *("card", EXAMPLES / "config.json", "--device", "H100", "--nodes", "16", "--workers-per-node", "8"),
        *("--global-batch", "1024", "--tokens", "1e12", "--price", "98.32", "--currency", "USD", "--grid", "400"),
        *("--deadline-h", "2000", "--runs", "500"),
    ),
    "spot": ("spot", EXAMPLES / "spot.json", "--runs", "500"),
    "simulate": ("simulate", SIMULATION / "simulate.json", "--repetitions", "1"),
    "sweep": ("sweep", SIMULATION / "sweep.json", "--seeds", "3", "--loads", "1,2"),
    "backtest": ("backtest", EXAMPLES / "testbed.csv", "--estimator", "all"),
    "diagnose": ("diagnose", EXAMPLES / "traces"),
    "compare": ("diagnose", TRACES / "ddp_2_ranks_straggler", "--against", TRACES / "ddp_2_ranks_3_buckets"),
    "demo": ("demo",),
}
"""Commands with a report, each at least once."""


@dataclass(frozen=True)
class Picture:
    """A picture in the documentation: the report that it shows, its height, and the element that it is cut to."""

    report: str
    height: int = 0
    element: str = ""


PICTURES: Final = {
    "curve.png": Picture("predict", element="img"),
    "report.png": Picture("diagnose", height=860),
    "comparison.png": Picture("compare", height=720),
}
WIDTH: Final = 1000
TEXT: Final = """
(() => {
  const drawn = [...document.images].map(each => each.src.startsWith("data:image/svg+xml;base64,")
    ? [...new DOMParser().parseFromString(new TextDecoder().decode(Uint8Array.from(
        atob(each.src.split(",")[1]), letter => letter.charCodeAt(0))), "image/svg+xml").querySelectorAll("text")]
      .map(text => text.textContent) : []);
  return JSON.stringify([document.body.innerText, drawn]);
})()
"""
"""Everything that a page says, in its drawings too."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    if not CHROMIUM:
        pytest.skip("no Chromium is installed")
    with page(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports by name, each written where it is first asked for."""
    pytest.importorskip("matplotlib", reason="reports draw their picture, and matplotlib is an extra")
    return _Reports(tmp_path_factory.mktemp("reports"))


class _Reports(dict[str, Path]):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, name: str) -> Path:
        path = self._folder / f"{name}.html"
        words = [str(each) for each in PAGES[name]]
        words += [str(path)] if name == "demo" else ["--report", str(path)]
        with pytest.MonkeyPatch.context() as monkeypatch:
            shown = [word.removeprefix(f"{ROOT}/") for word in words[:-1]]
            monkeypatch.setattr(sys, "argv", ["nodewise", *shown, path.name])
            ran = CliRunner().invoke(app, words, catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        self[name] = path
        return path


@pytest.mark.long
@pytest.mark.parametrize("name", PAGES)
def test_a_report_is_accessible_alone_and_printable(name: str, written: dict[str, Path], browser: Page) -> None:
    pytest.importorskip("axe_core_python", reason="axe comes with the requirements of the oracles")
    axe = resources.files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
    path = written[name]
    assert not re.findall(r'(?:src|href)="(?!data:|#)', path.read_text(encoding="utf-8"))
    for width, dark in LOOKS:
        for told in (browser.requests, browser.refused, browser.errors):
            told.clear()
        browser.open(path, width=width, dark=dark)
        assert [each for each in browser.requests if not each.startswith(("file:", "data:"))] == []
        assert (browser.refused, browser.errors) == ([], [])
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("[...document.images].every(each => each.naturalWidth > 300)")
        browser.run(axe)
        found: Any = browser.run("axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)")
        serious = [each for each in found if each["impact"] in SERIOUS]
        assert not serious, json.dumps([(each["id"], each["nodes"][:2]) for each in serious], indent=1)
    printed = path.with_suffix(".pdf")
    browser.printed(printed)
    assert printed.read_bytes().startswith(b"%PDF")
    assert printed.stat().st_size > 10_000


def test_every_picture_on_a_page_is_taken_here_or_by_the_console() -> None:
    named = set()
    for document in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "clients").glob("*/README.md")):
        named |= set(re.findall(r"!\[[^\]]*\]\([^)]*?([\w.-]+\.(?:png|svg))\)", document.read_text(encoding="utf-8")))
    places = (ROOT / "clients" / "console" / "tests" / "console.test.ts").read_text(encoding="utf-8")
    console = {f"console-{name}.png" for name in re.findall(r'^  \["(\w+)", "', places, re.MULTILINE)}
    assert named - console == set(PICTURES)
    assert {each.name for each in IMAGES.iterdir()} == set(PICTURES) | console


def signed(png: bytes, digest: str) -> bytes:
    """A PNG that holds a digest in a chunk of text, before its last chunk."""
    chunk = b"tEXtDescription\0text of the report, SHA-256 " + digest.encode()
    end = png.rindex(b"IEND") - 4
    length, check = (struct.pack(">I", number) for number in (len(chunk) - 4, zlib.crc32(chunk)))
    return png[:end] + length + chunk + check + png[end:]


@pytest.mark.long
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_what_its_report_says_today(
    name: str, written: dict[str, Path], browser: Page, tmp_path: Path
) -> None:
    picture = PICTURES[name]
    browser.open(written[picture.report], width=WIDTH, height=picture.height or 900)
    taken = tmp_path / name
    said = str(browser.run(TEXT))
    browser.picture(taken, whole=bool(picture.element), element=picture.element)
    assert taken.read_bytes().startswith(b"\x89PNG")
    digest = hashlib.sha256(said.encode()).hexdigest()
    if os.environ.get("NODEWISE_WRITE_PICTURES"):
        (IMAGES / name).write_bytes(signed(taken.read_bytes(), digest))
    kept = (IMAGES / name).read_bytes()
    assert digest.encode() in kept, (
        "the report says something else by now: NODEWISE_WRITE_PICTURES=1 renews the picture"
    )
