"""What a host prints: read to its end, or until the host is gone."""

from __future__ import annotations

import os
import select
from typing import Any

from patience import PATIENCE_S

from nodewise.hosting.processes.output import watch_output


def test_what_a_host_left_behind_keeps_no_stream_open(logs: list[Any]) -> None:
    reading, left_behind = os.pipe()
    end = watch_output("one 1.0", {"stdout": reading})
    os.write(left_behind, b"last words\n")
    end()
    poll = select.poll()
    poll.register(left_behind, 0)  # an error alone: that nobody reads
    assert poll.poll(PATIENCE_S * 1e3)
    os.close(left_behind)
    assert [line["line"] for line in logs if line["event"] == "plugin_printed"] == ["last words"]
    end()  # once more is nothing more
