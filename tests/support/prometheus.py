"""A real Prometheus that scrapes real servers, in a folder and on a port of its own."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.error import URLError

from patience import PATIENCE_S, wait_until

__all__ = ["Prometheus", "Queries"]


class Queries:
    """Queries of a Prometheus that runs; their start is when this object was made."""

    def __init__(self, address: str) -> None:
        self.address, self._began_s = address, time.time()

    def is_ready(self) -> bool:
        """Whether it answers queries: not while it reads its data."""
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=PATIENCE_S):
                return True
        except URLError:
            return False

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that an expression has now."""
        return self._ask("query", query=expression)

    def query_all(self, expression: str) -> list[dict[str, Any]]:
        """The series that an expression has had at any second since the start."""
        return self._ask("query_range", query=expression, start=self._began_s, end=time.time(), step=1)

    def alerts(self) -> set[str]:
        """Names of the alerts that have fired since the start."""
        return {each["metric"]["alertname"] for each in self.query_all('ALERTS{alertstate="firing"}')}

    def _ask(self, what: str, **parameters: object) -> list[dict[str, Any]]:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://{self.address}/api/v1/{what}?{query}", timeout=PATIENCE_S) as reply:
            series: list[dict[str, Any]] = json.load(reply)["data"]["result"]
        return series


class Prometheus(Queries):
    """Scrapes every second; stopped on leaving the context.

    Parameters
    ----------
    folder : Path
        For its settings and data.
    targets : mapping
        Job to HOST:PORT.
    rules : str
        The content of a rule file.
    labels : mapping
        Of every series.
    """

    def __init__(
        self,
        folder: Path,
        targets: Mapping[str, str],
        rules: str = "groups: []",
        labels: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        scrapes = [
            {"job_name": job, "static_configs": [{"targets": [target], "labels": dict(labels)}]}
            for job, target in targets.items()
        ]
        every = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        settings = {"global": every, "rule_files": ["rules.yml"], "scrape_configs": scrapes}
        (folder / "rules.yml").write_text(rules)
        (folder / "prometheus.yml").write_text(json.dumps(settings))  # JSON is YAML
        with socket.create_server(("127.0.0.1", 0)) as free:
            super().__init__(f"127.0.0.1:{free.getsockname()[1]}")
        self._log = (folder / "log").open("w")
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self.address}",
            ],
            stderr=self._log,
        )
        wait_until(self._is_up)

    def _is_up(self) -> bool:
        assert self._process.poll() is None, Path(self._log.name).read_text()
        return self.is_ready()

    def __enter__(self) -> Prometheus:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._log.close()
