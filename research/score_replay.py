"""Replay recorded steps and say how far off the replay is: `python research/score_replay.py TRACE [TRACE...]`.

All traces named together are ranks of one job. Prints a line for the steps replayed with their own durations (a check
of the graph, never of accuracy), one for each step predicted from the others, and what the graph consists of.
"""

from __future__ import annotations

import argparse
import gzip
import io
from pathlib import Path

from nodewise.domain.errors import NodewiseError
from nodewise.domain.replay import Replay, ReplayQuestion
from nodewise.domain.trace import Trace, TraceSource
from nodewise_replay.replaying.replayer import replay_steps
from nodewise_traces.plugin import nodewise_trace_readers

_HEAD_BYTES = 4096


class _Unhurried:
    """No deadline, nobody to tell."""

    def remaining_s(self) -> float:
        """Seconds left."""
        return float("inf")

    def advanced(self, stage: str, done: int, total: int) -> None:
        """Say nothing."""


def main() -> None:
    """Read, replay, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--collectives", action="store_true", help="also print the collectives")
    arguments = parser.parse_args()
    job = [trace for path in arguments.traces for trace in _read(path)]
    itself = _replayed(job, in_sample=True)
    if itself is None:
        return
    print(_line("in-sample", itself))
    across = _replayed(job, in_sample=False)
    if across is not None:
        print(_line("cross-step", across))
    counts = ", ".join(
        f"{kind} {one.found}+{one.inferred} (missing {one.missing})" for kind, one in itself.edges.items()
    )
    print(f"{itself.events} events, {itself.nodes} nodes; edges found + inferred: {counts}")
    for warning in itself.warnings:
        print(f"warning: {warning}")
    if arguments.collectives:
        for one in itself.collectives:
            print(
                f"step {one.step}: {one.kind} of {one.bytes} bytes: transfer {one.transfer_s * 1e6:.1f} us, "
                f"last {'/'.join(map(str, one.late_ranks)) or '-'} by {one.margin_s * 1e6:.0f} us, "
                f"waits {' '.join(f'{wait * 1e6:.0f}' for wait in one.wait_s)}"
            )


def _read(path: Path) -> list[Trace]:
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    source = TraceSource(name=path.name)
    readers = [record.reader for record in nodewise_trace_readers()]
    surest = max(readers, key=lambda one: one.recognises(content[:_HEAD_BYTES], source))
    if not surest.recognises(content[:_HEAD_BYTES], source):
        raise SystemExit(f"{path.name}: no reader knows this format")
    return list(surest.read(io.BytesIO(content), source))


def _replayed(job: list[Trace], *, in_sample: bool) -> Replay | None:
    try:
        return replay_steps(job, ReplayQuestion(in_sample=in_sample), _Unhurried())
    except NodewiseError as error:
        print(error.message)
        return None


def _line(label: str, found: Replay) -> str:
    def percent(value: float | None) -> str:
        return "-" if value is None else f"{100 * value:.2f} %"

    def microseconds(value: float | None) -> str:
        return "-" if value is None else f"{1e6 * value:.0f} us"

    return (
        f"{label}: host {percent(found.host_error)}, device {percent(found.device_error)}, "
        f"persistence {percent(found.persistence_error)}, kernel starts p50 "
        f"{microseconds(found.kernel_start_p50_error_s)} p95 {microseconds(found.kernel_start_p95_error_s)}, "
        f"{len(found.steps)} steps, built in {found.build_s * 1e3:.0f} ms, replayed in {found.replay_s * 1e3:.0f} ms"
    )


if __name__ == "__main__":
    main()
