"""What every store's tokens keep to: hashes alone, seen by all who share the store, ended for good."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest
from stores import Opener, refused

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles import tokens
from nodewise.profiles.store import ProfileStore
from nodewise.profiles.tokens import StoredToken, TokenLedger
from nodewise.runtime.identity.tokens import new_token


def ledger_of(store: ProfileStore) -> TokenLedger:
    assert store.tokens is not None
    return store.tokens


def made(
    *, roles: tuple[str, ...] = ("read",), prefixes: tuple[str, ...] = (), life_s: float | None = None
) -> StoredToken:
    return new_token("of a test", roles, prefixes, life_s)[1]


def test_what_is_added_is_found_again(store: ProfileStore) -> None:
    ledger = ledger_of(store)
    first, second = made(), made(roles=("ingest", "read"), prefixes=("team-a", "team-b/vision/"), life_s=60.0)
    before = ledger.version()
    ledger.add(first)
    ledger.add(second)
    version, found = ledger.all()
    assert version == ledger.version() != before
    assert {token.token_id: token for token in found} == {first.token_id: first, second.token_id: second}
    assert second.roles == ("read", "ingest")
    assert second.prefixes == ("team-a/", "team-b/vision/")
    assert first.expire_time_s == math.inf


def test_a_revoked_token_stays_so(store: ProfileStore) -> None:
    ledger, token = ledger_of(store), made()
    ledger.add(token)
    before = ledger.version()
    revoked = ledger.revoke(token.token_id)
    assert revoked.has_ended(time.time())
    assert ledger.version() != before
    after = ledger.version()
    assert ledger.revoke(token.token_id) == revoked
    assert ledger.version() == after  # it changed nothing
    refused(Reason.TOKEN_NOT_FOUND, ledger.revoke, "aaaaaaaaaaaa")


def test_tokens_move_no_profile_s_generation(store: ProfileStore) -> None:
    before = store.generation()
    ledger_of(store).add(made())
    assert store.generation() == before


def test_what_is_too_much_is_refused_and_what_ended_does_not_count(
    store: ProfileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = ledger_of(store)
    monkeypatch.setattr(tokens, "MOST_TOKENS", 2)
    ledger.add(made(life_s=1e-9))
    ledger.add(made())
    ledger.add(made())
    with pytest.raises(NodewiseError) as caught:
        ledger.add(made())
    assert caught.value.reason is Reason.QUOTA_EXCEEDED


def test_a_clock_that_is_years_ahead_for_a_while_takes_no_token(
    store: ProfileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, token, later = ledger_of(store), made(life_s=3600.0), made()
    ledger.add(token)
    with monkeypatch.context() as patched:
        patched.setattr(ledger, "_now", lambda: time.time() + 10 * 365 * 86_400.0)
        ledger.add(later)
    assert {each.token_id for each in ledger.all()[1]} == {token.token_id, later.token_id}


def test_what_ended_is_purged_when_somebody_asks(store: ProfileStore) -> None:
    ledger = ledger_of(store)
    expired, revoked, live, lasting = made(life_s=1e-9), made(), made(life_s=3600.0), made()
    for each in (expired, revoked, live, lasting):
        ledger.add(each)
    ledger.revoke(revoked.token_id)
    assert ledger.purge(time.time() - 60.0) == ()
    before = ledger.version()
    assert {each.token_id for each in ledger.purge(time.time() + 1.0)} == {expired.token_id, revoked.token_id}
    assert ledger.version() != before
    assert {each.token_id for each in ledger.all()[1]} == {live.token_id, lasting.token_id}


def test_all_who_share_a_store_see_changes(shared: Opener) -> None:
    one, other = shared(), shared()
    token = made()
    before = ledger_of(other).version()
    ledger_of(one).add(token)
    assert ledger_of(other).version() != before
    assert ledger_of(other).all()[1] == (token,)
    ledger_of(other).revoke(token.token_id)
    assert ledger_of(one).all()[1][0].has_ended(time.time())
    one.close()
    other.close()


def test_no_secret_is_in_the_file(tmp_path: Path) -> None:
    from nodewise.profiles.opening import open_store

    store = open_store(str(tmp_path / "store.db"))
    text, token = new_token("", ["read"], [], None)
    ledger_of(store).add(token)
    store.close()
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert token.token_id.encode() in held
    assert text.partition(f"{token.token_id}_")[2].encode() not in held
