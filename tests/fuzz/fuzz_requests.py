"""Fuzzing of every method, guided by the coverage of our own code: read, check, answer, write.

    make fuzz FUZZ="-max_total_time=3600"

The first byte of an input picks the method, the second how the rest is taken: as the messages themselves, or as the
chance by which a right request is spoilt or a wild one is drawn. What must not be makes the run stop and leaves the
input in a file; ``make fuzz FUZZ=FILE`` runs that one again. How many calls ended how, by method and code, is in
``build/fuzz/counts-PID.json``.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Final

import atheris

ROOT: Final = Path(__file__).parents[2]
BUILD: Final = ROOT / "build" / "fuzz"
COUNTED_EVERY: Final = 5_000
SELDOM: Final = ("/Backtest", "/Plan", "/SuggestMeasurements", "/Schedule", "/Simulate", "/WatchProfiles")
"""Methods that take 2 to 150 ms by the clock, or wait for their caller; the others take less than 1 ms on average."""
OFTEN: Final = 10
"""Inputs of another method for each of one of these: a byte chooses among all."""
SPLIT: Final = b"\xff\xfe"
"""Between the messages of a stream."""

sys.path.insert(0, str(ROOT / "tests" / "support"))
with atheris.instrument_imports(include=["nodewise", "nodewise_values", "nodewise_laws", "nodewise_queueing"]):
    from fuzzing import Fuzzed

from nodewise.runtime.logging import configure_logging  # noqa: E402  # what is imported first stays without guidance


class Chance(random.Random):
    """Chance that a fuzzer's bytes decide; once they are used up, the lowest of everything."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        super().__init__(0)

    def getrandbits(self, k: int) -> int:
        size = (k + 7) // 8
        taken = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(taken, "little") & ((1 << k) - 1)

    def random(self) -> float:
        return self.getrandbits(16) / 65_536.0


class Target:
    """One input after the other to one application."""

    def __init__(self, fuzzed: Fuzzed) -> None:
        self._fuzzed, self._done = fuzzed, 0
        self._chosen = [path for path in fuzzed.paths for _ in range(1 if path.endswith(SELDOM) else OFTEN)]

    def __call__(self, data: bytes) -> None:
        if len(data) < 3:
            return
        path, way, rest = self._chosen[data[0] % len(self._chosen)], data[1] % 4, data[2:]
        if way < 2:
            messages = rest.split(SPLIT) if len(self._fuzzed.valid(path)) > 1 else [rest]
        else:
            messages = self._fuzzed.drawn(path, ("spoilt", "wild")[way - 2], Chance(rest))
        self._fuzzed.ask(path, messages)
        self._done += 1
        if self._done % COUNTED_EVERY == 0:
            self.count()

    def count(self) -> None:
        """Write how many calls ended how, by method and code."""
        asked = sorted(self._fuzzed.asked.items())
        counts = {f"{path} {code}": number for (path, code), number in asked}
        written = {"executions": sum(counts.values()), "by_method_and_code": counts}
        (BUILD / f"counts-{os.getpid()}.json").write_text(json.dumps(written, indent=1), encoding="utf-8")

    def seeds(self, folder: Path) -> None:
        """Right requests, and bytes of chance for each method, as inputs to begin with."""
        folder.mkdir(parents=True, exist_ok=True)
        chance = random.Random(0)
        for path in self._fuzzed.paths:
            number = self._chosen.index(path)
            right = bytes((number, 0)) + SPLIT.join(self._fuzzed.valid(path))
            (folder / f"{number:03}-right").write_bytes(right)
            for way in (2, 3):
                (folder / f"{number:03}-{way}").write_bytes(bytes((number, way)) + chance.randbytes(200))


def main() -> None:
    """Fuzz as libFuzzer's options say; without a corpus, begin with the seeds."""
    configure_logging("error")
    corpus = BUILD / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    with Fuzzed(Path(tempfile.mkdtemp())) as fuzzed:
        target = Target(fuzzed)
        target.seeds(BUILD / "seeds")
        named = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
        folders = [] if named else [str(corpus), str(BUILD / "seeds")]
        limits = ["-rss_limit_mb=4096", "-timeout=60", "-max_len=4096", f"-artifact_prefix={BUILD}/"]
        atheris.Setup([sys.argv[0], *limits, *sys.argv[1:], *folders], target)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
