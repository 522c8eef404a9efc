"""Settings as they are logged hold no secret, and they name what processes were told."""

from __future__ import annotations

import pytest

from nodewise.runtime.settings import Settings, redact


@pytest.mark.parametrize(
    "store",
    [
        "postgresql://nodewise:hunter2@db.example.org/nodewise",
        "postgresql://nodewise@db.example.org/nodewise?password=hunter2&sslmode=require",
        "postgresql:///nodewise?user=nodewise&password=hunter2",
        "mine://nodewise:hunter2@[2001:db8::1]:5432/nodewise",
    ],
)
def test_a_store_is_logged_without_its_password(store: str) -> None:
    shown = redact(Settings(store=store))
    assert "hunter2" not in str(shown)
    assert "nodewise" in shown["store"]


def test_settings_are_keys_whatever_is_set() -> None:
    """Long calls of a server failed when a setting was a mapping."""
    grant = {"certificates": {"scheduler": {"roles": ["read"]}}}
    assert len({Settings(), Settings(), Settings(**grant), Settings(**grant)}) == 2  # type: ignore[arg-type]
