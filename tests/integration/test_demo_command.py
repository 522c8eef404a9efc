"""`nodewise demo`, as it is installed: one page, with the command behind each part."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S

pytestmark = pytest.mark.wheel


def test_the_demo_writes_one_page_and_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the demo draws, and matplotlib is an extra")
    command = Path(sys.executable).with_name("nodewise")
    ran = subprocess.run(
        [command, "demo", "page.html"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
    page = (tmp_path / "page.html").read_text()
    commands = re.findall(r"<code>nodewise (\w+)", page)
    assert commands == re.findall(r"^\$ nodewise (\w+)", ran.stdout, re.MULTILINE)
    assert commands == ["predict", "plan", "diagnose", "simulate", "spot"]
    assert page.count("<section>") == page.count("<h3>") == len(commands)
    assert page.count("data:image/svg+xml") >= 3
    assert str(tmp_path) not in page


def test_a_page_of_another_kind_is_refused(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("nodewise")
    ran = subprocess.run([command, "demo", "page.pdf"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "must end in .html" in ran.stderr
