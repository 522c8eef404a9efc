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

__all__ = ["Factors", "factors_between", "link_floor_s", "scaled_phases"]

WIRE_BYTES_PER_BYTE: Final = (1514.0 + 66.0 / 2.0) / 1448.0
"""Bytes on an Ethernet link per byte of payload at an MTU of 1500: headers of Ethernet (14), IP (20) and TCP with
timestamps (32) around 1448, and for the payload of the other direction an acknowledgement (66) of every second segment
(RFC 5681). What a link has to carry that is loaded both ways; a lone transfer has the acknowledgements out of its way,
and may hide the headers in a token bucket's burst."""

SERVER_EXPONENT: Final = 0.5
"""P servers divide the demand by P ** 0.5, the geometric mean of two limits: by P (every byte and message spread
evenly, one station of demand D / P) and by 1 (what is slow is not at the servers, or one holds the large variables).
Two servers brought a factor of 1.10 to 1.59 in CM-DARE's measurements (ICDCS'20); this says 1.41."""

LARGEST_BURST: Final = 2.0
"""A lone transfer that took less than 1 / 2 of what its bytes need on the link never crossed that link (a server on the
worker's own node), or a fact is wrong: then the facts about bytes and link are not used."""

_UNIFORM: Final = math.sqrt(12.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """From a measured setting to an asked one.

    Attributes
    ----------
    link, servers, compute : float
        What multiplies transfer demands because of the link's rate, all demands at the servers because of their number,
        and compute because of the samples per exchange.
    demand_log_spread, compute_log_spread : float
        Standard deviation of ln of the demands and of compute that this adds.
    notices : tuple of Notice
        The assumptions, for the reader.
    """

    link: float
    servers: float
    compute: float
    demand_log_spread: float
    compute_log_spread: float
    notices: tuple[Notice, ...]


def factors_between(measured: Setting, asked: Setting, *, bytes_known: bool) -> Factors:
    """What changes between two settings. A link or batch that is not known on either side is taken as unchanged."""
    notices = []
    link, link_spread = 1.0, 0.0
    if measured.link_bytes_per_s > 0.0 and asked.link_bytes_per_s > 0.0:
        link = measured.link_bytes_per_s / asked.link_bytes_per_s
        # With the bytes known, the share of a transfer that is the link's is known; else it may be anything.
        link_spread = 0.0 if bytes_known else abs(math.log(link)) / _UNIFORM
    if link != 1.0:
        rates = f"{measured.link_bytes_per_s:.4g} bytes/s, asked about {asked.link_bytes_per_s:.4g}"
        notices.append(Notice("LINK_SCALED", f"measured on a link of {rates}: transfers are scaled by its rate"))
    ratio = measured.servers / asked.servers
    if ratio != 1.0:
        notices.append(
            Notice(
                "SERVERS_SCALED",
                f"measured with {measured.servers} parameter servers, asked about {asked.servers}: the demand is taken "
                f"between two limits, {ratio**SERVER_EXPONENT:.3g} times the measured one",
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
        compute=compute,
        demand_log_spread=math.hypot(abs(math.log(ratio)) / _UNIFORM, link_spread),
        compute_log_spread=abs(math.log(compute)) / _UNIFORM,
        notices=tuple(notices),
    )


def scaled_phases(phases: Phases, asked: Setting, facts: Facts, factors: Factors) -> Phases:
    """Phases of one worker in another setting.

    A transfer is split into what its bytes need on the measured link, which scales with the rate, and the rest
    (messages, round trips), which does not; without known bytes all of it scales.
    """
    if asked.link_bytes_per_s == 0.0:
        asked = replace(asked, link_bytes_per_s=phases.setting.link_bytes_per_s)
    if factors.link == factors.servers == factors.compute == 1.0:
        return replace(phases, setting=asked)
    bytes_s = float("inf")
    if facts.parameter_bytes > 0.0 and phases.setting.link_bytes_per_s > 0.0:
        bytes_s = facts.parameter_bytes / phases.setting.link_bytes_per_s

    def transfer(seconds: float) -> float:
        on_link = min(seconds, bytes_s)
        return (on_link * factors.link + (seconds - on_link)) * factors.servers

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


def link_floor_s(phases: Phases, facts: Facts) -> float:
    """Seconds that one direction's bytes need at least on the servers' links under load; 0 = not known.

    Phases that contradict it (see LARGEST_BURST) overrule it.
    """
    setting = phases.setting
    if not facts.parameter_bytes > 0.0 or not setting.link_bytes_per_s > 0.0:
        return 0.0
    floor = facts.parameter_bytes * WIRE_BYTES_PER_BYTE / (setting.link_bytes_per_s * setting.servers)
    return floor if floor <= LARGEST_BURST * min(phases.download_s, phases.upload_s) else 0.0
