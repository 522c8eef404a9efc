"""The folder `deploy`: the health check of the image, the unit of systemd, and names that must fit the code."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import textwrap
import threading
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from certificates import Authority
from patience import PATIENCE_S
from serving import COMMAND, ServerProcess, Stubs, inline

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.identity.checks import check_identity
from nodewise.runtime.metrics import COUNTERS
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import prediction_service_pb2

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
UNIT = (DEPLOY / "nodewise.service").read_text(encoding="utf-8")


def health_check(environment: Mapping[str, str]) -> tuple[int, str]:
    """Run it as the image does; its exit status and what it says."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", DEPLOY / "healthcheck.py"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr.strip()


def tls_of(folder: Path, *, mutual: bool) -> dict[str, str]:
    """Settings of TLS, and their files."""
    certificate, key, authorities = (folder / name for name in ("tls.crt", "tls.key", "ca.crt"))
    authority = Authority()
    authority.write("server", certificate, key)
    authorities.write_bytes(authority.pem)
    files = {"certificate": str(certificate), "key": str(key)}
    return files | ({"client_authorities": str(authorities)} if mutual else {})


@pytest.mark.parametrize("tls", [None, "server", "mutual"])
def test_the_health_check_asks_a_server_whatever_protects_it(tls: str | None, tmp_path: Path) -> None:
    files = {} if tls is None else tls_of(tmp_path, mutual=tls == "mutual")
    with EmbeddedServer(Settings(store="memory:", http="127.0.0.1:0", grace_s=1.0, tls=files)) as server:
        http = server.http_target.replace("127.0.0.1", "0.0.0.0")
        environment = {"NODEWISE_HTTP": http} | {f"NODEWISE_TLS__{name.upper()}": path for name, path in files.items()}
        assert health_check(environment) == (0, "")
        settings = tmp_path / "nodewise.toml"
        lines = [f'http = "{http}"', "[tls]", *(f'{name} = "{path}"' for name, path in files.items())]
        settings.write_text("\n".join(lines))
        assert health_check({"NODEWISE_CONFIG": str(settings)}) == (0, "")
    status, says = health_check(environment)
    assert status == 1
    assert says.startswith(f"{server.http_target}: ")


@pytest.fixture
def draining() -> Iterator[int]:
    """The port of somebody who answers one request as a server that stops does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def test_a_server_that_is_not_to_be_asked_is_unhealthy(draining: int) -> None:
    status, says = health_check({"NODEWISE_HTTP": f"127.0.0.1:{draining}"})
    assert (status, says) == (1, f"127.0.0.1:{draining}: HTTP/1.1 503 Service Unavailable")


@pytest.mark.parametrize("http", ["off", ""])
def test_without_http_the_health_check_says_what_it_needs(http: str) -> None:
    assert health_check({"NODEWISE_HTTP": http}) == (1, f"the setting http is {http!r}; this check needs HOST:PORT")


def test_every_setting_that_is_named_exists() -> None:
    """An unknown variable is ignored by the server, and would be believed to be set."""
    known = set()
    for name, field in Settings.model_fields.items():
        inner = getattr(field.annotation, "model_fields", None)
        known |= {f"NODEWISE_{each}".upper() for each in ([name] if inner is None else [f"{name}__{i}" for i in inner])}
    named = {
        variable
        for file in DEPLOY.rglob("*")
        if file.is_file()
        for variable in re.findall(r"NODEWISE_[A-Z_]+[A-Z]", file.read_text(encoding="utf-8"))
    }
    clients = {
        variable
        for folder in ("clients/go", "integrations/kubernetes/cmd")
        for file in (ROOT / folder).rglob("*.go")
        for variable in re.findall(r'os\.Getenv\("(NODEWISE_\w+)"\)', file.read_text(encoding="utf-8"))
    }
    assert named - known - clients <= {"NODEWISE_CONFIG", "NODEWISE_PORT"}
    assert named >= {"NODEWISE_HTTP", "NODEWISE_TOKEN_FILE"}


def test_the_autoscaler_asks_for_the_metric_that_the_adapter_makes_of_one_of_the_server() -> None:
    adapter = (DEPLOY / "prometheus" / "adapter.yaml").read_text(encoding="utf-8")
    template = (DEPLOY / "helm" / "templates" / "availability.yaml").read_text(encoding="utf-8")
    (name,) = re.findall(r"name: \{as: (\w+)\}", adapter)
    assert re.findall(r"metric: \{name: (\w+)\}", template) == [name]
    (series,) = re.findall(r"seriesQuery: (\w+)_total\{", adapter)
    assert series in {counter for counter, *_ in COUNTERS}


def test_the_image_takes_files_that_exist_and_are_let_in() -> None:
    admitted = [
        line[1:]
        for line in (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    ]
    copied = [
        path for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE) for path in line.split()
    ]
    assert len(copied) > 10
    for path in copied:
        assert (ROOT / path).exists(), path
        assert any(path == each or path.startswith(f"{each}/") for each in admitted), path


def test_every_extra_of_the_image_is_one_and_pinned() -> None:
    (extras,) = re.findall(r'^ARG EXTRAS="(.*)"$', DOCKERFILE, re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    everything = {
        line for line in (ROOT / "requirements" / "dev.txt").read_text().splitlines() if re.match(r"[a-z].*==", line)
    }
    for extra in extras.split():
        assert extra in project["optional-dependencies"]
        pins = [line for line in (ROOT / "requirements" / f"{extra}.txt").read_text().splitlines() if "==" in line]
        assert pins
        # What is tested is what ships.
        assert {pin.split(" ")[0] for pin in pins} <= {pin.split(" ")[0] for pin in everything}


def test_the_settings_of_the_base_are_such_and_need_nothing_but_its_secrets() -> None:
    base = (DEPLOY / "kustomize" / "base" / "nodewise.yaml").read_text(encoding="utf-8")
    (document,) = re.findall(r"nodewise\.toml: \|\n((?: {4}.*\n|\n)+)", base)
    settings = Settings(
        listen="0.0.0.0:50551",
        store="postgresql://nodewise@db.example.org/nodewise",
        tls={"certificate": "tls.crt", "key": "tls.key"},
        **tomllib.loads(textwrap.dedent(document)),
    )
    check_identity(settings)
    (seconds,) = re.findall(r"terminationGracePeriodSeconds: (\d+)", base)
    assert int(seconds) > settings.drain_delay_s + settings.grace_s + 5.0
    (ports,) = re.findall(r"NODEWISE_LISTEN=0\.0\.0\.0:(\d+) NODEWISE_HTTP=0\.0\.0\.0:(\d+)", DOCKERFILE)
    assert re.findall(r"containerPort: (\d+)", base) == list(ports)


def test_a_stop_has_the_time_that_the_server_takes() -> None:
    (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    compose = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    (of_compose,) = re.findall(r"stop_grace_period: (\d+)s", compose)
    settings = Settings()
    least = settings.drain_delay_s + settings.grace_s + 5.0
    assert int(seconds) > least
    assert int(of_compose) > least


def test_the_server_reports_to_systemd_when_it_answers_and_when_it_stops(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE_S)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        with ServerProcess("--store", "memory:", environment=environment) as server:
            assert manager.recv(100) == b"READY=1"
            with Stubs(server.target) as stubs:
                stubs.prediction.Predict(prediction_service_pb2.PredictRequest(profile=inline()), timeout=PATIENCE_S)
        assert manager.recv(100) == b"STOPPING=1"


def test_the_unit_lets_plugin_hosts_restrict_themselves() -> None:
    """`@system-service` lacks these system calls, and a host without them would silently read more files."""
    allowed = {name for line in re.findall(r"^SystemCallFilter=(.*)$", UNIT, re.MULTILINE) for name in line.split()}
    assert allowed >= {"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_unit_is_one_and_exposes_little(tmp_path: Path) -> None:
    unit = tmp_path / "nodewise.service"
    unit.write_text(UNIT.replace("/opt/nodewise/bin/nodewise", COMMAND[0]))
    verified = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    # 0 to 10: 2 is systemd's own bound between "OK" and what is worth a look.
    secured = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert secured.returncode == 0, secured.stdout
