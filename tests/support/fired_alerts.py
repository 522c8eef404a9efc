"""The alerts of ``deploy``, and one fault after the other that fires them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from faults import Faults, one_worker_phases_content
from patience import wait_until
from prometheus import Queries

__all__ = ["RULES", "alert_names", "fire_alerts", "hasty"]

RULES: Final = Path(__file__).resolve().parents[2] / "deploy" / "prometheus" / "alerts.yaml"


def alert_names() -> set[str]:
    return set(re.findall(r"- alert: (\w+)", RULES.read_text()))


def hasty(rules: str) -> str:
    """The rules, that fire at once."""
    return re.sub(r"\n *for: .*", "", rules)


def fire_alerts(faults: Faults, seen: Queries) -> None:
    """Cause each fault until a Prometheus with the hasty rules has fired its alert. Ends the server."""

    def fires(name: str, again: Callable[[], object] = lambda: None) -> None:

        def fired() -> bool:
            again()
            return name in seen.alerts()

        wait_until(fired)

    wait_until(lambda: seen.query("nodewise_workers == 2"))
    faults.append("locked", one_worker_phases_content())
    fires("NodewiseStoreSlow", faults.lock_store)
    faults.take_store_away()
    fires("NodewiseStoreDown")
    faults.put_store_back()
    wait_until(lambda: seen.query("nodewise_store_up == 1"))
    assert "NodewiseCoverageLow" not in seen.alerts()

    faults.break_plugin("hangs")
    fires("NodewiseSlowPredictions", lambda: faults.predict("hangs"))
    faults.break_plugin("exits")
    for name in ("NodewisePluginFailing", "NodewiseErrors", "NodewisePluginBreakerOpen", "NodewisePluginHostDead"):
        fires(name, lambda: faults.predict("exits"))

    for turn in range(10):
        faults.observe(f"team/{turn}", 1.0)
    fires("NodewiseCoverageLow", lambda: faults.observe(f"team/{random.randrange(10)}", random.uniform(3, 9)))

    for name in ("NodewiseOverloaded", "NodewiseQueueLong", "NodewiseCacheFull"):
        fires(name, faults.flood)
    for name in ("NodewiseWorkerMissing", "NodewiseWorkersRestarting"):
        fires(name, lambda: seen.query("nodewise_workers == 2") and faults.kill_a_worker())
    faults.server.kill()
    fires("NodewiseServerDown")
    # Two weeks of errors and the figures of Kubernetes are tested by promtool alone.
    by_promtool = {"NodewiseEstimatorDrift", "NodewiseMemoryNearLimit"}
    assert alert_names() - seen.alerts() == by_promtool
