"""Following what other processes decided: as far as it can be, again where it could not, and told as it is."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sites import ServingState, Site

from nodewise.processes.process import start_ticks
from nodewise.runtime.generations import serving as servings
from nodewise.runtime.generations.folder import PluginsFolder, PluginsFolderError
from nodewise.runtime.generations.manifest import Canary


class Flaky(Site):
    """Some generations cannot be loaded."""

    broken: frozenset[int] = frozenset()

    async def make_state(self, number: int, track: str = "", *, beside: ServingState | None = None) -> ServingState:
        if number in self.broken:
            raise PluginsFolderError("no room")
        return await super().make_state(number, track, beside=beside)

    def told(self) -> dict[str, Any]:
        return self.folder.reports()[os.getpid()]


@pytest.fixture
def site(tmp_path: Path) -> Flaky:
    return Flaky(tmp_path / "plugins")


def looks(site: Flaky, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let it look so many times at what was decided."""

    async def life() -> None:
        ended, left = asyncio.Event(), count

        async def pause(_: float) -> None:
            nonlocal left
            left -= 1
            if not left:
                ended.set()
                await asyncio.Event().wait()

        monkeypatch.setattr(servings.asyncio, "sleep", pause)
        following = asyncio.create_task(site.run())
        await ended.wait()
        following.cancel()

    with monkeypatch.context() as monkeypatch:  # noqa: PLR1704  # undone at the end
        asyncio.run(life())


def test_what_could_not_be_loaded_is_tried_again(site: Flaky, monkeypatch: pytest.MonkeyPatch) -> None:
    number = site.folder.add("by hand", ()).number
    site.broken = frozenset({number})
    state = site.folder.change(lambda now: now.with_stable(number))
    looks(site, monkeypatch, 3)
    assert (site.told()["stable"], site.told()["problem"]) == (0, "no room")
    assert site.told()["sequence"] == state.sequence  # it has said why not: nobody waits for it
    site.broken = frozenset()
    looks(site, monkeypatch, 1)
    assert site.told()["stable"] == 0  # not at every look: a trial may start hosts
    monkeypatch.setattr(servings, "AGAIN_S", 0.0)
    site.folder.change(lambda now: replace(now, previous=()))
    site.broken = frozenset({number})
    looks(site, monkeypatch, 1)
    site.broken = frozenset()
    looks(site, monkeypatch, 1)
    assert (site.told()["stable"], site.told()["problem"]) == (number, "")


def test_a_canary_that_cannot_be_loaded_keeps_nobody_from_the_stable_one(
    site: Flaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    stable, canary = (site.folder.add("by hand", ()).number for _ in range(2))
    site.broken = frozenset({canary})
    site.folder.change(lambda now: replace(now.with_stable(stable), canary=Canary(number=canary, share=0.5)))
    looks(site, monkeypatch, 1)
    assert (site.told()["stable"], site.told()["canary"], site.told()["problem"]) == (stable, 0, "no room")
    assert [each.closed for each in site.serving_states] == [False]


def test_a_change_meanwhile_is_not_told_as_served(site: Flaky) -> None:
    number = site.folder.add("by hand", ()).number
    mine = site.folder.change(lambda now: now.with_stable(number))
    site.folder.change(lambda now: now.with_stable(0))  # by another process
    asyncio.run(site.take(mine))
    assert (site.told()["stable"], site.told()["sequence"]) == (number, mine.sequence)


def test_a_number_that_another_process_has_by_now_tells_nothing(site: Flaky) -> None:
    if not start_ticks(os.getpid()):
        pytest.skip("this kernel does not tell when a process began")
    site.folder.tell(os.getpid(), {"sequence": 1})
    assert list(site.folder.reports()) == [os.getpid()]
    path = site.folder.path / "serving" / f"{os.getpid()}.json"
    path.write_bytes(path.read_bytes().replace(b'"born_ticks":', b'"born_ticks":1'))
    assert PluginsFolder(site.folder.path).reports() == {}
    assert not path.exists()
