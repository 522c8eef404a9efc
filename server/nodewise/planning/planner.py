"""Chooses the estimator and the model of a question, and searches its space."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.errors import NodewiseError, Reason, Refusal, invalid_field
from nodewise.domain.objective import Objective
from nodewise.domain.planning import PlanConstraints, PlanPool
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.estimators.estimators import joint_refusal
from nodewise.estimation.question import AUTO, Answer, Basis, Question
from nodewise.hosting.calls import has
from nodewise.planning.checked_model import BoundedSpace, CheckedModel
from nodewise.planning.goal import Goal, goal_of
from nodewise.planning.results import PlanQuestion
from nodewise.planning.search import How, SearchResult, search_space
from nodewise.plugin import Catalogue, PlanningModel

__all__ = ["CAPABILITY", "Planner", "planner_of"]

CAPABILITY: Final = "plan"
"""The capability of estimators whose models plan."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Planner:
    """A model that plans, and the question that it plans for."""

    answers: Answers
    question: PlanQuestion
    constraints: PlanConstraints
    model: CheckedModel
    basis: Basis

    def goal(self, objective: Objective | None = None) -> Goal:
        """The question's objective, or another, over its constraints."""
        return goal_of(objective or self.question.objective, self.question.profile.workload, self.constraints)

    def space(self, constraints: PlanConstraints | None = None) -> BoundedSpace:
        """The space within the question's constraints, or others."""
        return self.model.space(constraints or self.constraints)

    def search(
        self, *, constraints: PlanConstraints | None = None, objective: Objective | None = None, by_excess: bool = False
    ) -> SearchResult:
        """Search once more, for the best row alone, with other constraints or another objective."""
        goal = replace(self.goal(objective), by_excess=by_excess)
        return search_space(
            self.space(constraints), goal, How(frontier=False, budget=self.question.terms.options.budget)
        )

    def predict(self, rows: Configurations, objective: Objective | None) -> Answer:
        """Dense predictions of the rows, as in any other question."""
        question = self.question
        return self.answers.answer(
            Question(
                profile=question.profile,
                configurations=rows,
                objective=objective,
                terms=question.terms.by(self.model.name),
            )
        )


def planner_of(answers: Answers, question: PlanQuestion) -> Planner:
    """The planner of a question.

    Raises
    ------
    NodewiseError
        ESTIMATOR_NOT_FOUND; INVALID_FIELD for an estimator that does not plan; the reason why no estimator can answer;
        what a fit raises.
    """
    constraints = _with_link(question, answers.estimators.catalogue)
    pool = constraints.pools[0]
    # Every model has a configuration of one device.
    probe = Configurations.of(
        1,
        nodes=1,
        workers=1,
        device=pool.device,
        sync_mode=SyncMode.ALLREDUCE,
        batch_per_worker=0 if constraints.global_batches else min(constraints.micro_batches or (1,)),
        global_batch=min(constraints.global_batches, default=0),
        link_bytes_per_s=pool.link_bytes_per_s,
    )
    configurations = answers.resolve_configurations(question.profile, probe)
    name = _choose_estimator(answers, question, configurations)
    fit = answers.model_of(Question(profile=question.profile, configurations=probe, terms=question.terms.by(name)))
    plugin = answers.estimators.by_name(name)
    if not has(plugin, fit.model, PlanningModel, "space"):
        raise _no_planner(answers, name)
    model = CheckedModel(plugin, fit.model)
    return Planner(answers=answers, question=question, constraints=constraints, model=model, basis=fit.basis)


def _with_link(question: PlanQuestion, catalogue: Catalogue) -> PlanConstraints:
    """The constraints, where a pool that states no link has that of the machine of its device, else the job's own."""
    own = question.profile.network.link_bytes_per_s or 0.0

    def with_link(pool: PlanPool) -> PlanPool:
        machine = catalogue.named_machine(pool.device)
        link = machine.node_link_bytes_per_s if machine else own
        return replace(pool, link_bytes_per_s=pool.link_bytes_per_s or link)

    return replace(question.constraints, pools=tuple(map(with_link, question.constraints.pools)))


def _choose_estimator(answers: Answers, question: PlanQuestion, probe: Configurations) -> str:
    """The estimator that the question names; else the planning estimator that reports the most evidence."""
    names = [question.terms.estimator]
    if question.terms.estimator == AUTO:
        names = _planners(answers)
        if not names:
            text = "no loaded estimator can plan: install one with the capability 'plan'"
            raise NodewiseError(Reason.ESTIMATOR_NOT_FOUND, text, {"estimator": AUTO})
    elif CAPABILITY not in answers.estimators.by_name(question.terms.estimator).record.capabilities:
        raise _no_planner(answers, question.terms.estimator)
    able: list[tuple[float, str]] = []
    refusals: list[tuple[str, Refusal]] = []
    failures: list[NodewiseError] = []
    for name in names:
        try:
            assessment = answers.estimators.assess(name, question.profile, probe, question.terms.options)
        except NodewiseError as error:
            failures.append(error)
            continue
        if assessment.refusal is None:
            able.append((-assessment.strength, name))
        else:
            refusals.append((name, assessment.refusal))
    if able:
        return min(able)[1]
    if refusals:
        raise NodewiseError.refused(joint_refusal(refusals))
    raise failures[0]


def _planners(answers: Answers) -> list[str]:
    """Names of the estimators that plan."""
    estimators = answers.registry.estimators
    return sorted(name for name, each in estimators.items() if CAPABILITY in each.record.capabilities)


def _no_planner(answers: Answers, name: str) -> NodewiseError:
    names = ", ".join(_planners(answers)) or "none is loaded"
    return invalid_field("options.estimator", f"must be an estimator that plans ({names}), found {name!r}")
