"""The audit log: one line an entry, rotated by whoever likes, and told where it cannot be written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from nodewise.runtime.audit_log import AuditLog
from nodewise.runtime.logging import configure_logging
from nodewise.runtime.settings import SettingsError


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Nothing but errors is logged."""
    before = structlog.get_config()
    configure_logging("error")
    yield
    structlog.configure(**before)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    logs = [AuditLog(str(path)), AuditLog(str(path))]  # of two workers
    for number, log in enumerate(logs):
        log.write({"entry": number})
    path.rename(tmp_path / "audit.log.1")
    for number, log in enumerate(logs):
        log.write({"entry": 2 + number})
    assert [each["entry"] for each in lines((tmp_path / "audit.log.1").read_text())] == [0, 1]
    assert [each["entry"] for each in lines(path.read_text())] == [2, 3]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_full_disk_is_told_with_the_entry_and_how_many_were_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "audit.log"
    path.symlink_to("/dev/full")
    log = AuditLog(str(path))
    log.write({"entry": 1})
    log.write({"entry": 2})
    path.unlink()
    log.write({"entry": 3})
    told = lines(capsys.readouterr().err)
    assert [(each["event"], each["entry"], each["lost"]) for each in told] == [
        ("audit_log_not_written", {"entry": 1}, 1),
        ("audit_log_not_written", {"entry": 2}, 2),
    ]
    assert told[0]["error"] == "No space left on device"
    assert lines(path.read_text()) == [{"audit": True, "entries_lost": 2}, {"entry": 3}]


def test_without_a_file_entries_are_lines_of_the_log_whatever_its_level(capsys: pytest.CaptureFixture[str]) -> None:
    AuditLog("").write({"audit": True, "entry": 1})
    assert lines(capsys.readouterr().err) == [{"audit": True, "entry": 1}]


def test_a_file_that_cannot_be_had_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"setting audit_log: .*cannot be written"):
        AuditLog(str(tmp_path / "missing" / "audit.log"))
