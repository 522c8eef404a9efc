"""What a host prints: read to its end, or until the host is gone."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from typing import Any

from patience import PATIENCE_S

from nodewise.hosting.processes.output import watch_output
from nodewise.processes.process import Process


def test_what_a_host_left_behind_keeps_no_stream_open(logs: list[Any]) -> None:
    reading, left_behind = os.pipe()
    sleeps = [sys.executable, "-c", "import time; time.sleep(1000)"]
    process = Process(subprocess.Popen(sleeps, process_group=0))
    watch_output("one 1.0", {"stdout": reading}, process)
    os.write(left_behind, b"last words\n")
    process.kill()
    poll = select.poll()
    poll.register(left_behind, 0)  # an error alone: that nobody reads
    assert poll.poll(PATIENCE_S * 1e3)
    os.close(left_behind)
    process.wait()
    assert [line["line"] for line in logs if line["event"] == "plugin_printed"] == ["last words"]
