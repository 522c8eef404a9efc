"""`nodewise sweep` on a real local Ray: the same numbers as in processes of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S
from sweeps import ran, still, written

pytestmark = pytest.mark.ray


def test_ray_finds_the_same_numbers(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    spec = written(tmp_path, policy=["fifo", "equal-share", "nobody"])
    local = json.loads(ran(spec, "--processes", "2", "--json").stdout)
    # A process of its own: Ray starts a cluster beside it, which must be gone when the command ends.
    command = [sys.executable, "-W", "error", "-m", "nodewise", "sweep", str(spec), "--engine", "ray"]
    result = subprocess.run(
        [*command, "--processes", "2", "--json"], check=False, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert result.returncode == 1, result.stderr
    found = json.loads(result.stdout)
    assert found["engine"] == "ray"
    assert still(found) == still(local)
    assert len(found["failed"]) == 4
