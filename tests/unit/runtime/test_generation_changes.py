"""Changes of what is served: to their end or not at all, in words that help, and away from the event loop."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from sites import Site

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.runtime.generations import changes as changing
from nodewise.runtime.generations import folder as foldering
from nodewise.runtime.generations import standing as standings
from nodewise.runtime.generations.changes import Changes, Outcome
from nodewise.runtime.generations.folder import PluginsFolder
from nodewise.runtime.generations.trial import trial_of
from nodewise_protos.v1beta1 import admin_service_pb2 as pb


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    trying(monkeypatch)
    return Site(tmp_path / "plugins")


def trying(monkeypatch: pytest.MonkeyPatch, during: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
    """Every trial passes, after what happens during it."""

    async def tried(*_: object) -> pb.Trial:
        if during is not None:
            await during()
        return trial_of()

    monkeypatch.setattr(changing, "run_trial", tried)


def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing more can be written."""

    def replaced(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(foldering, "replace_file", replaced)


def test_a_change_is_carried_to_its_end_where_its_caller_goes(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def life() -> int:
        begun, goes_on = asyncio.Event(), asyncio.Event()

        async def during() -> None:
            begun.set()
            await goes_on.wait()

        trying(monkeypatch, during)
        number = site.waiting()
        calling = asyncio.create_task(site.changes.reload())
        await begun.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        with pytest.raises(NodewiseError, match="another generation is being tried"):
            await site.changes.reload()
        goes_on.set()
        async with site.changing:
            return number

    number = asyncio.run(life())
    state = site.folder.state()
    assert (state.stable, state.candidate) == (number, 0)
    assert [each.closed for each in site.serving_states] == [False]
    assert site.application.tracks.stable is site.serving_states[0]


def test_a_trial_that_breaks_leaves_nothing_behind(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def during() -> None:
        raise RuntimeError("a fault of ours")

    trying(monkeypatch, during)
    site.waiting()
    with pytest.raises(RuntimeError, match="a fault of ours"):
        asyncio.run(site.changes.reload())
    assert [each.closed for each in site.serving_states] == [True]
    assert site.folder.state().candidate == 0


def test_a_full_disk_is_told_and_what_waits_goes_on_waiting(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    number = site.waiting()
    with monkeypatch.context() as patched:
        full(patched)
        with pytest.raises(NodewiseError, match="No space left on device") as caught:
            asyncio.run(site.changes.reload())
    assert caught.value.reason is Reason.STORE_UNAVAILABLE
    assert [each.closed for each in site.serving_states] == [True]
    assert site.folder.state().candidate == number
    assert asyncio.run(site.changes.reload()).outcome is Outcome.TAKEN


def test_a_trial_whose_report_cannot_be_kept_stands(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.waiting()

    def keep_report(*_: object) -> None:
        raise foldering.PluginsFolderError("no room")

    monkeypatch.setattr(PluginsFolder, "keep_report", keep_report)
    found = asyncio.run(site.changes.reload())
    assert found.outcome is Outcome.TAKEN
    assert found.trial.notices == ["the report of the trial cannot be stored: no room"]


def test_which_generation_may_be_a_canary(site: Site) -> None:
    def refused(number: int | None) -> str:
        with pytest.raises(NodewiseError) as caught:
            asyncio.run(site.changes.set_canary(number, 0.5))
        (violation,) = caught.value.violations
        assert violation.field == "generation"
        return violation.description

    assert "must be given" in refused(None)
    assert "found 0" in refused(0)
    assert "generation 9 does not exist" in refused(9)
    number = site.waiting()
    asyncio.run(site.changes.reload())
    assert f"found {number}" in refused(number)
    assert "must be given" in refused(None)
    site.waiting()
    found = asyncio.run(site.changes.set_canary(0, 0.5))  # another waits, and is not meant
    assert (found.outcome, found.number) == (Outcome.TAKEN, 0)


def test_files_are_read_and_written_away_from_the_event_loop(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    in_loop: list[str] = []

    def watched(module: Any, name: str) -> None:
        function = getattr(module, name)

        def passed_on(*arguments: Any, **more: Any) -> Any:
            if threading.current_thread() is threading.main_thread():
                in_loop.append(name)
            return function(*arguments, **more)

        monkeypatch.setattr(module, name, passed_on)

    async def life() -> None:
        await site.changes.reload()
        await site.changes.set_canary(second, 0.5)
        await site.changes.rollback()
        await site.changes.set_canary(second, 0.5)
        await site.changes.promote()
        await site.changes.rollback()
        await site.changes.wait_for_agreement(0.0)

    site.waiting()
    second = site.folder.add("by hand", ()).number
    for module, name in ((foldering, "replace_file"), (foldering, "_synced_folder"), (standings, "prints_of")):
        watched(module, name)
    for name in ("generation", "change", "reports"):
        watched(PluginsFolder, name)
    asyncio.run(life())
    assert in_loop == []


def test_what_no_new_process_could_load_is_not_taken(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[str, ...]] = [("its name is taken",), ()]
    restarts: list[int] = []
    changes = Changes(site, lambda: restarts.append(site.folder.state().stable))
    monkeypatch.setattr(changing, "load_failures", lambda *_: found.pop(0))
    monkeypatch.setattr(standings.Standing, "needs_new_processes", lambda *_: True)
    failed = site.waiting()
    reloaded = asyncio.run(changes.reload())
    assert (reloaded.outcome, reloaded.trial.failures) == (Outcome.FAILED, ["its name is taken"])
    assert (site.folder.state().stable, site.folder.state().candidate) == (0, 0)
    report = site.folder.report(failed)
    assert report is not None
    assert report.failures == ["its name is taken"]
    taken = site.waiting()
    assert asyncio.run(changes.reload()).outcome is Outcome.RESTARTING
    assert restarts == [taken]


def test_what_cannot_be_read_hides_nothing_else(tmp_path: Path) -> None:
    folder = PluginsFolder(tmp_path / "plugins")
    first, second = (folder.add("by hand", ()).number for _ in range(2))
    (broken,) = folder.path.rglob(f"{first}.json")
    broken.write_text("{", encoding="utf-8")
    assert [each.number for each in folder.generations()] == [second]


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "plugins").write_text("a file", encoding="utf-8")
    folder = PluginsFolder(tmp_path / "plugins")
    with pytest.raises(foldering.PluginsFolderError, match=r"plugins.*cannot be written"), folder.new_folder():
        pass


async def test_who_asks_while_the_process_follows_another_waits(site: Site) -> None:
    changes = Changes(site)
    async with site.changing:
        asked = asyncio.ensure_future(changes.reload())
        await asyncio.sleep(0)
        assert not asked.done()
        with pytest.raises(NodewiseError) as busy:
            await changes.reload()
    assert busy.value.reason == Reason.GENERATION_BUSY
    assert (await asked).outcome is Outcome.UNCHANGED
