"""The page of a diagnosis in a real browser: what it shows, what it highlights, and what it never does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import CHROMIUM, Page, page
from compared_runs import answer_of, comparison_of
from recorded_jobs import gloo_job

from nodewise_cli.failures import CommandError
from nodewise_cli.pictures.report import MOST_EVENTS, write_comparison, write_report
from nodewise_client import (
    Bottleneck,
    DiagnosisAnswer,
    DiagnosisBasis,
    Notice,
    RankShares,
    ReadTrace,
    StepPart,
    Strategy,
    Timeline,
)

HOSTILE = (
    "</script><script>window.broken = 1</script>",
    "<img src=x onerror='window.broken=1'>",
    "{{script}}{{data}}",
    "\u202eright to left\u202c \u2066x",
    "&lt;b&gt; \" ' ` ${window.broken = 1} \\u003c",
    "void kernel<" + "int, " * 800 + "float>",
    "\x00\x1b[31m\u2028line",
    "שלום עולם kernel العربية",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    if not CHROMIUM:
        pytest.skip("no Chromium is installed")
    with page(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def hostile() -> DiagnosisAnswer:
    """An answer in which every text is what a page must not obey."""
    name = HOSTILE[0]
    ranks = tuple(
        RankShares(
            rank=rank,
            step_seconds=0.1,
            parts=tuple(
                StepPart(kind=kind, what=what, seconds=0.1 / len(HOSTILE))
                for kind, what in zip(("computation", "loading", "python", name) * 2, HOSTILE)
            ),
            step_ordinals=(1,),
            step_begin_nanoseconds=(0,),
            step_duration_nanoseconds=(100_000_000,),
        )
        for rank in range(2)
    )
    count = 4 * len(HOSTILE)
    return DiagnosisAnswer(
        verdict=f"{' '.join(HOSTILE[:5])}. And more.",
        bound_by="host",
        step_seconds=0.1,
        persistence_seconds=0.001,
        exposed_communication_seconds=0.0,
        complete=False,
        rank_shares=ranks,
        strategies=tuple(
            Strategy(name=each, predicted_step_seconds=0.09, speedup_ratio=1.1, effort=each, rests_on=each)
            for each in HOSTILE
        ),
        bottlenecks=tuple(
            Bottleneck(kind=each, what=each, seconds=0.1, gain_if_removed_seconds=0.1, matters=True, why=each)
            for each in HOSTILE
        ),
        warnings=tuple(Notice(message=each) for each in HOSTILE),
        basis=DiagnosisBasis(diagnoser=name, diagnoser_version=name, ranks=(0, 1), traces=(ReadTrace(steps_count=1),)),
        collectives=(),
        recorded=None,
        timeline=Timeline(
            rank_numbers=[place % 2 for place in range(count)],
            lane_indexes=[place % len(HOSTILE) for place in range(count)],
            name_indexes=[place % len(HOSTILE) for place in range(count)],
            kind_indexes=[0] * count,
            part_indexes=[place % len(HOSTILE) for place in range(count)],
            begin_nanoseconds=[2_000_000 * place for place in range(count)],
            duration_nanoseconds=[1_500_000] * count,
            waiting_nanoseconds=[],
            names=list(HOSTILE),
            lanes=list(HOSTILE),
            kinds=[name],
            parts=[f"computation: {each}" for each in HOSTILE],
        ),
    )


def data_of(path: Path) -> Any:
    found = re.search(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def opened(browser: Page, path: Path, **how: Any) -> None:
    browser.requests.clear()
    browser.errors.clear()
    browser.open(path, **how)
    assert browser.run("document.documentElement.dataset.ready") == "yes"


def assert_calm(browser: Page, path: Path) -> None:
    """Nothing was asked for but the page, nothing failed, and nothing is wider than the window."""
    assert set(browser.requests) == {path.resolve().as_uri()}
    assert browser.errors == []
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")


def pixels(browser: Page) -> list[int]:
    """How many pixels of the lanes are of which saturation: dimmed ones have little."""
    return browser.run(
        "(() => { const c = document.getElementById('lanes'), d = c.getContext('2d').getImageData(0, 0, c.width, "
        "c.height).data; let strong = 0, all = 0; for (let i = 0; i < d.length; i += 4) { const s = Math.max(d[i], "
        "d[i+1], d[i+2]) - Math.min(d[i], d[i+1], d[i+2]); all += d[i+3] > 0; strong += d[i+3] > 128 && s > 40; } "
        "return [strong, all]; })()"
    )


def test_names_that_are_markup_stay_names(browser: Page, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(path, hostile())
    text = path.read_text(encoding="utf-8")
    assert text.count("</script>") == 2  # its data and its own script
    assert not re.search(r"<[^>]*\s(?:src|href)\s*=", text.partition('id="data"')[0])
    opened(browser, path)
    browser.run("for (const each of document.querySelectorAll('button')) each.click()")
    browser.run("document.getElementById('search').value = 'kernel'; search(); go(1)")
    assert browser.run("window.broken === undefined")
    assert browser.run("document.querySelectorAll('img, iframe, link, object').length") == 0
    assert browser.run("document.getElementById('sentence').textContent").startswith(HOSTILE[0])
    shown = browser.run("[...document.querySelectorAll('#help .choose')].map(each => each.textContent)")
    assert shown == list(HOSTILE)
    assert_calm(browser, path)
    # A policy forbids what a name might bring, were it ever to become markup.
    browser.run("document.body.insertAdjacentHTML('beforeend', '<img src=\"https://example.invalid/x.png\">')")
    browser.run("new Promise(done => setTimeout(done, 50))")
    assert browser.refused == ["csp"]


def test_what_is_chosen_is_highlighted_in_bars_lists_and_lanes(browser: Page, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    answer = answer_of(gloo_job("ddp_4_ranks_straggler"), strategies=20, bottlenecks=20)
    write_report(path, answer)
    opened(browser, path)
    assert browser.run("document.getElementById('sentence').textContent") == (
        "Bound by skew of the ranks: if all ranks took equally long, a step of 232.99 ms would be 35.75 ms shorter."
    )
    assert browser.run("document.querySelectorAll('.bar').length") == 4
    # Bars are as long as their steps, on one scale.
    widths = browser.run(
        "[...document.querySelectorAll('.bar')].map(bar => [...bar.children].reduce((sum, each) => sum + "
        "each.getBoundingClientRect().width, 0) / bar.getBoundingClientRect().width)"
    )
    longest = max(one.step_seconds for one in answer.rank_shares)
    assert widths == pytest.approx([one.step_seconds / longest for one in answer.rank_shares], abs=0.01)
    strong, _ = pixels(browser)
    browser.run("document.querySelector('.bar button[aria-label^=\"transfer\"]').click()")
    dimmed, _ = pixels(browser)
    assert 0 < dimmed < 0.5 * strong
    assert browser.run("document.querySelectorAll('.bar button:not(.dim)').length") == 4
    assert "transfer" in browser.run("document.getElementById('selected').textContent")
    browser.key("Escape")
    assert pixels(browser)[0] == strong
    # A strategy acts on parts.
    rows = browser.run("[...document.querySelectorAll('#help tr.choice')].map(row => row.textContent)")
    loading = next(place for place, row in enumerate(rows) if row.startswith("load batches ahead"))
    assert "DataLoader(num_workers=8" in rows[loading]
    browser.run(f"document.querySelectorAll('#help tr.choice')[{loading}].click()")
    assert browser.run("document.querySelectorAll('.bar button:not(.dim)').length") == sum(
        part.kind == "loading" for one in answer.rank_shares for part in one.parts
    )
    assert pixels(browser)[0] < dimmed
    assert_calm(browser, path)


def test_numbers_are_those_of_the_answer(browser: Page, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    answer = answer_of(gloo_job("ddp_2_ranks_straggler"), strategies=20)
    write_report(path, answer)
    opened(browser, path)
    cells = browser.run(
        "[...document.querySelectorAll('#parts tbody tr')].map(row => [...row.children].map(each => each.textContent))"
    )
    assert cells[0][:2] == ["computation", "operators"]
    sums = [sum(float(row[column]) for row in cells[:-1]) for column in (2, 3)]
    assert sums == pytest.approx([1e3 * one.step_seconds for one in answer.rank_shares], abs=0.1)
    one = next(each for each in answer.strategies if len(each.parts) < 2)
    gain = 1e3 * (answer.step_seconds - answer.step_seconds / one.speedup_ratio)
    shown = browser.run("document.querySelector('#help tr.choice td.number').textContent")
    assert float(shown) == pytest.approx(gain, abs=0.01)


def test_events_are_found_by_name_and_the_keyboard_moves(browser: Page, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(path, answer_of(gloo_job("ddp_4_ranks_straggler")))
    opened(browser, path)
    browser.run("document.getElementById('search').focus()")
    browser.call("Input.insertText", text="all_REDUCE")
    assert browser.run("document.getElementById('matches').textContent").startswith("12 events, ")
    browser.key("Enter", "\r")
    browser.key("Enter", "\r")
    assert browser.run("document.getElementById('matches').textContent") == "2 of 12"
    assert browser.run("document.getElementById('selected').textContent").startswith(
        "gloo:all_reduce; collective, rank "
    )
    browser.run("document.getElementById('all').click(); document.getElementById('frame').focus()")
    assert browser.run("from") == 0
    browser.key("+", "+")
    browser.key("ArrowRight")
    assert browser.run("from > 0 && to - from < 0.7 * data.lanes.end")
    browser.key("Home")
    assert browser.run("from") == 0
    # The parts of a bar: one stop of the tabulator, arrows within.
    browser.run("document.querySelector('.bar button').focus()")
    browser.key("ArrowRight")
    assert browser.run("document.activeElement === document.querySelectorAll('.bar button')[1]")
    assert browser.run("document.querySelectorAll('.bar:first-child button[tabindex=\"0\"]').length") == 0
    browser.key("Enter", "\r")
    assert browser.run("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert browser.run("[...document.querySelectorAll('button')].every(each => each.textContent || each.ariaLabel)")


def test_colours_follow_the_system_and_the_switch_and_paper_is_white(browser: Page, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(path, answer_of(gloo_job("ddp_2_ranks_straggler")))
    ground = "getComputedStyle(document.body).backgroundColor"
    opened(browser, path, dark=True)
    assert browser.run(ground) == "rgb(20, 23, 28)"
    browser.run("document.getElementById('theme').click()")
    assert browser.run(ground) == "rgb(255, 255, 255)"
    browser.run("document.getElementById('theme').click()")
    assert browser.run(ground) == "rgb(20, 23, 28)"
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.run(ground) == "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.getElementById('tools')).display") == "none"
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.printed(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    for width in (420, 800):
        opened(browser, path, width=width)
        assert_calm(browser, path)


def test_eight_ranks_and_hundreds_of_thousands_of_events(browser: Page, tmp_path: Path) -> None:
    ranks, each = 8, 60_000
    place = np.arange(ranks * each)
    one = hostile()
    timeline = Timeline(
        rank_numbers=(place % ranks).tolist(),
        lane_indexes=(place // ranks % 4).tolist(),
        name_indexes=(place % 500).tolist(),
        kind_indexes=[0] * len(place),
        part_indexes=(place % 3 - 1).tolist(),
        begin_nanoseconds=(place * 1000).tolist(),
        duration_nanoseconds=(500 + place * 7919 % 30_000).tolist(),
        waiting_nanoseconds=[],
        names=[f"kernel {number}" for number in range(500)],
        lanes=["thread 1", "stream 7", "stream 20", "stream 22"],
        kinds=["kernel"],
        parts=["computation: a", "loading: b"],
    )
    shares = tuple(
        RankShares(
            rank=rank,
            step_seconds=0.48,
            parts=(StepPart(kind="computation", what="a", seconds=0.48),),
            step_ordinals=(3,),
            step_begin_nanoseconds=(0,),
            step_duration_nanoseconds=(len(place) * 1000,),
        )
        for rank in range(ranks)
    )
    fields = {name: getattr(one, name) for name in ("verdict", "step_seconds", "basis", "collectives", "recorded")}
    path = tmp_path / "large.html"
    write_report(path, DiagnosisAnswer(rank_shares=shares, timeline=timeline, complete=True, **fields))
    assert path.stat().st_size < 6_000_000
    data = data_of(path)
    drawn = sum(len(row["begin"]) for lane in data["lanes"]["lanes"] for row in lane["rows"])
    assert drawn == MOST_EVENTS
    assert f"{MOST_EVENTS:,} of 480,000 events are drawn; others are shorter than " in data["lanes"]["note"]
    opened(browser, path)
    assert browser.run("data.lanes.lanes.length") == 32
    assert pixels(browser)[0] > 1000
    # A frame of all of it is drawn in a moment: people drag.
    took = browser.run(
        "(() => { const began = performance.now(); for (let i = 0; i < 5; i++) draw(); "
        "return (performance.now() - began) / 5; })()"
    )
    assert took < 1000
    assert_calm(browser, path)


def test_two_runs_side_by_side(browser: Page, tmp_path: Path) -> None:
    path = tmp_path / "comparison.html"
    found = comparison_of(gloo_job("ddp_2_ranks_3_buckets"), gloo_job("ddp_2_ranks_straggler"))
    write_comparison(path, found)
    opened(browser, path)
    assert browser.run("document.getElementById('sentence').textContent").startswith(
        "A step of rank 1 takes 42.62 ms longer"
    )
    assert browser.run("[...document.querySelectorAll('.row .name')].map(each => each.textContent)") == [
        "before, rank 1", "after, rank 1", "before, rank 0", "after, rank 0",
    ]  # fmt: skip
    differs = browser.run(
        "[...document.querySelectorAll('#differences tbody tr')].map(row => row.children[1].textContent)"
    )
    *parts, total = (float(each.replace("\u2212", "-")) for each in differs)
    assert sum(parts) == pytest.approx(total, abs=0.02)
    assert total == pytest.approx(1e3 * found.main.difference_seconds, abs=0.01)
    assert browser.run("data.lanes.lanes.map(lane => lane.group)[0]") == "before rank 1"
    assert browser.run("document.getElementById('timeline-title').textContent").startswith("Timeline of step ")
    browser.run("document.querySelector('#changed tr.choice').click()")
    assert "SleepingLayerBackward" in browser.run("document.getElementById('selected').textContent")
    assert_calm(browser, path)


def test_an_answer_without_lanes_or_parts_is_a_page_too(browser: Page, tmp_path: Path) -> None:
    path = tmp_path / "bare.html"
    bare: dict[str, Any] = {"collectives": (), "timeline": None, "recorded": None}
    write_report(path, DiagnosisAnswer(bound_by="none", **bare))
    opened(browser, path)
    assert browser.run("document.getElementById('timeline').hidden && document.getElementById('help').hidden")
    assert browser.run("document.getElementById('bars').hidden")
    assert_calm(browser, path)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be written"):
        write_report(tmp_path / "none" / "x.html", hostile())
