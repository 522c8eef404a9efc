"""Carry demands from the setting that was measured to another one, and say how unsure that makes them.

Where physics gives two limits and nothing tells where between them a system lies, the logarithm is taken as uniform
between them: its standard deviation is the width over √12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from nodewise.plugin import Notice
from nodewise_queueing.evidence import Facts, Phases
from nodewise_queueing.rows import Setting

__all__ = ["SERVER_EXPONENT", "Factors", "factors_between", "link_floor_s", "repeat_pulls", "scaled_phases"]

WIRE_BYTES_PER_BYTE: Final = 1514.0 / 1448.0
"""Bytes on an Ethernet link per byte of payload at an MTU of 1500: headers of Ethernet (14), IP (20) and TCP with
timestamps (32) around 1448. What a loaded link has to carry; a lone transfer may hide it in a token bucket's burst."""

ACKNOWLEDGEMENT_BYTES_PER_BYTE: Final = 66.0 / (2.0 * 1448.0)
"""Bytes of acknowledgements per byte of payload of the other direction: one of 66 for every second segment (RFC
5681). A link that is loaded both ways at once carries them beside the data; behind a barrier it is loaded one way at
a time."""

SERVER_EXPONENT: Final = 0.5
"""The demand goes with the largest server's share of the bytes to the power of 0.5, the geometric mean of two limits:
in proportion to it (the links of the servers are what is slow, used in parallel) and not at all (something else is,
or the servers are used one after another). Two even servers bring a factor of 1.41 so; they brought 1.10 to 1.59 in
CM-DARE's measurements (ICDCS'20)."""

LARGEST_BURST: Final = 2.0
"""A lone transfer that took less than 1 / 2 of what its bytes need on the link never crossed that link (a server on the
worker's own node), or a fact is wrong: then the facts about bytes and link are not used."""

_UNIFORM: Final = math.sqrt(12.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """Factors from a measured setting to an asked one.

    Attributes
    ----------
    link, servers, messages, compute : float
        What multiplies transfers because of the link's rate, transfers and updates because of the servers' shares of
        the bytes, the messages' part of a transfer because of their shares of the messages, and compute because of the
        samples per exchange.
    demand_log_spread, compute_log_spread : float
        Standard deviation of ln of the demands and of compute that this adds.
    notices : tuple of Notice
        The assumptions, for the reader.
    """

    link: float
    servers: float
    messages: float
    compute: float
    demand_log_spread: float
    compute_log_spread: float
    notices: tuple[Notice, ...]


def factors_between(measured: Setting, asked: Setting, facts: Facts, *, phases_known: bool) -> Factors:
    """What changes between two settings. A link or batch that is not known on either side is taken as unchanged."""
    notices = []
    bytes_known = phases_known and facts.parameter_bytes > 0.0
    link, link_spread = 1.0, 0.0
    if measured.link_bytes_per_s > 0.0 and asked.link_bytes_per_s > 0.0:
        link = measured.link_bytes_per_s / asked.link_bytes_per_s
        # With the bytes known, the share of a transfer that is the link's is known; else it may be anything.
        link_spread = 0.0 if bytes_known else abs(math.log(link)) / _UNIFORM
    if link != 1.0:
        rates = f"{measured.link_bytes_per_s:.4g} bytes/s, and the row has {asked.link_bytes_per_s:.4g}"
        notices.append(Notice("LINK_SCALED", f"the measured link has {rates}: transfers are scaled by the ratio"))
    ratio = facts.byte_share(asked.servers) / facts.byte_share(measured.servers)
    if asked.servers != measured.servers:
        notices.append(
            Notice(
                "SERVERS_SCALED",
                f"measured with {measured.servers} parameter servers, and the row has {asked.servers}: the servers' "
                f"demand is assumed to lie between two limits, in the middle {ratio**SERVER_EXPONENT:.3g} times the "
                "measured one",
            )
        )
    compute = asked.accumulation / measured.accumulation
    if measured.batch_per_worker > 0 and asked.batch_per_worker > 0:
        compute *= asked.batch_per_worker / measured.batch_per_worker
    if compute != 1.0:
        notices.append(
            Notice("COMPUTE_SCALED", f"compute is scaled by {compute:.3g}, the ratio of samples per exchange")
        )
    return Factors(
        link=link,
        servers=ratio**SERVER_EXPONENT,
        messages=facts.message_share(asked.servers) / facts.message_share(measured.servers),
        compute=compute,
        demand_log_spread=math.hypot(abs(math.log(ratio)) / _UNIFORM, link_spread),
        compute_log_spread=abs(math.log(compute)) / _UNIFORM,
        notices=tuple(notices),
    )


def scaled_phases(phases: Phases, asked: Setting, facts: Facts, factors: Factors) -> Phases:
    """Phases of one worker in another setting.

    A transfer is split into its round trip, which nothing here changes, what its messages cost, which follows the
    servers' shares of them, and its bytes; these into what they need on the measured link, which scales with the rate,
    and the rest, which does not. Without known bytes all of them scale.
    """
    if asked.link_bytes_per_s == 0.0:
        asked = replace(asked, link_bytes_per_s=phases.setting.link_bytes_per_s)
    if factors.link == factors.servers == factors.messages == factors.compute == 1.0:
        return replace(phases, setting=asked)
    bytes_s = float("inf")
    if facts.parameter_bytes > 0.0 and phases.setting.link_bytes_per_s > 0.0:
        bytes_s = facts.parameter_bytes / phases.setting.link_bytes_per_s

    def transfer(seconds: float) -> float:
        waiting = min(seconds, facts.round_trip_s)
        messages = min(seconds - waiting, facts.messages_s * facts.message_share(phases.setting.servers))
        on_link = min(seconds - waiting - messages, bytes_s)
        rest = seconds - waiting - messages - on_link
        return waiting + messages * factors.messages + (on_link * factors.link + rest) * factors.servers

    download, upload = transfer(phases.download_s), transfer(phases.upload_s)
    compute = phases.compute_s * factors.compute
    before = phases.download_s + phases.upload_s
    hidden = phases.hidden_s * (download + upload) / before if before > 0.0 else 0.0
    return replace(
        phases,
        download_s=download,
        compute_s=compute,
        upload_s=upload,
        update_s=phases.update_s * factors.servers,
        hidden_s=min(hidden, compute, download + upload),
        setting=asked,
    )


def repeat_pulls(phases: Phases, facts: Facts, times: float) -> Phases:
    """Phases of a worker that pulls the parameters so many times over its link, waiting for one round trip."""
    if times == 1.0:
        return phases
    waiting = min(phases.download_s, facts.round_trip_s)
    return replace(phases, download_s=waiting + (phases.download_s - waiting) * times)


def link_floor_s(phases: Phases, facts: Facts, *, both_ways: bool) -> float:
    """Seconds that one direction's bytes need at least on the servers' links under load; 0 = not known.

    ``both_ways``: data go in both directions at once, so that acknowledgements compete with them.

    Phases that contradict it (see LARGEST_BURST) overrule it.
    """
    setting = phases.setting
    if not facts.parameter_bytes > 0.0 or not setting.link_bytes_per_s > 0.0:
        return 0.0
    share = facts.byte_share(setting.servers)
    wire = WIRE_BYTES_PER_BYTE + (ACKNOWLEDGEMENT_BYTES_PER_BYTE if both_ways else 0.0)
    floor = facts.parameter_bytes * share * wire / setting.link_bytes_per_s
    return floor if floor <= LARGEST_BURST * min(phases.download_s, phases.upload_s) else 0.0
