"""What a server learned, for people."""

from __future__ import annotations

from nodewise_cli.console import say
from nodewise_cli.views.numbers import format_number
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import EstimatorPrior, LearnedPriors, ListPriorsResponse

__all__ = ["show_learned", "show_priors"]


def show_priors(response: ListPriorsResponse) -> None:
    """All of it."""
    if not response.learned:
        say("nothing was learned: estimators use the priors that ship with them")
    for each in response.learned:
        show_learned(each)
    if response.shared_namespaces:
        say(f"namespaces that share what they learn: {', '.join(response.shared_namespaces)}")


def show_learned(lessons: LearnedPriors | None) -> None:
    """What one namespace learned."""
    if lessons is None:
        return
    when = f", {lessons.learn_time:%Y-%m-%d %H:%M} UTC" if lessons.learn_time else ""
    pin = ", pinned" if lessons.pin_time else ""
    name = lessons.namespace or "ids without a slash"
    say(f"{name}: lessons {lessons.lessons_id} of {lessons.jobs_count} jobs, {lessons.owners_count} owners{when}{pin}")
    for job in lessons.trimmed_jobs:
        say(f"  job {job.profile_id}, evidence left out: {job.reason}")
    if lessons.lost_profiles_count:
        say(f"  {lessons.lost_profiles_count} profiles of the pinned lessons no longer exist")
    priors = [each for each in lessons.priors if each.prior_id or each.tried_jobs_count or each.effect]
    if priors:
        print_columns(
            (words("estimator"), [each.estimator for each in priors]),
            (words("prior"), [each.prior_id or "-" for each in priors]),
            (figures("spread factor"), [format_number(each.spread_factor, 3) for each in priors]),
            (figures("tried on"), [str(each.tried_jobs_count) for each in priors]),
            (figures("scored"), [_tell_score(each) for each in priors]),
            (figures("mean |ln|"), [_error(each, learned=True) for each in priors]),
            (figures("without"), [_error(each, learned=False) for each in priors]),
        )
    for past in lessons.past:
        if past.lessons_id != lessons.lessons_id:
            at = f"{past.learn_time:%Y-%m-%d %H:%M} UTC" if past.learn_time else "-"
            say(f"  before: lessons {past.lessons_id} of {past.profiles_count} profiles, {at}")


def _tell_score(prior: EstimatorPrior) -> str:
    return str(prior.effect.observations_count) if prior.effect else "-"


def _error(prior: EstimatorPrior, *, learned: bool) -> str:
    effect = prior.effect
    if effect is None:
        return "-"
    return format_number(effect.mean_absolute_log_error if learned else effect.mean_absolute_log_error_without, 3)
