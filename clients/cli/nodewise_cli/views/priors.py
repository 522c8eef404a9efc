"""What a server learned, for people."""

from __future__ import annotations

from nodewise_cli.console import say
from nodewise_cli.views.numbers import format_number
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import EstimatorPrior, LearnedPriors, ListPriorsResponse

__all__ = ["show_learned", "show_priors"]


def show_priors(found: ListPriorsResponse) -> None:
    """All of it."""
    if not found.learned:
        say("nothing was learned: estimators answer by what ships with them")
    for each in found.learned:
        show_learned(each)
    if found.shared_namespaces:
        say(f"shared within bounds: {', '.join(found.shared_namespaces)}")


def show_learned(learned: LearnedPriors | None) -> None:
    """What one namespace learned."""
    if learned is None:
        return
    when = f", {learned.learn_time:%Y-%m-%d %H:%M} UTC" if learned.learn_time else ""
    held = ", pinned" if learned.pin_time else ""
    name = learned.namespace or "ids without a slash"
    say(f"{name}: lessons {learned.lessons_id} of {learned.jobs_count} jobs, {learned.owners_count} owners{when}{held}")
    for job in learned.trimmed_jobs:
        say(f"  left out of {job.profile_id}: {job.reason}")
    if learned.lost_profiles_count:
        say(f"  {learned.lost_profiles_count} profiles that it is pinned to are no more")
    known = [each for each in learned.priors if each.prior_id or each.tried_jobs_count or each.effect]
    if known:
        print_columns(
            (words("estimator"), [each.estimator for each in known]),
            (words("prior"), [each.prior_id or "-" for each in known]),
            (figures("spread factor"), [format_number(each.spread_factor, 3) for each in known]),
            (figures("tried on"), [str(each.tried_jobs_count) for each in known]),
            (figures("scored"), [_tell_score(each) for each in known]),
            (figures("mean |ln|"), [_error(each, learned=True) for each in known]),
            (figures("without"), [_error(each, learned=False) for each in known]),
        )
    for past in learned.past:
        if past.lessons_id != learned.lessons_id:
            at = f"{past.learn_time:%Y-%m-%d %H:%M} UTC" if past.learn_time else "-"
            say(f"  before: lessons {past.lessons_id} of {past.profiles_count} profiles, {at}")


def _tell_score(prior: EstimatorPrior) -> str:
    return str(prior.effect.observations_count) if prior.effect else "-"


def _error(prior: EstimatorPrior, *, learned: bool) -> str:
    effect = prior.effect
    if effect is None:
        return "-"
    return format_number(effect.mean_absolute_log_error if learned else effect.mean_absolute_log_error_without, 3)
