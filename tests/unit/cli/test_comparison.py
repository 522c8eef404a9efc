"""Two recordings compared: parts add up to the difference, and what was planted is where it says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from math import fsum
from typing import Any

import orjson
import pytest
from compared_runs import answer_of, comparison_of
from hypothesis import given
from hypothesis import strategies as st
from measurements import data_path
from planted_campaign import Fault, faults
from recorded_jobs import gloo_job, job_of

from nodewise_cli.comparison import Comparison, RankDifference, Run, compare_runs
from nodewise_cli.failures import InputError
from nodewise_cli.views.comparison import document, show, verdict
from nodewise_client import DiagnosisAnswer, DiagnosisBasis, RankShares, ReadTrace, StepPart

EXPECTED = {
    # The copy itself occupies the device; its call waits for what launches before hid.
    "blocking copy": {"computation", "synchronisation", "launch", "dependency"},
    "preprocessing": {"preprocessing"},
    "garbage collection": {"garbage_collection"},
    "loader": {"loading"},
    "loader of a rank": {"loading"},
    "start-up": {"startup", "launch"},  # of the first launch
    # Nothing is recorded of a pause, so that it lies in the host's part that it comes in; or a batch is late.
    "jitter": {"unexplained", "loading", "preprocessing", "launch"},
    "slow rank": {"computation", "launch"},
    "imbalance": {"computation", "transfer", "waiting"},  # each rank computes longer once and waits for the others else
    "slow link": {"transfer"},
}
"""The parts that a planted fault makes longer, on the rank that it is planted on."""
BESIDE_MS = 0.01
"""Of a step: what calls beside a fault take longer or shorter, as the one after it queues less."""


def shares(parts: Sequence[tuple[str, str, float]], lengths: Sequence[float] = (), **more: Any) -> RankShares:
    """A rank whose mean step consists of parts, in milliseconds, of steps of some lengths."""
    total = fsum(seconds for _, _, seconds in parts)
    held: dict[str, Any] = {
        "rank": 0,
        "step_seconds": total * 1e-3,
        "parts": tuple(StepPart(kind=kind, what=what, seconds=ms * 1e-3) for kind, what, ms in parts),
        "step_ordinals": tuple(range(1, len(lengths) + 1)),
        "step_begin_nanoseconds": tuple(range(len(lengths))),
        "step_duration_nanoseconds": tuple(round(each * 1e6) for each in lengths),
    }
    return RankShares(**(held | more))


def run(name: str, *ranks: RankShares, rank: int | None = None, steps: int = 3, **more: Any) -> Run:
    basis = DiagnosisBasis(diagnoser="replay", traces=tuple(ReadTrace(steps_count=steps) for _ in ranks))
    pieces: dict[str, Any] = {"collectives": (), "timeline": None, "recorded": None}
    answer = DiagnosisAnswer(rank_shares=ranks, basis=basis, complete=True, **pieces, **more)
    return Run(name=name, answer=answer, rank=rank)


STEADY = [("computation", "operators", 80.0), ("launch", "launches", 20.0)]
LENGTHS = (99.9, 100.0, 100.1, 100.0)


def ms(one: RankDifference, kinds: set[str]) -> float:
    return 1e3 * fsum(part.difference_seconds for part in one.parts if part.kind in kinds)


def assert_adds_up(found: Comparison) -> None:
    for one in found.ranks:
        assert fsum(part.difference_seconds for part in one.parts) == pytest.approx(one.difference_seconds, abs=1e-12)
        assert fsum(one.by_kind().values()) == pytest.approx(one.difference_seconds, abs=1e-12)
        assert fsum(part.before_seconds for part in one.parts) == pytest.approx(one.before.step_seconds, abs=1e-12)
        assert fsum(part.after_seconds for part in one.parts) == pytest.approx(one.after.step_seconds, abs=1e-12)
        assert one.lower_seconds <= one.difference_seconds <= one.upper_seconds
    json.loads(orjson.dumps(document(found)))


def judged(fault: Fault) -> str:
    """Why a planted fault is not where it should be; empty = it is."""
    found = comparison_of(fault.healthy(), fault.planted())
    assert_adds_up(found)
    main = found.main
    moved = 1e3 * main.difference_seconds
    if fault.kind in {"nothing", "full queue"}:
        return "" if not main.matters else f"{fault.kind} {fault.job}: {verdict(found)}"
    if moved < 0.029e3 * main.before.step_seconds:
        return ""  # a slow rank that others hide
    right = ms(main, EXPECTED[fault.kind])
    named = verdict(found).split(": ", maxsplit=1)[1] if fault.kind != "jitter" else ""
    at_home = right >= 0.95 * moved - BESIDE_MS
    return "" if at_home else f"{fault.kind} {fault.size} {fault.job}: {right:.2f} of {moved:.2f} ms; {named}"


def test_a_sample_of_planted_faults_is_in_the_right_part() -> None:
    assert [why for why in map(judged, islice(faults(), 3, None, 7)) if why] == []


@pytest.mark.long
def test_more_planted_faults_are_in_the_right_part() -> None:
    assert [why for why in map(judged, islice(faults(), 1, None, 3)) if why] == []


def test_a_recorded_straggler_is_told_by_its_own_work_and_the_waits_for_it() -> None:
    found = comparison_of(gloo_job("ddp_2_ranks_3_buckets"), gloo_job("ddp_2_ranks_straggler"))
    assert_adds_up(found)
    assert found.main.after.rank == 1
    assert ms(found.main, {"computation"}) == pytest.approx(43, abs=1)  # as planted
    assert ms(found.ranks[0], {"waiting"}) == pytest.approx(44, abs=1.5)
    first = next(event for event in found.main.events if event.name == "SleepingLayerBackward")
    assert (first.kind, first.change, first.before_count) == ("computation", "changed", 8)
    text = verdict(found)
    assert text.startswith("A step of rank 1 takes 42.6")
    assert "ms computation (in operators)" in text
    assert "the other ranks wait 44.6" in text


def test_two_ranks_of_one_recording() -> None:
    answer = answer_of(gloo_job("ddp_2_ranks_straggler"))
    found = compare_runs(Run(name="job", answer=answer, rank=0), Run(name="job", answer=answer, rank=1))
    assert_adds_up(found)
    assert not found.main.matters
    assert "parts of it cancel out" in verdict(found)
    assert ms(found.main, {"computation"}) == pytest.approx(-ms(found.main, {"waiting"}), rel=0.05)


def test_a_late_batch_in_one_step_is_no_sure_difference_but_is_told() -> None:
    found = comparison_of(gloo_job("ddp_4_ranks_3_buckets"), gloo_job("ddp_4_ranks_late_batch"))
    text = verdict(found)
    assert text.startswith("No significant difference")
    assert "On the mean: +25.14 ms loading" in text


@pytest.mark.data
def test_batches_from_workers_gain_what_loading_took() -> None:
    folder = data_path("traces", "single_gpu")
    before = job_of(folder, "v100_resnet50_workers0_steps5-10.json.gz")
    after = job_of(folder, "v100_resnet50_workers4_steps5-10.json.gz")
    found = comparison_of(before, after)
    assert_adds_up(found)
    assert found.main.matters
    assert 1e3 * found.main.difference_seconds == pytest.approx(-42.9, abs=0.1)
    assert ms(found.main, {"loading"}) == pytest.approx(-59.2, abs=0.1)
    assert "-59.17 ms loading" in verdict(found)


@pytest.mark.data
def test_what_marks_no_steps_is_not_compared_with_what_does() -> None:
    folder = data_path("traces", "public_dev")
    window = Run(name="w", answer=answer_of(job_of(folder, "mi300x_vllm_graphs.json.gz")))
    marked = Run(name="m", answer=answer_of(job_of(folder, "h100_timesformer_preprocessing_gap.json.gz")))
    with pytest.raises(InputError, match="w: has no step marks, but the other run has"):
        compare_runs(window, marked)
    lost = Run(name="lost", answer=answer_of(job_of(folder, "a100_cupti_range_no_kernels.json.gz")))
    with pytest.raises(InputError, match="lost: cannot be compared: rank 0 has no computation"):
        compare_runs(marked, lost)


# --- the arithmetic

kinds = st.sampled_from(["computation", "transfer", "waiting", "loading", "launch", "unexplained", "another"])
tables = st.lists(
    st.tuples(kinds, st.sampled_from(["a", "b #1, 3 bytes", "b #1 (c), 4 bytes", "others"]), st.floats(0, 1e3)),
    min_size=1,
    max_size=12,
)
steps = st.lists(st.floats(1, 1e4), max_size=6)


@given(tables, tables, steps, steps, st.floats(-0.5, 0.5))
def test_parts_add_up_whatever_they_are(
    before: list[tuple[str, str, float]],
    after: list[tuple[str, str, float]],
    old: list[float],
    new: list[float],
    unaccounted: float,
) -> None:
    always = ("computation", "a", 1.0)
    first, second = shares([always, *before], old), shares([always, *after], new)
    second = replace(second, step_seconds=second.step_seconds + unaccounted * 1e-3)
    found = compare_runs(run("x", first), run("y", second))
    assert_adds_up(found)
    assert "inf" not in verdict(found)
    assert "nan" not in verdict(found)


@given(tables, steps)
def test_nothing_differs_from_itself(parts: list[tuple[str, str, float]], lengths: list[float]) -> None:
    same = shares([("computation", "a", 1.0), *parts], lengths)
    found = compare_runs(run("x", same), run("y", same))
    assert found.main.difference_seconds == 0
    assert not found.main.matters
    assert all(part.difference_seconds == 0 for part in found.main.parts)


@given(tables, tables, steps, steps)
def test_the_other_way_round_everything_changes_its_sign(
    before: list[tuple[str, str, float]], after: list[tuple[str, str, float]], old: list[float], new: list[float]
) -> None:
    always = ("computation", "a", 1.0)
    one, other = run("x", shares([always, *before], old)), run("y", shares([always, *after], new))
    there, back = compare_runs(one, other).main, compare_runs(other, one).main
    assert there.difference_seconds == pytest.approx(-back.difference_seconds, abs=1e-12)
    assert there.by_kind() == pytest.approx({kind: -each for kind, each in back.by_kind().items()}, abs=1e-12)


def test_numbers_of_the_sentence_add_up_as_they_are_printed() -> None:
    after = [("computation", "operators", 83.336), ("launch", "launches", 26.664), ("loading", "x", 0.404)]
    found = compare_runs(
        run("old", shares(STEADY, LENGTHS)), run("new", shares(after, [each + 10.404 for each in LENGTHS]))
    )
    text = verdict(found)
    assert text == (
        "A step takes 10.40 ms longer than in old (110.40 against 100.00 ms, +10.4 %; 90 % interval +10.29 to "
        "+10.52 ms): +6.66 ms launches (in launches), +3.34 ms computation (in operators), +0.40 ms other."
    )


def test_a_difference_within_what_steps_differ_by_is_none() -> None:
    wide = (80.0, 120.0, 95.0, 105.0)
    found = compare_runs(
        run("old", shares(STEADY, wide)), run("new", shares([*STEADY, ("loading", "x", 3.0)], [e + 3 for e in wide]))
    )
    assert not found.main.matters
    assert verdict(found).startswith("No relevant difference: a step takes 103.00 against 100.00 ms, +3.00 ms")
    assert "within the variation of steps" in verdict(found)


def test_single_steps_are_taken_to_differ_by_one_percent() -> None:
    longer = [*STEADY, ("loading", "x", 1.5)]
    found = compare_runs(run("old", shares(STEADY, [100])), run("new", shares(longer, [101.5])))
    assert not found.main.matters
    assert "Limited: of old and new only one step is known" in verdict(found)
    assert compare_runs(
        run("old", shares(STEADY, [100])), run("new", shares([*longer, ("loading", "y", 4)], [105.5]))
    ).main.matters


def test_exchanges_are_matched_by_name_and_number_and_waits_tell_for_whom() -> None:
    def waiting(size: str, seconds: float) -> RankShares:
        part = StepPart(kind="waiting", what=f"all_reduce #1{size}", seconds=seconds, waits_for_rank=3)
        return replace(shares(STEADY, LENGTHS), parts=(*shares(STEADY).parts, part), step_seconds=0.1 + seconds)

    found = compare_runs(run("old", waiting(", 8 bytes", 0.001)), run("new", waiting(" (span), 16 bytes", 0.011)))
    (part,) = [one for one in found.main.parts if one.kind == "waiting"]
    assert (part.before_seconds, part.after_seconds, part.waits_for_ranks) == (0.001, 0.011, (3,))
    assert "+10.00 ms exposed waiting for other ranks (in all_reduce #1 (span), 16 bytes, for rank 3)" in verdict(found)


def test_a_part_that_the_other_may_hold_among_its_others_is_not_called_new() -> None:
    before = [*STEADY, ("loading", "big", 5.0), ("loading", "others", 2.0)]
    after = [*STEADY, ("loading", "big", 5.0), ("loading", "small", 1.5), ("loading", "others", 0.5)]
    assert all(
        part.difference_seconds == 0
        for part in compare_runs(run("x", shares(before)), run("y", shares(after))).main.parts
    )
    grown = [*STEADY, ("loading", "big", 5.0), ("loading", "small", 9.0), ("loading", "others", 2.0)]
    first = compare_runs(run("x", shares(before)), run("y", shares(grown))).main.parts[0]
    assert (first.what, first.before_seconds) == ("small", 0)
    assert first.after_seconds == pytest.approx(0.009)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (run("a", shares(STEADY), rank=4), run("b", shares(STEADY)), "a: has no rank 4; recorded: 0"),
        (
            run("a", shares(STEADY, rank=1), shares(STEADY, rank=2)),
            run("b", shares(STEADY, rank=3)),
            "a has rank 1, 2, b has rank 3; choose one of each by --rank and --against-rank",
        ),
        (run("a", shares(STEADY), steps=0), run("b", shares(STEADY)), "a: has no step marks, but the other run has"),
        (
            run("a", shares([("launch", "x", 1)])),
            run("b", shares(STEADY)),
            "a: cannot be compared: rank 0 has no computation",
        ),
        (run("a", RankShares(step_seconds=0.1)), run("b", shares(STEADY)), "'replay' does not divide steps into parts"),
        (run("a"), run("b", shares(STEADY)), "'replay' does not divide steps into parts"),
    ],
)
def test_what_cannot_be_compared_is_refused(before: Run, after: Run, said: str) -> None:
    with pytest.raises(InputError) as refused:
        compare_runs(before, after)
    assert said in str(refused.value)


def test_ranks_are_paired_by_number_or_as_the_only_ones() -> None:
    two = [shares(STEADY, rank=rank) for rank in (0, 1)]
    assert [one.after.rank for one in compare_runs(run("a", *two), run("b", *two)).ranks] == [0, 1]
    alone = compare_runs(run("a", shares(STEADY, rank=5)), run("b", shares(STEADY, rank=7)))
    assert (alone.main.before.rank, alone.main.after.rank) == (5, 7)
    assert "a step of rank 7" in verdict(alone)
    partly = compare_runs(run("a", *two), run("b", two[0]))
    assert [one.after.rank for one in partly.ranks] == [0]
    assert "Limited: a: 1 of 2 ranks have no counterpart" in verdict(partly)
    assert compare_runs(run("a", *two), run("b", *two, rank=1)).main.before.rank == 1


def test_windows_are_compared_with_a_word_about_it() -> None:
    found = compare_runs(run("a", shares(STEADY), steps=0), run("b", shares(STEADY), steps=0))
    assert found.unit == "window"
    assert "Limited: neither run has step marks: whole recordings are compared" in verdict(found)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_long_names_push_nothing_away(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    name = "void at::native::vectorized<" + "x" * 400 + ">\x1b[31m\u202e"
    after = [*STEADY, ("loading", name, 5.0), ("allocation", "核" * 90, 2.0)]
    show(compare_runs(run("a", shares(STEADY, LENGTHS)), run("b", shares(after, [each + 7 for each in LENGTHS]))))
    printed = capsys.readouterr().out
    table = printed.partition("which add up to the difference")[2]
    # A sentence says names whole.
    assert all(len(line) <= width for line in table.splitlines())
    assert "differs ms" in table
    assert "+5.000" in table
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    assert "\\x1b[31m" in printed
