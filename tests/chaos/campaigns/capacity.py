"""How much a server answers, so that loads can be stated as parts of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Final

from serving import Stubs
from steady_callers import DEADLINE_S, Asked

MEASURED_S: Final = 5.0
WARMED_S: Final = 3.0


def a_fifth(target: str, callers: Mapping[str, Asked]) -> float:
    """Calls a second that each of the callers makes when all of them together load the server by a fifth."""
    ended = threading.Event()
    counts = dict.fromkeys(callers, 0)

    def ask(who: str) -> None:
        with Stubs(target) as stubs:
            number = 0
            while not ended.is_set():
                callers[who](stubs, number % 20, {"timeout": DEADLINE_S})
                counts[who] += 1
                number += 1

    threads = [threading.Thread(target=ask, args=(who,)) for who in callers for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(WARMED_S)
    before = sum(counts.values())
    time.sleep(MEASURED_S)
    answered = sum(counts.values()) - before
    ended.set()
    for thread in threads:
        thread.join()
    return answered / MEASURED_S / 5.0 / len(callers)
