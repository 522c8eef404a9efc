"""Workers of several devices: they add up their gradients, and push the sum once.

Frameworks differ in how parameters are pulled. TensorFlow's parameter-server strategy keeps one copy of each variable
on a server, which every device of a worker reads itself (r1.14, `parameter_server_strategy.py`: an aggregating variable
holds one variable, and nothing is cached on the worker); its benchmarks (`tf_cnn_benchmarks`) cache what one device
read. MXNet's `dist` stores and BytePS pull once per worker, and pass the parameters on inside the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodewise.plugin import Catalogue, Notice

__all__ = ["PULLS", "Exchange", "exchange_of", "pulls_taken", "share_that_pulls_each"]

PULLS: Final = "framework"
"""Name of the fact, as in tables, that determines which devices pull parameters."""

_PULLS_EACH: Final = {"tf_cnn_benchmarks": 0.0, "tensorflow": 1.0, "mxnet": 0.0, "byteps": 0.0}
_PULLS_EACH_ELSEWHERE: Final = 0.6
"""How likely every device pulls for itself, by framework. Where none is named it may be either: a little likelier as in
TensorFlow, whose parameter servers are more common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """How the devices of one worker exchange with the servers.

    Attributes
    ----------
    devices : int
        Devices that add up their gradients before the worker pushes them.
    pulls : int
        Times that a worker pulls the parameters each step: 1, or once for each device.
    adding_s : float
        Seconds of adding up over the link inside the node, and of handing on what was pulled once; 0 where bytes or
        link are not known.
    """

    devices: int = 1
    pulls: int = 1
    adding_s: float = 0.0

    def notices(self) -> tuple[Notice, ...]:
        """How workers of several devices are represented."""
        if self.devices == 1:
            return ()
        adding = f"which takes {self.adding_s:.3g} s" if self.adding_s > 0.0 else "which is assumed to take no time"
        text = f"up to {self.devices} devices of a worker add up their gradients, {adding}, and push the sum once"
        return (Notice("DEVICES_ADD_UP", text),)


def share_that_pulls_each(framework: str) -> float:
    """Probability that every device of a worker pulls the parameters for itself, by a framework's name or none."""
    name = framework.casefold()
    return next((share for known, share in _PULLS_EACH.items() if known in name), _PULLS_EACH_ELSEWHERE)


def exchange_of(
    devices: int, *, pulls_each: bool, parameter_bytes: float, device: str, catalogue: Catalogue
) -> Exchange:
    """The exchange of workers of so many devices.

    Adding up is an all-reduce in a ring, 2 (n - 1) / n S / B (P. Patarasuk and X. Yuan, J. Parallel Distrib. Comput.
    69(2), 2009); parameters that are pulled once cross the link once more.
    """
    if devices == 1:
        return Exchange()
    link = (catalogue.device(device) or {}).get("intra_node_link_bytes_per_s", 0.0)
    times = 2.0 * (devices - 1) / devices + (0.0 if pulls_each else 1.0)
    adding_s = parameter_bytes * times / link if link > 0.0 else 0.0
    return Exchange(devices=devices, pulls=devices if pulls_each else 1, adding_s=adding_s)


def pulls_taken(*, each: bool) -> str:
    """What is taken, in words."""
    return (
        ("every device is assumed to pull parameters itself")
        if each
        else "each worker is assumed to pull parameters once"
    )
