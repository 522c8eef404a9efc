"""The page on deployment, command by command, on a bare Debian with a real systemd and Prometheus."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import pytest
from debian_machines import DebianMachine
from faults import CALL_BUDGET_S, SETTINGS, Faults, plugin_wheels
from fired_alerts import fire_alerts, hasty
from pages import ROOT, blocks_of
from patience import wait_until
from programs import needs
from prometheus import Queries

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(5400),
    needs("debootstrap", "systemd-nspawn"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

STATE = "var/lib/nodewise"
PAGE = "docs/guides/deploy.md"


class Unit:
    """The server as the page leaves it: a unit of systemd."""

    def __init__(self, machine: DebianMachine) -> None:
        self._machine = machine

    @property
    def pid(self) -> int:
        return self._machine.process("nodewise")

    def kill(self) -> None:
        """Not by a signal, after which systemd starts it again."""
        self._machine.run("systemctl stop nodewise")


class UnitFaults(Faults):
    """Faults of the server that the page deploys, asked over TLS with the page's token."""

    def __init__(self, machine: DebianMachine) -> None:
        checkout = machine.root / "root" / "nodewise"
        self._folder, self._store = machine.root / STATE / "faults", machine.root / STATE / "nodewise.db"
        self._folder.mkdir()
        self._listen, self.http, self.server = "localhost:50551", "localhost:50552", Unit(machine)
        self.credentials = grpc.composite_channel_credentials(
            grpc.ssl_channel_credentials((checkout / "tls.pem").read_bytes()),
            grpc.access_token_call_credentials((checkout / "admin.token").read_text().strip()),
        )
        plugin_wheels(machine.root / "root" / "wheels", Path(f"/{STATE}/faults"))
        settings = SETTINGS | {"hosts__call_budget_s": CALL_BUDGET_S, "hosts__start_patience_s": 60}
        lines = [f"NODEWISE_{name.upper()}={value}\n" for name, value in settings.items()]
        (machine.root / "etc/nodewise/environment").write_text("".join(lines))
        machine.run("/opt/nodewise/bin/pip install --no-index --no-deps wheels/*.whl\nsystemctl restart nodewise")


@pytest.fixture(scope="module")
def machine() -> Iterator[DebianMachine]:
    """A bare machine with a checkout."""
    with TemporaryDirectory(prefix="bare-debian-") as folder, DebianMachine(Path(folder)) as machine:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, listed.split("\0")):
            target = machine.root / "root" / "nodewise" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target, follow_symlinks=False)
        yield machine


def test_the_page_leads_from_a_bare_debian_to_alerts_that_fire(machine: DebianMachine) -> None:
    said = machine.run("".join(blocks_of(PAGE, "systemd", "sh")), "/root/nodewise")
    assert "localhost:50551 is ready" in said
    assert "predicted by queueing" in said
    wait_until(lambda: '"event":"restarted"' in machine.run("journalctl -u nodewise -o cat"))
    machine.run("systemd-analyze verify nodewise.service\nsystemctl is-active nodewise prometheus")
    seen = Queries("localhost:9090")
    wait_until(lambda: seen.query('up{job="nodewise"} == 1 and nodewise_store_up == 1'))
    machine.run("systemctl stop nodewise")
    wait_until(lambda: "NodewiseServerDown" in seen.alerts())  # after a minute, as the rules say

    folder = machine.root / "etc/prometheus"
    for name, changed in (("alerts.yaml", hasty), ("prometheus.yml", every_second)):
        (folder / name).write_text(changed((folder / name).read_text()))
    faults = UnitFaults(machine)
    machine.run("systemctl stop prometheus\nrm -r /var/lib/prometheus/metrics2/*\nsystemctl start prometheus")
    wait_until(seen.is_ready)
    fire_alerts(faults, Queries("localhost:9090"))


def every_second(configuration: str) -> str:
    return re.sub(r"(scrape|evaluation)_interval: \w+", r"\1_interval: 1s", configuration)
