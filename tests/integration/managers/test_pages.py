"""What the managers' pages program runs as it stands, beside a real server."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs_of_managers import CIFAR10, ELASTIC, TUNED
from managers import program_of
from pages import APART, blocks
from serving import ServerProcess

from nodewise_client import AppendProfileRequest, Client


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=getattr(pytest.mark, manager)) for page, manager in APART.items()]
)
def test_what_a_page_programs_runs_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    with ServerProcess("--store", "memory:") as server, Client(server.target) as client:
        for name, content in (("cifar10", CIFAR10), ("elastic", ELASTIC), ("tuned", TUNED)):
            client.append_profile(AppendProfileRequest(profile_id=f"team-a/{name}", content=content))
        here = {"NODEWISE_SERVER": server.target, "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": "/tmp"}
        with program_of(APART[page], "page_program.py", page, folder=tmp_path, environment=here) as program:
            assert program.told() == {"run": len(blocks(page, "python")), "failed": False}
