"""Alerts on a real Prometheus that scrapes a real server under one fault after the other."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from faults import Faults
from fired_alerts import RULES, alert_names, fire_alerts, hasty
from programs import needs
from prometheus import Prometheus

pytestmark = [pytest.mark.long, needs("prometheus", "promtool")]

ROOT = Path(__file__).resolve().parents[2]


def queries() -> dict[str, str]:
    """Queries of the dashboard, the page on observability and the autoscaler, by where they stand."""
    panels = json.loads((ROOT / "deploy" / "grafana" / "nodewise.json").read_text())["panels"]
    page = (ROOT / "docs" / "guides" / "observability.md").read_text()
    rows = re.findall(r"^\| ([^|]*) \| `(.*)` \|$", page, re.MULTILINE)
    adapter = RULES.with_name("adapter.yaml").read_text()
    (series,) = re.findall(r"seriesQuery: (\w+)", adapter)
    (autoscaled,) = re.findall(r"metricsQuery: (.*)", adapter)
    # As prometheus-adapter fills it in for the pods of a Deployment.
    for part, text in (("GroupBy", "pod"), ("Series", series), ("LabelMatchers", 'namespace="n",pod=~"a|b"')):
        autoscaled = autoscaled.replace(f"<<.{part}>>", text)
    return {
        "autoscaler": f"{autoscaled} > 0",
        **{f"{each['title']} {i}": query["expr"] for each in panels for i, query in enumerate(each.get("targets", []))},
        **{question: query.replace("\\|", "|") for question, query in rows if "nodewise_" in query},
    }


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_finds_nothing_to_say() -> None:
    promtool("check", "rules", RULES)
    promtool("test", "rules", RULES.with_name("alerts_test.yaml"))


def test_every_alert_has_an_entry_in_the_runbook() -> None:
    page = (ROOT / "docs" / "guides" / "runbook.md").read_text()
    assert set(re.findall(r"^### (\w+)$", page, re.MULTILINE)) == alert_names()
    links = re.findall(r"runbook: docs/guides/runbook\.md#(\w+)", RULES.read_text())
    assert links == [name.lower() for name in re.findall(r"- alert: (\w+)", RULES.read_text())]


def test_a_fault_fires_its_alert(tmp_path: Path) -> None:
    faults = Faults(tmp_path)
    labels = {"namespace": "n", "pod": "a"}
    with faults, Prometheus(tmp_path, {"nodewise": faults.http}, hasty(RULES.read_text()), labels=labels) as seen:
        fire_alerts(faults, seen)
        missing = [name for name, query in queries().items() if not seen.query_all(query)]
        assert not missing
