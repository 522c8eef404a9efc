"""`nodewise tokens`: by a server as an admin, or in its store as who owns that; and what commands send with a call."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from programs import needs
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings, load_settings
from nodewise_cli.app import app

ROOT = Path(__file__).parents[2]


def ran(*arguments: str | Path, environment: dict[str, str] | None = None) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def document(*arguments: str | Path, environment: dict[str, str] | None = None) -> dict[str, Any]:
    result = ran("tokens", *arguments, "--json", environment=environment)
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of an admin of a server that speaks TLS and asks for tokens."""
    folder, authority = tmp_path_factory.mktemp("tokens"), Authority()
    certificate, key, roots = (folder / name for name in ("tls.pem", "tls.key", "roots.pem"))
    authority.write("server", certificate, key)
    roots.write_bytes(authority.pem)
    store = f"sqlite:{folder / 'store.db'}"
    made = ran("tokens", "create", "--role", "admin", "--store", store)
    assert "it is not shown again" in made.stderr
    (folder / "token").write_text(made.stdout)
    tls = {"certificate": str(certificate), "key": str(key)}
    with EmbeddedServer(Settings(store=store, grace_s=1.0, authentication=("tokens",), tls=tls, admin=True)) as server:
        yield {
            "NODEWISE_SERVER": server.target,
            "NODEWISE_TOKEN": f"@{folder / 'token'}",
            "NODEWISE_TLS_CA": str(roots),
            "store": store,
        }


def test_tokens_are_made_listed_and_revoked_by_a_server(access: dict[str, str]) -> None:
    life = ("--lifetime-days", "1", "--description", "recorders")
    made = document("create", "--role", "ingest", "--prefix", "team-a", *life, environment=access)
    token = made["token"]
    assert (token["roles"], token["prefixes"], token["description"]) == (["ingest"], ["team-a/"], "recorders")
    assert token["expires"] is not None
    listed = document("list", environment=access)["tokens"]
    assert [each["roles"] for each in listed] == [["admin"], ["ingest"]]
    assert made["bearer_token"].rpartition("_")[2] not in str(listed)
    assert document("list", "--store", access["store"]) == {"tokens": listed}  # the same, by who owns the store
    mine = {**access, "NODEWISE_TOKEN": made["bearer_token"]}
    refused = ran("tokens", "list", "--json", environment=mine)
    assert json.loads(refused.stderr)["error"]["reason"] == "PERMISSION_DENIED"
    assert ran("profiles", "list", environment=mine).exit_code != 0  # it may write, and not read
    assert document("revoke", token["token_id"], environment=access)["token"]["revoked"] is not None
    refused = ran("tokens", "list", "--json", environment=mine)
    assert json.loads(refused.stderr)["error"]["reason"] == "UNAUTHENTICATED"
    assert len(document("list", environment=access)["tokens"]) == 1
    assert len(document("list", "--ended", environment=access)["tokens"]) == 2
    shown = ran("tokens", "list", "--ended", environment=access).stdout
    assert token["token_id"] in shown
    assert "team-a/" in shown


def test_priors_are_listed_over_tls_with_a_token(access: dict[str, str]) -> None:
    assert ran("priors", "list", environment=access).exit_code == 0


def test_refusals_say_how_the_command_line_authenticates(access: dict[str, str], tmp_path: Path) -> None:
    nobody = {**access, "NODEWISE_TOKEN": ""}
    assert "--token @FILE or NODEWISE_TOKEN" in ran("profiles", "list", environment=nobody).stderr
    made = document("create", "--role", "ingest", "--role", "read", "--prefix", "team-a", environment=access)
    mine = {**access, "NODEWISE_TOKEN": made["bearer_token"]}
    table = tmp_path / "m5.csv"
    table.write_text("job,device,nodes,workers,steps_per_s\nm5,A100,1,8,9.7\n")
    refused = ran("ingest", table, environment=mine)
    assert "the profile 'm5', which is outside of the caller's prefixes (team-a/)" in refused.stderr
    assert ran("ingest", table, "--prefix", "team-a", environment=mine).exit_code == 0
    assert "team-a/m5" in ran("profiles", "list", environment=mine).stdout


def test_who_owns_the_store_revokes_too(access: dict[str, str]) -> None:
    made = document("create", "--role", "read", "--lifetime-days", "0", "--store", access["store"])
    assert made["token"]["expires"] is None
    assert made["token"]["prefixes"] == []
    assert ran("profiles", "list", environment={**access, "NODEWISE_TOKEN": made["bearer_token"]}).exit_code == 0
    told = ran("tokens", "revoke", made["token"]["token_id"], "--store", access["store"])
    assert "is revoked" in told.stdout


def test_who_owns_the_store_forgets_what_ended(tmp_path: Path) -> None:
    store = ("--store", f"sqlite:{tmp_path / 'store.db'}")
    made = [document("create", "--role", "read", *store)["token"]["token_id"] for _ in range(2)]
    document("revoke", made[0], *store)
    assert document("purge", *store) == {"tokens": []}  # it ended a moment ago
    forgotten = document("purge", "--ended-days", "0", *store)["tokens"]
    assert [each["token_id"] for each in forgotten] == [made[0]]
    assert [each["token_id"] for each in document("list", "--ended", *store)["tokens"]] == [made[1]]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("create", "--role", "root"), "--role"),
        (("create", "--role", "read", "--lifetime-days", "-1"), "--lifetime-days"),
        (("create", "--role", "read", "--store", "memory:"), "--store"),
        (("create", "--role", "read"), "--prefix"),
        (("create", "--role", "read", "--prefix", "*", "--lifetime-days", "0"), "--lifetime-days"),
        (("purge",), "--store"),
        (("create", "--role", "read", "--prefix", "/", "--store", "STORE"), "prefixes"),
        (("revoke", "nobody", "--store", "STORE"), "nobody"),
        (("list", "--tls-ca", "none.pem"), "--tls-ca"),
        (("list", "--token", "@none"), "--token"),
        (("list", "--tls-cert", "one.pem"), "--tls-key"),
        (("list", "--store", "postgres://host/db?x=secret"), "store"),
    ],
)
def test_what_is_wrong_is_named(access: dict[str, str], arguments: tuple[str, ...], named: str) -> None:
    result = ran("tokens", *(access["store"] if each == "STORE" else each for each in arguments))
    assert result.exit_code == 2
    assert named in result.stderr
    assert "secret" not in result.stderr


def test_health_is_asked_over_tls_without_a_token(access: dict[str, str]) -> None:
    server, roots = access["NODEWISE_SERVER"], access["NODEWISE_TLS_CA"]
    assert ran("health", "--server", server, "--tls-ca", roots).stdout == "SERVING\n"


def test_a_server_of_the_command_s_own_asks_nobody(access: dict[str, str]) -> None:
    """Whatever the environment says of another one."""
    environment = {
        "NODEWISE_AUTHENTICATION": "tokens",
        "NODEWISE_TLS__CERTIFICATE": "none.pem",
        "NODEWISE_TLS__KEY": "none.key",
        "NODEWISE_TOKEN": access["NODEWISE_TOKEN"],
    }
    assert ran("estimators", environment=environment).exit_code == 0


@needs("openssl")
def test_the_worked_example_of_the_guide_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the certificate to a revoked token, as `docs/guides/security.md` has it."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "guides" / "security.md").read_text(encoding="utf-8")
    certificate, first, others = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    settings = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0]
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    subprocess.run(["sh", "-e", "-c", certificate], check=True, capture_output=True)
    for there, here in (("/var/lib/nodewise/", ""), ("/etc/nodewise/", "")):
        settings = settings.replace(there, f"{tmp_path}/{here}")
    (tmp_path / "nodewise.toml").write_text(settings)
    creating, serving = first.splitlines()
    assert serving == "nodewise serve --config nodewise.toml"
    command, _, output = creating.removeprefix("nodewise ").partition(" > ")
    (tmp_path / output).write_text(ran(*shlex.split(command)).stdout)
    with EmbeddedServer(load_settings(tmp_path / "nodewise.toml")) as server:
        exported, *commands = others.splitlines()
        target = server.target.replace("127.0.0.1", "localhost")
        for line in shlex.split(exported)[1:]:
            name, _, value = line.partition("=")
            monkeypatch.setenv(name, value.replace("nodewise.example:50551", target))
        for command in commands:
            arguments = shlex.split(command)[1:]
            if "revoke" in arguments:
                arguments[-1] = document("list")["tokens"][-1]["token_id"]
            assert ran(*arguments).exit_code == 0
        assert len(document("list")["tokens"]) == 2
        monkeypatch.setenv("NODEWISE_TOKEN", (tmp_path / output).read_text().strip())
        program = program.replace("nodewise.example:50551", target).replace("/run/secrets/nodewise", output)
        names: dict[str, Any] = {}
        exec(compile(program, "security.md", "exec"), names)
        with names["client"] as client:
            assert list(client.list_profiles()) == []
