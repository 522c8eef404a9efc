"""Pollux' throughput model: its equations, and its loss with the gradient.

References
----------
A. Qiao et al., "Pollux: Co-adaptive cluster scheduling for goodput-optimized deep learning", OSDI 2021, as published in
petuum/adaptdl. With local batch m, n nodes and g GPUs:

    T_acc = alpha_c + beta_c m
    T_net = alpha_x + beta_x max(g - 2, 1e-8)      x = n across nodes, r inside one, none on one GPU
    T_opt = (T_acc^gamma + T_net^gamma)^(1/gamma)  1 <= gamma <= 10
    loss  = RMSLE(T_acc) + RMSLE(T_opt) + 1e-3 (gamma - 1)^2 + 1e-2 ((beta_n/alpha_n)^2 + (beta_r/alpha_r)^2)

RMSLE is the root mean square of the difference of the logarithms. A step without accumulation takes T_opt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, as_floats

from .rows import Rows, Truths

__all__ = ["ALPHA_C", "ALPHA_N", "ALPHA_R", "BETA_C", "BETA_N", "BETA_R", "GAMMA", "SMALL", "Loss", "step_s"]

ALPHA_C, BETA_C, ALPHA_N, BETA_N, ALPHA_R, BETA_R, GAMMA = range(7)
"""Places of the constants: seconds, seconds per sample, and twice seconds and seconds per GPU; gamma has no unit."""

SMALL: Final = 1e-8
"""Seconds, or GPUs, that stand for none."""
_OF_GAMMA: Final = 1e-3
_OF_SLOPES: Final = 1e-2


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """Terms of the model at some constants."""

    accumulate_s: Floats
    network_s: Floats
    log_step: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Links:
    """Which link carries the gradients of each row, and the GPUs beyond two."""

    across: Truths
    inside: Truths
    more_gpus: Floats

    @staticmethod
    def of(rows: Rows) -> _Links:
        across = rows.nodes > 1
        more_gpus = as_floats(np.maximum(rows.workers - 2.0, SMALL))
        return _Links(across=across, inside=~across & (rows.workers > 1), more_gpus=more_gpus)


def step_s(constants: Floats, rows: Rows) -> Floats:
    """T_opt of each row."""
    return as_floats(np.exp(_parts(constants, rows, _Links.of(rows)).log_step))


def _parts(constants: Floats, rows: Rows, links: _Links) -> _Parts:
    gamma = constants[GAMMA]
    chosen = (links.across, links.inside)
    alpha = np.select(chosen, (constants[ALPHA_N], constants[ALPHA_R]), SMALL)
    beta = np.select(chosen, (constants[BETA_N], constants[BETA_R]), SMALL)
    accumulate_s = constants[ALPHA_C] + constants[BETA_C] * rows.batch_samples
    network_s = alpha + beta * links.more_gpus
    log_step = np.logaddexp(gamma * np.log(accumulate_s), gamma * np.log(network_s)) / gamma
    return _Parts(as_floats(accumulate_s), as_floats(network_s), as_floats(log_step))


class Loss:
    """Pollux' loss of measured rows, as a function of the constants."""

    def __init__(self, rows: Rows, accumulate_s: Floats, measured_s: Floats) -> None:
        self._rows, self._links = rows, _Links.of(rows)
        self._log_accumulate, self._log_measured = np.log(accumulate_s), np.log(measured_s)

    def __call__(self, constants: Floats) -> tuple[float, Floats]:
        """The loss and its gradient."""
        gamma = float(constants[GAMMA])
        parts = _parts(constants, self._rows, self._links)
        log_accumulate, log_network = np.log(parts.accumulate_s), np.log(parts.network_s)
        loss_accumulate, by_accumulate = _rmsle(log_accumulate - self._log_accumulate)
        loss_step, by_step = _rmsle(parts.log_step - self._log_measured)
        # The step's logarithm by those of its two parts, and by gamma.
        of_accumulate = np.exp(gamma * (log_accumulate - parts.log_step))
        of_network = np.exp(gamma * (log_network - parts.log_step))
        of_gamma = (of_accumulate * log_accumulate + of_network * log_network - parts.log_step) / gamma
        d_accumulate = (by_accumulate + by_step * of_accumulate) / parts.accumulate_s
        d_network = by_step * of_network / parts.network_s
        gradient = np.array(
            [
                d_accumulate.sum(),
                (d_accumulate * self._rows.batch_samples).sum(),
                (d_network * self._links.across).sum(),
                (d_network * self._links.across * self._links.more_gpus).sum(),
                (d_network * self._links.inside).sum(),
                (d_network * self._links.inside * self._links.more_gpus).sum(),
                (by_step * of_gamma).sum() + 2.0 * _OF_GAMMA * (gamma - 1.0),
            ]
        )
        loss = loss_accumulate + loss_step + _OF_GAMMA * (gamma - 1.0) ** 2
        for alpha, beta in ((ALPHA_N, BETA_N), (ALPHA_R, BETA_R)):
            ratio = constants[beta] / constants[alpha]
            loss += _OF_SLOPES * ratio**2
            gradient[alpha] -= 2.0 * _OF_SLOPES * ratio**2 / constants[alpha]
            gradient[beta] += 2.0 * _OF_SLOPES * ratio / constants[alpha]
        return float(loss), as_floats(gradient)


def _rmsle(difference: Floats) -> tuple[float, Floats]:
    """Root mean square and its gradient; where all is met exactly the gradient is 0."""
    value = float(np.sqrt((difference**2).mean()))
    return value, as_floats(difference / (len(difference) * max(value, np.finfo(np.float64).tiny)))
