"""The fitted model of replicas that are split alike: which evidence answers a row, and with which notices."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from nodewise.plugin import (
    Configurations,
    Floats,
    Ints,
    Notice,
    Predictions,
    Refusal,
    RowRefusal,
)
from nodewise_scaling.device import INTERVAL_LEVEL, PARTS, DeviceModel
from nodewise_scaling.new_device import NewDeviceFit, fit_new_device
from nodewise_scaling.points import Setting, keys_of
from nodewise_scaling.routing import Route, routes_of
from nodewise_scaling.speed import FACT_WORDS
from nodewise_scaling.transfer import Sources

__all__ = ["SettingsModel"]


class SettingsModel:
    """Fits by setting, and what is carried over to others.

    Parameters
    ----------
    models : mapping of Setting to DeviceModel
    sources : Sources
        Of the runs.
    where_unseen : callable
        Fits for devices on which the job never ran, made when a row first asks for one.
    notices : tuple of Notice
        What holds of every row.
    """

    def __init__(
        self,
        models: Mapping[Setting, DeviceModel],
        sources: Sources,
        where_unseen: Callable[[], Sources],
        notices: tuple[Notice, ...],
    ) -> None:
        self._models = models
        self._sources = sources
        self._where_unseen = where_unseen
        self._notices = notices

    def predict(self, configurations: Configurations) -> Predictions:
        """Predict every row; refuse row by row what is no all-reduce job, or too little is known of."""
        rows = len(configurations)
        row_refusals, routes = routes_of(configurations, self._models, self._sources.catalogue)
        refusals, notices, pieces = list(row_refusals), list(self._notices), []
        for route, rows_of_route in routes.items():
            model, carried, ran_bytes_per_s = self._model(route)
            keys, assumed = _query_points(model, configurations, rows_of_route)
            answerable = model.answerable(keys)
            if not answerable.all():
                refusals.append(_too_unsure(route, rows_of_route[~answerable]))
            members, keys = rows_of_route[answerable], keys[answerable]
            if not len(members):
                continue
            step_s, spread, parts = model.predict(keys)
            answer = Predictions.assembled(
                dict(zip(PARTS, parts)), step_s=step_s, log_spread=spread, extrapolation=model.extrapolation(keys)
            )
            pieces.append((None if len(members) == rows else members, answer))
            notices += (*assumed, *self._notices_of_route(route, carried, ran_bytes_per_s, configurations, members))
        return Predictions.joined(rows, pieces, refusals=tuple(refusals), notices=tuple(notices))

    def log_covariance(self, configurations: Configurations) -> Floats:
        """(rows, rows) covariance of ln(true step) about the prediction; 0 in rows that are refused."""
        covariance = np.zeros((len(configurations), len(configurations)))
        _, routes = routes_of(configurations, self._models, self._sources.catalogue)
        for route, rows in routes.items():
            model, _, _ = self._model(route)
            keys, _ = _query_points(model, configurations, rows)
            answerable = model.answerable(keys)
            members = rows[answerable]
            covariance[np.ix_(members, members)] = model.log_covariance(keys[answerable])
        return covariance

    def _model(self, route: Route) -> tuple[DeviceModel, NewDeviceFit | None, float]:
        """What answers a route, what it carries over from other devices, and the link of its runs."""
        device, link = route.asked
        if route.evidence is not None:
            model, ran = self._models[route.evidence], route.evidence.link_bytes_per_s
            carried = None
        else:
            sources = self._where_unseen()
            carried = fit_new_device(device, link, sources)
            assert carried is not None  # routes_of refuses devices without facts
            ran = carried.link_bytes_per_s
            multiplier = sources.knowledge.multiplier(sources.name_of(Setting(device, ran)), INTERVAL_LEVEL)
            model = DeviceModel(carried.fit, multiplier, carried.fit.points, reach=carried.reach, doubt=carried.doubt)
        return (model.over_link(float(np.log(link / ran))) if link and link != ran else model), carried, ran

    def _notices_of_route(
        self, route: Route, carried: NewDeviceFit | None, ran: float, configurations: Configurations, members: Ints
    ) -> list[Notice]:
        """Notices about a route's rows."""
        rows = _rows(members, configurations)
        device, link = route.asked
        notices = []
        if carried is not None:
            notices.append(Notice("TRANSFERRED", self._describe_carry(device, carried), rows))
        else:
            donors = sorted({setting.device for setting in self._sources.others(device)}) if device else []
            if donors:
                message = (
                    f"scaling on {device} is estimated from its own runs and from the job's runs on "
                    f"{_list_words(donors)}"
                )
                notices.append(Notice("SUPPORTED_BY_OTHER_DEVICES", message, rows))
            if not device:
                notices += _device_notices(configurations, members)
            share = self._models[route.evidence].overlapped_share if route.evidence is not None else 0.0
            if share:
                message = (
                    f"{100.0 * share:.0f} % probability that gradient communication overlaps fully with computation, "
                    "from the job's runs and other jobs on the device"
                )
                notices.append(Notice("EXCHANGE_HIDDEN", message, rows))
        if link and link != ran:
            message = (
                f"no run used a link of {link:.3g} bytes/s: exchange across nodes was measured over {ran:.3g} "
                "bytes/s, and 60 to 100 % of it is assumed to scale with bandwidth"
            )
            notices.append(Notice("LINK_SCALED", message, rows))
        return notices

    def _describe_carry(self, device: str, carried: NewDeviceFit) -> str:
        donors = sorted({setting.device for setting in carried.donors})
        facts = _list_words([FACT_WORDS.get(fact, fact) for fact in carried.facts])
        unknown = ["how much of them the job reaches", "what the hosts add to a step"]
        if not self._where_unseen().name_of(Setting(device, carried.link_bytes_per_s)):
            unknown.append("how the device's cluster exchanges gradients")
        return (
            f"the job never ran on {device}: its scaling and compute are derived from runs on {_list_words(donors)}, "
            f"compute by the catalogue's {facts}; unknown, and so in the interval: {_list_words(unknown)}"
        )


def _query_points(model: DeviceModel, configurations: Configurations, members: Ints) -> tuple[Floats, list[Notice]]:
    """Keys of some rows; a batch that a row does not state is the most frequent batch of the measured runs."""
    keys = keys_of(configurations.take(members))
    unsaid = (configurations.batch_per_worker[members] == 0) & (configurations.global_batch[members] == 0)
    measured = model.measured_keys[:, 3]
    if not unsaid.any() or (measured == 1.0).all():
        return keys, []
    batches, counts = np.unique(measured, return_counts=True)
    usual = float(batches[counts == counts.max()].max())
    keys[unsaid, 3] = usual
    if len(batches) == 1:
        return keys, []
    message = f"the batch is not stated: {usual:.0f} samples per worker are assumed, as in most measured runs"
    return keys, [Notice("BATCH_ASSUMED", message, _rows(members[unsaid], configurations))]


def _device_notices(configurations: Configurations, members: Ints) -> list[Notice]:
    """Notice that evidence of an unstated device is assumed to be of the devices that rows name."""
    names = np.array(configurations.device_names())[members]
    has_name = names != ""
    if not has_name.any():
        return []
    message = f"the observations do not state their device: {', '.join(sorted(set(names[has_name])))} is assumed"
    return [Notice("DEVICE_ASSUMED", message, _rows(members[has_name], configurations))]


def _too_unsure(route: Route, rows: Ints) -> RowRefusal:
    device = route.asked.device
    message = (
        f"the step on {device} cannot be predicted within a factor of 5: with so little work per step, overheads that "
        f"the catalogue does not state dominate; measure one worker on {device} at this batch and send it as an "
        "observation"
    )
    return RowRefusal(tuple(rows.tolist()), Refusal.missing(message, "observations"))


def _rows(rows: Ints, configurations: Configurations) -> tuple[int, ...]:
    """Rows of a notice; none = all."""
    return tuple(rows.tolist()) if len(rows) < len(configurations) else ()


def _list_words(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
