"""Who calls, by what a call brings: tokens of the store, JSON Web Tokens, and what is kept of both."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import jwt as pyjwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.principal import Role
from nodewise.profiles.tokens import StoredToken
from nodewise.runtime.identity import callers as callers_module
from nodewise.runtime.identity.callers import Callers
from nodewise.runtime.identity.checks import check_identity
from nodewise.runtime.identity.jwt import KEYS_KEPT_S, JwtReader, KeysError
from nodewise.runtime.identity.settings import JwtSettings
from nodewise.runtime.identity.tokens import BELIEVED_S, TokenBook, UnknownTokenError, holds, new_token, split_token
from nodewise.runtime.settings import Settings, SettingsError, load_settings, redact

ISSUER, AUDIENCE = "https://issuer.test", "nodewise"
Result = TypeVar("Result")


class Ledger:
    """Tokens in memory, which may not be there."""

    def __init__(self, *tokens: StoredToken) -> None:
        self.tokens, self.changes, self.looks, self.lost = list(tokens), 1, 0, False

    def version(self) -> int:
        self.looks += 1
        if self.lost:
            raise NodewiseError(Reason.STORE_UNAVAILABLE, "lost")
        return self.changes

    def all(self) -> tuple[int, Sequence[StoredToken]]:
        return self.changes, tuple(self.tokens)

    def add(self, token: StoredToken) -> None:
        self.tokens.append(token)
        self.changes += 1

    def purge(self, ended_before_s: float) -> Sequence[StoredToken]:
        raise NotImplementedError

    def revoke(self, token_id: str) -> StoredToken:
        (found,) = (each for each in self.tokens if each.token_id == token_id)
        self.tokens[self.tokens.index(found)] = revoked = replace(found, revoke_time_s=time.time())
        self.changes += 1
        return revoked


def cause(call: Callable[[], object]) -> str:
    with pytest.raises(NodewiseError) as caught:
        call()
    assert caught.value.reason is Reason.UNAUTHENTICATED
    return caught.value.metadata["cause"]


# --- tokens of the store -------------------------------------------------------------------------------------------


def test_a_token_is_random_and_only_its_hash_is_kept() -> None:
    texts = {new_token("", ["read"], [], None)[0] for _ in range(100)}
    assert len(texts) == 100
    text, kept = new_token("of ci", ["admin", "read"], ["b", "a/", "a"], 60.0)
    token_id, secret = split_token(text) or ("", "")
    assert token_id == kept.token_id
    assert len(secret) * 6 >= 256  # bits
    assert holds(kept, secret)
    assert not holds(kept, secret[::-1])
    assert secret not in repr(kept)
    assert kept.prefixes == ("a/", "b/")
    assert kept.roles == (Role.READ, Role.ADMIN)
    assert split_token(text + "x") is None
    assert split_token(text[:-1]) is None


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"roles": []}, "roles"),
        ({"roles": ["root"]}, "roles"),
        ({"prefixes": [""]}, "prefixes"),
        ({"prefixes": ["a//b"]}, "prefixes"),
        ({"prefixes": ["a"] * 65}, "prefixes"),
        ({"description": "x" * 257}, "description"),
        ({"life_s": 0.0}, "ttl"),
        ({"life_s": float("nan")}, "ttl"),
    ],
)
def test_what_no_token_may_be_is_refused(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(NodewiseError) as caught:
        new_token(**{"description": "", "roles": ["read"], "prefixes": [], "life_s": None} | wrong)
    assert caught.value.violations[0].field == field


def test_a_book_knows_tokens_for_as_long_as_its_store_was_heard_of() -> None:
    now_s = [0.0]
    text, kept = new_token("", ["read"], ["a"], None)
    ledger = Ledger(kept)
    book = TokenBook(ledger, lambda: now_s[0])
    with pytest.raises(NodewiseError):
        book.principal(text)  # nothing is known yet
    assert book.refresh()
    assert not book.refresh()
    principal = book.principal(text)
    assert (principal.subject, principal.prefixes) == (f"token:{kept.token_id}", ("a/",))
    now_s[0] = BELIEVED_S
    assert book.principal(text) == principal
    now_s[0] += 1.0
    with pytest.raises(NodewiseError) as caught:
        book.principal(text)
    assert caught.value.reason is Reason.STORE_UNAVAILABLE
    ledger.revoke(kept.token_id)
    assert book.refresh()
    assert cause(lambda: book.principal(text)) == "revoked"
    assert cause(lambda: book.principal(text[:-1] + "~")) == "unknown"
    with pytest.raises(UnknownTokenError):
        book.principal(new_token("", ["read"], [], None)[0])


# --- what is kept --------------------------------------------------------------------------------------------------


def run(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    return asyncio.run(work())


def test_a_token_is_checked_once_and_again_after_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    text, kept = new_token("", ["read"], [], None)
    ledger, book = (found := Ledger(kept)), TokenBook(found)
    checked: list[str] = []
    known = book.principal
    monkeypatch.setattr(book, "principal", lambda text: checked.append(text) or known(text))

    async def work() -> None:
        callers = Callers(book, None, None)
        await callers.look()
        for _ in range(3):
            await callers.bearer(f"Bearer {text}")
        assert len(checked) == 1
        epoch = callers.epoch
        ledger.revoke(kept.token_id)
        await callers.look()
        assert callers.epoch != epoch
        with pytest.raises(NodewiseError, match="revoked"):
            await callers.bearer(f"bearer {text}")
        callers.end()

    run(work)


def test_what_is_kept_is_bounded_and_ends_with_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers_module, "MOST_KEPT", 2)
    made = [new_token("", ["read"], [], None) for _ in range(4)]
    short, brief = new_token("", ["read"], [], 3600.0)
    ledger = Ledger(brief, *(kept for _, kept in made))

    async def work() -> None:
        callers = Callers(TokenBook(ledger), None, None)
        await callers.look()
        for text, _ in made:
            await callers.bearer(f"Bearer {text}")
        assert len(callers._principals) == 2
        await callers.bearer(f"Bearer {short}")
        now_s = time.time()
        monkeypatch.setattr(time, "time", lambda: now_s + 3601.0)
        with pytest.raises(NodewiseError, match="expired"):
            await callers.bearer(f"Bearer {short}")
        callers.end()

    run(work)


def test_strangers_together_cost_one_look_at_the_store() -> None:
    ledger = Ledger()

    async def work() -> None:
        callers = Callers(TokenBook(ledger), None, None)
        await callers.look()
        looks = ledger.looks
        unknown = [new_token("", ["read"], [], None)[0] for _ in range(50)]
        told = await asyncio.gather(*(callers.bearer(f"Bearer {each}") for each in unknown), return_exceptions=True)
        assert all(isinstance(each, NodewiseError) and each.metadata["cause"] == "unknown" for each in told)
        assert ledger.looks <= looks + 2
        callers.end()

    run(work)


def test_a_store_that_is_gone_takes_nobody_s_rights_for_a_while() -> None:
    text, kept = new_token("", ["read"], [], None)
    ledger = Ledger(kept)

    async def work() -> None:
        callers = Callers(TokenBook(ledger), None, None)
        await callers.begin()
        ledger.lost = True
        await callers.bearer(f"Bearer {text}")
        with pytest.raises(NodewiseError) as caught:
            await callers.bearer(f"Bearer {new_token('', ['read'], [], None)[0]}")
        assert caught.value.reason is Reason.UNAUTHENTICATED
        callers.end()

    run(work)


# --- JSON Web Tokens -----------------------------------------------------------------------------------------------


class Issuer:
    """Signs tokens, and writes the file of its public keys."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.keys: dict[str, Any] = {}

    def add(self, key_id: str, kind: str) -> None:
        self.keys[key_id] = {
            "RS256": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
            "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
            "EdDSA": ed25519.Ed25519PrivateKey.generate,
        }[kind]()
        self.write()

    def write(self) -> None:
        algorithms: dict[str, Any] = {"rsa": pyjwt.algorithms.RSAAlgorithm, "ec": pyjwt.algorithms.ECAlgorithm}
        keys = []
        for key_id, key in self.keys.items():
            kind = "rsa" if isinstance(key, rsa.RSAPrivateKey) else "ec"
            made = algorithms[kind] if not isinstance(key, ed25519.Ed25519PrivateKey) else pyjwt.algorithms.OKPAlgorithm
            keys.append(json.loads(made.to_jwk(key.public_key())) | {"kid": key_id, "use": "sig"})
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps({"keys": keys}))
        beside.replace(self.path)

    def token(self, key_id: str, algorithm: str, **claims: Any) -> str:
        told = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": time.time() + 600.0} | claims
        held = {name: value for name, value in told.items() if value is not None}
        return pyjwt.encode(held, self.keys[key_id], algorithm, headers={"kid": key_id})


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    made = Issuer(tmp_path / "keys.json")
    made.add("one", "ES256")
    return made


def reader(issuer: Issuer, **settings: Any) -> JwtReader:
    return JwtReader(JwtSettings(keys=str(issuer.path), issuer=ISSUER, audience=AUDIENCE, **settings))


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_claims_become_roles_and_prefixes(issuer: Issuer, algorithm: str) -> None:
    issuer.add("two", algorithm)
    expires_s = time.time() + 60.0
    text = issuer.token(
        "two",
        algorithm,
        exp=expires_s,
        scope="openid nodewise:read profile",
        nodewise_roles=["ingest", "other"],
        nodewise_prefixes=["team-a", "team-b/"],
    )
    principal = reader(issuer).principal(text)
    assert principal.subject == "jwt:alice"
    assert principal.roles == {Role.READ, Role.INGEST}
    assert principal.prefixes == ("team-a/", "team-b/")
    assert principal.expire_time_s == pytest.approx(expires_s + 30.0, abs=1.0)


def test_what_is_not_claimed_is_not_given(issuer: Issuer) -> None:
    bare = reader(issuer).principal(issuer.token("one", "ES256"))
    assert (bare.roles, bare.prefixes) == (frozenset(), ())
    own = {"roles_claims": ("groups",), "prefixes_claim": "teams", "prefixes": ("shared",)}
    told = reader(issuer, **own).principal(issuer.token("one", "ES256", groups=["read"], scope="admin"))
    assert (told.roles, told.prefixes) == ({Role.READ}, ("shared/",))
    told = reader(issuer, **own).principal(issuer.token("one", "ES256", teams="a *"))
    assert told.everywhere
    for odd in (7, {"read": True}, [["read"]], None):
        assert not reader(issuer).principal(issuer.token("one", "ES256", nodewise_roles=odd)).roles


@pytest.mark.parametrize("claim", ["scope", "scp"])
def test_words_that_all_services_of_an_issuer_share_give_no_roles(issuer: Issuer, claim: str) -> None:
    known = reader(issuer, roles_claims=("nodewise_roles", claim))
    for words in ("admin", "openid read ingest schedule admin", ["admin"]):
        assert known.principal(issuer.token("one", "ES256", **{claim: words})).roles == frozenset()
    assert known.principal(issuer.token("one", "ES256", **{claim: "nodewise:admin"})).roles == {Role.ADMIN}
    assert known.principal(issuer.token("one", "ES256", nodewise_roles="admin")).roles == {Role.ADMIN}


@pytest.mark.parametrize(
    "claims",
    [
        *({"sub": subject} for subject in ("", "   ", 7, ["alice"])),
        *({"exp": moment} for moment in ("4102444800", [2**40], 1e400)),
        *({name: "1700000000"} for name in ("nbf", "iat")),
    ],
    ids=str,
)
def test_claims_of_a_type_that_the_standard_does_not_allow_are_refused(issuer: Issuer, claims: dict[str, Any]) -> None:
    told = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": time.time() + 600.0} | claims
    # By hand: PyJWT would not encode some of them.
    key = issuer.keys["one"]
    text = pyjwt.PyJWS().encode(json.dumps(told).encode(), key, "ES256", headers={"kid": "one"})
    assert cause(lambda: reader(issuer).principal(text)) == "unknown"


def hmac_signed(text: str, public_key: str) -> str:
    """The old trick: a public key taken for a shared secret."""

    def encoded(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    signed = f"{encoded(json.dumps({'alg': 'HS256', 'kid': 'one'}).encode())}.{text.split('.')[1]}"
    return f"{signed}.{encoded(hmac.digest(public_key.encode(), signed.encode(), 'sha256'))}"


def test_tokens_that_are_not_believed(issuer: Issuer, tmp_path: Path) -> None:
    stranger = Issuer(tmp_path / "other.json")
    stranger.add("one", "ES256")
    issuer.add("rsa", "RS256")
    known = reader(issuer)

    def told(text: str) -> str:
        return cause(lambda: known.principal(text))

    assert told(issuer.token("one", "ES256", exp=time.time() - 60.0)) == "expired"
    public = json.dumps(json.loads(issuer.path.read_text())["keys"][0])
    forged = [
        stranger.token("one", "ES256"),  # another's signature under a key's name
        issuer.token("one", "ES256", iss="https://other.test"),
        issuer.token("one", "ES256", aud="another service"),
        *(issuer.token("one", "ES256", **{claim: None}) for claim in ("exp", "iss", "aud", "sub")),
        issuer.token("one", "ES256", nbf=time.time() + 600.0),
        issuer.token("rsa", "PS256"),  # no algorithm of the settings
        pyjwt.encode({"iss": ISSUER, "aud": AUDIENCE, "sub": "a", "exp": time.time() + 60}, None, "none"),
        hmac_signed(issuer.token("one", "ES256"), public),
        issuer.token("one", "ES256")[:-4],
        "no.such.token",
        "e30." * 10_000,
        "",
    ]
    assert [told(text) for text in forged] == ["unknown"] * len(forged)


def test_keys_are_read_again_and_broken_ones_are_not_taken(issuer: Issuer, logs: list[Any]) -> None:
    known = reader(issuer)
    before = issuer.token("one", "ES256")
    issuer.add("two", "ES256")
    assert cause(lambda: known.principal(issuer.token("two", "ES256"))) == "unknown"
    assert known.refresh()
    assert not known.refresh()
    assert known.principal(issuer.token("two", "ES256")).subject == "jwt:alice"
    for broken in (b"", b"{}", b'{"keys": []}', b'{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}'):
        issuer.path.write_bytes(broken)
        os.utime(issuer.path, ns=(0, int.from_bytes(os.urandom(6), "big")))
        assert not known.refresh()
        assert known.principal(before).subject == "jwt:alice"
    assert [each["event"] for each in logs if each["log_level"] == "error"] == ["jwt_keys_kept"] * 4
    with pytest.raises(KeysError):
        reader(issuer)


@pytest.mark.parametrize("content", [None, b"{}"], ids=["gone", "broken"])
def test_keys_whose_file_is_of_no_use_end_after_a_while(issuer: Issuer, logs: list[Any], content: bytes | None) -> None:
    now_s = [0.0]
    settings = JwtSettings(keys=str(issuer.path), issuer=ISSUER, audience=AUDIENCE)
    known, text = JwtReader(settings, lambda: now_s[0]), issuer.token("one", "ES256")
    issuer.path.unlink()
    if content is not None:
        issuer.path.write_bytes(content)
    assert not known.refresh()
    now_s[0] = KEYS_KEPT_S - 1.0
    assert not known.refresh()
    assert known.principal(text).subject == "jwt:alice"
    now_s[0] = KEYS_KEPT_S
    assert known.refresh()
    assert not known.refresh()
    assert cause(lambda: known.principal(text)) == "unknown"
    assert [each["event"] for each in logs] == ["jwt_keys_kept", "jwt_keys_dropped"]
    issuer.write()
    assert known.refresh()
    assert known.principal(text).subject == "jwt:alice"


# --- settings ------------------------------------------------------------------------------------------------------

TLS = {"certificate": "tls.pem", "key": "tls.key"}
JWT = {"keys": "keys.json", "issuer": ISSUER, "audience": AUDIENCE}


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        ({"listen": "0.0.0.0:1"}, "tls.certificate"),
        ({"listen": "[::]:1"}, "allow_plaintext"),
        ({"listen": "10.0.0.1:1", "tls": TLS}, "allow_anonymous"),
        ({"listen": "10.0.0.1:1", "authentication": ["tokens"]}, "allow_plaintext"),
        ({"listen": "10.0.0.1:1", "tls": TLS, "allow_anonymous": True, "admin": True}, "setting admin"),
        ({"tls": {"certificate": "tls.pem"}}, "tls.key"),
        ({"store": "memory:", "authentication": ["tokens"]}, "setting authentication"),
        ({"tls": {"key": "tls.key"}}, "tls.certificate"),
        ({"tls": {"client_authorities": "roots.pem"}}, "tls.client_authorities"),
        ({"authentication": ["jwt"]}, "jwt.keys"),
        ({"authentication": ["jwt"], "jwt": JWT | {"audience": ""}}, "jwt.audience"),
        ({"authentication": ["certificates"], "tls": TLS}, "tls.client_authorities"),
        (
            {"authentication": ["certificates"], "tls": TLS | {"client_authorities": "roots.pem"}},
            "setting certificates",
        ),
    ],
)
def test_nobody_is_let_in_by_an_oversight(stated: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError) as caught:
        check_identity(Settings(**stated))
    assert named in str(caught.value)


@pytest.mark.parametrize(
    "stated",
    [
        {},
        {"listen": "localhost:0", "admin": True},
        {"listen": "[::1]:0"},
        {"listen": "0.0.0.0:1", "allow_plaintext": True, "allow_anonymous": True},
        {"listen": "0.0.0.0:1", "tls": TLS, "authentication": ["tokens"], "admin": True},
        {"listen": "0.0.0.0:1", "tls": TLS, "authentication": ["jwt"], "jwt": JWT},
        {"listen": "0.0.0.0:1", "tls": TLS | {"client_authorities": "roots.pem"}},
    ],
)
def test_what_is_said_in_full_is_taken(stated: dict[str, Any]) -> None:
    check_identity(Settings(**stated))


def test_settings_come_from_the_environment_and_hold_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("AUTHENTICATION", "tokens,jwt"),
        ("JWT__KEYS", "keys.json"),
        ("JWT__ALGORITHMS", "ES256,EdDSA"),
        ("TLS__CERTIFICATE", "tls.pem"),
        ("CERTIFICATES", '{"ci": {"roles": ["ingest"], "prefixes": ["ci"]}}'),
        ("TOKEN", "nodewise_of_a_client"),
        ("TLS_CA", "roots.pem"),
    ):
        monkeypatch.setenv(f"NODEWISE_{name}", value)
    found = load_settings()
    assert found.authentication == ("tokens", "jwt")
    assert found.jwt.algorithms == ("ES256", "EdDSA")
    assert found.tls.certificate == "tls.pem"
    assert found.certificates["ci"].roles == (Role.INGEST,)
    assert "nodewise_of_a_client" not in str(redact(found))
    with pytest.raises(SettingsError, match=r"jwt\.algorithms"):
        load_settings(jwt={"algorithms": ["HS256"]})
