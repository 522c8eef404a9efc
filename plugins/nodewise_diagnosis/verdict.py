"""The bottleneck of a job, in one word and in one paragraph, made from the accounting, so that both agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Bottleneck, Floats, Ints, RankShares, StepPart
from nodewise_diagnosis.accounting import HOST_PARTS
from nodewise_diagnosis.candidates import AVOIDABLE
from nodewise_diagnosis.case import Case
from nodewise_diagnosis.roles import Role
from nodewise_diagnosis.stopwatch import NS, Edit, whole_ns
from nodewise_diagnosis.stragglers import LateRank

__all__ = ["NOTHING", "Claims", "bound_by", "claims", "verdict"]

NOTHING: Final = "none"
"""Nothing stands out, or the bottleneck cannot be determined."""

_LOADING_IN_SKEW: Final = 0.8
"""Where at least this share of waits between ranks is loading, the job is bound by loading."""

_MOST: Final = 0.5
"""Least share of the lost time for the part that explains it."""

_LEAST_NAMED_SHARE: Final = 0.05
"""Least share of the step from which a part is named in the paragraph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Seconds of a step by cause, and how much shorter the step is without each cause.

    ``held`` is the mean over ranks of the accounting's parts, by ``device``, ``network``, ``skew``, ``loading``,
    ``host`` and ``dependency``; ``gain`` is that of a replay without it, and no more than it holds on any rank. The
    gain of ``skew`` is replayed with all ranks alike in their own work and in their begin.
    """

    step: float
    held: dict[str, float]
    gain: dict[str, float]

    @property
    def lost_s(self) -> float:
        """All causes other than computation."""
        return max(self.step - self.held["device"], 0.0)


def claims(case: Case, shares: Sequence[RankShares]) -> Claims:
    """Add up the parts, and replay the steps without each possible bottleneck."""
    graph, role, beyond_ns = case.graph, case.roles.role, case.likeness.beyond_ranks_ns
    duration = graph.duration_ns.astype(np.float64)

    def gain_of(edited_ns: Floats, begin_shift_ns: Ints | None = None) -> float:
        edit = Edit(duration_ns=whole_ns(edited_ns), begin_shift_ns=begin_shift_ns)
        return (case.base_ns - case.watch.step_ns(edit)) * NS

    def without(one: Role) -> float:
        return gain_of(np.where(role == one, 0.0, duration))

    # Only ranks that are slower than the others in total: two ranks would otherwise swap places.
    alike = duration.copy()
    for rank in graph.ranks:
        of_rank = np.flatnonzero((role != Role.COMMUNICATION) & (graph.rank == rank))
        if beyond_ns[of_rank].sum() > 0:
            alike[of_rank] -= beyond_ns[of_rank]
    shift = None
    if case.watch.steps[0] == 0:
        begins = graph.steps.begin_ns[0]
        shift = np.rint(np.median(begins) - begins).astype(np.int64)
    groups = [_group_parts(one.parts) for one in shares]
    replayed = {
        "device": gain_of(np.where((role == Role.COMPUTE) | (role == Role.COPY), 0.0, duration)),
        "network": without(Role.COMMUNICATION),
        "loading": without(Role.LOADING),
        "host": without(Role.HOST) if case.roles.device else 0.0,
    }
    most = {name: max(parts[name] for parts in groups) for name in replayed}
    most["network"] = max(parts["network"] + parts["skew"] for parts in groups)
    gain = {name: max(min(each, most[name]), 0.0) for name, each in replayed.items()}
    gain["skew"] = gain_of(alike, shift) if len(graph.ranks) > 1 else 0.0
    held = {name: float(np.mean([each[name] for each in groups])) for name in (*gain, "dependency")}
    return Claims(step=case.base_ns * NS, held=held, gain=gain)


_GROUPS: Final = {"computation": "device", "transfer": "network", "waiting": "skew"}


def _group_parts(parts: Sequence[StepPart]) -> dict[str, float]:
    seconds_by_part: dict[str, float] = defaultdict(float)
    for part in parts:
        seconds_by_part["host" if part.kind in HOST_PARTS else _GROUPS.get(part.kind, part.kind)] += part.seconds
    return seconds_by_part


def bound_by(step_claims: Claims, noise_s: float) -> str:
    """The bottleneck: ``device``, ``host``, ``network``, ``skew``, ``loading`` or NOTHING.

    Loading and skew are avoidable: they bound the job from a tenth of the step on. Else computation does where it takes
    most of the step; else the largest part of the rest, if the step gains more than the noise without it.
    """
    least = max(AVOIDABLE * step_claims.step, noise_s)
    if (
        step_claims.gain["loading"] >= least
        and step_claims.gain["loading"] >= _LOADING_IN_SKEW * step_claims.gain["skew"]
    ):
        return "loading"
    if step_claims.gain["skew"] >= least:
        return "skew"
    computes = step_claims.held["device"] >= _MOST * step_claims.step
    if computes and step_claims.gain["device"] > noise_s:
        return "device"
    # Where no rank is slower than others, they wait for the exchange itself: a server's, or a chain of exchanges.
    held_s = {**step_claims.held, "network": step_claims.held["network"] + step_claims.held["skew"]}
    name = max(("network", "host", "loading"), key=lambda one: held_s[one])
    enough = step_claims.gain[name] > noise_s and held_s[name] >= _MOST * step_claims.lost_s
    if enough and (not computes or held_s[name] >= AVOIDABLE * step_claims.step):
        return name
    return "device" if computes else NOTHING


def verdict(
    bound: str,
    step_claims: Claims,
    shares: Sequence[RankShares],
    late: Sequence[LateRank],
    bottlenecks: Sequence[Bottleneck],
    noise_s: float,
    *,
    limits: Sequence[str] = (),
    unit: str = "step",
    unknown: str = "",
    stands_out: bool = True,
) -> str:
    """The job in a few sentences, each with its numbers.

    Parameters
    ----------
    limits : sequence of str
        What the answer cannot determine, with the reason.
    unit : str
        The accounted unit: a ``step``, or a ``window`` where no steps are marked.
    unknown : str
        Why the bottleneck cannot be determined; empty = it can.
    stands_out : bool
        Whether anything that matters takes longer than comparable nodes, or is absent from a normal job.
    """
    by_kind = _by_kind(shares)
    first_words = f"The bottleneck cannot be determined: {unknown}." if unknown else ""
    sentences = [
        first_words or _first(bound, step_claims, by_kind, noise_s, unit),
        _account(step_claims, by_kind, unit),
    ]
    late_ranks = [one for one in late if one.imposed_wait_s > noise_s]
    if late_ranks and bound in {"skew", "loading"}:
        parts = [
            f"rank {one.rank} at {one.times} ({one.imposed_wait_s * 1e3:.3f} ms of waiting in total"
            + (f"; {one.cause})" if one.cause else ")")
            for one in late_ranks[:4]
        ]
        sentences.append("Last to arrive: " + ", ".join(parts) + ".")
    first = next((one for one in bottlenecks if one.matters), None)
    if first is not None:
        sentences.append(
            f"First to look at: {first.what} ({first.gain_if_removed_s * 1e3:.2f} ms of the {unit}; "
            f"{first.why.split(';')[0]})."
        )
    if not stands_out:
        sentences.append(
            "Compared with others of their kind, nothing stands out among ranks, steps, exchanges and calls."
        )
    sentences += [f"Limited: {limit}." for limit in limits]
    return " ".join(sentences)


_WORDS: Final = {
    "skew": ("skew of the ranks", "if all ranks took equally long,"),
    "loading": ("the loading of batches", "without waiting for batches"),
    "network": ("the network", "with transfers that take no time"),
    "host": ("the host", "without the host's work that the device waits for"),
    "device": ("computation", "without computing"),
}

_HOST_WORDS: Final = {
    "startup": "start-up of the device",
    "synchronisation": "waits of the host for the device",
    "blocking_copy": "copies that block the host",
    "allocation": "allocation of device memory",
    "host_computation": "computation on the host",
    "preprocessing": "preprocessing before the first launch",
    "garbage_collection": "collection of garbage",
    "python": "the interpreter",
    "launch": "launches",
    "unexplained": "host activity that was not recorded (unexplained)",
}


def _first(
    bound: str, step_claims: Claims, by_kind: dict[str, list[tuple[float, str]]], noise_s: float, unit: str
) -> str:
    if bound == NOTHING:
        return f"Nothing stands out: no part explains most of the time lost in a {unit} of {_ms(step_claims.step)} ms."
    if bound == "device" and step_claims.gain["device"] <= noise_s:
        part, whole = _ms(step_claims.held["device"]), _ms(step_claims.step)
        return f"Nothing stands out: computation takes {part} of the {whole} ms of a {unit}."
    words, condition = _WORDS[bound]
    if bound == "skew" and step_claims.gain["host"] > step_claims.gain["network"]:
        words = "skew between the ranks that is caused by their hosts, not by the network"
    if bound == "host":
        words += _main_part(by_kind, HOST_PARTS)
    gain = step_claims.gain[bound]
    return f"Bound by {words}: {condition} a {unit} of {_ms(step_claims.step)} ms would be {_ms(gain)} ms shorter."


def _main_part(by_kind: dict[str, list[tuple[float, str]]], kinds: frozenset[str]) -> str:
    """The largest kind of part, and the largest call or function in it."""
    sums = {kind: sum(seconds for seconds, _ in by_kind[kind]) for kind in kinds if kind in by_kind}
    if not sums:
        return ""
    kind = max(sums, key=lambda one: sums[one])
    seconds, what = max(by_kind[kind])
    inside = "" if kind == "unexplained" else f", {_ms(seconds)} of it in {what}"
    return f", by {_HOST_WORDS[kind]} ({_ms(sums[kind])} ms{inside})"


def _account(step_claims: Claims, by_kind: dict[str, list[tuple[float, str]]], unit: str) -> str:
    """The division of a step, mean over ranks, with the rest, so that the sum is the step."""
    held_s = step_claims.held
    parts = [
        (held_s["device"], "computation"),
        (held_s["network"], "exposed transfers"),
        (held_s["skew"], "exposed waiting for other ranks"),
        (held_s["loading"], "loading"),
        *(
            (sum(seconds for seconds, _ in by_kind[kind]), words)
            for kind, words in _HOST_WORDS.items()
            if kind in by_kind
        ),
        (held_s["dependency"], "work that waits for other work"),
    ]
    total = sum(seconds for seconds, _ in parts)
    largest = sorted((one for one in parts if one[0] >= _LEAST_NAMED_SHARE * total), key=lambda one: -one[0])
    rest = total - sum(seconds for seconds, _ in largest)
    words = [f"{_ms(seconds)} ms {what}" for seconds, what in largest]
    words += [f"{_ms(rest)} ms other"] if rest * 1e3 >= 0.005 else []
    return f"Of a rank's {unit} of {_ms(total)} ms: " + ", ".join(words) + "."


def _by_kind(shares: Sequence[RankShares]) -> dict[str, list[tuple[float, str]]]:
    """Mean seconds over ranks of every named part, by kind."""
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for one in shares:
        for part in one.parts:
            sums[part.kind, part.what] += part.seconds / len(shares)
    parts_by_kind: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for (kind, what), seconds in sums.items():
        parts_by_kind[kind].append((seconds, what))
    return parts_by_kind


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"
