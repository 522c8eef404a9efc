"""The conformance of the clients, run for Python's and for curl: green as it is, red with every planted regression."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from nodewise_conformance.languages import Column, read_languages
from nodewise_conformance.planting import NOTICING, planted_runs
from nodewise_conformance.report import page, table
from nodewise_conformance.running import Results, Run, run_each
from nodewise_conformance.scenarios import Scenario, read_scenarios
from nodewise_conformance.stage import Stage
from nodewise_conformance.statuses import PLANTS

pytestmark = pytest.mark.long

CHOSEN = NOTICING | {
    *(
        "predict",
        "batch-predict",
        "stream-predict",
        "every-field-of-predict",
        "simulate",
        "pages-cut",
        "rows-of-a-batch",
    ),
    *("retry-unavailable", "pushback-no-more", "progress-resumes-after-a-cut", "watch-resumes-after-a-cut"),
    *(
        "user-agent",
        "ingest-lost-acknowledgement",
        "deadline",
        "cancel-a-call",
        "unknown-status-of-a-row",
        "retry-append",
    ),
}


def _columns() -> list[Column]:
    found = [column for language in read_languages() for column in language.columns]
    return [each for each in found if each.name in {"Python", "curl (REST)", "curl (Connect)"} and each.absent is None]


@pytest.fixture(scope="module")
def scenarios() -> Sequence[Scenario]:
    return [each for each in read_scenarios() if each.name in CHOSEN]


@pytest.fixture(scope="module")
def results(scenarios: Sequence[Scenario]) -> Mapping[str | None, Results]:
    """By plant; None = none. One server for all of them."""

    async def run() -> Mapping[str | None, Results]:
        async with Stage() as stage:
            runs: list[Run] = [(scenario, None) for scenario in scenarios]
            return await run_each(_columns(), [*runs, *planted_runs(scenarios)], stage)

    return asyncio.run(run())


def test_clients_do_what_they_must(results: Mapping[str | None, Results]) -> None:
    assert results[None].red == {}
    assert {name for _, name in results[None].complaints} == {column.name for column in _columns()}


@pytest.mark.parametrize("plant", PLANTS)
def test_every_planted_regression_turns_every_client_red(results: Mapping[str | None, Results], plant: str) -> None:
    assert {column for _, column in results[plant].red} == {column.name for column in _columns()}


def test_the_page_tells_all(results: Mapping[str | None, Results], scenarios: Sequence[Scenario]) -> None:
    told = page(results["wrong-code"], scenarios, {"Go": "no go on PATH"})
    assert "Go (no go on PATH)" in told
    assert "✗" in told
    assert all(scenario.name in told and scenario.name in table(results[None], scenarios) for scenario in scenarios)
