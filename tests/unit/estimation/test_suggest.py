"""What to measure next, against the law by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from estimators import Fake, asked, predictions_of, profile_of, registry_of
from scipy.special import ndtr

from nodewise.domain.budget import Budget
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.objective import HighestThroughput, Knee, LeastCost, LeastTime, Objective, Offer
from nodewise.domain.predictions import Options, Predictions, RowRefusal
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Question, Terms
from nodewise.estimation.suggestion import search
from nodewise.estimation.suggestion.covariance import assumed_covariance, measure
from nodewise.estimation.suggestion.search import Suggestions, Wish
from nodewise.estimation.suggestion.suggest import suggest
from nodewise.plugin import CovariantModel, Floats

FASTEST = Objective(rule=HighestThroughput())


class Covariant(Fake):
    """A model whose steps and covariance are given for each number of nodes; one worker per node, 10 samples each."""

    def __init__(self, steps: dict[int, float], covariance: Any, *, noise: Any = 0.04, refused: Sequence[int] = ()):
        super().__init__(self._answer)
        self.steps, self.covariance, self.refused = steps, covariance, refused
        self.measurement_log_spread = noise

    def _places(self, configurations: Configurations) -> list[int]:
        return [list(self.steps).index(nodes) for nodes in configurations.nodes.tolist()]

    def _answer(self, configurations: Configurations, options: Options) -> Predictions:
        rows = [row for row, nodes in enumerate(configurations.nodes.tolist()) if nodes in self.refused]
        refusal = Refusal(Reason.EVIDENCE_MISSING, "not this one", ("observations",))
        step_s = np.array([self.steps[nodes] for nodes in configurations.nodes.tolist()])
        spread = np.sqrt(np.diag(self.log_covariance(configurations, options)))
        return Predictions.of(step_s, log_spread=spread, refusals=(RowRefusal(tuple(rows), refusal),) if rows else ())

    def log_covariance(self, configurations: Configurations, options: Options) -> Floats:
        places = self._places(configurations)
        return np.asarray(self.covariance, dtype=float)[np.ix_(places, places)]


def suggestions(
    model: Any,
    nodes: Sequence[int],
    *,
    objective: Objective = FASTEST,
    options: Options | None = None,
    ran: Sequence[int] = (512,),
    **wish: Any,
) -> Suggestions:
    engine = Answers(registry_of({"fake": model}))
    terms = Terms(options=options or Options())
    question = Question(profile=profile_of(workers=ran), configurations=asked(*nodes), objective=objective, terms=terms)
    return suggest(engine, question, Wish(**wish))


def steps_of(rates: dict[int, float]) -> dict[int, float]:
    """Step times of so many samples/s."""
    return {nodes: 10.0 * nodes / rate for nodes, rate in rates.items()}


def lost(mean: float, spread: float) -> float:
    """E[max(0, 1 - exp(-D))] for D normal: what is lost by staying, D = ln(the other's rate / ours)."""
    at = mean / spread
    return float(ndtr(at) - math.exp(spread**2 / 2 - mean) * ndtr(at - spread))


def test_two_candidates_in_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "DRAWS", 2048)
    apart, variance, noise = 0.1, 0.3**2, 0.1
    model = Covariant(
        steps_of({1: 100.0, 2: 100.0 * math.exp(-apart)}), np.diag([0.0, variance]), noise=noise
    )  # the first is known: the second alone can be measured
    found = suggestions(model, (1, 2), start_up_s=7.0, run_steps=50)
    assert found.expected_regret == pytest.approx(lost(-apart, 0.3), rel=0.05)
    # What the measurement finds moves the mean by a normal variable, and leaves the rest of the variance.
    moved, left = variance / math.sqrt(variance + noise**2), math.sqrt(variance * noise**2 / (variance + noise**2))
    means, weights = np.polynomial.hermite_e.hermegauss(201)
    after = [lost(-abs(-apart + moved * by), left) for by in means]
    fall = lost(-apart, 0.3) - float(np.average(after, weights=weights))
    (only,) = found.suggestions
    assert (only.row, only.nodes, only.workers) == (1, 2, 2)
    assert only.expected_regret_fall == pytest.approx(fall, rel=0.1)
    assert only.cost_node_seconds == pytest.approx(2 * (7.0 + 50 * model.steps[2]))
    assert only.expected_width_fall == pytest.approx(2 * 1.6448536 * (0.3 - left) / 2)
    assert "cut the regret of the decision" in only.why


def test_a_row_that_decides_nothing_brings_nothing() -> None:
    # As uncertain as the second, independent of both, but ten times slower.
    model = Covariant(steps_of({1: 100.0, 2: 98.0, 3: 10.0}), np.diag([0.01, 0.01, 0.01]))
    found = suggestions(model, (1, 2, 3), count=3)
    assert {each.nodes for each in found.suggestions[:2]} == {1, 2}
    last = found.suggestions[2]
    assert last.nodes == 3
    assert last.expected_regret_fall == 0.0
    assert last.expected_width_fall > 0.0
    assert last.why.startswith("after the measurements before it, no further run would change the decision: ")


def test_where_nothing_turns_the_decision_the_interval_decides() -> None:
    model = Covariant(steps_of({1: 10.0, 2: 100.0, 3: 10.0}), np.diag([0.04, 0.01, 0.0]))
    (only,) = suggestions(model, (1, 2, 3)).suggestions
    assert only.nodes == 1
    assert only.expected_regret_fall == 0.0
    assert only.why.startswith("no further run would change the decision: ")
    assert "on 1 node narrows" in only.why


def test_where_one_measurement_turns_nothing_the_next_tells_most_of_the_doubt() -> None:
    # A measurement so coarse that it takes more than three deviations of what it may find to turn the decision.
    apart, spread, noise = 0.105, 0.1, 0.3
    rates = {1: 100.0, 2: 100.0 * math.exp(-apart), 3: 10.0}
    found = suggestions(Covariant(steps_of(rates), np.diag([0.0, spread**2, 0.1]), noise=noise), (1, 2, 3))
    assert found.expected_regret == pytest.approx(lost(-apart, spread), rel=0.3)
    (only,) = found.suggestions
    assert only.nodes == 2  # the third is in greater doubt, which decides nothing
    assert only.expected_regret_fall < search.LEAST_REGRET_FALL
    explained = spread**2 / (spread**2 + noise**2)
    assert f"({100 * explained * found.expected_regret:.3g} of " in only.why
    assert only.why.startswith("no single run is expected to change the decision, but several may: ")


def test_the_cheaper_of_equals_comes_first() -> None:
    # The second and third are one unknown: whoever measures either knows both.
    covariance = [[0.0, 0.0, 0.0], [0.0, 0.04, 0.04], [0.0, 0.04, 0.04]]
    rates = {5: 100.0, 4: 95.0, 2: 95.0}
    found = suggestions(Covariant(steps_of(rates), covariance), (5, 4, 2), count=2, run_steps=1, start_up_s=10)
    first, second = found.suggestions
    assert (first.nodes, first.row) == (2, 2)
    assert (second.nodes, second.row) == (4, 1)
    assert first.cost_node_seconds < second.cost_node_seconds


def many(rows: int = 12) -> tuple[Covariant, tuple[int, ...]]:
    nodes = tuple(range(1, rows + 1))
    rates = {count: 100.0 * count / (1.0 + 0.15 * count + 0.02 * count**2) for count in nodes}
    model = Covariant(steps_of(rates), 0.0)
    model.covariance = assumed_covariance(asked(*nodes), np.linspace(0.05, 0.2, rows)).values
    return model, nodes


@pytest.mark.parametrize("rule", [FASTEST, Objective(rule=Knee()), Objective(rule=Knee(), confidence=0.8)])
def test_the_order_of_rows_changes_nothing(rule: Objective) -> None:
    model, nodes = many()
    straight = suggestions(model, nodes, objective=rule, count=2, start_up_s=30)
    for turned in (nodes[::-1], (*nodes[5:], *nodes[:5])):
        found = suggestions(model, turned, objective=rule, count=2, start_up_s=30)
        assert [each.nodes for each in found.suggestions] == [each.nodes for each in straight.suggestions]
        for one, other in zip(found.suggestions, straight.suggestions, strict=True):
            assert turned[one.row] == one.nodes
            assert one.expected_regret_fall == pytest.approx(other.expected_regret_fall, abs=1e-9)
            assert one.expected_width_fall == pytest.approx(other.expected_width_fall)
        assert found.expected_regret == pytest.approx(straight.expected_regret)


def test_the_same_question_has_the_same_answer_and_the_seed_is_part_of_it() -> None:
    model, nodes = many()
    first, again = (suggestions(model, nodes, count=3) for _ in range(2))
    assert (first.suggestions, first.expected_regret) == (again.suggestions, again.expected_regret)
    other = suggestions(model, nodes, count=3, options=Options(seed=-7))
    assert other.expected_regret != first.expected_regret
    assert other.expected_regret == pytest.approx(first.expected_regret, rel=0.5)


def test_known_rows_are_never_suggested() -> None:
    noise = 0.1
    model = Covariant(steps_of({1: 100.0, 2: 99.0}), np.diag([noise**2 / 10.1, noise**2 / 9.9]), noise=noise)
    found = suggestions(model, (1, 2), count=3)
    assert [each.nodes for each in found.suggestions] == [2]
    model.covariance = np.diag([noise**2 / 11, noise**2 / 11])
    found = suggestions(model, (1, 2), count=3)
    assert found.suggestions == ()
    assert found.notices[-1].reason == "NOTHING_TO_MEASURE"


def test_what_ran_is_not_suggested_again() -> None:
    # The first is the least certain and the cheapest, and it ran.
    model = Covariant(steps_of({1: 100.0, 2: 99.0, 3: 98.0}), np.diag([0.04, 0.01, 0.01]))
    assert suggestions(model, (1, 2, 3)).suggestions[0].nodes == 1
    found = suggestions(model, (1, 2, 3), ran=(1,), count=3)
    assert sorted(each.nodes for each in found.suggestions) == [2, 3]
    everything = suggestions(model, (1, 2, 3), ran=(3, 2, 1))
    assert everything.suggestions == ()
    assert everything.expected_regret > 0.0
    assert everything.notices[-1].reason == "NOTHING_TO_MEASURE"


def test_a_run_that_costs_twice_as_much_is_worth_half() -> None:
    # The second and third are in doubt alike, the third a little more; both are what the first might lose to.
    def first(nodes: tuple[int, int, int]) -> tuple[int, float]:
        model = Covariant(steps_of(dict(zip(nodes, (100.0, 96.0, 96.0), strict=True))), np.diag([0.0, 0.01, 0.0121]))
        (only,) = suggestions(model, nodes, run_steps=1, start_up_s=1e4).suggestions
        return only.row, only.expected_regret_fall

    (row, fall), (other, lesser_fall) = first((1, 2, 3)), first((1, 6, 3))
    assert (row, other) == (1, 2)  # the cheaper of the two, which the greater cost makes the dearer
    assert fall < lesser_fall < 2.0 * fall


def test_a_model_without_a_spread_says_so() -> None:
    plain = Fake(lambda configurations, _: predictions_of(1.0 / configurations.workers, log_spread=np.zeros(2)))
    found = suggestions(plain, (1, 2))
    assert (found.suggestions, found.expected_regret) == ((), 0.0)
    assert [notice.reason for notice in found.notices] == ["NO_SPREAD"]


def test_refused_rows_keep_their_places() -> None:
    model = Covariant(steps_of({1: 50.0, 2: 100.0, 3: 98.0}), np.diag([0.01, 0.01, 0.01]), refused=(1,))
    found = suggestions(model, (1, 2, 3), count=3)
    assert sorted((each.row, each.nodes) for each in found.suggestions) == [(1, 2), (2, 3)]


def test_nothing_answered_is_the_first_refusal() -> None:
    model = Covariant(steps_of({1: 50.0}), [[0.01]], refused=(1,))
    with pytest.raises(NodewiseError, match="not this one") as caught:
        suggestions(model, (1,))
    assert caught.value.reason is Reason.EVIDENCE_MISSING
    assert caught.value.metadata == {"missing_fields": "observations"}


def test_nothing_that_fits_into_memory() -> None:
    def none_fits(configurations: Configurations, _: Options) -> Predictions:
        zeros = np.zeros(len(configurations))
        return predictions_of(
            zeros,
            status=np.full(len(zeros), 3),
            log_spread=zeros,
            breakdown_s={},
            bottleneck_index=np.full(len(zeros), -1),
            extrapolation=zeros,
            excess_memory_bytes=zeros + 1.0,
        )

    with pytest.raises(NodewiseError, match="no row fits into memory") as caught:
        suggestions(Fake(none_fits), (1, 2))
    assert caught.value.reason is Reason.OBJECTIVE_UNREACHABLE


def test_an_objective_that_no_row_meets_is_never_in_doubt() -> None:
    model, nodes = many()
    found = suggestions(model, nodes[1:], objective=Objective(rule=LeastTime(max_nodes=1)))
    assert found.expected_regret == 0.0
    assert "no further run would change" in found.suggestions[0].why


def test_an_objective_that_only_some_truths_meet() -> None:
    # 110 samples/s are wanted; the second row has them or not, the first never has.
    model = Covariant(steps_of({1: 50.0, 2: 100.0}), np.diag([0.0001, 0.04]), noise=0.001)
    rule = LeastCost(deadline_s=10.0)
    objective = Objective(rule=rule, remaining_samples=1100.0, offers=(Offer(price_per_node_hour=1.0),))
    found = suggestions(model, (1, 2), objective=objective)
    chance = float(ndtr(-math.log(1.1) / 0.2))
    assert found.expected_regret == pytest.approx(chance, rel=0.2)
    # Then it is known whether it does.
    assert found.suggestions[0].expected_regret_fall == pytest.approx(found.expected_regret, rel=0.05)


def test_one_suggestion_is_the_first_of_three() -> None:
    model, nodes = many()
    one, three = (suggestions(model, nodes, count=count).suggestions for count in (1, 3))
    assert one == three[:1]
    assert len({each.row for each in three}) == 3


class Over(Budget):
    """One that is over after so many looks."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    def remaining_s(self) -> float:
        self.looks -= 1
        return float(self.looks)


@pytest.mark.parametrize("looks", [0, 3])
def test_a_search_that_time_cuts_short_is_no_answer(looks: int) -> None:
    model, nodes = many()
    with pytest.raises(NodewiseError, match="time was over") as caught:
        suggestions(model, nodes, options=Options(budget=Over(looks)))
    assert caught.value.reason is Reason.DEADLINE_EXCEEDED


def test_many_rows_are_weighed_by_the_few_that_may_matter() -> None:
    model, nodes = many(200)
    found = suggestions(model, nodes, count=1)
    assert len(found.suggestions) == 1
    assert found.suggestions[0].expected_regret_fall > 0


WRONG: list[tuple[Any, Any, str]] = [
    ([[1.0]], 0.04, "is a list instead of an array"),
    (np.eye(2, dtype=np.int64), 0.04, "instead of an array of floats"),
    (np.zeros((1, 2)), 0.04, r"has shape \(1, 2\) for 2 rows"),
    (np.array([[1.0, np.nan], [np.nan, 1.0]]), 0.04, "is not finite"),
    (np.diag([1.0, 101.0]), 0.04, "a variance above 10 squared"),
    (np.array([[1.0, 0.5], [0.4, 1.0]]), 0.04, "is not symmetric"),
    (np.array([[1.0, 2.0], [2.0, 1.0]]), 0.04, "is not positive semi-definite"),
    (np.diag([1.0, -1.0]), 0.04, "is not positive semi-definite"),
    (np.eye(2), -1.0, "measurement_log_spread must be a number from 0 to 10"),
    (np.eye(2), math.nan, "measurement_log_spread must be a number"),
    (np.eye(2), "low", "measurement_log_spread must be a number"),
]


class Telling(Fake):
    """Plain predictions, and whatever covariance and noise are given."""

    def __init__(self, covariance: Callable[[], Any], noise: Any = 0.04) -> None:
        super().__init__()
        self.covariance, self.measurement_log_spread = covariance, noise

    def log_covariance(self, configurations: Configurations, options: Options) -> Any:
        return self.covariance()


@pytest.mark.parametrize(("values", "noise", "problem"), WRONG, ids=lambda value: None)
def test_a_covariance_that_cannot_be_true_is_discarded(values: Any, noise: Any, problem: str) -> None:
    with pytest.raises(NodewiseError, match=problem) as caught:
        suggestions(Telling(lambda: values, noise), (1, 2))
    assert caught.value.reason is Reason.ESTIMATOR_INVALID_RESULT


def test_a_model_that_raises_is_named_and_its_text_kept() -> None:
    def fails() -> Any:
        raise SystemExit("secret")

    with pytest.raises(NodewiseError, match="failed in log_covariance") as caught:
        suggestions(Telling(fails), (1, 2))
    assert caught.value.reason is Reason.ESTIMATOR_FAILED
    assert "secret" not in str(caught.value)

    def refuses() -> Any:
        raise NodewiseError(Reason.EVIDENCE_MISSING, "no errors are known")

    with pytest.raises(NodewiseError, match="no errors are known"):
        suggestions(Telling(refuses), (1, 2))


def test_a_protocol_that_a_model_may_inherit() -> None:
    class Inheriting(CovariantModel):
        def predict(self, configurations: Configurations, options: Options) -> Predictions:
            return predictions_of(1.0 / configurations.workers)

        def log_covariance(self, configurations: Configurations, options: Options) -> Floats:
            return 0.01 * np.eye(len(configurations))

    assert Inheriting().measurement_log_spread == 0.04
    found = suggestions(Fake(fit=lambda *_: Inheriting()), (1, 2))
    assert found.suggestions


def test_assumed_errors_are_alike_where_scales_are() -> None:
    rows = asked(1, 4, 16, parameter_servers=1, sync_mode=2, batch_per_worker=8)
    covariance = assumed_covariance(rows, np.array([0.1, 0.2, 0.3])).values
    expected = np.outer([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]) * np.exp([[0, -1, -2], [-1, 0, -1], [-2, -1, 0]])
    np.testing.assert_allclose(covariance, expected)
    other = Configurations.concatenated(
        [
            asked(1, parameter_servers=1, sync_mode=2, batch_per_worker=8, device="V100"),
            asked(1, parameter_servers=1, sync_mode=2, batch_per_worker=32, device="V100"),
            asked(1, parameter_servers=2, sync_mode=2, batch_per_worker=8, device="V100"),
            asked(1, parameter_servers=1, sync_mode=2, batch_per_worker=8, device="K80"),
            asked(1, parameter_servers=1, sync_mode=2, device="V100"),
        ]
    )
    np.testing.assert_allclose(-np.log(assumed_covariance(other, np.ones(5)).values[0]), [0, 1, 1, 1, 2.5], atol=1e-12)


def test_a_measurement_conditions_the_rest() -> None:
    covariance = np.array([[0.04, 0.02], [0.02, 0.09]])
    left = measure(covariance, 0, 0.1)
    np.testing.assert_allclose(left, covariance - np.outer([0.04, 0.02], [0.04, 0.02]) / 0.05)
    assert measure(np.zeros((2, 2)), 0, 0.0).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_a_row_that_rounding_alone_leaves_open_teaches_nothing() -> None:
    covariance = np.outer([1e-15, 1.0, 1.0], [1e-15, 1.0, 1.0])
    for _ in range(3):
        left = measure(covariance, 0, 0.0)
        assert np.linalg.eigvalsh(left).min() >= -1e-9
        covariance = left
