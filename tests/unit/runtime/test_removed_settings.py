"""Settings that were removed are refused by name, wherever they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodewise.runtime.settings import SettingsError, load_settings


def test_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "nodewise.toml"
    path.write_text("recycle_bytes = 1\n")
    with pytest.raises(SettingsError, match=r"nodewise\.toml: setting recycle_bytes no longer exists"):
        load_settings(path)


def test_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODEWISE_WARM_SPARE", "true")
    with pytest.raises(SettingsError, match="environment: setting warm_spare no longer exists"):
        load_settings()
